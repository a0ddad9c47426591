"""A well-behaved store and its one writer, to make logs that a correct engine must read.

Decisions are written by the pass that wanted them and by nobody else; facts (outcomes of steps, ends of waits,
payloads) come in any order that the lifecycle permits, also between two creates of one pass.
"""

from __future__ import annotations

import random
from typing import Any

from stormctl.engine.door import CALM, Create, Outcome, Pass, Perturbation
from stormctl.engine.generations import generation
from stormctl.engine.replay import Body, ReplayEngine
from stormctl.history import EventLog, kinds
from stormctl.testing import LogBuilder


def engine(body: Body, generation_name: str = "dispenser", input: Any = None) -> ReplayEngine:
    return ReplayEngine(body, input, generation(generation_name), workload="small")


def replay(
    body: Body,
    built: LogBuilder | EventLog,
    generation_name: str = "dispenser",
    *,
    input: Any = None,
    perturbation: Perturbation = CALM,
    hidden: frozenset[int] = frozenset(),
) -> Pass:
    """One cold replay of the whole log."""
    log = built.log() if isinstance(built, LogBuilder) else built
    passes = engine(body, generation_name, input).passes(log, [len(log)], hidden=hidden, perturbation=perturbation)
    return next(iter(passes))


def opened(**fields: Any) -> LogBuilder:
    """A log in which a run was created and started: positions 1 and 2."""
    return LogBuilder(**fields).run_created("small").run_started()


def labels(one: Pass) -> list[str]:
    return [draw.label for draw in one.draws]


def table(one: Pass) -> list[tuple[int, str, str]]:
    return [(draw.rank, draw.label, draw.digest) for draw in one.draws]


class Writer:
    """Writes the log of one run. ``chance`` decides what happens next; payloads go to hooks while any is live."""

    def __init__(
        self,
        body: Body,
        chance: random.Random,
        *,
        input: Any = None,
        generation_name: str = "dispenser",
        payloads: int = 6,
        longest: int = 120,
    ) -> None:
        self.builder = opened()
        self._engine = engine(body, generation_name, input)
        self._chance = chance
        self._payloads = payloads
        self._longest = longest
        self._wanted: list[tuple[str, int, Any]] = []
        self._names: dict[int, str] = {}
        #: rank -> what can happen to it next
        self._steps: dict[int, str] = {}
        self._waits: list[int] = []
        self._hooks: list[int] = []
        self.last: Pass | None = None

    def write(self) -> EventLog:
        """Write until the run has ended, nothing can happen any more, or the log is long enough."""
        chance = self._chance
        while len(self.builder.events) < self._longest:
            if not self._wanted and not self._look():
                break
            facts = self._facts()
            if self._wanted and (not facts or chance.random() < 0.6):
                self._create(*self._wanted.pop(chance.randrange(len(self._wanted))))
            elif facts:
                self._happen(*chance.choice(facts))
                if not self._wanted:
                    while chance.random() < 0.4 and (more := self._facts()):
                        self._happen(*chance.choice(more))
            elif not self._wanted:
                break
        return self.builder.log()

    def _look(self) -> bool:
        """Replay, and note what the pass wants written. False when the run has ended."""
        log = self.builder.log()
        self.last = one = next(iter(self._engine.passes(log, [len(log)])))
        for item in one.pending:
            if item.create is not None:
                self._wanted.append((item.kind, item.rank, item))
            elif item.disposed and item.rank in self._hooks:
                self._hooks.remove(item.rank)
                self.builder.hook_disposed(item.rank)
        if one.outcome is Outcome.COMPLETED and not self._wanted:
            self.builder.run_completed(one.value)
        return one.outcome is Outcome.SUSPENDED

    def _create(self, kind: str, rank: int, item: Any) -> None:
        builder = self.builder
        if kind == kinds.STEP:
            builder.step_created(rank, item.name, *item.arguments)
            self._steps[rank] = "created"
            if item.create is Create.LAZY:
                builder.step_started(rank)
                self._steps[rank] = "started"
        elif kind == kinds.WAIT:
            builder.event(kinds.WAIT_CREATED, rank, resume_at=item.resume_at)
            self._waits.append(rank)
        elif kind == kinds.HOOK:
            builder.hook_created(rank, item.token)
            self._hooks.append(rank)
        else:
            builder.attr_set(rank, **item.arguments)

    def _facts(self) -> list[tuple[str, int]]:
        found = [(kinds.STEP, rank) for rank in self._steps] + [(kinds.WAIT, rank) for rank in self._waits]
        if self._payloads > 0:
            found += [(kinds.HOOK, rank) for rank in self._hooks]
        return found

    def _happen(self, kind: str, rank: int) -> None:
        builder = self.builder
        if kind == kinds.WAIT:
            self._waits.remove(rank)
            builder.wait_completed(rank)
        elif kind == kinds.HOOK:
            self._payloads -= 1
            builder.hook_received(rank, {"n": self._payloads})
        elif self._steps[rank] == "created":
            self._steps[rank] = "started"
            builder.step_started(rank)
        else:
            del self._steps[rank]
            builder.step_completed(rank, rank)
