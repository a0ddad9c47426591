"""From store to view: changed documents wait in a dirty set, are flushed into one FIFO, and arrive one by one."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from stormctl.drain.engine import Engine, Entries
from stormctl.drain.view import View


class Frame(NamedTuple):
    """A document as it was when it was sent. ``doc`` is empty for a response, which brings nothing but its number."""

    doc: str
    entries: Entries
    version: int
    own: bool
    response: int = 0


class Transport:
    """A connection of one view. Everything that was sent before a response arrives before it."""

    def __init__(self, engine: Engine, view: View) -> None:
        self._engine, self._view = engine, view
        self.dirty: dict[str, None] = {}
        self.wire: deque[Frame] = deque()
        self._asked = 0
        self.answered = 0

    def touch(self, doc: str) -> None:
        """A document changed."""
        self.dirty[doc] = None

    def flush(self) -> None:
        """Send a frame for each document that changed."""
        engine = self._engine
        for doc in self.dirty:
            version = engine.version.get(doc, 0)
            self.wire.append(Frame(doc, engine.entries(doc), version, version in engine.own))
        self.dirty.clear()

    def pull(self) -> int:
        """Ask for a response with nothing in it; its number. It waits for no dirty document and for no durability."""
        self._asked += 1
        self.wire.append(Frame("", (), 0, own=False, response=self._asked))
        return self._asked

    def receive(self) -> Frame:
        """Let the next frame arrive."""
        frame = self.wire.popleft()
        if frame.response:
            self.answered = frame.response
        else:
            self._view.apply(frame.doc, frame.entries, frame.version, own=frame.own)
        return frame

    def close(self) -> None:
        """The view is gone: nothing arrives any more, and nobody waits."""
        self.answered = self._asked
        self.wire.clear()
        self.dirty.clear()
