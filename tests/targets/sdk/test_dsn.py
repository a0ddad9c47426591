"""Connection strings for Node's client."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from stormctl.targets.sdk.dsn import node_url


@pytest.mark.parametrize(
    ("dsn", "url"),
    [
        ("host=db.example port=5433 user=me dbname=storm", "postgresql://me@db.example:5433/storm"),
        (
            "postgresql://me:p%40ss@db.example/storm?sslmode=require",
            "postgresql://me:p%40ss@db.example/storm?sslmode=require",
        ),
        (
            "postgresql://stormctl@/storm?host=/var/tmp/x/socket&port=5432",
            "postgresql://stormctl@/storm?host=%2Fvar%2Ftmp%2Fx%2Fsocket&port=5432",
        ),
        ("host=::1 dbname=storm", "postgresql://[::1]/storm"),
    ],
)
def test_a_dsn_of_either_form_becomes_a_url(dsn: str, url: str) -> None:
    assert node_url(dsn) == url


_WORDS = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=12)


@given(user=_WORDS, password=_WORDS, dbname=_WORDS, socket=st.booleans())
def test_nothing_is_lost_on_the_way(user: str, password: str, dbname: str, socket: bool) -> None:
    parts = {
        "user": user,
        "password": password,
        "dbname": dbname,
        "host": "/run/pg" if socket else "db",
        "port": "5433",
    }
    assert conninfo_to_dict(node_url(make_conninfo(**parts))) == parts
