"""Deleting what storms left in a database: rows only, never a table, and never those of a storm that runs."""

from __future__ import annotations

from collections.abc import Sequence

from stormctl.worlds.owner import STALE_S
from stormctl.worlds.postgres.dsn import redact
from stormctl.worlds.postgres.failures import explain_failure
from stormctl.worlds.postgres.inspect import connect

_SPACES = """
select space from stormctl.spaces
where split_part(space, '/', 1) = any(%s)
  and (driver is null or heartbeat_at < clock_timestamp() - %s * interval '1 second')
"""
_TABLES = """
select table_name from information_schema.columns
where table_schema = 'stormctl' and column_name = 'space' order by table_name = 'spaces', table_name
"""
_ENDED = """
select id from stormctl.storms
where id = any(%s) and (ended_at is not null or heartbeat_at < clock_timestamp() - %s * interval '1 second')
"""


def forget(dsn: str, storms: Sequence[str], dry: bool) -> int:  # noqa: FBT001
    """Delete every store of these storms, and their work journals. Replies how many stores they were.

    With ``dry`` nothing is deleted. A database without our schema holds none.
    """
    import psycopg
    from psycopg import sql

    with connect(dsn) as connection:
        try:
            if connection.execute("select to_regclass('stormctl.spaces') is null").fetchone() == (True,):
                return 0
            with connection.transaction():
                spaces = [row[0] for row in connection.execute(_SPACES, (list(storms), STALE_S)).fetchall()]
                if dry:
                    return len(spaces)
                for (table,) in connection.execute(_TABLES).fetchall() if spaces else ():
                    statement = sql.SQL("delete from stormctl.{} where space = any(%s)").format(sql.Identifier(table))
                    connection.execute(statement, (spaces,))
                ended = [row[0] for row in connection.execute(_ENDED, (list(storms), STALE_S)).fetchall()]
                connection.execute("delete from stormctl.work where storm = any(%s)", (ended,))
                connection.execute("delete from stormctl.storms where id = any(%s)", (ended,))
                return len(spaces)
        except psycopg.Error as error:
            raise explain_failure(error, redact(dsn)) from None
