"""A database of its own for each cell that lies on postgres, with the tables of its version."""

from __future__ import annotations

import asyncio

from stormctl.errors import StoreFailure, StormctlError
from stormctl.targets.sdk.pins import POSTGRES
from stormctl.targets.sdk.projects import Project
from stormctl.worlds.open import ServerHandle


class Databases:
    """The databases of one storm on one server. All of them are its own, so all are dropped."""

    def __init__(self, server: ServerHandle | None, storm: str) -> None:
        self._server = server
        self._storm = storm.lower()
        self._made: dict[int, str] = {}

    async def make(self, cell: int, life: int, project: Project) -> str | None:
        """The DSN of a new database with the tables of a project's world; None for a world that needs none.

        StoreFailure when it cannot be made.
        """
        if project.world != POSTGRES:
            return None
        assert self._server is not None
        from psycopg import conninfo

        name = f"stormctl_{self._storm}_{cell}_{life}"
        await asyncio.to_thread(self._create, name)
        self._made[cell] = name
        dsn: str = conninfo.make_conninfo(self._server.dsn, dbname=name)
        await asyncio.to_thread(project.migrate, dsn)
        return dsn

    async def drop(self, cell: int) -> None:
        """Drop a cell's database, if it has one."""
        name = self._made.pop(cell, None)
        if name is not None:
            await asyncio.to_thread(self._drop, name)

    def _create(self, name: str) -> None:
        import psycopg

        from stormctl.worlds.postgres.server import create_database

        assert self._server is not None
        try:
            create_database(self._server.dsn, name)
        except (psycopg.Error, StormctlError) as error:
            raise StoreFailure(
                f"no database for a cell can be made on {self._server.shown}: {str(error).strip()}",
                remedy="Give its user the right to create databases, or let stormctl start a server (leave --dsn out).",
            ) from None

    def _drop(self, name: str) -> None:
        import psycopg

        from stormctl.worlds.postgres.server import drop_database

        assert self._server is not None
        try:
            drop_database(self._server.dsn, name)
        except (psycopg.Error, StormctlError) as error:
            raise StoreFailure(
                f"the database {name} cannot be dropped: {str(error).strip()}", remedy="Drop it by hand."
            ) from None
