"""Rows of many runs, in any order, put together run by run without holding them all.

A small file stays in memory. One that grows beyond :data:`IN_MEMORY_BYTES` goes into a temporary database on disk,
which nobody else can open and which is gone with its connection; then one run at a time is in memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from types import TracebackType
from typing import Any

from stormctl.errors import StoreFailure
from stormctl.readers.text import MAX_EVENTS

#: Rows up to this many characters are kept in memory; as Python's objects they take some five times as much.
IN_MEMORY_BYTES = 32 << 20
#: Rows of one run beyond this many characters are counted and not read.
MAX_RUN_BYTES = 256 << 20
#: Runs beyond this many are counted and not read.
MAX_RUNS = 1_000_000
_PAGES = 2_000
_BATCH_BYTES = 4 << 20


class ByRun:
    """Rows by run. ``left_out`` counts, by run, those that were beyond a limit; a context manager."""

    def __init__(self, *, in_memory: int = IN_MEMORY_BYTES, max_events: int = MAX_EVENTS) -> None:
        self.left_out: dict[str, int] = {}
        self._held: dict[str, list[Any]] = {}
        self._counts: dict[str, list[int]] = {}
        self._size = 0
        self._in_memory = in_memory
        self._max_events = max_events
        self._disk: sqlite3.Connection | None = None
        self._waiting: list[tuple[int, str]] = []
        self._waiting_bytes = 0
        self._numbers: dict[str, int] = {}

    def __enter__(self) -> ByRun:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._disk is not None:
            self._disk.close()

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, run_id: str, row: Any, size: int) -> None:
        """Keep a row, a JSON value that weighs ``size`` characters; StoreFailure when the disk is full."""
        counted = self._counts.get(run_id)
        if counted is None:
            if len(self._counts) >= MAX_RUNS:
                self.left_out[""] = self.left_out.get("", 0) + 1
                return
            counted = self._counts[run_id] = [0, 0]
        if counted[0] >= self._max_events or counted[1] + size > MAX_RUN_BYTES:
            self.left_out[run_id] = self.left_out.get(run_id, 0) + 1
            return
        counted[0] += 1
        counted[1] += size
        if self._disk is None:
            self._held.setdefault(run_id, []).append(row)
            self._size += size
            if self._size > self._in_memory:
                self._move_to_disk()
        else:
            self._wait(run_id, row)

    def runs(self) -> Iterator[tuple[str, list[Any]]]:
        """Every run with its rows in the order in which they were added, runs in the order of their first rows."""
        if self._disk is None:
            for run_id in self._counts:
                yield run_id, self._held.pop(run_id, [])
            return
        with _guarded():
            self._write()
            # one sort, read from its beginning to its end: an index would be read all over the disk
            found = self._disk.execute("select run, body from rows order by run, rowid")
            groups = groupby(found, key=itemgetter(0))
            number, rows = next(groups, (-1, ()))
            for run_id in self._counts:
                if self._numbers.get(run_id) != number:
                    yield run_id, []  # all of it was beyond a limit
                    continue
                yield run_id, [json.loads(body) for _, body in rows]
                number, rows = next(groups, (-1, ()))

    def _move_to_disk(self) -> None:
        with _guarded():
            self._disk = sqlite3.connect("")  # a temporary file of its own, deleted at once
            for pragma in ("journal_mode = off", "synchronous = off", f"cache_size = {_PAGES}"):
                self._disk.execute(f"pragma {pragma}")
            self._disk.execute("create table rows (run integer, body text)")
        held, self._held = self._held, {}
        for run_id, rows in held.items():
            for row in rows:
                self._wait(run_id, row)

    def _wait(self, run_id: str, row: Any) -> None:
        number = self._numbers.setdefault(run_id, len(self._numbers))
        body = json.dumps(row, separators=(",", ":"))
        self._waiting.append((number, body))
        self._waiting_bytes += len(body) + 50
        if self._waiting_bytes > _BATCH_BYTES:
            with _guarded():
                self._write()

    def _write(self) -> None:
        assert self._disk is not None
        self._disk.executemany("insert into rows values (?, ?)", self._waiting)
        self._waiting.clear()
        self._waiting_bytes = 0


@contextmanager
def _guarded() -> Iterator[None]:
    """The database's errors as ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreFailure(
            f"the rows of a large file could not be kept on disk: {error}",
            remedy="Free some space, or name a folder that has some with TMPDIR.",
        ) from None
