"""The stores that the conformance tests run on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stormctl.worlds.postgres.cluster import dsn_of
from stormctl.worlds.postgres.migrate import ensure_schema
from stormctl.worlds.postgres.server import Server, create_database, drop_database
from tests.worlds.stores import KINDS, Stores


@pytest.fixture(scope="session")
def store_dsn(postgres_server: Server) -> Iterator[str]:
    """A database with the schema for all ``stores`` of this process: making one costs more than most tests do."""
    assert postgres_server.folder is not None
    admin = dsn_of(postgres_server.folder, "postgres")
    create_database(admin, "conformance")
    dsn = dsn_of(postgres_server.folder, "conformance")
    ensure_schema(dsn, create=True)
    yield dsn
    drop_database(admin, "conformance")


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    """A fresh store of each kind; in the database, a space of its own."""
    kind = request.param
    dsn = request.getfixturevalue("store_dsn") if kind == "postgres" else None
    return Stores(kind, tmp_path, dsn)
