"""The runs of a store folder in shares, so that several processes can sweep them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stormctl.history import Capture
from stormctl.readers import worldlocal
from stormctl.readers.open import Place, Unreadable

#: A store is shared out when it has more runs than this: each share lists its folders anew.
FEW_RUNS = 50
#: How many shares of a store each process gets, so that none waits long for the others.
SHARES = 4


@dataclass(frozen=True, slots=True)
class Share:
    """Some runs of a store folder."""

    folder: Path
    runs: tuple[str, ...]

    def read(self) -> Iterator[Capture | Unreadable]:
        """Their captures, as the store gives them."""
        yield from worldlocal.read_store(self.folder, self.runs)


def shared_out(item: Place | Unreadable, processes: int) -> list[Place | Share | Unreadable]:
    """A large store in shares, and anything else as it is. So is a store that cannot be listed: it says why when it is
    read."""
    if not isinstance(item, Path) or not item.is_dir():
        return [item]
    try:
        runs = worldlocal.Store(item).runs()
    except Exception:
        return [item]
    if len(runs) <= FEW_RUNS:
        return [item]
    size = max(FEW_RUNS, -(-len(runs) // (processes * SHARES)))
    return [Share(item, tuple(runs[start : start + size])) for start in range(0, len(runs), size)]
