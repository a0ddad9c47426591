"""What every test may use: a screen of known size, reproducible properties, and the reference data where it exists."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres_server import own_postgres, postgres_dsn, postgres_server, small_disk_postgres
from tests.replayed import replayed_once

__all__ = ["own_postgres", "postgres_dsn", "postgres_server", "replayed_once", "small_disk_postgres"]

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"

#: A disk in memory, and how much room it must have before tests put their files there.
MEMORY = Path("/dev/shm")
ROOM = 4 << 30


def files_in_memory() -> None:
    """Let temporary files, stores and databases lie in memory where the system has a disk there with room.

    Tests kill processes, never the machine, so that a disk shows them nothing that memory does not; and on a disk half
    of their time goes into making and removing small files. Whoever sets TMPDIR has the last word.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK | os.X_OK) or shutil.disk_usage(MEMORY).free < ROOM:
        return
    place = MEMORY / f"stormctl-tests-{os.geteuid()}"
    try:
        place.mkdir(mode=0o755, exist_ok=True)
        if place.is_symlink() or place.stat().st_uid != os.geteuid():
            return
        place.chmod(0o755)  # whatever the umask: the account of a server must be able to enter
    except OSError:
        return
    os.environ["TMPDIR"] = tempfile.tempdir = str(place)


files_in_memory()

# Timing says nothing on a shared machine; in CI the same examples every time.
settings.register_profile(
    "local",
    deadline=None,
    max_examples=int(os.environ.get("STORMCTL_EXAMPLES", "100")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("ci", parent=settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_report_header() -> str:
    return f"reference data: {SHARED if SHARED.is_dir() else 'absent, its tests are skipped'}"


@pytest.fixture(autouse=True)
def plain_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns without colour, whatever terminal the tests run in."""
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "STORMCTL_ARTEFACT", "STORMCTL_DSN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")


@pytest.fixture(autouse=True, scope="session")
def no_forks_unasked() -> Iterator[None]:
    """Prefixes are replayed one by one: a process full of tests takes longer to fork than a replay does.

    What is about the shared walk forks for every prefix (the fixtures ``forks`` and ``forked``).
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("stormctl.engine.replay.SHORT", sys.maxsize)
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the real logs, which is not in the repository."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip("the reference data is not beside this clone (../shared/data)")
    return folder
