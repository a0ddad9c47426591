"""The replica that a loop reads and writes through: what frames brought, with the loop's own sealed writes over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from stormctl.drain.engine import Entries, Entry

#: what a shadowed removal counts as
REMOVED = 1


class Layer(NamedTuple):
    """A write that was sealed and is not committed: the whole value of a document, with what was under it."""

    owner: object
    entries: Entries


class View:
    """See the module. A frame that arrives under a layer is shadowed: it is there, and not to be seen."""

    def __init__(self, flipped: Callable[[], None] = lambda: None) -> None:
        self._confirmed: dict[str, tuple[Entries, int]] = {}
        self._layers: dict[str, list[Layer]] = {}
        self._shadows: dict[str, list[int]] = {}
        self._flipped = flipped

    def read(self, doc: str) -> Entries:
        """A document as a reader sees it."""
        layers = self._layers.get(doc)
        if layers:
            return layers[-1].entries
        return self._confirmed.get(doc, ((), 0))[0]

    def at(self, doc: str, index: int) -> Entry | None:
        """The element at an index; None where there is none."""
        entries = self.read(doc)
        return entries[index] if index < len(entries) else None

    def apply(self, doc: str, entries: Entries, version: int, *, own: bool) -> None:
        """A frame. It counts as shadowed under a layer, unless it is the echo of an own write or brings nothing new."""
        known = self._confirmed.get(doc, ((), 0))[1]
        if version < known:
            return
        self._confirmed[doc] = entries, version
        if self._layers.get(doc) and version > known and not own:
            self._shadows.setdefault(doc, []).append(version if entries else REMOVED)

    def seal(self, doc: str, owner: object, entries: Entries) -> None:
        """Lay a write over a document."""
        self._layers.setdefault(doc, []).append(Layer(owner, entries))

    def release(self, owner: object) -> None:
        """Take the owner's writes away, whatever became of them. Who waits for what they hid is told."""
        flipped = False
        for doc, layers in self._layers.items():
            kept = [one for one in layers if one.owner is not owner]
            if len(kept) < len(layers):
                self._layers[doc] = kept
                if not kept:
                    flipped = bool(self._shadows.pop(doc, None)) or flipped
        if flipped:
            self._flipped()

    def promote(self, doc: str, index: int, entry: Entry) -> None:
        """An own mark was accepted: what is confirmed has it too, where the element is the same."""
        entries, version = self._confirmed.get(doc, ((), 0))
        if index < len(entries) and entries[index] == entry:
            done = entry._replace(consequenced=True)
            self._confirmed[doc] = (*entries[:index], done, *entries[index + 1 :]), version

    @property
    def shadow_floor(self) -> int | None:
        """The lowest seq that is shadowed."""
        return min((seq for seqs in self._shadows.values() for seq in seqs), default=None)

    @property
    def sealed(self) -> bool:
        """Whether there are own writes without an outcome."""
        return any(self._layers.values())
