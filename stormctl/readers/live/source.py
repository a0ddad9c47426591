"""A live store to capture from: which runs there are, and each as it is at one moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from stormctl.errors import StoreFailure
from stormctl.history import Capture
from stormctl.readers.unreadable import Unreadable

#: More runs than this are not listed.
MAX_RUNS = 1_000_000


class SourceLost(StoreFailure):
    """The store is gone: no further run can be read from it."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What was read of one run: its capture, None where there is none to be had, and what of it is broken."""

    run_id: str
    capture: Capture | None
    broken: tuple[Unreadable, ...] = ()


class Source(Protocol):
    """A store that is read and never written."""

    @property
    def shown(self) -> str:
        """Where it is, without a password."""
        ...

    def runs(self, since: int | None = None) -> list[str]:
        """The ids of its runs, in their order, which is that of their creation: those that changed at or after a time
        in epoch milliseconds, or all. A StormctlError where they cannot be listed."""
        ...

    def read(self, runs: Sequence[str]) -> Iterator[Taken]:
        """Those runs, each of one moment. One that cannot be read does not hide the rest. SourceLost when the store is
        gone."""
        ...


def taken(run_id: str, items: Sequence[Capture | Unreadable]) -> Taken:
    """What a reader gave for one run, put together."""
    captures = [item for item in items if isinstance(item, Capture)]
    return Taken(
        run_id,
        captures[0] if captures else None,
        tuple(item for item in items if isinstance(item, Unreadable)),
    )
