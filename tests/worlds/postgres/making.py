"""What the tests of the Postgres store are made of: a database with the schema, and worlds in it."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from stormctl.worlds import Condition
from stormctl.worlds.conditions import condition_named
from stormctl.worlds.postgres import spaces
from stormctl.worlds.postgres.migrate import ensure_schema
from stormctl.worlds.postgres.world import PostgresOptions, PostgresWorld

T = TypeVar("T")
_NUMBERS = itertools.count()


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a test's coroutine, with a limit: a store that hangs is a failure."""
    return asyncio.run(asyncio.wait_for(main, 90))


def new_space() -> str:
    return f"s{os.getpid()}-{next(_NUMBERS)}"


def condition(name: str, **knobs: Any) -> Condition:
    """A preset as a database follows it."""
    return replace(condition_named(name, "postgres"), **knobs)


@asynccontextmanager
async def world_of(
    dsn: str, name: str | Condition, space: str | None = None, **options: Any
) -> AsyncIterator[PostgresWorld]:
    """A world in a space of its own, or beside another one in a space that is given; no driver's lock."""
    found = condition(name) if isinstance(name, str) else name
    world = PostgresWorld(dsn, found, space or new_space(), PostgresOptions(**{"storage_scale": 0.0} | options))
    try:
        yield world
    finally:
        await world.close()


def prepared(dsn: str) -> str:
    """The same DSN, after the schema was made there."""
    ensure_schema(dsn, create=True)
    return dsn


def query(dsn: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """What the database itself says."""
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement, values)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


__all__ = ["condition", "new_space", "prepared", "query", "run", "spaces", "world_of"]
