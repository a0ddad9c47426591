"""The database server of a storm, where one of its worlds lies in a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stormctl.errors import UsageError
from stormctl.storm import sdk_plan, url_plan
from stormctl.storm.plan import Plan
from stormctl.worlds.open import ServerHandle, world_kind


@contextmanager
def server_for(plan: Plan, dsn: str | None, *, create_schema: bool = False) -> Iterator[ServerHandle | None]:
    """The server for a plan, found or started, and stopped again if it was started for this storm; None when no cell
    needs one.

    ``create_schema`` lets stormctl make its schema in a database that it did not make. UsageError for a DSN that no
    cell could use, and whatever finding a server raises.
    """
    worlds = () if plan.target == url_plan.TARGET else map(sdk_plan.world_of, plan.cells)  # an app has its own
    kinds = {kind.server: kind for world in worlds if (kind := world_kind(world)).server is not None}
    if not kinds:
        if dsn is not None or create_schema:
            option = "--dsn" if dsn is not None else "--create-schema"
            raise UsageError(
                f"{option} was given, but no cell of the plan lies in a database",
                remedy="Leave it out, or name another world with -P world=NAME."
                if plan.target != url_plan.TARGET
                else "Leave it out: the app's file says under `log` where its event log is read.",
            )
        yield None
        return
    (kind,) = kinds.values()
    assert kind.server is not None
    server = kind.server(dsn)
    try:
        if kind.prepare is not None and plan.target != sdk_plan.TARGET:  # the SDK makes its tables itself
            kind.prepare(server, create_schema)
        yield server
    finally:
        server.close()
