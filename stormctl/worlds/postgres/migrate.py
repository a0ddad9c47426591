"""The schema ``stormctl`` and its numbered migrations.

Each file of ``migrations/`` is applied once, in one transaction, in the order of its number, under an advisory lock, so
that several processes may start at the same moment. ``stormctl.migrations`` records what was applied, with a checksum.
Nothing is ever dropped.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from stormctl.errors import StoreForeign
from stormctl.worlds.postgres.dsn import redact
from stormctl.worlds.postgres.failures import explain_failure, schema_missing
from stormctl.worlds.postgres.inspect import MIGRATIONS, SCHEMA, connect

if TYPE_CHECKING:
    import psycopg

_LOCK = "select pg_advisory_xact_lock(hashtextextended('stormctl.migrations', 0))"
_RECORD = f"""
create table if not exists {MIGRATIONS} (
    version int primary key,
    name varchar not null,
    checksum varchar not null,
    applied_at timestamptz not null default now()
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """The SHA-256 of its text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@lru_cache(maxsize=1)
def migrations() -> tuple[Migration, ...]:
    """Every migration that this stormctl knows, in order."""
    found = []
    for file in files("stormctl.worlds.postgres").joinpath("migrations").iterdir():
        if file.name.endswith(".sql"):
            number, _, name = file.name[: -len(".sql")].partition("_")
            found.append(Migration(int(number), name, file.read_text(encoding="utf-8")))
    return tuple(sorted(found, key=lambda one: one.version))


def ensure_schema(dsn: str, create: bool) -> int:  # noqa: FBT001
    """Bring the schema to the newest version. Replies how many migrations were applied (0: it was up to date).

    Without ``create`` a database that holds no schema of ours is a UsageError that names ``--create-schema``: nobody
    finds new tables in a database that stormctl did not make. One that is there is brought up to date in any case.
    StoreForeign when it is newer than this stormctl, or when a migration that was applied there is not the one known
    here. May block for some seconds; call it from a thread where an event loop runs.
    """
    import psycopg

    shown = redact(dsn)
    with connect(dsn) as connection:
        try:
            with connection.transaction():
                return _migrate(connection, shown, create=create)
        except psycopg.Error as error:
            raise explain_failure(error, shown) from None


def check_schema(dsn: str) -> None:
    """Make sure, changing nothing, that the schema is there and as new as this stormctl needs it."""
    import psycopg

    shown = redact(dsn)
    with connect(dsn) as connection:
        try:
            applied = _applied(connection)
        except psycopg.Error as error:
            raise explain_failure(error, shown) from None
    if not applied:
        raise schema_missing(shown)
    if missing := _missing(applied, shown):
        raise StoreForeign(
            f"the schema in {shown} lacks migration {missing[0].version} ({missing[0].name})",
            remedy="Start the storm's driver first, with this version of stormctl: it brings the schema up to date.",
        )


def _migrate(connection: psycopg.Connection[Any], shown: str, *, create: bool) -> int:
    connection.execute(_LOCK)
    applied = _applied(connection)
    if not applied:
        if not create:
            raise schema_missing(shown)
        connection.execute(f"create schema if not exists {SCHEMA}")
        connection.execute(_RECORD)
    missing = _missing(applied, shown)
    for one in missing:
        connection.execute(one.sql.encode())
        connection.execute(
            f"insert into {MIGRATIONS} (version, name, checksum) values (%s, %s, %s)",
            (one.version, one.name, one.checksum),
        )
    return len(missing)


def _applied(connection: psycopg.Connection[Any]) -> dict[int, str]:
    """The checksums of the migrations that were applied, by version; empty where there is no schema of ours."""
    there = connection.execute("select to_regclass(%s) is not null", (MIGRATIONS,)).fetchone()
    if there is None or not there[0]:
        return {}
    return {
        int(version): str(checksum)
        for version, checksum in connection.execute(f"select version, checksum from {MIGRATIONS}")
    }


def _missing(applied: dict[int, str], shown: str) -> list[Migration]:
    known = {one.version: one for one in migrations()}
    newest = max(known)
    if applied and max(applied) > newest:
        raise StoreForeign(
            f"the schema in {shown} is version {max(applied)}, and this stormctl knows none above {newest}",
            remedy="Upgrade stormctl, or use another database.",
        )
    for version, checksum in applied.items():
        if version in known and known[version].checksum != checksum:
            raise StoreForeign(
                f"migration {version} of the schema in {shown} is not the one that this stormctl knows",
                remedy="It was made by a development version: use another database.",
            )
    return [one for one in migrations() if one.version not in applied]
