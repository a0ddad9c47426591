"""Runs out of the folder of a local world while its servers write.

A folder cannot be read at one moment. What can be done is to list the events, read them, and list them again: where
both lists agree, nothing of the run was published in between, and no listing overtook a writer. A run whose lists
differ is read again; one that grows all the time is kept as it was last seen, marked as partial and still going.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from stormctl.errors import StormctlError, UsageError
from stormctl.history import Capture
from stormctl.readers.live.naming import may_be_a_name
from stormctl.readers.live.source import MAX_RUNS, SourceLost, Taken, taken
from stormctl.readers.text import damaged, unreadable
from stormctl.readers.unreadable import Unreadable
from stormctl.readers.worldlocal import Store, store_at

#: How often a run that grows is read, and the first pause between two readings; each is twice as long as the last.
TRIES, PAUSE_S = 5, 0.02
#: Runs that are read between two listings, and how many events they may have together.
CHUNK_RUNS, CHUNK_EVENTS = 200, 20_000
GROWING = "the run was written while it was captured: no two listings of its events agreed"


class LocalSource:
    """The store folder at or just below a path; UsageError where there is none."""

    def __init__(self, path: Path) -> None:
        folder = store_at(path)
        if folder is None:
            raise UsageError(
                f"{path} holds no store of a local world",
                remedy="Name the folder with events/ and runs/ in it (.workflow-data), or the app's folder.",
            )
        self._folder = folder

    @property
    def shown(self) -> str:
        """The folder's full path."""
        return str(self._folder.resolve())

    def runs(self, since: int | None = None) -> list[str]:
        """See :class:`stormctl.readers.live.source.Source`. A run has changed when one of its events or its row has."""
        try:
            found = Store(self._folder).runs() if since is None else sorted(self._changed(since))
        except OSError as error:
            raise unreadable(self._folder, error) from None
        return found[-MAX_RUNS:]

    def read(self, runs: Sequence[str]) -> Iterator[Taken]:
        """See :class:`stormctl.readers.live.source.Source`."""
        try:
            yield from self._read(runs)
        except OSError as error:
            gone = unreadable(self._folder, error)
            raise SourceLost(str(gone), remedy=gone.remedy) from None

    def _read(self, runs: Sequence[str]) -> Iterator[Taken]:
        left = list(runs)
        while left:
            store = Store(self._folder)
            counted = {run_id: len(names) for run_id, names in store.event_names().items()}
            chunk: list[str] = []
            events = 0
            while left and len(chunk) < CHUNK_RUNS and (not chunk or events < CHUNK_EVENTS):
                chunk.append(left.pop(0))
                events += counted.get(chunk[-1], 0)
            yield from self._chunk(chunk, store)

    def _chunk(self, runs: list[str], store: Store) -> Iterator[Taken]:
        """Runs that are read between the same two listings, in their order."""
        found: dict[str, Taken] = {}
        growing = runs
        for number in range(TRIES):
            if number:
                time.sleep(PAUSE_S * 2 ** (number - 1))
                store = Store(self._folder)
            before = store.event_names()
            for run_id in growing:
                found[run_id] = _read(store, run_id)
            after = Store(self._folder, events_only=True).event_names()
            growing = [run_id for run_id in growing if set(before.get(run_id, ())) != set(after.get(run_id, ()))]
            if not growing:
                break
        for run_id in growing:
            found[run_id] = _still_growing(found[run_id])
        yield from (found[run_id] for run_id in runs)

    def _changed(self, since: int) -> set[str]:
        """The runs of which a file has changed."""
        found: set[str] = set()
        for place, end in (("events", "-"), ("runs", ".")):
            if not (self._folder / place).is_dir():
                continue
            with os.scandir(self._folder / place) as entries:
                for entry in entries:
                    run_id = entry.name.partition(end)[0]
                    if entry.name.startswith(".") or entry.is_symlink() or run_id in found:
                        continue
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    if max(status.st_mtime_ns, status.st_ctime_ns) // 1_000_000 >= since:
                        found.add(run_id)
        return found & set(Store(self._folder).runs())


def _read(store: Store, run_id: str) -> Taken:
    try:
        if not may_be_a_name(run_id):
            raise damaged(str(store.folder), f"holds no run {ascii(run_id)[:80]}", remedy="Check the run's id.")
        capture, broken = store.read(run_id)
    except StormctlError as error:
        return Taken(run_id, None, (Unreadable.of(_source(store, run_id), error),))
    except OSError as error:
        return Taken(run_id, None, (Unreadable.of(_source(store, run_id), unreadable(store.folder, error)),))
    except Exception as error:  # in one run of many, it must not hide the others
        return Taken(run_id, None, (Unreadable.unforeseen(_source(store, run_id), error),))
    items: list[Capture | Unreadable] = [capture, *broken]
    return taken(run_id, items)


def _source(store: Store, run_id: str) -> str:
    return f"{store.folder} {run_id}"


def _still_growing(one: Taken) -> Taken:
    if one.capture is None:
        return one
    worth = one.capture.evidence
    worth = replace(worth, live=True, truncated=True, notes=(*worth.notes, GROWING))
    return replace(one, capture=replace(one.capture, evidence=worth))
