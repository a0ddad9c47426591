"""The schema: made once, by whoever comes first, and only where that was asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stormctl.errors import StoreForeign, UsageError
from stormctl.worlds.postgres import migrate
from stormctl.worlds.postgres.inspect import inspect
from tests.worlds.postgres.making import query

pytestmark = pytest.mark.storm


def test_the_first_use_makes_the_schema_and_the_second_changes_nothing(postgres_dsn: str) -> None:
    assert migrate.ensure_schema(postgres_dsn, create=True) == len(migrate.migrations())
    assert migrate.ensure_schema(postgres_dsn, create=True) == 0
    assert migrate.ensure_schema(postgres_dsn, create=False) == 0
    migrate.check_schema(postgres_dsn)
    assert inspect(postgres_dsn).schema == migrate.migrations()[-1].version


def test_a_database_of_somebody_else_is_left_alone_until_told(postgres_dsn: str) -> None:
    query(postgres_dsn, "create table theirs (a int)")
    with pytest.raises(UsageError) as raised:
        migrate.ensure_schema(postgres_dsn, create=False)
    assert "--create-schema" in raised.value.remedy
    with pytest.raises(UsageError):
        migrate.check_schema(postgres_dsn)
    assert query(postgres_dsn, "select nspname from pg_namespace where nspname = 'stormctl'") == []
    migrate.ensure_schema(postgres_dsn, create=True)
    assert query(postgres_dsn, "select count(*) from theirs") == [(0,)]


def test_processes_that_start_at_the_same_moment_make_it_once(postgres_dsn: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: migrate.ensure_schema(postgres_dsn, create=True), range(8)))
    assert sorted(made) == [0] * 7 + [len(migrate.migrations())]


def test_an_older_schema_is_brought_up_to_date(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every = migrate.migrations()
    monkeypatch.setattr(migrate, "migrations", lambda: every[:1])
    migrate.ensure_schema(postgres_dsn, create=True)
    query(postgres_dsn, "insert into stormctl.spaces (space, condition) values ('kept', 'main')")
    monkeypatch.setattr(migrate, "migrations", lambda: every)
    with pytest.raises(StoreForeign, match="lacks migration 2"):
        migrate.check_schema(postgres_dsn)
    assert migrate.ensure_schema(postgres_dsn, create=False) == len(every) - 1
    assert query(postgres_dsn, "select space from stormctl.spaces") == [("kept",)]


def test_a_newer_schema_is_refused(postgres_dsn: str) -> None:
    migrate.ensure_schema(postgres_dsn, create=True)
    query(postgres_dsn, "insert into stormctl.migrations (version, name, checksum) values (999, 'later', 'x')")
    for look in (lambda: migrate.ensure_schema(postgres_dsn, create=True), lambda: migrate.check_schema(postgres_dsn)):
        with pytest.raises(StoreForeign, match="version 999") as raised:
            look()
        assert "Upgrade stormctl" in raised.value.remedy


def test_a_migration_that_was_changed_afterwards_is_refused(postgres_dsn: str) -> None:
    migrate.ensure_schema(postgres_dsn, create=True)
    query(postgres_dsn, "update stormctl.migrations set checksum = 'other' where version = 1")
    with pytest.raises(StoreForeign, match="migration 1"):
        migrate.ensure_schema(postgres_dsn, create=True)


def test_a_migration_that_fails_leaves_nothing(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every = migrate.migrations()
    broken = migrate.Migration(999, "broken", "create table stormctl.half (a int); select 1/0")
    monkeypatch.setattr(migrate, "migrations", lambda: (*every, broken))
    with pytest.raises(Exception, match="division by zero"):
        migrate.ensure_schema(postgres_dsn, create=True)
    assert query(postgres_dsn, "select to_regclass('stormctl.migrations') is null") == [(True,)]


def test_the_migrations_are_numbered_without_a_gap_and_their_files_lie_in_the_package(root: Path) -> None:
    assert [one.version for one in migrate.migrations()] == list(range(1, len(migrate.migrations()) + 1))
    files = sorted((root / "stormctl" / "worlds" / "postgres" / "migrations").glob("*.sql"))
    assert len(files) == len(migrate.migrations())
