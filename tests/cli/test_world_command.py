"""``stormctl world``: a server for as long as a user wants it, found by every shell, and what bad input looks like."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from stormctl.errors import EXIT_CLEAN, EXIT_INTERNAL, EXIT_USAGE
from stormctl.worlds.postgres import standing
from tests.cli.conftest import Ran
from tests.postgres_server import needs_postgres

Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A state folder of the test's own; what was started there is removed."""
    monkeypatch.setenv("STORMCTL_STATE", str(tmp_path))
    yield
    standing.down(remove=True)


@pytest.mark.storm
def test_up_status_reset_down(stormctl: Run) -> None:
    needs_postgres()
    up = stormctl("world", "up")
    assert up.code == EXIT_CLEAN
    dsn = re.search(r"^  (postgresql://\S+)$", up.out, re.MULTILINE)
    assert dsn is not None
    assert f"export STORMCTL_DSN='{dsn[1]}'" in up.out
    with psycopg.connect(dsn[1]) as connection:
        connection.execute("create table t ()")

    again = stormctl("world", "up")
    assert (again.code, again.out) == (EXIT_CLEAN, up.out)

    status = stormctl("world", "status")
    assert status.code == EXIT_CLEAN
    shown = dict(re.split(r"  +", line, maxsplit=1) for line in status.out.splitlines())
    assert shown["running"].startswith("PostgreSQL ")
    assert shown["dsn"] == dsn[1]
    assert re.fullmatch(r"stormctl, \d+\.\d MB", shown["database"])
    assert shown["sessions"] == "0 of at most 200"
    assert shown["schema"] == "none yet"

    assert stormctl("world", "reset").out == f"the database of {dsn[1]} is empty\n"
    with psycopg.connect(dsn[1]) as connection:
        assert connection.execute("select to_regclass('t')").fetchone() == (None,)

    down = stormctl("world", "down")
    assert re.search(r"^stopped PostgreSQL \S+, process \d+\nits data stay in ", down.out)
    assert stormctl("world", "status").out.startswith("not running")
    removed = stormctl("world", "down", "--remove")
    assert re.match(r"no PostgreSQL server of stormctl was up\nremoved /", removed.out)
    assert stormctl("world", "down").out == "no PostgreSQL server of stormctl was up\n"


@pytest.mark.storm
def test_psql_takes_over_and_hands_on_its_arguments(postgres_dsn: str, root: Path, tmp_path: Path) -> None:
    fake = tmp_path / "psql"
    fake.write_text('#!/bin/sh\nprintf \'%s|\' "$@" "$PGPASSWORD"\n')
    fake.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "stormctl", "world", "psql", "--", "-c", "select 1"],
        cwd=root,
        env=os.environ | {"PATH": str(tmp_path), "STORMCTL_DSN": f"{postgres_dsn}&password=s3cret"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    address, *rest = done.stdout.split("|")
    assert "s3cret" not in address  # everybody may list the arguments of a process
    assert "host=" in address
    assert rest == ["-c", "select 1", "s3cret", ""]


@pytest.mark.storm
def test_without_psql_there_is_a_sentence(stormctl: Run, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    ran = stormctl("world", "psql", "--dsn", postgres_dsn)
    assert ran.code == EXIT_USAGE
    assert ran.err.startswith("stormctl: psql is not on this machine. Install PostgreSQL's client")


@pytest.mark.storm
def test_a_server_that_is_named_is_used_and_left_alone(
    stormctl: Run, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORMCTL_DSN", f"{postgres_dsn}&password=s3cret")
    up = stormctl("world", "up")
    assert up.out == f"STORMCTL_DSN names a server that is up, so none was started:\n  {postgres_dsn}\n"
    status = stormctl("world", "status")
    assert "found by       STORMCTL_DSN\n" in status.out
    assert "s3cret" not in status.out
    reset = stormctl("world", "reset")
    assert reset.code == EXIT_USAGE
    assert "did not start, where nothing is ever dropped" in reset.err
    assert standing.recorded() is None


@pytest.mark.parametrize("command", ["psql", "reset"])
def test_what_needs_a_server_says_so_without_one(stormctl: Run, command: str) -> None:
    ran = stormctl("world", command)
    assert ran.code == EXIT_USAGE
    assert ran.err.startswith("stormctl: no PostgreSQL server of stormctl is up")
    assert "stormctl world up" in ran.err
    assert ran.err.count("\n") == 1


def test_status_without_a_server_is_no_error(stormctl: Run) -> None:
    ran = stormctl("world", "status")
    assert ran.code == EXIT_CLEAN
    assert ran.out.startswith("not running: ")


@pytest.mark.parametrize("command", ["status", "psql"])
def test_nonsense_as_a_dsn_is_a_usage_error_that_does_not_repeat_it(stormctl: Run, command: str) -> None:
    ran = stormctl("world", command, "--dsn", "postgres//alice:s3cret@db")
    assert ran.code == EXIT_USAGE
    assert ran.err.startswith("stormctl: what --dsn holds is not a DSN that PostgreSQL can read. Write postgresql://")
    assert "s3cret" not in ran.err
    assert ran.err.count("\n") == 1


def test_a_server_that_does_not_answer_is_an_error_without_the_password(stormctl: Run, tmp_path: Path) -> None:
    ran = stormctl("world", "status", "--dsn", f"host={tmp_path} user=alice password=s3cret")
    assert ran.code == EXIT_INTERNAL
    assert ran.err.startswith(f"stormctl: no PostgreSQL server listens at user=alice host={tmp_path}. Check host")
    assert "s3cret" not in ran.err


def test_help_names_every_command(stormctl: Run) -> None:
    ran = stormctl("world", "--help")
    assert ran.code == EXIT_CLEAN
    for command in ("up", "status", "psql", "reset", "down"):
        assert re.search(rf"^. {command}  ", ran.out, re.MULTILINE)
