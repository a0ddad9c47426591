"""Opening a world by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from stormctl.errors import UsageError, suggest
from stormctl.worlds.base import World
from stormctl.worlds.condition import Condition
from stormctl.worlds.conditions import condition_named
from stormctl.worlds.delay import PRODUCTION, DelayShape, PublishDelay
from stormctl.worlds.local import LocalOptions, LocalWorld, OnPoint
from stormctl.worlds.memory import MemoryWorld

Role = Literal["driver", "worker"]


@dataclass(frozen=True, slots=True)
class Opening:
    """What a world is opened with, whatever kind of world it is.

    ``folder`` is where a local store lies; ``dsn`` says which database and ``space`` which of the stores in it (its
    queue and its runs are apart from those of other spaces). ``storage_scale`` multiplies the injected delays of
    ``shape``. ``lease_ms`` is the age at which a claimed queue message goes back. ``on_point`` is awaited at each point
    of each append (faults and tests). ``options`` is what else the local world can be told.
    """

    folder: Path | None
    condition: Condition
    role: Role = "driver"
    worker: str | None = None
    storage_scale: float = 1.0
    seed: int | str = 0
    dsn: str | None = None
    space: str = ""
    lease_ms: float = 300_000
    shape: DelayShape = PRODUCTION
    on_point: OnPoint | None = None
    options: LocalOptions | None = None


def _local(opening: Opening) -> World:
    if opening.folder is None:
        raise UsageError("the local world needs a folder", remedy="Name one, or use the memory world.")
    options = replace(
        opening.options or LocalOptions(lease_ms=opening.lease_ms, shape=opening.shape, on_point=opening.on_point),
        worker=opening.worker,
        storage_scale=opening.storage_scale,
        seed=opening.seed,
    )
    if opening.role == "worker":
        return LocalWorld.join(opening.folder, opening.condition, options)
    return LocalWorld.create(opening.folder, opening.condition, options)


def _memory(opening: Opening) -> World:
    delay = PublishDelay(seed=opening.seed, scale=opening.storage_scale, shape=opening.shape)
    return MemoryWorld(opening.condition, delay=delay, on_point=opening.on_point)


def _postgres(opening: Opening) -> World:
    from stormctl.worlds.postgres.world import open_postgres

    return open_postgres(opening)


class ServerHandle(Protocol):
    """A database server that a storm may use. ``dsn`` may hold a password, ``shown`` never does; ``ours``: stormctl
    started it, so whatever lies there may be dropped."""

    @property
    def dsn(self) -> str: ...

    @property
    def shown(self) -> str: ...

    @property
    def ours(self) -> bool: ...

    def close(self) -> None: ...


class StormRow(Protocol):
    """A storm as its database knows it; ``plan`` is the text of its plan file."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def plan(self) -> str: ...

    @property
    def host(self) -> str: ...


class Registry(Protocol):
    """The storms of one database, and what their workers did. Every method may raise StoreFailure."""

    async def register_storm(self, storm_id: str, name: str, plan: str) -> None: ...

    async def beat(self, storm_id: str) -> bool: ...

    async def end_storm(self, storm_id: str) -> None: ...

    async def running_storms(self) -> Sequence[StormRow]: ...

    async def journal(self, storm_id: str, rows: Sequence[Mapping[str, Any]]) -> None: ...

    async def work_of(self, storm_id: str, run_id: str | None = None) -> list[dict[str, Any]]: ...

    async def close(self) -> None: ...


def _postgres_registry(dsn: str) -> Registry:
    from stormctl.worlds.postgres.storms import StormTable

    return StormTable(dsn)


def _postgres_server(dsn: str | None) -> ServerHandle:
    from stormctl.worlds.postgres.server import resolve_server

    return resolve_server(dsn)


def _postgres_standing() -> ServerHandle | None:
    from stormctl.worlds.postgres import standing
    from stormctl.worlds.postgres.server import of_standing

    found = standing.find()
    return None if found is None else of_standing(found)


def _postgres_forget(dsn: str, storms: Sequence[str], dry: bool) -> int:  # noqa: FBT001
    from stormctl.worlds.postgres.forget import forget

    return forget(dsn, storms, dry)


def _postgres_schema(server: ServerHandle, create: bool) -> None:  # noqa: FBT001
    from stormctl.worlds.postgres.migrate import ensure_schema

    ensure_schema(server.dsn, server.ours or create)


@dataclass(frozen=True, slots=True)
class WorldKind:
    """What must be known of a kind of world before one is opened.

    ``in_process``: it lives in the process that opened it, and no other can join. ``server`` finds the database server
    that it needs, or starts one (it blocks for up to a few seconds); None for a world that needs none. ``prepare``
    makes a database ready for worlds of this kind; its second argument allows to make the schema where stormctl did not
    make the database. ``registry`` is where such a database keeps its storms, for workers on other hosts. ``standing``
    is the server of stormctl's own that is up for longer than a storm, and ``forget`` deletes the stores of storms from
    a database (with a third argument it only counts them).
    """

    opener: Callable[[Opening], World]
    in_process: bool = False
    server: Callable[[str | None], ServerHandle] | None = None
    prepare: Callable[[ServerHandle, bool], None] | None = None
    registry: Callable[[str], Registry] | None = None
    standing: Callable[[], ServerHandle | None] | None = None
    forget: Callable[[str, Sequence[str], bool], int] | None = None

    @property
    def needs_server(self) -> bool:
        """Whether it lies in a database."""
        return self.server is not None


#: Every kind of world by name. One that needs more than the standard library imports it inside its opener.
WORLDS: dict[str, WorldKind] = {
    "local": WorldKind(_local),
    "memory": WorldKind(_memory, in_process=True),
    "postgres": WorldKind(
        _postgres,
        server=_postgres_server,
        prepare=_postgres_schema,
        registry=_postgres_registry,
        standing=_postgres_standing,
        forget=_postgres_forget,
    ),
}


def world_kind(name: str) -> WorldKind:
    """The kind of world of that name; UsageError for an unknown one."""
    if name not in WORLDS:
        raise UsageError(f"there is no world {name!r}", remedy=suggest(name, WORLDS))
    return WORLDS[name]


def open_world(name: str, folder: Path | str | None, condition: str | Condition, **more: Any) -> World:
    """A world by its name, ready for use; ``more`` are the other fields of :class:`Opening`.

    ``role`` is ``driver`` (makes the store and owns it) or ``worker`` (joins it). UsageError for an unknown world or
    condition; StoreForeign and StoreBusy as the world says.
    """
    kind = world_kind(name)
    found = condition_named(condition, name) if isinstance(condition, str) else condition
    return kind.opener(Opening(None if folder is None else Path(folder), found, **more))
