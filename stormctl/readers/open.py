"""From the paths that a person gives to captures. What cannot be read is reported beside what can."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stormctl.errors import StormctlError
from stormctl.history import Capture
from stormctl.readers.ndjson import LOGS, META_SUFFIX, SUFFIX
from stormctl.readers.registry import reader_for
from stormctl.readers.text import damaged, unreadable

LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A path that gave no capture, with the sentence that says why and the one that says what to do."""

    source: str
    error: str
    remedy: str = ""

    @property
    def text(self) -> str:
        """Both sentences as one line."""
        return f"{self.error}. {self.remedy}".strip()


def open_captures(paths: Iterable[Path | str]) -> Iterator[Capture | Unreadable]:
    """The captures at the given paths, in order.

    A path is a log file, the artefact folder of a storm (its ``logs/``, or those of its ``latest``), or a folder of
    logs. One that is unreadable never hides the rest.
    """
    for path in map(Path, paths):
        for file in files_at(path):
            if isinstance(file, Unreadable):
                yield file
            else:
                yield from open_file(file)


def files_at(path: Path) -> Iterator[Path | Unreadable]:
    """The log files that a path stands for; a file stands for itself."""
    if not path.is_dir():
        yield path
        return
    try:
        found = sorted(_logs_in(_folder_of_logs(path)))
    except OSError as error:
        problem = unreadable(path, error)
        yield Unreadable(str(path), str(problem), problem.remedy)
        return
    if not found:
        empty = damaged(str(path), "holds no event log", remedy="Give a log file, or a folder with logs/*.ndjson.")
        yield Unreadable(str(path), str(empty), empty.remedy)
    yield from found


def open_file(path: Path) -> Iterator[Capture | Unreadable]:
    """The captures of one file. Anything that a reader trips over is the file's fault and is reported as such."""
    try:
        yield from reader_for(path).read(path)
    except StormctlError as error:
        yield Unreadable(str(path), str(error), error.remedy)
    except OSError as error:
        problem = unreadable(path, error)
        yield Unreadable(str(path), str(problem), problem.remedy)
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
