"""Finding or starting a PostgreSQL server, for whoever needs one.

The order is: the DSN that was named, else STORMCTL_DSN, else the server that ``stormctl world up`` started, else one
that is started now and belongs to this process alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from stormctl.errors import StoreFailure, UsageError
from stormctl.worlds.postgres import cluster, standing, supervisor
from stormctl.worlds.postgres.binaries import NO_SERVER
from stormctl.worlds.postgres.dsn import check_dsn, host_of, redact
from stormctl.worlds.postgres.inspect import connect, inspect

VARIABLE = "STORMCTL_DSN"

Lifetime = Literal["storm", "standing"]

_CLOSE_SECONDS = 6.0


@dataclass(slots=True)
class Server:
    """A PostgreSQL server that can be used.

    ``dsn`` may hold a password; ``shown`` never does. ``ours``: stormctl started it, so its databases may be made and
    dropped. ``origin`` is why it is this one, for people; ``version`` is PostgreSQL's. Of one of ours also: the
    ``folder`` it lives in, the ``pid`` of its first process, and the folder of its ``programs`` (psql, pgbench).
    """

    dsn: str
    shown: str
    ours: bool
    origin: str
    version: str
    folder: Path | None = None
    pid: int | None = None
    programs: Path | None = None
    _supervisor: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def close(self) -> None:
        """Stop the server and remove its data, if it was started for this process alone. Else nothing. May be called
        again."""
        watcher, self._supervisor = self._supervisor, None
        if watcher is not None:
            _end(watcher)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def resolve_server(dsn: str | None, *, start: bool = True, lifetime: Lifetime = "storm") -> Server:
    """The server to use, reachable and fit, or one clear error.

    ``start``: start one when none was named and none is up; without it that is a UsageError. ``lifetime`` is how long a
    started one lives: ``storm``, as long as this process and the returned Server; ``standing``, until ``stormctl world
    down``. Blocks for up to a few seconds; call it from a thread where a loop runs.
    """
    found = find_server(dsn)
    if found is not None:
        return found
    if not start:
        raise UsageError("no PostgreSQL server was named, and none is up", remedy=NO_SERVER.remedy)
    return of_standing(standing.up().record) if lifetime == "standing" else start_private()


def find_server(dsn: str | None) -> Server | None:
    """The server that is named or up, reachable and fit; None when none was named and none is up. Starts nothing."""
    named = dsn or os.environ.get(VARIABLE)
    if named:
        origin = "--dsn" if dsn else VARIABLE
        check_dsn(named, origin)
        version = inspect(named).version
        folder = cluster.folder_of(host_of(named))  # `world up` tells people to export the DSN of ours
        return Server(named, redact(named), folder is not None, origin, version, folder)
    up = standing.find()
    return None if up is None else of_standing(up)


def of_standing(record: standing.Standing) -> Server:
    """The server that ``stormctl world up`` started."""
    facts = inspect(record.dsn)
    return Server(
        dsn=record.dsn,
        shown=redact(record.dsn),
        ours=True,
        origin="stormctl world up",
        version=facts.version,
        folder=record.folder,
        pid=record.pid,
        programs=record.programs,
    )


def reset_database(*, force: bool = False) -> Server:
    """Drop the database of the server that ``stormctl world up`` started, and make it anew.

    UsageError when another server is named, when none is up, or when somebody is connected and not ``force``.
    """
    record = standing.find()
    named = os.environ.get(VARIABLE)
    if named and (record is None or cluster.folder_of(host_of(named)) != record.folder):
        raise UsageError(
            f"{VARIABLE} names a server that `stormctl world up` did not start, where nothing is ever dropped",
            remedy=f"Unset {VARIABLE} to reset the one that it started.",
        )
    if record is None:
        raise UsageError("no PostgreSQL server of stormctl is up", remedy="Start one with `stormctl world up`.")
    admin = cluster.dsn_of(record.folder, "postgres")
    create_database(admin, cluster.DATABASE)  # a reset that was interrupted left none
    sessions = inspect(record.dsn).sessions
    if sessions and not force:
        who = "one session is" if sessions == 1 else f"{sessions} sessions are"
        raise UsageError(
            f"{who} connected to the database, perhaps a storm's",
            remedy="Wait until they end, or give --force.",
        )
    drop_database(admin, cluster.DATABASE)
    create_database(admin, cluster.DATABASE)
    return of_standing(record)


def start_private(
    *, settings: Mapping[str, str] | None = None, options: Sequence[str] = (), parent: Path | None = None
) -> Server:
    """Start a server that belongs to this process: it ends with it, even when it is killed, and leaves nothing.

    ``settings`` are laid over ``cluster.SETTINGS``, ``options`` are more arguments of initdb, ``parent`` is the folder
    to make its folder in.
    """
    watcher = subprocess.Popen(
        supervisor.command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C is the driver's: it needs the server to end in good order
        cwd="/",
    )
    port = (settings or {}).get("port", cluster.PORT)
    try:
        asked = {"settings": dict(settings or {}), "options": list(options), "parent": parent and str(parent)}
        said = _converse(watcher, json.dumps(asked).encode() + b"\n")
        folder = Path(said["folder"])
        create_database(cluster.dsn_of(folder, "postgres", port), cluster.DATABASE)
    except BaseException:
        _end(watcher)
        raise
    dsn = cluster.dsn_of(folder, port=port)
    return Server(
        dsn=dsn,
        shown=redact(dsn),
        ours=True,
        origin="started for this storm",
        version=said["version"],
        folder=folder,
        pid=int(said["pid"]),
        programs=Path(said["programs"]),
        _supervisor=watcher,
    )


def create_database(dsn: str, name: str) -> None:
    """Create an empty database on a server of ours, unless it is there."""
    from psycopg import sql

    with connect(dsn) as connection:
        there = connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone()
        if there is None:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))


def drop_database(dsn: str, name: str) -> None:
    """Drop a database on a server of ours, whoever is connected to it."""
    from psycopg import sql

    with connect(dsn) as connection:
        connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def _converse(watcher: subprocess.Popen[bytes], asked: bytes) -> dict[str, str]:
    """Tell the supervisor what is wanted, and reply what it made."""
    assert watcher.stdin is not None
    assert watcher.stdout is not None
    with contextlib.suppress(OSError):  # it ended at once; why is what it said
        watcher.stdin.write(asked)
        watcher.stdin.flush()
    text = b""
    deadline = time.monotonic() + 2 * cluster.START_SECONDS
    while b"\n" not in text or not text.startswith(b"{"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([watcher.stdout], [], [], left)[0]:
            raise StoreFailure(
                f"a PostgreSQL server did not come up within {2 * cluster.START_SECONDS:.0f} s",
                remedy="Give the machine less to do, or name a server with --dsn or STORMCTL_DSN.",
            )
        read = os.read(watcher.stdout.fileno(), 65536)
        if not read:
            last = (text.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"])[-1]
            raise StoreFailure(
                f"the process that should start PostgreSQL ended: {last[:200]}",
                remedy="Name a server with --dsn or STORMCTL_DSN, and report this.",
            )
        text += read
    said = json.loads(text.partition(b"\n")[0])
    if "error" in said:
        raise (UsageError if said["usage"] else StoreFailure)(said["error"], remedy=said["remedy"])
    return dict(said)


def _end(watcher: subprocess.Popen[bytes]) -> None:
    """Let the supervisor go, and wait until it stopped the server."""
    assert watcher.stdin is not None
    assert watcher.stdout is not None
    with contextlib.suppress(OSError):
        watcher.stdin.close()
    try:
        watcher.wait(_CLOSE_SECONDS)
    except subprocess.TimeoutExpired:
        watcher.kill()
        watcher.wait()
    watcher.stdout.close()
