"""What a server is: connected to once, before anything rests on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stormctl.worlds.postgres.binaries import MINIMUM_MAJOR
from stormctl.worlds.postgres.dsn import redact
from stormctl.worlds.postgres.failures import explain_failure, read_only, too_old

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

APPLICATION = "stormctl"
CONNECT_SECONDS = 10
SCHEMA = "stormctl"
#: the table of applied migrations, with an integer column ``version``
MIGRATIONS = f"{SCHEMA}.migrations"

_FACTS = """
select current_setting('server_version'),
       pg_is_in_recovery() or current_setting('default_transaction_read_only')::bool,
       current_setting('track_commit_timestamp')::bool,
       current_setting('max_connections')::int,
       current_database()::text,
       pg_database_size(current_database()),
       (select count(*) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend')
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server says of itself.

    ``size`` in bytes; ``sessions`` are other clients of the same database; ``schema`` is the version of the storms'
    schema there, None when there is none.
    """

    version: str
    commit_stamps: bool
    max_connections: int
    database: str
    size: int
    sessions: int
    schema: int | None


def connect(dsn: str, *, seconds: int = CONNECT_SECONDS) -> psycopg.Connection[TupleRow]:
    """A plain autocommit connection. A StormctlError that says what is wrong when there is none to be had."""
    import psycopg

    try:
        return psycopg.connect(dsn, autocommit=True, connect_timeout=seconds, application_name=APPLICATION)
    except psycopg.Error as error:
        raise explain_failure(error, redact(dsn)) from None  # the original may quote the password


def inspect(dsn: str) -> Facts:
    """What the server is, when it will do: new enough and writable. A StormctlError when it will not."""
    import psycopg

    shown = redact(dsn)
    try:
        with connect(dsn) as connection:
            if connection.info.server_version < MINIMUM_MAJOR * 10000:
                raise too_old(connection.info.server_version, shown)
            row = connection.execute(_FACTS).fetchone()
            assert row is not None
            schema = _schema_version(connection)
    except psycopg.Error as error:
        raise explain_failure(error, shown) from None
    version, readonly, stamps, most, database, size, sessions = row
    if readonly:
        raise read_only(shown)
    return Facts(version, stamps, most, database, size, sessions, schema)


def _schema_version(connection: psycopg.Connection[TupleRow]) -> int | None:
    there = connection.execute("select to_regclass(%s) is not null", [MIGRATIONS]).fetchone()
    if there is None or not there[0]:
        return None
    found = connection.execute(f"select max(version)::int from {MIGRATIONS}").fetchone()
    return None if found is None else found[0]
