"""The stores that the conformance tests run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worlds.stores import KINDS, Stores


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    """A fresh store of each kind."""
    kind = request.param
    dsn = request.getfixturevalue("postgres_dsn") if kind == "postgres" else None
    return Stores(kind, tmp_path, dsn)
