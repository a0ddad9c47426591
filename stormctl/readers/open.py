"""From the paths that a person gives to captures. What cannot be read is reported beside what can."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from stormctl.errors import StormctlError
from stormctl.history import Capture
from stormctl.readers import worldlocal
from stormctl.readers.ndjson import LOGS, META_SUFFIX, SUFFIX
from stormctl.readers.registry import reader_for
from stormctl.readers.text import damaged, unreadable
from stormctl.readers.unreadable import Unreadable

LATEST = "latest"


def open_captures(paths: Iterable[Path | str]) -> Iterator[Capture | Unreadable]:
    """The captures at the given paths, in order.

    A path is a log file, the artefact folder of a storm (its ``logs/``, or those of its ``latest``), the store folder
    of a local world or of an app that has one, or a folder of logs. One that is unreadable never hides the rest.
    """
    for path in map(Path, paths):
        for file in files_at(path):
            if isinstance(file, Unreadable):
                yield file
            else:
                yield from open_file(file)


def files_at(path: Path) -> Iterator[Path | Unreadable]:
    """The log files that a path stands for; a file, and the store folder of a local world, stand for themselves."""
    if not path.is_dir():
        yield path
        return
    try:
        logs = _folder_of_logs(path)
        store = worldlocal.store_at(path) if logs == path else None
        found = [store] if store is not None else sorted(_logs_in(logs))
    except OSError as error:
        yield Unreadable.of(path, unreadable(path, error))
        return
    if not found:
        remedy = "Give a log file, a folder with logs/*.ndjson, or the folder of a local world."
        yield Unreadable.of(path, damaged(str(path), "holds no event log", remedy=remedy))
    yield from found


def open_file(path: Path) -> Iterator[Capture | Unreadable]:
    """The captures of one file or store. Anything that a reader trips over is the file's fault and is reported so."""
    try:
        if path.is_dir():
            yield from worldlocal.read_store(path)
        else:
            yield from reader_for(path).read(path)
    except StormctlError as error:
        yield Unreadable.of(path, error)
    except OSError as error:
        yield Unreadable.of(path, unreadable(path, error))
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        reason = f"{path.name} cannot be read: {type(error).__name__} in its values"
        yield Unreadable(str(path), reason, "Capture or copy the file again.")


def _folder_of_logs(folder: Path) -> Path:
    for candidate in (folder / LOGS, folder / LATEST / LOGS):
        if candidate.is_dir():
            return candidate
    return folder


def _logs_in(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        named = entry.name.endswith((SUFFIX, ".json")) and not entry.name.endswith(META_SUFFIX)
        if named and not entry.name.startswith("."):
            yield entry


__all__ = ["LATEST", "Unreadable", "files_at", "open_captures", "open_file"]
