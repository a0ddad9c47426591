"""The server that ``stormctl world up`` starts: it stays until ``stormctl world down``, and every shell finds it.

One for each user and machine. What is known of it lies in ``world-<host>.json`` of the state folder: the one that
STORMCTL_STATE names, else ``$XDG_STATE_HOME/stormctl``, else ``~/.local/state/stormctl``. A process id alone proves
nothing, since it is given again: the record also holds when that process started, and on which boot of the machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stormctl.errors import StoreFailure, UsageError
from stormctl.worlds.postgres import cluster
from stormctl.worlds.postgres.account import server_account
from stormctl.worlds.postgres.binaries import find_binaries
from stormctl.worlds.process import host, is_dead, space, whoami

VARIABLE = "STORMCTL_STATE"
SCHEMA = "stormctl.world/1"
LOCK_SECONDS = 2 * cluster.START_SECONDS
STOP_SECONDS = 30.0

#: whether this system tells of its processes in files; macOS does not
PROC = os.path.exists("/proc/self/stat")

_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Standing:
    """The record of a server: ``started`` says when its process began, in the system's own words."""

    folder: Path
    pid: int
    started: str
    space: str
    since: float
    version: str
    programs: Path

    @property
    def dsn(self) -> str:
        """How to connect to its database."""
        return cluster.dsn_of(self.folder)

    def is_running(self) -> bool:
        """Whether that very process still runs. A process id that was given to another does not count."""
        return self.space == space() and process_started(self.pid) == self.started


@dataclass(frozen=True, slots=True)
class Up:
    """What ``up`` replies: ``fresh`` when it started the server rather than found it."""

    record: Standing
    fresh: bool


@dataclass(frozen=True, slots=True)
class Down:
    """What ``down`` replies: the server that it stopped, and the folder of data that it removed or left."""

    stopped: Standing | None
    removed: Path | None
    kept: Path | None


def find() -> Standing | None:
    """The server that is up, None when there is none."""
    record = recorded()
    return record if record is not None and record.is_running() else None


def recorded() -> Standing | None:
    """What the record says, whether the server runs or not; None when there is none."""
    try:
        found: Any = json.loads(_record_file().read_bytes())
        if found["schema"] != SCHEMA:
            return None
        return Standing(
            Path(found["folder"]),
            int(found["pid"]),
            str(found["started"]),
            str(found["space"]),
            float(found["since"]),
            str(found["version"]),
            Path(found["programs"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def up() -> Up:
    """Start the server, on the data of last time if there are any, unless it is up. Two at once start one."""
    from stormctl.worlds.postgres.server import create_database

    with _locked():
        if (record := find()) is not None:
            return Up(record, fresh=False)
        account = server_account()
        last = recorded()
        major = None if last is None or cluster.marked(last.folder) is None else cluster.data_major(last.folder)
        binaries = find_binaries(account, major=major)
        if last is None or major is None:
            cluster.sweep(_is_left)
            folder = cluster.make_folder(account, {"record": str(_record_file()), "by": whoami()})
            try:
                binaries = cluster.initialise(binaries, account, folder)
            except BaseException:
                cluster.remove(folder)
                raise
        else:
            folder = last.folder
            binaries = cluster.reachable(binaries, account, folder)
            _forget_postmaster(folder)
        process = cluster.start(binaries, account, folder, bound=False)
        try:
            record = Standing(
                folder,
                process.pid,
                process_started(process.pid) or "",
                space(),
                time.time(),
                binaries.shown,
                binaries.folder,
            )
            create_database(cluster.dsn_of(folder, "postgres"), cluster.DATABASE)
            _write(record)
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
        process.returncode = 0  # it is meant to outlive this process, which Popen would complain about
        return Up(record, fresh=True)


def down(*, remove: bool = False) -> Down:
    """Stop the server, if it is up. Its data stay for the next ``up``, unless ``remove``."""
    with _locked():
        last, running = recorded(), find()
        if running is not None:
            _stop(running)
        folder = last.folder if last is not None and cluster.marked(last.folder) is not None else None
        if remove:
            if folder is not None:
                cluster.remove(folder)
            _record_file().unlink(missing_ok=True)
            return Down(running, folder, None)
        return Down(running, None, folder)


def state_folder() -> Path:
    """Where stormctl keeps what one shell has to know of another."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "stormctl"


def process_started(pid: int) -> str | None:
    """When a process began, in the system's own words; None when there is none, or only its shell is left."""
    if PROC:
        try:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            return None
        return None if fields[0] in (b"Z", b"X") else fields[19].decode()
    told = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, env={"LC_ALL": "C"}, check=False
    ).stdout.strip()
    return None if not told or told.startswith("Z") else told.split(maxsplit=1)[-1]


def _stop(record: Standing) -> None:
    for number, seconds in ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, 6.0), (signal.SIGKILL, 6.0)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, number)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not record.is_running():
                return
            time.sleep(_POLL_SECONDS)
    raise StoreFailure(
        f"the PostgreSQL server of process {record.pid} does not end", remedy=f"See {cluster.log_file(record.folder)}."
    )


def _is_left(facts: Mapping[str, Any], folder: Path) -> bool:
    """Whether a folder was made for this user's ``up`` by a process that did not live to write the record."""
    if facts.get("record") != str(_record_file()) or not is_dead(facts.get("by") or {}):
        return False
    last = recorded()
    return last is None or last.folder != folder


def _forget_postmaster(folder: Path) -> None:
    """Drop the claims of a server that is gone: the process id in them may by now be another's, which would keep ours
    away."""
    (folder / "data" / "postmaster.pid").unlink(missing_ok=True)
    for claim in cluster.socket_folder(folder).glob(".s.PGSQL.*"):
        claim.unlink(missing_ok=True)


def _record_file() -> Path:
    return state_folder() / f"world-{host()}.json"


def _write(record: Standing) -> None:
    text = json.dumps(
        {
            "schema": SCHEMA,
            "folder": str(record.folder),
            "pid": record.pid,
            "started": record.started,
            "space": record.space,
            "since": record.since,
            "version": record.version,
            "programs": str(record.programs),
        }
    )
    temp = _record_file().with_suffix(f".{os.getpid()}.tmp")
    temp.write_text(text, encoding="utf-8")
    temp.replace(_record_file())


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Be the only one who starts or stops the server. UsageError when another does so for minutes."""
    folder = state_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (folder / f"world-{host()}.lock").open("a")
    except OSError as error:
        raise UsageError(
            f"the state folder {folder} cannot be written: {error.strerror or error}",
            remedy=f"Set {VARIABLE} to a folder of yours.",
        ) from error
    with lock:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise UsageError(
                        f"another stormctl has been starting or stopping the server for {LOCK_SECONDS:.0f} s",
                        remedy="Wait until it ends, or stop it.",
                    ) from None
                time.sleep(_POLL_SECONDS)
        yield
