"""What lies at the paths that a person gives: files, folders of many shapes, databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stormctl.readers import worldlocal
from stormctl.readers.beside import belongs_to_events
from stormctl.readers.ndjson import LOGS, META_SUFFIX
from stormctl.readers.reading import BY_CONTENT, Reading
from stormctl.readers.text import damaged, unreadable
from stormctl.readers.unpack import bare_name
from stormctl.readers.unreadable import Unreadable
from stormctl.readers.workflow_dsn import READER as DSN
from stormctl.readers.workflow_dsn import Database, database_of, is_dsn

LATEST = "latest"
#: What a file in a folder must be called to be taken for a log, packed or not.
SUFFIXES = (".ndjson", ".jsonl", ".json", ".csv", ".tsv", ".parquet", ".sql", ".tar", ".tgz", ".zip")
#: How far down a folder is searched, and how many folders are looked into.
MAX_DEPTH, MAX_FOLDERS = 4, 20_000
_PASSED_OVER = frozenset({"node_modules"})

Place = Path | Database


def files_at(path: Path | str, reading: Reading = BY_CONTENT) -> Iterator[Place | Unreadable]:
    """What a path stands for: a file, and the store folder of a local world, stand for themselves, a DSN for its
    database, any other folder for the logs in it and below. Links inside a folder are not followed.

    UsageError for a DSN that PostgreSQL cannot read.
    """
    if isinstance(path, str) and (is_dsn(path) or reading.reader == DSN.name):
        yield database_of(path)
        return
    path = Path(path)
    if not path.is_dir():
        yield path
        return
    if reading.reader == worldlocal.READER.name and worldlocal.store_at(path) is None:
        yield path
        return
    found = False
    for place in _Walk(reading).below(path, 1):
        found = True
        yield place
    if not found:
        remedy = "Give a log file, a folder with logs/*.ndjson, or the folder of a local world."
        yield Unreadable.of(path, damaged(str(path), "holds no event log", remedy=remedy))


class _Walk:
    """One search through a folder."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._folders = 0

    def below(self, folder: Path, depth: int) -> Iterator[Place | Unreadable]:
        """The logs in a folder, then those in its folders. What cannot be listed is reported."""
        self._folders += 1
        try:
            logs = _folder_of_logs(folder)
            if logs != folder:
                entries = sorted(logs.iterdir())
                folders: list[Path] = []
            else:
                store = worldlocal.store_at(folder)
                if store is not None:
                    yield store
                    return
                entries = sorted(folder.iterdir())
                folders = [entry for entry in entries if _is_open(entry) and entry.is_dir()]
        except OSError as error:
            yield Unreadable.of(folder, unreadable(folder, error))
            return
        for entry in entries:
            yield from self._file(entry)
        for inner in folders:
            if depth >= MAX_DEPTH or self._folders >= MAX_FOLDERS:
                continue
            yield from self.below(inner, depth + 1)

    def _file(self, entry: Path) -> Iterator[Place | Unreadable]:
        named = bare_name(entry).lower().endswith(SUFFIXES) and not entry.name.endswith(META_SUFFIX)
        if not named or entry.name.startswith("."):
            return
        if entry.is_symlink():
            remedy = "Give the file that it leads to."
            yield Unreadable.of(entry, damaged(entry.name, "is a link, which is not followed", remedy=remedy))
        elif entry.is_dir():
            return
        elif not (self._reading.reader is None and belongs_to_events(entry) and _is_of_the_sdk(entry)):
            yield entry


def _folder_of_logs(folder: Path) -> Path:
    for candidate in (folder / LOGS, folder / LATEST / LOGS):
        if candidate.is_dir():
            return candidate
    return folder


def _is_open(entry: Path) -> bool:
    """Whether a folder is looked into."""
    return not (entry.name.startswith(".") or entry.name in _PASSED_OVER or entry.is_symlink())


def _is_of_the_sdk(entry: Path) -> bool:
    """Whether a file that belongs to a file of events by its name does so by what it holds."""
    from stormctl.errors import UnreadableInput
    from stormctl.readers import inspect, workflow_csv
    from stormctl.readers.text import head_of

    try:
        head = head_of(entry)
    except UnreadableInput:
        return False
    return any(reader.recognises(head, entry) for reader in (inspect.READER, workflow_csv.READER))


__all__ = ["LATEST", "Place", "files_at"]
