"""What ``stormctl world`` says."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from stormctl.cli.output import emit
from stormctl.errors import UsageError

if TYPE_CHECKING:
    from stormctl.worlds.postgres.server import Server
    from stormctl.worlds.postgres.standing import Down

NOT_UP = "no PostgreSQL server of stormctl is up, and STORMCTL_DSN names none"


def tell_up(server: Server, *, named: bool) -> None:
    """Where the server is and how to use it."""
    if named:
        emit(f"STORMCTL_DSN names a server that is up, so none was started:\n  {server.shown}")
        return
    # A server of ours has no password, so that what is shown can be used as it stands.
    emit(
        f"PostgreSQL {server.version} is up, process {server.pid}, in {server.folder}:\n"
        f"  {server.shown}\n"
        "stormctl finds it by itself, in every shell of this user on this machine. For other programs:\n"
        f"  export STORMCTL_DSN='{server.shown}'\n"
        "`stormctl world down` stops it."
    )


def tell_status(server: Server | None) -> None:
    """What is known of a server."""
    from stormctl.worlds.postgres.inspect import inspect

    if server is None:
        emit(f"not running: {NOT_UP}. `stormctl world up` starts one.")
        return
    facts = inspect(server.dsn)
    lines = [
        ("running", f"PostgreSQL {facts.version}"),
        ("found by", server.origin),
        ("dsn", server.shown),
        *([("process", f"{server.pid}, in {server.folder}")] if server.folder is not None else []),
        ("database", f"{facts.database}, {_size(facts.size)}"),
        ("sessions", f"{facts.sessions} of at most {facts.max_connections}"),
        ("schema", "none yet" if facts.schema is None else f"version {facts.schema}"),
        ("commit stamps", "on" if facts.commit_stamps else "off (track_commit_timestamp)"),
    ]
    emit("\n".join(f"{name:14} {text}" for name, text in lines))


def become_psql(server: Server | None, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by psql on the server. UsageError when there is no server or no psql."""
    from stormctl.worlds.postgres.dsn import password_of, without_password

    if server is None:
        raise UsageError(NOT_UP, remedy="Start one with `stormctl world up`, or give --dsn.")
    ours = None if server.programs is None else server.programs / "psql"
    path = str(ours) if ours is not None and os.access(ours, os.X_OK) else shutil.which("psql")
    if path is None:
        raise UsageError(
            "psql is not on this machine",
            remedy=f"Install PostgreSQL's client, or use another one on {server.shown}.",
        )
    environment = dict(os.environ)
    if (password := password_of(server.dsn)) is not None:
        environment["PGPASSWORD"] = password  # an argument would show it to everybody who lists processes
    os.execvpe(path, [path, without_password(server.dsn), *arguments], environment)


def tell_reset(server: Server) -> None:
    """That the database is empty."""
    emit(f"the database of {server.shown} is empty")


def tell_down(found: Down) -> None:
    """What was stopped and removed."""
    if found.stopped is None:
        emit("no PostgreSQL server of stormctl was up")
    else:
        emit(f"stopped PostgreSQL {found.stopped.version}, process {found.stopped.pid}")
    if found.removed is not None:
        emit(f"removed {found.removed}")
    elif found.kept is not None:
        emit(f"its data stay in {found.kept}; `stormctl world down --remove` deletes them")


def _size(count: int) -> str:
    size, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{size:.0f} {units[0]}" if units[0] == "B" else f"{size:.1f} {units[0]}"
