"""PostgreSQL for tests: one private server for each test process, started when a test first asks, and a database each.

    def test_something(postgres_dsn): ...          # a DSN of a new, empty database, dropped after the test
    def test_the_server(postgres_server): ...      # the server itself: .dsn, .folder, .pid (shared: do not kill it)
    def test_full(small_disk_postgres): ...        # small_disk_postgres(megabytes=64): one on a disk that can be filled
    def test_kill(own_postgres): ...               # own_postgres(settings={...}): one of the test's own, to be killed

Where no server can be started the tests are skipped, with the reason.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import mkdtemp

import pytest

from stormctl.errors import StormctlError
from stormctl.worlds.postgres.account import server_account
from stormctl.worlds.postgres.binaries import find_binaries
from stormctl.worlds.postgres.cluster import dsn_of
from stormctl.worlds.postgres.server import Server, create_database, drop_database, start_private

#: the tests kill processes, not the machine: what was written is kept without waiting for the disk
QUICK = {"fsync": "off", "autovacuum": "off"}
_NUMBERS = itertools.count()


def needs_postgres() -> None:
    """Skip the test where no server can be started."""
    try:
        find_binaries(server_account())
    except StormctlError as error:
        pytest.skip(f"no PostgreSQL server can be started here: {error}")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A running server of this test process's own. It ends with the process, whatever happens to that."""
    needs_postgres()
    with start_private(settings=QUICK) as server:
        yield server


@pytest.fixture
def postgres_dsn(postgres_server: Server) -> Iterator[str]:
    """A DSN of a new and empty database."""
    assert postgres_server.folder is not None
    name = f"test_{next(_NUMBERS)}"
    admin = dsn_of(postgres_server.folder, "postgres")
    create_database(admin, name)
    yield dsn_of(postgres_server.folder, name)
    drop_database(admin, name)


@pytest.fixture
def own_postgres() -> Iterator[Callable[..., Server]]:
    """Start servers for this test alone: ``own_postgres(settings={"default_transaction_read_only": "on"})``."""
    needs_postgres()
    with ExitStack() as stack:
        yield lambda **how: stack.enter_context(start_private(**{"settings": QUICK} | how))


@pytest.fixture
def small_disk_postgres() -> Iterator[Callable[..., Server]]:
    """Start a server whose data lie on a disk of so many megabytes (a new one fills about 40): ``f(megabytes=64)``.

    Needs the right to mount, which root has outside of a container; skipped elsewhere.
    """
    needs_postgres()
    with ExitStack() as stack:

        def start(megabytes: int = 64) -> Server:
            place = Path(mkdtemp(prefix="stormctl-small-", dir="/tmp"))
            stack.callback(place.rmdir)
            options = f"size={megabytes}m,mode=755"
            done = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", options, "stormctl-test", str(place)], capture_output=True, text=True
            )
            if done.returncode != 0:
                why = (done.stderr.strip().splitlines() or ["mount failed"])[-1]
                pytest.skip(f"a small disk cannot be mounted here (user {os.geteuid()}): {why}")
            stack.callback(subprocess.run, ["umount", str(place)], check=True)
            settings = QUICK | {"min_wal_size": "2MB", "max_wal_size": "8MB"}
            return stack.enter_context(start_private(settings=settings, options=["--wal-segsize=1"], parent=place))

        yield start
