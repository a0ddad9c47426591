"""From the paths that a person gives to captures. What cannot be read is reported beside what can."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from stormctl.errors import StormctlError, UsageError
from stormctl.history import Capture
from stormctl.readers import worldlocal
from stormctl.readers.places import LATEST, Place, files_at
from stormctl.readers.reading import BY_CONTENT, Reading
from stormctl.readers.registry import reader_for
from stormctl.readers.text import unreadable
from stormctl.readers.unreadable import Unreadable
from stormctl.readers.workflow_dsn import Database


def open_captures(paths: Iterable[Path | str], reading: Reading = BY_CONTENT) -> Iterator[Capture | Unreadable]:
    """The captures at the given paths, in order.

    A path is a log file, the artefact folder of a storm (its ``logs/``, or those of its ``latest``), the store folder
    of a local world or of an app that has one, a folder of logs, or the DSN of a database. One that is unreadable never
    hides the rest.
    """
    for path in paths:
        for place in files_at(path, reading):
            if isinstance(place, Unreadable):
                yield place
            else:
                yield from open_file(place, reading)


def open_file(place: Place, reading: Reading = BY_CONTENT) -> Iterator[Capture | Unreadable]:
    """The captures of one file, store or database. Anything that a reader trips over is its fault and is reported so.

    UsageError for a reader that does not exist.
    """
    yield from guarded(place, _read(place, reading))


def _read(place: Place, reading: Reading) -> Iterator[Capture | Unreadable]:
    if isinstance(place, Database):
        yield from place.read()
    elif place.is_dir():
        yield from worldlocal.read_store(place)
    else:
        yield from reader_for(place, reading.reader).read(place)


def guarded(place: Place, found: Iterable[Capture | Unreadable]) -> Iterator[Capture | Unreadable]:
    """What a reader gives of a place; what it trips over comes as the last of it, as a report."""
    try:
        yield from found
    except UsageError:
        raise
    except StormctlError as error:
        yield Unreadable.of(str(place), error)
    except OSError as error:
        yield Unreadable.of(str(place), unreadable(Path(str(place)), error))
    except Exception as error:
        yield Unreadable.unforeseen(str(place), error)


__all__ = ["LATEST", "Place", "Unreadable", "files_at", "guarded", "open_captures", "open_file"]
