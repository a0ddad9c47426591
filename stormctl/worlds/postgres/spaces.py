"""The stores in one database: under which condition each was made, and which driver is using it now.

What ``worlds.owner`` is for a folder. Everything here is one short blocking connection, made when a world is opened.
"""

from __future__ import annotations

import json
import secrets
from typing import Any

from stormctl.errors import StoreBusy, StoreForeign, UsageError
from stormctl.worlds import process
from stormctl.worlds.owner import HEARTBEAT_S, STALE_S
from stormctl.worlds.postgres.dsn import redact
from stormctl.worlds.postgres.failures import explain_failure
from stormctl.worlds.postgres.inspect import connect
from stormctl.worlds.postgres.pipe import Sql

__all__ = ["BEAT", "GIVE_BACK", "HEARTBEAT_S", "STALE_S", "driver_of", "join", "recorded_condition", "take"]

BEAT = Sql(
    "update stormctl.spaces set heartbeat_at = clock_timestamp() where space = $1 and driver->>'nonce' = $2::text"
)
GIVE_BACK = Sql(
    "update stormctl.spaces set driver = null, heartbeat_at = null where space = $1 and driver->>'nonce' = $2::text"
)
_FOUND = """
select condition, driver, extract(epoch from clock_timestamp() - heartbeat_at)::float8
from stormctl.spaces where space = %s
"""


def take(dsn: str, space: str, condition: str) -> tuple[str, str | None]:
    """Make the store, or take up one made under this condition, and own it: the part of a driver.

    Replies a nonce that stands for the ownership, and a note for the user when a dead driver's store was taken over,
    else None. StoreBusy, naming host and pid, when a living driver holds it; UsageError when it was made under another
    condition.
    """
    import psycopg

    nonce = secrets.token_hex(8)
    mine = json.dumps(process.whoami() | {"nonce": nonce})
    with connect(dsn) as connection:
        try:
            with connection.transaction():
                connection.execute(
                    "insert into stormctl.spaces (space, condition) values (%s, %s) on conflict do nothing",
                    (space, condition),
                )
                recorded, driver, age = _row(connection.execute(f"{_FOUND} for update", (space,)).fetchone())
                _same(recorded, condition, space)
                note = None
                if driver is not None:
                    note = _take_over(driver, age, space)
                connection.execute(
                    "update stormctl.spaces set driver = %s::jsonb, heartbeat_at = clock_timestamp() where space = %s",
                    (mine, space),
                )
        except psycopg.Error as error:
            raise explain_failure(error, redact(dsn)) from None
    return nonce, note


def join(dsn: str, space: str, condition: str | None) -> str:
    """Make sure that the store exists, under this condition. Replies the recorded one."""
    recorded = recorded_condition(dsn, space)
    if condition is not None:
        _same(recorded, condition, space)
    return recorded


def recorded_condition(dsn: str, space: str) -> str:
    """The condition under which the store was made; StoreForeign when there is none of that name."""
    return _look(dsn, space)[0]


def driver_of(dsn: str, space: str) -> dict[str, Any] | None:
    """What the store's living driver says of itself (pid, host), None when there is none."""
    _, driver, age = _look(dsn, space)
    return None if driver is None or age > STALE_S or process.is_dead(driver) else driver


def _look(dsn: str, space: str) -> tuple[str, dict[str, Any] | None, float]:
    import psycopg

    with connect(dsn) as connection:
        try:
            row = connection.execute(_FOUND, (space,)).fetchone()
        except psycopg.Error as error:
            raise explain_failure(error, redact(dsn)) from None
    if row is None:
        raise StoreForeign(
            f"the database {redact(dsn)} holds no store of the name {space!r}",
            remedy="Start its driver first, or give the name that `stormctl run` printed.",
        )
    return _row(row)


def _row(row: Any) -> tuple[str, dict[str, Any] | None, float]:
    condition, driver, age = row
    return str(condition), driver, 0.0 if age is None else float(age)


def _same(recorded: str, condition: str, space: str) -> None:
    if recorded != condition:
        raise UsageError(
            f"the store {space!r} was made under condition {recorded}, not {condition}",
            remedy=f"Use --condition {recorded}, or give the store another name.",
        )


def _take_over(driver: dict[str, Any], age: float, space: str) -> str:
    who = f"pid {driver.get('pid', 'unknown')} on {driver.get('host', 'an unknown host')}"
    if age <= STALE_S and not process.is_dead(driver):
        raise StoreBusy(
            f"the store {space!r} is in use by {who} (last sign of life {max(age, 0):.0f} s ago)",
            remedy="Wait until that storm ends, stop it, or give this one another name.",
        )
    return f"took over the store {space!r} from {who}, which ended without giving it back"
