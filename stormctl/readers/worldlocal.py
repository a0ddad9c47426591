"""The folder of a local world (``.workflow-data``), of the Workflow SDK 4.x and 5.x or of our own: a capture per run.

The files are read as they lie, also while a server writes: an event is there when its own file is, temporary files do
not count, a file that vanishes is skipped, and one that is half written is read again. What stays broken is reported
beside what is whole. The order is the store's: by creation time and id where ids are ULIDs, by slot where they count.

Beside the log a capture has, in its data, the entity rows (without payloads and tokens), the claim files and the
events that some of them name, the store's counter, what was staged, and the times at which the files got their names:
the last change of an event's inode is the link that published it. Those times are kept only where they can be true; a
copy of the folder has the times of its copying.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stormctl.errors import StormctlError, UnreadableInput
from stormctl.history import Capture, Event
from stormctl.readers.fields import shown
from stormctl.readers.sdk_capture import CTIME, Found, capture_of
from stormctl.readers.sdk_events import event_of, in_order
from stormctl.readers.text import damaged, parse, refuse_hopeless, unreadable
from stormctl.readers.unpack import read_up_to
from stormctl.readers.unreadable import Unreadable

#: Where an app keeps its store, below its own folder.
PLACES = (".", ".workflow-data", ".next/workflow-data")
VERSION = "version.txt"
#: Larger files are no event or row of the SDK.
MAX_FILE_BYTES = 64 << 20
#: More events of one run than any engine replays; the rest is declared as not read.
MAX_EVENTS = 200_000
#: How often a broken or missing file is looked at again, and after how long, while a server may be writing it.
TRIES, PAUSE_S = 3, 0.02
#: A file that was touched so lately may still be in somebody's hands.
FRESH_S = 2.0
#: How late a file may get its name after the last event of its run was made, before it is taken for a copy.
COPIED_MS = 250
_ROWS = ("steps", "waits", "hooks")
_CLAIMS = ("steps", "waits", "attributes", "hooks", "runs")
_ROW_FIELDS = (
    "status", "stepName", "attempt", "resumeAt", "retryAfter", "createdAt", "startedAt", "completedAt", "updatedAt",
    "specVersion",
)  # fmt: skip
#: The counter of a store that gives positions under a lock, below ``.locks/runs``, and what is kept of it.
_COUNTER = re.compile(r"seq(?:\.[A-Za-z][A-Za-z0-9-]*)?\.json\Z")
_COUNTED = ("seq", "lastEventId", "lastFencedSeq")
#: Where claims lie that name an event, what they claim, and what is kept of them: neither tokens nor digests.
_NAMING = {"tokens": "token", "resumes": "resume"}
_NAMED = ("hookId", "eventId", "resumeId")
_TAG = re.compile(r"\.[A-Za-z][A-Za-z0-9-]*\Z")
_TEMPORARY = ".tmp."


def store_at(path: Path) -> Path | None:
    """The store folder at or just below a path, told by what it holds; None where there is none."""
    for place in PLACES:
        folder = path / place
        if (folder / "events").is_dir() and ((folder / "runs").is_dir() or (folder / VERSION).is_file()):
            return folder
    return None


def read_store(folder: Path, runs: Iterable[str] | None = None) -> Iterator[Capture | Unreadable]:
    """Every run of a store folder, or the given ones, in the order of their ids, which is that of their creation.

    What is broken comes right behind the run that it belongs to; a run that is asked for and not there is unreadable.
    """
    store = Store(folder)
    try:
        wanted = store.runs() if runs is None else list(runs)
    except OSError as error:
        yield Unreadable.of(folder, unreadable(folder, error))
        return
    if not wanted and runs is None:
        remedy = "Start a run on it, or check the path."
        yield Unreadable.of(folder, damaged(str(folder), "is a store without a run", remedy=remedy))
    for run_id in wanted:
        try:
            capture, broken = store.read(run_id)
        except StormctlError as error:
            yield Unreadable.of(store.row_path(run_id), error)
            continue
        except OSError as error:
            yield Unreadable.of(store.row_path(run_id), unreadable(store.row_path(run_id), error))
            continue
        except Exception as error:  # in one run of many, it must not hide the others
            yield Unreadable.unforeseen(store.row_path(run_id), error)
            continue
        yield capture
        yield from broken


def read_run(folder: Path, run_id: str) -> Capture:
    """One run of a store folder; UnreadableInput when there is no such run. Broken files become notes."""
    return Store(folder).read(run_id)[0]


class WorldLocalReader:
    """Reads one run of a store, named by its file in ``runs/`` or by one of its events."""

    name = "world-local"
    summary = "the folder of a local world (.workflow-data), or a file in its runs/"
    sign = "a folder with events/ and runs/ (or version.txt), or a file in one of those two"

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether the file lies where a store has its run rows and events."""
        return path.parent.name in ("runs", "events") and store_at(path.parent.parent) == path.parent.parent / "."

    def read(self, path: Path) -> Iterator[Capture | Unreadable]:
        """The one capture of the run; all of a folder's."""
        if path.is_dir():
            yield from read_store(path)
            return
        run_id = path.name.removesuffix(".json").partition(".")[0].partition("-")[0]
        yield read_run(path.parent.parent, run_id)


@dataclass(slots=True)
class _Index:
    """The names in the store's folders, by run."""

    events: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    temporary: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    rows: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    claims: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    staged: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    hooks: list[str] = field(default_factory=list)
    hook_claims: list[str] = field(default_factory=list)
    counters: dict[str, str] = field(default_factory=dict)
    named: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))


class Store:
    """One store folder. Its folders are listed once; a run is read when it is asked for.

    With ``events_only`` nothing but the events is listed: enough to see whether a run has grown.
    """

    def __init__(self, folder: Path, *, events_only: bool = False) -> None:
        self.folder = folder
        self._index: _Index | None = None
        self._events_only = events_only

    def runs(self) -> list[str]:
        """The ids of all runs that have a row or an event."""
        rows = {_stem(name) for name in _names(self.folder / "runs") if _is_file_of_ours(name)}
        return sorted(rows | self._names().events.keys())

    def event_names(self) -> Mapping[str, Sequence[str]]:
        """The names of the event files by run, as they were listed."""
        return self._names().events

    def row_path(self, run_id: str) -> Path:
        """Where the run's row lies."""
        return self.folder / "runs" / f"{run_id}.json"

    def read(self, run_id: str) -> tuple[Capture, list[Unreadable]]:
        """A run, and what of it is broken; UnreadableInput when the store does not have it."""
        broken: list[Unreadable] = []
        names = self._names().events.get(run_id, [])
        events, committed = self._events(run_id, names[:MAX_EVENTS], broken)
        row, fresh = self._row(run_id, broken)
        for _ in range(TRIES):
            ended = row is not None and row.get("status") in ("completed", "failed", "cancelled")
            if not (fresh and ended and not any(event.is_terminal for event in events)):
                break
            time.sleep(PAUSE_S)  # the row is written before the event, which is about to come
            names = self._events_now(run_id)
            events, committed = self._events(run_id, names[:MAX_EVENTS], broken)
        if row is None and not events and not broken:
            raise damaged(str(self.folder), f"holds no run {run_id}", remedy="Check the run's id.")
        ordered = in_order(events)
        found = Found(
            source=str(self.row_path(run_id)),
            run_id=run_id,
            events=ordered,
            origin=f"local world {self._version()}".strip(),
            row=row,
            committed=committed if _may_be_true(ordered, committed) else {},
            clock=CTIME,
            about=self._beside(run_id, ordered, broken),
            notes=_notes(broken, len(names), self._names().temporary[run_id]),
            partial=any(Path(one.source).parent.name == "events" for one in broken) or len(names) > MAX_EVENTS,
        )
        return capture_of(found), broken

    # -- what lies where ----------------------------------------------------------------------------------------------

    def _names(self) -> _Index:
        if self._index is None:
            self._index = index = _Index()
            for name in _names(self.folder / "events"):
                run_id, _, rest = name.partition("-")
                if _TEMPORARY in name:
                    index.temporary[run_id] += 1
                elif rest and _is_file_of_ours(name):
                    index.events[run_id].append(name)
            if not self._events_only:
                self._index_rows(index)
                self._index_locks(index)
                self._index_named(index)
        return self._index

    def _index_rows(self, index: _Index) -> None:
        for kind in _ROWS:
            for name in sorted(_names(self.folder / kind)):
                if not _is_file_of_ours(name):
                    continue
                run_id, _, rest = name.partition("-")
                if kind == "hooks":
                    index.hooks.append(name)
                elif rest:
                    index.rows[run_id].append((kind, name))

    def _index_locks(self, index: _Index) -> None:
        locks = self.folder / ".locks"
        for kind in _CLAIMS:
            for name in sorted(_names(locks / kind)):
                run_id, _, rest = name.partition("-")
                if name.endswith(".pending"):
                    index.staged[name.removesuffix(".pending")] = sorted(_names(locks / kind / name))
                elif kind == "hooks":
                    index.hook_claims.append(name)
                elif kind == "runs" and _COUNTER.match(name.partition(".")[2]) is not None:
                    index.counters[name.partition(".")[0]] = name
                elif kind == "runs":
                    index.claims[name.partition(".")[0]].append(f"runs/{name.partition('.')[2]}")
                elif rest:
                    index.claims[run_id].append(f"{kind}/{rest}")

    def _index_named(self, index: _Index) -> None:
        """The claims on tokens and on resumes, by the run that took them. One that is broken names nothing."""
        for folder, claim in _NAMING.items():
            place = self.folder / "hooks" / folder
            for name in sorted(_names(place)):
                if not _is_file_of_ours(name):
                    continue
                with suppress(UnreadableInput):
                    found = _read(place / name)
                    if found is not None and isinstance(found[0].get("runId"), str):
                        kept = {key: found[0][key] for key in _NAMED if isinstance(found[0].get(key), str)}
                        index.named[found[0]["runId"]].append({"claim": claim, **kept})

    def _events_now(self, run_id: str) -> list[str]:
        prefix = f"{run_id}-"
        found = _names(self.folder / "events")
        return [name for name in found if name.startswith(prefix) and _is_file_of_ours(name)]

    def _version(self) -> str:
        try:
            with (self.folder / VERSION).open("rb") as file:
                return file.read(200).decode("utf-8", "replace").strip()
        except OSError:
            return ""

    # -- reading ------------------------------------------------------------------------------------------------------

    def _events(
        self, run_id: str, names: Sequence[str], broken: list[Unreadable]
    ) -> tuple[list[Event], dict[str, int]]:
        """The events of those files, and when each file got its name, in microseconds."""
        events: list[Event] = []
        committed: dict[str, int] = {}
        reported = {one.source for one in broken}
        for name in names:
            path = self.folder / "events" / name
            try:
                found = _read(path)
                if found is None:
                    continue
                event = event_of(found[0], name)
                if event.run_id != run_id:
                    raise damaged(name, f"holds an event of run {shown(event.run_id)}")
            except UnreadableInput as error:
                if str(path) not in reported:
                    broken.append(Unreadable.of(path, error))
                continue
            events.append(event)
            committed[event.event_id or ""] = found[1].st_ctime_ns // 1000
        return events, committed

    def _counter(self, run_id: str, broken: list[Unreadable]) -> dict[str, Any]:
        """What the store has counted of the run, where it counts."""
        name = self._names().counters.get(run_id)
        if name is None:
            return {}
        path = self.folder / ".locks" / "runs" / name
        try:
            found = _read(path)
        except UnreadableInput as error:
            broken.append(Unreadable.of(path, error))
            return {}
        return {} if found is None else {key: found[0][key] for key in _COUNTED if key in found[0]}

    def _row(self, run_id: str, broken: list[Unreadable]) -> tuple[Mapping[str, Any] | None, bool]:
        """The run's row, and whether it was written just now."""
        path = self.row_path(run_id)
        if not path.exists():
            tagged = [name for name in _names(self.folder / "runs") if _stem(name) == run_id and _is_file_of_ours(name)]
            path = path.with_name(tagged[0]) if tagged else path
        try:
            found = _read(path)
        except UnreadableInput as error:
            broken.append(Unreadable.of(path, error))
            return None, False
        return (None, False) if found is None else (found[0], _is_fresh(found[1]))

    def _beside(self, run_id: str, events: Sequence[Event], broken: list[Unreadable]) -> dict[str, Any]:
        """What else the store holds of the run."""
        index = self._names()
        hooks = {event.correlation_id for event in events if event.kind == "hook"}
        rows: dict[str, dict[str, Any]] = {}
        theirs = [("hooks", name) for name in index.hooks if _stem(name) in hooks]
        for kind, name in [*index.rows.get(run_id, []), *theirs]:
            path = self.folder / kind / name
            try:
                found = _read(path)
            except UnreadableInput as error:
                broken.append(Unreadable.of(path, error))
                continue
            if found is not None and found[0].get("runId", run_id) == run_id:
                entity = _stem(name).removeprefix(f"{run_id}-")
                rows[entity] = {key: found[0][key] for key in _ROW_FIELDS if key in found[0]}
        gone = [f"hooks/{name}" for name in index.hook_claims if name.partition(".")[0] in hooks]
        about = {
            "world": self._version(),
            "rows": rows,
            "claims": [*index.claims.get(run_id, []), *gone],
            "staged": index.staged.get(run_id, []),
            "claimed_events": index.named.get(run_id, []),
            "counter": self._counter(run_id, broken),
        }
        return {key: value for key, value in about.items() if value}


def _names(folder: Path) -> list[str]:
    """The names in a folder, links left out; none where there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if not entry.is_symlink()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_file_of_ours(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".") and _TEMPORARY not in name


def _stem(name: str) -> str:
    """A file's name without ``.json`` and without the tag of the world that wrote it (``.vitest-3``)."""
    return _TAG.sub("", name.removesuffix(".json"))


def _is_fresh(status: os.stat_result) -> bool:
    return time.time() - status.st_mtime < FRESH_S


def _read(path: Path) -> tuple[Mapping[str, Any], os.stat_result] | None:
    """The JSON object in a file, and the file's status; None when it is gone. A file that may still be written is
    read again before it counts as broken."""
    for left in reversed(range(TRIES)):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(path, error) from None
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            try:
                return _object(read_up_to(file, MAX_FILE_BYTES + 1), path), status
            except OSError as error:
                raise unreadable(path, error) from None
            except UnreadableInput:
                if not left or not _is_fresh(status):
                    raise
        time.sleep(PAUSE_S)
    return None


def _object(content: bytes, path: Path) -> Mapping[str, Any]:
    if len(content) > MAX_FILE_BYTES:
        raise damaged(path.name, f"is larger than {MAX_FILE_BYTES >> 20} MiB")
    refuse_hopeless(content, path)
    value = parse(content.decode("utf-8", "replace"), path.name)
    if not isinstance(value, dict):
        raise damaged(path.name, "is not a JSON object")
    return value


def _may_be_true(events: Sequence[Event], committed: Mapping[str, int]) -> bool:
    """Whether the files got their names while the run went on, and not when somebody copied the folder later."""
    times = [event.created_at for event in events if event.created_at is not None]
    return bool(times) and bool(committed) and min(committed.values()) // 1000 <= max(times) + COPIED_MS


def _notes(broken: Sequence[Unreadable], files: int, temporary: int) -> list[str]:
    found = [f"{Path(one.source).name} cannot be read" for one in broken[:5]]
    if len(broken) > 5:
        found.append(f"{len(broken) - 5} more files cannot be read")
    if files > MAX_EVENTS:
        found.append(f"{files - MAX_EVENTS} of its {files} events were not read")
    if temporary:
        found.append(f"{temporary} temporary event files lie beside the log")
    return found


READER = WorldLocalReader()
