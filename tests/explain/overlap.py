"""Two or more writers of one run, each deciding from a prefix of its own: how corrupted logs come about.

An ``Overlap`` writes what a real pass asks for, as a delivery would: eager creates and waits alone, the first steps
together with their start, and nothing that exists already. It remembers from which view each create was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stormctl.engine.door import CALM, Create, Pass, Pending, Perturbation
from stormctl.engine.generations import generation
from stormctl.engine.replay import Body, ReplayEngine
from stormctl.explain import ExplainPlan
from stormctl.history import AuditRecord, Capture, EventLog, RunRow
from stormctl.testing import LogBuilder
from stormctl.workloads.base import Workload


def workload(body: Body, name: str = "small") -> Workload:
    """A workload of nothing but a body."""
    from tests.explain.small import small

    return small(body, name)


class Overlap:
    """A log and its writers. ``truth`` holds, by 0-based index of a create, the prefix it was written from."""

    def __init__(self, body: Body, builder: LogBuilder, written_by: str = "nets", *, input: Any = None) -> None:
        self.builder = builder
        self.truth: dict[int, int] = {}
        self.views: dict[int, frozenset[int]] = {}
        self.audit: list[AuditRecord] = []
        self._engine = ReplayEngine(body, input, generation(written_by), workload="small")
        self._tick = 0

    @property
    def length(self) -> int:
        return len(self.builder.events)

    def log(self) -> EventLog:
        return self.builder.log()

    def read(self, prefix: int | None = None, *, hidden: Sequence[int] = (), perturbation: Perturbation = CALM) -> Pass:
        """A pass over a prefix of the log as it is now (all of it by default)."""
        length = self.length if prefix is None else prefix
        passes = self._engine.passes(self.log(), [length], hidden=frozenset(hidden), perturbation=perturbation)
        return next(iter(passes))

    def write(
        self, replay: Pass, *, ranks: Sequence[int] | None = None, hidden: Sequence[int] = (), writer: str = "w"
    ) -> list[int]:
        """Write what a pass asks for and the log does not hold, or only these ranks of it: the indices written."""
        written: list[int] = []
        for item in replay.pending:
            if item.create is None or (ranks is not None and item.rank not in ranks):
                continue
            if any(event.correlation_id == item.correlation_id for event in self.builder.events):
                continue
            index = self.length
            self._append(item)
            self.truth[index] = replay.prefix
            self.views[index] = frozenset(hidden)
            written.append(index)
            self._record(index, writer, replay.prefix - len(hidden))
        return written

    def _append(self, item: Pending) -> None:
        if item.create is Create.WAIT:
            self.builder.wait_created(item.rank, int(item.arguments))
        elif item.create is Create.HOOK:
            self.builder.hook_created(item.rank, item.token or "")
        elif item.create is Create.ATTRIBUTE:
            self.builder.attr_set(item.rank, **item.arguments)
        else:
            self.builder.step_created(item.rank, item.name or "", *item.arguments)
            if item.create is Create.LAZY:
                self.builder.step_started(item.rank)

    def _record(self, index: int, writer: str, snapshot: int) -> None:
        event = self.builder.events[index]
        self._tick += 1_000_000
        self.audit.append(
            AuditRecord(
                run_id=event.run_id,
                writer=writer,
                type=event.type,
                correlation_id=event.correlation_id,
                admitted=True,
                reason="",
                position=event.position,
                event_id=event.event_id,
                snapshot=snapshot,
                entered=self._tick,
                minted=self._tick,
                published=self._tick,
                returned=self._tick,
            )
        )

    def refused(self, index: int, reason: str, *, writer: str, snapshot: int, type: str | None = None) -> None:
        """An append of the event's entity that the store refused."""
        event = self.builder.events[index]
        self.audit.append(
            AuditRecord(
                run_id=event.run_id,
                writer=writer,
                type=type or event.type,
                correlation_id=event.correlation_id,
                admitted=False,
                reason=reason,
                position=None,
                event_id=None,
                snapshot=snapshot,
                entered=1,
                minted=0,
                published=0,
                returned=2,
            )
        )

    def capture(self, *, audited: bool = False, failed: bool = True) -> Capture:
        """The log as a capture of a run that has failed, or still runs."""
        row = RunRow("failed", "small", error_code="CORRUPTED_EVENT_LOG") if failed else RunRow("running", "small")
        return self.builder.capture(run=row, audit=self.audit if audited else None)


def plan(body: Body, **fields: Any) -> ExplainPlan:
    """A plan that finds the body under the name of its workload."""
    code = workload(body)
    return ExplainPlan(workload="small", find=lambda _name: code, **fields)
