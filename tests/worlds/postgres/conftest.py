"""One database with the schema for all tests of this folder that do not harm it; each works in a space of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stormctl.worlds.postgres.cluster import dsn_of
from stormctl.worlds.postgres.server import Server, create_database, drop_database
from tests.worlds.postgres.making import prepared


@pytest.fixture(scope="session")
def dsn(postgres_server: Server) -> Iterator[str]:
    """A database with the schema, shared by the tests of this process."""
    assert postgres_server.folder is not None
    admin = dsn_of(postgres_server.folder, "postgres")
    create_database(admin, "stores")
    yield prepared(dsn_of(postgres_server.folder, "stores"))
    drop_database(admin, "stores")
