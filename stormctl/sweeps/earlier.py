"""Earlier captures: for each run that is swept, the capture of the same run that was made before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from stormctl.errors import UnreadableInput
from stormctl.history import Capture, EventLog, Evidence
from stormctl.readers.open import Unreadable, open_captures
from stormctl.readers.reading import BY_CONTENT, Reading


@lru_cache(maxsize=2)
def _captures(path: str, reading: Reading) -> tuple[dict[str, Capture], tuple[Unreadable, ...]]:
    found: dict[str, Capture] = {}
    unreadable: list[Unreadable] = []
    for item in open_captures([path], reading):
        if isinstance(item, Unreadable):
            unreadable.append(item)
        else:
            found.setdefault(item.log.run_id, replace(item, audit=None, reads=None, earlier=None))
    return found, tuple(unreadable)


def unreadable_earlier(path: str | None, reading: Reading = BY_CONTENT) -> Iterator[Unreadable]:
    """What of the earlier captures cannot be read. UnreadableInput when that is all of them."""
    if path is None:
        return
    found, unreadable = _captures(path, reading)
    if not found:
        why = unreadable[0].text if unreadable else f"{path} holds no capture. Give one that was made before."
        error, _, remedy = why.partition(". ")
        raise UnreadableInput(f"no earlier capture can be read: {error}", remedy=remedy or "Give another.")
    yield from unreadable


def with_earlier(capture: Capture, path: str | None, reading: Reading = BY_CONTENT) -> Capture:
    """The capture with the earlier one of its run beside it. Where there is none of this run, one of another stands in
    its place, and the sweep says so. One that was captured with it gives way to the one that is named."""
    if path is None:
        return capture
    found, _ = _captures(path, reading)
    other = Capture(path, EventLog((), "no run"), Evidence("nothing"))
    return replace(capture, earlier=found.get(capture.log.run_id) or next(iter(found.values()), other))
