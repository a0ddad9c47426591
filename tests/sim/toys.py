"""Small models for tests of the kernel and of what is made of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stormctl.sim.kernel import Body, Label, Pick, Problem, Run, Stage, Wait


@dataclass
class Shared:
    """What the actors of a toy share: a list of words, and how often each reader looked."""

    words: list[str] = field(default_factory=list)
    sent: int = 0

    def judge(self, run: Run) -> Sequence[Problem]:
        """A toy is never wrong."""
        return ()


@dataclass(frozen=True)
class Writers:
    """So many writers that append their words to one list; each may lose a word where ``lossy``.

    ``relay`` adds a reader that waits for the first word before it writes one of its own, and a clock behind all.
    """

    counts: tuple[int, ...]
    lossy: bool = False
    relay: bool = False
    name: str = "writers"
    digest: str = "0123456789abcdef"

    def start(self, stage: Stage) -> Shared:
        """Spawn the writers."""
        shared = Shared()
        for number, count in enumerate(self.counts, 1):
            stage.spawn(f"W{number}", self._write(shared, number, count))
        if self.relay:
            stage.spawn("R", self._relay(stage, shared))
            stage.spawn("clock", self._tick(shared), last=True)
        return shared

    def _write(self, shared: Shared, number: int, count: int) -> Body:
        for word in range(count):
            yield Label("mint", "", False, f"word_{word}")
            if self.lossy and (yield Pick("loss", ("kept", "lost", "twice"))) == 1:
                continue
            yield Label("publish", "words", True, f"word_{word}")
            shared.words.append(f"{number}.{word}")

    def _relay(self, stage: Stage, shared: Shared) -> Body:
        yield Wait(Label("read", "words", False), lambda: bool(shared.words), "a first word")
        stage.spawn("late", self._write(shared, 9, 1))
        yield Label("publish", "words", True, "word_relayed")
        shared.words.append("relayed")

    def _tick(self, shared: Shared) -> Body:
        yield Label("tick", "clock", True)
        shared.words.append("tick")
