"""Files that belong together because they are named alike: ``events.json`` and ``runs.json``, ``pg-events.csv.gz`` and
``pg-runs.csv.gz``. The events come first; the others are read with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

EVENTS = "events"
#: What a file may hold beside the events of the same runs.
OTHERS = ("runs", "steps", "sleeps", "waits", "hooks")
_WORDS = re.compile(rf"(?<![A-Za-z])({'|'.join((EVENTS, *OTHERS))})(?![A-Za-z])")


def companions(path: Path, roles: Sequence[str] = OTHERS) -> Iterator[Path]:
    """The files beside a file of events that hold the other tables of the same capture. Links are not followed."""
    found = _role(path.name)
    if found is None or found[1] != EVENTS:
        return
    before, _, after = found
    for role in roles:
        # `events-data.json` shows the same events as `events.json`, with their payloads
        for name in (f"{before}{role}{after}", f"{before}{role}{_ending(after)}"):
            other = path.with_name(name)
            if other != path and other.is_file() and not other.is_symlink():
                yield other
                break


def belongs_to_events(path: Path) -> bool:
    """Whether the file is such a companion of a file that lies beside it."""
    found = _role(path.name)
    if found is None or found[1] == EVENTS:
        return False
    before, _, after = found
    events = path.with_name(f"{before}{EVENTS}{after}")
    return events.is_file() and not events.is_symlink()


def _role(name: str) -> tuple[str, str, str] | None:
    """A file's name around the last word in it that says what it holds."""
    found = list(_WORDS.finditer(name))
    return (name[: found[-1].start()], found[-1][1], name[found[-1].end() :]) if found else None


def _ending(after: str) -> str:
    return after[after.index(".") :] if "." in after else after
