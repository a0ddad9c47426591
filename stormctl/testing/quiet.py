"""Runs without a storm: one thing after another, so that nothing can go wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from stormctl.engine.door import Outcome, Pending
from stormctl.history import kinds
from stormctl.testing.builder import LogBuilder
from stormctl.testing.replaying import Replayed, workload_of
from stormctl.workloads.user_engine import user_engine

#: what a step returns, by its name: a value, or a function of its arguments
Results = Mapping[str, Any]


def run_serially(
    workload: Replayed,
    input: Any = None,
    *,
    generation: str = "dispenser",
    late: Sequence[int] = (),
    limit: int = 10_000,
    results: Results | None = None,
    payloads: Mapping[str, Any] | None = None,
) -> LogBuilder:
    """Run a workload, or a body alone, as one writer alone would, each step to its end before anything else happens.

    Waits complete only when no step is left to run, save those whose ranks are in ``late``: they complete before the
    steps do, and so win their races. A step returns what ``results`` has under its name (a function is called with the
    step's arguments), else None. A hook whose token is in ``payloads`` receives that once, when no step is left and
    before any wait completes; others receive nothing. RuntimeError when ``limit`` replays do not end the run.

        built = run_serially(order, {"order_id": "o-1"}, results={"reserveStock": 3}, payloads={"payment-o-1": "paid"})
    """
    code = workload_of(workload)
    given = input
    if isinstance(input, Mapping) or (input is None and is_dataclass(code.input_type)):
        given = code.parse_input(input or {})
    engine = user_engine(generation, code, given)
    recorded = asdict(given) if is_dataclass(given) and not isinstance(given, type) else dict(given or {})
    builder = LogBuilder().run_created(code.name, **recorded).run_started()
    world = _World(builder, frozenset(late), results or {}, dict(payloads or {}))
    for _ in range(limit):
        (replay,) = engine.passes(builder.log(), [len(builder.events)])
        if replay.outcome is not Outcome.SUSPENDED:
            world.dispose(replay.pending)
            return builder.run_completed(replay.value) if replay.outcome is Outcome.COMPLETED else builder.run_failed()
        if not world.advance(replay.pending):
            break
    raise RuntimeError(f"{code.name} has not ended after {limit} replays")


class _World:
    """The outside of one run."""

    def __init__(self, builder: LogBuilder, late: frozenset[int], results: Results, payloads: dict[str, Any]) -> None:
        self._builder = builder
        self._late = late
        self._results = results
        self._payloads = payloads

    def advance(self, pending: Sequence[Pending]) -> bool:
        """Write what a pass asks for, then settle one thing; whether there was anything to write."""
        before = len(self._builder.events)
        for item in pending:
            if not item.created:
                self._create(item)
        self.dispose(pending)
        waits = [item for item in pending if item.kind == kinds.WAIT]
        steps = [item for item in pending if item.kind == kinds.STEP]
        hooks = [item for item in pending if item.token in self._payloads and not item.disposed]
        first = [item for item in waits if item.rank in self._late] or steps or hooks or waits
        for item in first[:1]:
            self._settle(item)
        return len(self._builder.events) > before

    def dispose(self, pending: Sequence[Pending]) -> None:
        """Write that hooks were given up."""
        for item in pending:
            if item.kind == kinds.HOOK and item.disposed:
                self._builder.hook_disposed(item.rank)

    def _create(self, item: Pending) -> None:
        if item.kind == kinds.STEP:
            self._builder.step_created(item.rank, item.name or "", *item.arguments)
        elif item.kind == kinds.WAIT:
            self._builder.wait_created(item.rank, int(item.arguments))
        elif item.kind == kinds.HOOK:
            self._builder.hook_created(item.rank, item.token or "")
        else:
            self._builder.attr_set(item.rank, **item.arguments)

    def _settle(self, item: Pending) -> None:
        if item.kind == kinds.WAIT:
            self._builder.wait_completed(item.rank)
        elif item.kind == kinds.HOOK:
            self._builder.hook_received(item.rank, self._payloads.pop(item.token or ""))
        else:
            result = self._results.get(item.name or "")
            value = result(*item.arguments) if callable(result) else result
            self._builder.step_started(item.rank).step_completed(item.rank, value)
