"""What PostgreSQL's errors mean for a user: each one sentence and what to do about it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from stormctl.errors import StoreFailure, StormctlError, UsageError
from stormctl.worlds.postgres.binaries import MINIMUM_MAJOR
from stormctl.worlds.postgres.cluster import folder_of, last_words
from stormctl.worlds.postgres.dsn import HOW_TO_WRITE

_SOCKET_OF = re.compile(r"host='?(/[^&'\s]+)")
#: less room than this and a server cannot write its next piece of log, which it makes before it needs it
_ROOM_BYTES = 1 << 20


def explain_failure(error: BaseException, shown_dsn: str) -> StormctlError:
    """The error of ours that an error of psycopg, or of its pool, means. One of ours is replied as it is.

    ``shown_dsn`` is the DSN as ``redact`` makes it. UsageError (exit code 2) where the DSN or the server's set-up has
    to change, StoreFailure where a server that was good is failing.
    """
    if isinstance(error, StormctlError):
        return error
    state = _state_of(error)
    text = _text_of(error)
    if (by_state := _BY_STATE.get(state)) is not None:
        return by_state(shown_dsn, text)
    low = text.lower()
    for words, make in _BY_WORDS:
        if any(word in low for word in words):
            return make(shown_dsn, text)
    if state and not state.startswith(("08", "57")):
        return StoreFailure(
            f"the PostgreSQL server {shown_dsn} answered with error {state}: {text}",
            remedy="If it is not clear why, report it with the server's version.",
        )
    return _unreachable(shown_dsn, text)


def too_old(server_version: int, shown_dsn: str) -> UsageError:
    """``server_version`` is libpq's number: 120004 is 12.4."""
    return UsageError(
        f"the PostgreSQL server {shown_dsn} is version {server_version // 10000}, stormctl needs {MINIMUM_MAJOR}",
        remedy="Name a newer server, or leave out the DSN and let stormctl start one.",
    )


def read_only(shown_dsn: str) -> UsageError:
    """A standby, or a database that is set to take no writes."""
    return UsageError(
        f"the PostgreSQL server {shown_dsn} is read-only",
        remedy="Name its primary, or set default_transaction_read_only to off.",
    )


def schema_missing(shown_dsn: str) -> UsageError:
    """The first use of a database that stormctl did not make."""
    return UsageError(
        f"the database {shown_dsn} is not stormctl's own and holds no schema stormctl yet",
        remedy="Give --create-schema once to have it made there (nothing else in the database is touched), "
        "or leave out the DSN and let stormctl start a server.",
    )


def _syntax(_shown: str, _text: str) -> StormctlError:
    return UsageError(
        "the DSN is not one that PostgreSQL can read",
        remedy=HOW_TO_WRITE,
    )


def _refused(shown: str, _text: str) -> StormctlError:
    return _full_disk_of_ours(shown) or StoreFailure(
        f"no PostgreSQL server listens at {shown}",
        remedy="Check host and port, and that the server runs; `stormctl world status` says what is known of ours.",
    )


def _unknown_host(shown: str, _text: str) -> StormctlError:
    return UsageError(f"the host of {shown} is unknown", remedy="Check its name in the DSN, and the network.")


def _slow(shown: str, _text: str) -> StormctlError:
    return StoreFailure(
        f"the PostgreSQL server {shown} did not answer in time",
        remedy="Check host, port and firewall, and whether the server is overloaded.",
    )


def _no_password(shown: str, _text: str) -> StormctlError:
    return UsageError(
        f"the PostgreSQL server {shown} asks for a password, and none was given",
        remedy="Put it into STORMCTL_DSN or PGPASSWORD, or into a passfile.",
    )


def _wrong_password(shown: str, _text: str) -> StormctlError:
    return UsageError(
        f"the PostgreSQL server {shown} does not accept this password",
        remedy="Check user and password in the DSN, and that %, @, : and / in it are percent-encoded.",
    )


def _not_let_in(shown: str, text: str) -> StormctlError:
    return UsageError(
        f"the PostgreSQL server {shown} does not let this user in: {text}",
        remedy="Check the user in the DSN, and the server's pg_hba.conf.",
    )


def _no_database(shown: str, _text: str) -> StormctlError:
    return UsageError(
        f"the database of {shown} does not exist", remedy="Create it (createdb), or name another one in the DSN."
    )


def _crowded(shown: str, _text: str) -> StormctlError:
    return StoreFailure(
        f"the PostgreSQL server {shown} takes no more connections",
        remedy="Lower concurrency or processes, or raise max_connections of the server.",
    )


def _starting(shown: str, _text: str) -> StormctlError:
    return _full_disk_of_ours(shown) or StoreFailure(
        f"the PostgreSQL server {shown} is starting, stopping or recovering from a crash",
        remedy="Wait until it is up, then run again.",
    )


def _gone(shown: str, _text: str) -> StormctlError:
    return _full_disk_of_ours(shown) or StoreFailure(
        f"the PostgreSQL server {shown} went away",
        remedy="See the server's log, start it, then run again; what it acknowledged is kept.",
    )


def _full(shown: str, _text: str) -> StormctlError:
    return StoreFailure(
        f"the disk of the PostgreSQL server {shown} is full",
        remedy="Free space on it, then run again; what the server acknowledged is kept.",
    )


def _forbidden(shown: str, text: str) -> StormctlError:
    return UsageError(
        f"the user of {shown} may not do that: {text}",
        remedy="Grant it create on the database and all on the schema stormctl, or name another user.",
    )


def _unreachable(shown: str, text: str) -> StormctlError:
    return _full_disk_of_ours(shown) or StoreFailure(
        f"the PostgreSQL server {shown} cannot be used: {text or 'it gave no reason'}",
        remedy="Check the DSN and the server's log.",
    )


def _read_only(shown: str, _text: str) -> StormctlError:
    return read_only(shown)


def _schema_missing(shown: str, text: str) -> StormctlError:
    if _folder_of(shown) is None:
        return schema_missing(shown)
    return StoreFailure(
        f"the storms' schema in {shown} is not what it was: {text}",
        remedy="It is made anew when you run again; do not reset the world while a storm runs.",
    )


#: by SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html
_BY_STATE = {
    "28P01": _wrong_password,
    "28000": _not_let_in,
    "3D000": _no_database,
    "3F000": _schema_missing,
    "42P01": _schema_missing,
    "42501": _forbidden,
    "25006": _read_only,
    "53100": _full,
    "53300": _crowded,
    "57P01": _gone,
    "57P02": _gone,
    "57P03": _starting,
    "57P05": _gone,
}

#: A failed connection brings no SQLSTATE, so that only its words tell. In order: the first that fits holds.
_BY_WORDS = (
    (("no password supplied",), _no_password),
    (("password authentication failed", "wrong password", "sasl"), _wrong_password),
    (("too many clients", "too many connections", "remaining connection slots"), _crowded),
    (("no pg_hba.conf entry", "authentication failed", 'role "', "pg_hba.conf rejects"), _not_let_in),
    (("does not exist",), _no_database),
    (("no space left", "disk full"), _full),
    (("starting up", "shutting down", "recovery mode", "not yet accepting"), _starting),
    (("translate host name", "resolve host", "name or service not known", "nodename nor servname"), _unknown_host),
    (("missing \"=\"", "invalid uri", "invalid percent", "invalid connection option", "unterminated quoted",
      "invalid port", "invalid integer value"), _syntax),
    (("connection refused", "no such file or directory", "no route to host", "network is unreachable"), _refused),
    (("timeout", "timed out", "couldn't get a connection"), _slow),
    (("server closed the connection", "connection is closed", "terminating connection", "connection reset",
      "broken pipe", "connection is lost", "no connection to the server", "could not receive data",
      "server conn crashed", "bad connection", "discarding closed"), _gone),
)  # fmt: skip


def _state_of(error: BaseException) -> str:
    return str(getattr(error, "sqlstate", None) or "")


def _text_of(error: BaseException) -> str:
    """What the error says, in one line: of several attempts the last, without the server's word for its loudness."""
    lines = [line.strip(" \t-") for line in str(error).strip().splitlines()]
    lines = [
        line for line in lines if line and not line.startswith(("Is the server running", "HINT", "DETAIL", "LINE"))
    ]
    text = lines[-1] if str(error).startswith("Multiple connection attempts") else (lines or [""])[0]
    return re.sub(r"^.*\b(?:FATAL|ERROR|PANIC):\s*", "", text)[:200].rstrip(".") if text else ""


def _full_disk_of_ours(shown: str) -> StormctlError | None:
    """Why a server that stormctl started on this machine is gone, when it is for want of room on its disk."""
    folder = _folder_of(shown)
    if folder is None:
        return None
    try:
        room = os.statvfs(folder)
    except OSError:
        return None
    if room.f_bavail * room.f_frsize > _ROOM_BYTES and "No space left" not in last_words(folder):
        return None
    return StoreFailure(
        f"the disk that holds the PostgreSQL server in {folder} is full",
        remedy="Free space on it, or set TMPDIR to a folder on another disk, then run again.",
    )


def _folder_of(shown: str) -> Path | None:
    found = _SOCKET_OF.search(shown)
    return None if found is None else folder_of(found[1])
