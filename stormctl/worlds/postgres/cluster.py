"""A private server's folder and process: made, started, stopped and removed by plain calls.

    <folder>/data/          PostgreSQL's own
    <folder>/socket/        its only door: no TCP port is opened
    <folder>/server.log     its own messages
    <folder>/stormctl.json  the mark that stormctl made it, and for whom

The folder and all in it belong to the account of the server, mode 0700. Who gets through to the socket is let in by
peer authentication, as the one role ``stormctl``: the user who started stormctl and the server's account, nobody else.
So there is no password that could be guessed, shown or left in a file.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stormctl.errors import StoreFailure, UsageError
from stormctl.worlds.postgres.account import Account, own_name
from stormctl.worlds.postgres.binaries import Binaries, runs_as

ROLE = "stormctl"
DATABASE = "stormctl"
PORT = 5432
#: an address of a unix socket holds 107 bytes on Linux and 103 on macOS
LONGEST_SOCKET = 100
PREFIX = "stormctl-pg-"
START_SECONDS = 120.0

#: What stormctl's own servers run with. fsync and synchronous_commit are PostgreSQL's defaults and said here because
#: the storms rest on them: what was acknowledged is on the disk. Errors of statements are part of every storm and are
#: reported by their clients, so they stay out of the log, which would grow with them.
SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "port": str(PORT),
    "max_connections": "200",
    "track_commit_timestamp": "on",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
    "lc_messages": "C",
}

_PR_SET_PDEATHSIG = 1
_POLL_SECONDS = 0.02
_LOUD = ("PANIC:", "FATAL:", "error:")
_HOLDS = "unix_socket_directories"


def socket_folder(folder: Path) -> Path:
    """Where the server's socket lies."""
    return folder / "socket"


def log_file(folder: Path) -> Path:
    """Where the server writes what it has to say."""
    return folder / "server.log"


def dsn_of(folder: Path, database: str = DATABASE, port: int | str = PORT) -> str:
    """How to connect to the server of a folder. It holds no secret."""
    return f"postgresql://{ROLE}@/{database}?host={socket_folder(folder)}&port={port}"


def make_folder(account: Account, facts: Mapping[str, Any], parent: Path | None = None) -> Path:
    """A new folder for a server, that only ``account`` (and root) can open, marked with ``facts``.

    Without a ``parent`` it lies where temporary files do: the data of a server must be reachable for its account,
    which a home folder of root's is not, and the path of its socket must be short.
    """
    for place in [parent] if parent is not None else _places():
        if not _fits(place, account):
            continue
        try:
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        except OSError:
            continue
        try:
            mark(folder, facts)
            socket_folder(folder).mkdir(mode=0o700)
            for path in (socket_folder(folder), folder):
                account.give(path)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            continue
        return folder
    raise StoreFailure(
        f"no folder for a PostgreSQL server could be made in {parent or ', '.join(map(str, _places()))}",
        remedy="Make room in one of them, or set TMPDIR to a folder that every user can enter and whose path is short.",
    )


def mark(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write down that stormctl made this folder, and for whom."""
    (folder / "stormctl.json").write_text(json.dumps(facts), encoding="utf-8")


def marked(folder: Path) -> dict[str, Any] | None:
    """What was written down in a folder of ours; None when it is not ours."""
    try:
        facts = json.loads((folder / "stormctl.json").read_bytes())
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None


def folder_of(host: str) -> Path | None:
    """The folder of ours whose socket a DSN's host is; None when it is none of this user's."""
    folder = Path(host).parent if host.startswith("/") else None
    return folder if folder is not None and socket_folder(folder) == Path(host) and _is_own(folder) else None


def _is_own(folder: Path) -> bool:
    try:
        own = (folder / "stormctl.json").stat().st_uid == os.geteuid()
    except OSError:
        return False
    return own and marked(folder) is not None


def sweep(is_left: Callable[[Mapping[str, Any], Path], bool]) -> list[Path]:
    """Remove the folders of this user that nobody needs any more, as ``is_left(facts, folder)`` says; replies them.

    Such are left by a kill that also hit the process which should have tidied up. One whose server may still live is
    left alone.
    """
    removed = []
    for place in _places():
        for folder in sorted(place.glob(f"{PREFIX}*")):
            facts = marked(folder) if _is_own(folder) else None
            if facts is not None and is_left(facts, folder) and not _may_live(postmaster_of(folder)):
                remove(folder)
                removed.append(folder)
    return removed


def _may_live(pid: int | None) -> bool:
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _places() -> list[Path]:
    named = os.environ.get("TMPDIR")
    # /var/tmp before /tmp, which on many machines lies in memory: a commit there costs nothing, which is no commit.
    return [Path(place) for place in dict.fromkeys([*([named] if named else []), "/var/tmp", "/tmp"])]


def _fits(place: Path, account: Account) -> bool:
    socket = socket_folder(place / f"{PREFIX}xxxxxxxx") / f".s.PGSQL.{PORT}"
    if len(os.fsencode(socket)) >= LONGEST_SOCKET or not place.is_dir():
        return False
    return not account.lent or all(path.stat().st_mode & 0o001 for path in (place, *place.resolve().parents))


def reachable(binaries: Binaries, account: Account, folder: Path) -> Binaries:
    """The binaries, where ``account`` can run them: a wheel's that lie in a folder of root's are copied into ours."""
    if not account.lent or runs_as(binaries, account):
        return binaries
    if binaries.wheel is None:
        raise UsageError(
            f"user {account.name}, which the server has to run as, cannot run {binaries.folder}/postgres",
            remedy="Make that folder readable for every user, or run stormctl as an ordinary user.",
        )
    copy = folder / "programs"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    return binaries.copied(copy)


def initialise(
    binaries: Binaries,
    account: Account,
    folder: Path,
    *,
    settings: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    alive: Callable[[], bool] = lambda: True,
) -> Binaries:
    """Make the server's data folder; replies the binaries to start it with.

    ``settings`` are laid over SETTINGS, ``options`` are further arguments of initdb, and ``alive`` is asked again and
    again whether anybody still wants the server. StoreFailure with initdb's own last words when it fails.
    """
    binaries = reachable(binaries, account, folder)
    command = [
        str(binaries.folder / "initdb"),
        *("--pgdata", str(folder / "data"), "--username", ROLE, "--auth", "reject"),
        *("--encoding", "UTF8", "--locale", "C", *options),
    ]
    process = _spawn(command, account, folder)
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None:
        if not alive() or time.monotonic() > deadline:
            process.kill()
            process.wait()
            break
        time.sleep(_POLL_SECONDS)
    if process.returncode != 0:
        raise _failed("initdb", folder, process.returncode)
    data = folder / "data"
    _write(data / "pg_hba.conf", f"local all {ROLE} peer map={ROLE}\n", account)
    users = dict.fromkeys((own_name(), account.name))
    _write(data / "pg_ident.conf", "".join(f'{ROLE} "{name}" {ROLE}\n' for name in users), account)
    laid = {**SETTINGS, _HOLDS: str(socket_folder(folder)), **(settings or {})}
    with (data / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write("".join(f"{key} = {_quoted(value)}\n" for key, value in laid.items()))
    return binaries


def start(
    binaries: Binaries,
    account: Account,
    folder: Path,
    *,
    bound: bool,
    alive: Callable[[], bool] = lambda: True,
) -> subprocess.Popen[bytes]:
    """Start the server and wait until it takes connections.

    ``bound``: it ends with the process that started it, however that ends (Linux only; elsewhere that process must
    see to it). Otherwise it stays until it is stopped. StoreFailure with the server's last words when it does not
    come up.
    """
    command = [str(binaries.folder / "postgres"), "-D", str(folder / "data")]
    process = _spawn(command, account, folder, bound=bound)
    deadline = time.monotonic() + START_SECONDS
    while not _is_ready(folder, process.pid):
        if process.poll() is not None:
            raise _failed("the server", folder, process.returncode)
        if not alive() or time.monotonic() > deadline:
            process.send_signal(signal.SIGQUIT)
            process.wait()
            raise _failed("the server", folder, None)
        time.sleep(_POLL_SECONDS)
    return process


def _is_ready(folder: Path, pid: int) -> bool:
    # The eighth line is the server's state, since version 10: this is how pg_ctl learns it. A standby is up as well.
    try:
        lines = (folder / "data" / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return len(lines) >= 8 and lines[0].strip() == str(pid) and lines[7].strip() in ("ready", "standby")


def postmaster_of(folder: Path) -> int | None:
    """The process id that the data folder names as its server's, whether that lives or not."""
    try:
        return int((folder / "data" / "postmaster.pid").read_text(encoding="utf-8", errors="replace").split()[0])
    except (OSError, ValueError, IndexError):
        return None


def data_major(folder: Path) -> int | None:
    """Which major version made the data folder; None when there is none."""
    try:
        return int((folder / "data" / "PG_VERSION").read_text(encoding="ascii").split(".")[0])
    except (OSError, ValueError):
        return None


def remove(folder: Path) -> None:
    """Remove a server's folder with all its data. One that stormctl did not make is left alone."""
    if marked(folder) is not None:
        shutil.rmtree(folder, ignore_errors=True)


def last_words(folder: Path) -> str:
    """The last thing that mattered in the server's log: a failure if there is one, else the last line."""
    try:
        with log_file(folder).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 16384))
            lines = log.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        lines = []
    lines = [line for line in lines if not any(word in line for word in ("hint:", "HINT:", "DETAIL:"))]
    loud = [line for line in lines if any(word in line for word in _LOUD)]
    text = _bare((loud or lines or ["it said nothing"])[-1])
    if "contains errors" in text:  # of the configuration: which was said before, and more softly
        text = next((_bare(line) for line in reversed(lines) if "parameter" in line), text)
    return text[:300].rstrip(".")


def _bare(line: str) -> str:
    """A line of a log without the time, the process and the loudness before what it says."""
    for word in (*_LOUD, "LOG:"):
        line = line.partition(word)[2] or line
    return line.strip()


def _spawn(command: list[str], account: Account, folder: Path, *, bound: bool = True) -> subprocess.Popen[bytes]:
    with log_file(folder).open("ab") as log:
        account.give(log_file(folder))
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"},  # no PG* of the user's
                start_new_session=not bound,
                preexec_fn=_end_with_parent(os.getpid()) if bound and sys.platform == "linux" else None,
                **account.spawn(),
            )
        except OSError as error:
            raise StoreFailure(
                f"{command[0]} could not be started: {error.strerror or error}",
                remedy="Check that PostgreSQL is whole, or name a server with --dsn or STORMCTL_DSN.",
            ) from error


def _end_with_parent(parent: int) -> Callable[[], None]:
    """What the new process does before it becomes the server.

    It runs after the change of user, which would clear the signal. SIGQUIT is the server's word for "at once": it takes
    its own processes with it.
    """
    prctl = ctypes.CDLL(None).prctl

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
        if os.getppid() != parent:
            os._exit(1)

    return bind


def _write(path: Path, text: str, account: Account) -> None:
    path.write_text(text, encoding="utf-8")
    account.give(path)
    path.chmod(0o600)


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _failed(what: str, folder: Path, code: int | None) -> StoreFailure:
    words = last_words(folder)
    if "No space left" in words:
        remedy = f"Free space on the disk that holds {folder.parent}, or set TMPDIR to a folder on another one."
    else:
        remedy = "Mend that, or name a server with --dsn or STORMCTL_DSN."
    how = "did not come up in time" if code is None else "failed"
    return StoreFailure(f"{what} {how} in {folder}: {words}", remedy=remedy)
