"""The store of a cell, read from outside: files or SQL, never through the server, which may be sick or dead.

All methods block: they are called in threads.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from stormctl.errors import StoreFailure, StormctlError
from stormctl.history import Capture, Event, RunRow, kinds
from stormctl.readers.sdk_events import event_of

if TYPE_CHECKING:
    from psycopg import Connection

_LOOKED_AT = (kinds.WAIT_CREATED, kinds.WAIT_COMPLETED, kinds.HOOK_CREATED, kinds.HOOK_DISPOSED)
_ENDED = ("completed", "failed", "cancelled")
_CONNECT_S, _STATEMENT_S = 10, 30


class Outside(Protocol):
    """A store, as far as a storm must see it."""

    def row(self, run_id: str) -> RunRow | None:
        """The run's row; None while there is none. Of a run that has ended with its value or error, in full."""
        ...

    def last_wait(self, run_id: str) -> int | None:
        """The latest time (epoch ms) at which a wait of the run is still to end."""
        ...

    def hook(self, run_id: str, token: str) -> str | None:
        """The correlation id of the run's hook with that token; None when there is none, or it was disposed of."""
        ...

    def capture(self, run_id: str) -> Capture:
        """The run with all that the store has of it; UnreadableInput when it is not there."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class LocalStore:
    """The folder of a world-local. What was read of an event's file is not read again: such files never change."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._seen: dict[str, Pending] = {}
        self._lock = threading.Lock()

    def row(self, run_id: str) -> RunRow | None:
        status = self._status(run_id)
        if status is None or status not in _ENDED:
            return None if status is None else RunRow(status)
        with self._lock:
            self._seen.pop(run_id, None)
        return self.capture(run_id).run

    def last_wait(self, run_id: str) -> int | None:
        return self._look(run_id).latest()

    def hook(self, run_id: str, token: str) -> str | None:
        return self._look(run_id).hook(token)

    def capture(self, run_id: str) -> Capture:
        from stormctl.readers.worldlocal import read_run

        return read_run(self._data, run_id)

    def close(self) -> None:
        """Nothing is open."""

    def _look(self, run_id: str) -> Pending:
        """Read what was written since the last look."""
        with self._lock:
            pending = self._seen.setdefault(run_id, Pending())
            events = self._data / "events"
            for name in _names(events):
                if name in pending.seen or not name.startswith(f"{run_id}-") or not name.endswith(".json"):
                    continue
                with suppress(OSError, ValueError, StormctlError):  # one that is not whole yet is read the next time
                    pending.add(event_of(json.loads((events / name).read_bytes()), name))
                    pending.seen.add(name)
            return pending

    def _status(self, run_id: str) -> str | None:
        with suppress(OSError, ValueError):
            found = json.loads((self._data / "runs" / f"{run_id}.json").read_bytes())
            if isinstance(found, dict) and isinstance(found.get("status"), str):
                return str(found["status"])
        return None


class PostgresStore:
    """A database of a world-postgres. One connection for the small looks, made again when it breaks."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._lock = threading.Lock()
        self._connection: Connection[dict[str, Any]] | None = None

    def row(self, run_id: str) -> RunRow | None:
        found = list(self._rows("select status::text as status from workflow.workflow_runs where id = %s", run_id))
        if not found:
            return None
        status = str(found[0]["status"])
        return self.capture(run_id).run if status in _ENDED else RunRow(status)

    def last_wait(self, run_id: str) -> int | None:
        return self._look(run_id).latest()

    def hook(self, run_id: str, token: str) -> str | None:
        return self._look(run_id).hook(token)

    def capture(self, run_id: str) -> Capture:
        from stormctl.readers.workflow_pg import read_database_run

        return read_database_run(self._dsn, run_id)

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _look(self, run_id: str) -> Pending:
        from stormctl.readers.workflow_rows import event_of_row

        pending = Pending()
        query = "select * from workflow.workflow_events where run_id = %s and type::text = any(%s) order by id"
        for row in self._rows(query, run_id, list(_LOOKED_AT)):
            pending.add(event_of_row(row))
        return pending

    def _rows(self, query: str, *values: Any) -> Iterator[Mapping[str, Any]]:
        import psycopg

        with self._lock:
            try:
                yield from self._connected().execute(query, values).fetchall()
            except psycopg.Error as error:
                self._drop()
                raise StoreFailure(
                    f"the database of the storm cannot be read: {str(error).strip() or type(error).__name__}",
                    remedy="See whether its server runs; what landed before is kept.",
                ) from None

    def _connected(self) -> Connection[dict[str, Any]]:
        import psycopg
        from psycopg.rows import dict_row

        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(
                self._dsn,
                autocommit=True,
                row_factory=dict_row,
                connect_timeout=_CONNECT_S,
                options=f"-c statement_timeout={_STATEMENT_S * 1000} -c default_transaction_read_only=on",
                application_name="stormctl",
            )
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Pending:
    """The waits and hooks of a run, as far as they were seen, in whatever order. ``seen`` is the reader's own."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._ends: dict[str | None, int] = {}
        self._hooks: dict[str, str] = {}
        self._done: set[str | None] = set()

    def add(self, event: Event) -> None:
        """Take an event in, of whatever type."""
        if event.type == kinds.WAIT_CREATED and event.resume_at is not None:
            self._ends[event.correlation_id] = event.resume_at
        elif event.type == kinds.HOOK_CREATED and event.token is not None and event.correlation_id is not None:
            self._hooks[event.token] = event.correlation_id
        elif event.type in (kinds.WAIT_COMPLETED, kinds.HOOK_DISPOSED):
            self._done.add(event.correlation_id)

    def latest(self) -> int | None:
        """The latest end of a wait that has not ended."""
        return max((end for wait, end in self._ends.items() if wait not in self._done), default=None)

    def hook(self, token: str) -> str | None:
        """The hook with that token, if it has not been disposed of."""
        found = self._hooks.get(token)
        return None if found in self._done else found


def _names(folder: Path) -> Iterable[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except OSError:
        return []
