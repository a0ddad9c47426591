"""An engine whose answer depends on how it is perturbed, as a rule says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from stormctl.engine.door import CALM, Divergence, Draw, Outcome, Pass, Perturbation, Session
from stormctl.history import EventLog

Rule = Callable[[Perturbation, int], bool]

HOOK = Draw(0, "hook", None, "t")
CALM_TABLE = (HOOK, Draw(1, "step", "settleStep", [1]), Draw(2, "wait", None, 2500))
#: the two branches that race have changed places
OTHER_TABLE = (HOOK, Draw(1, "wait", None, 2500), Draw(2, "step", "settleStep", [1]))


class Moody:
    """Gives ``other`` instead of ``calm`` where the rule holds: draws, or whole passes."""

    name = "moody"
    workload = None

    def __init__(
        self, rule: Rule, *, calm: tuple[Draw, ...] | Pass = CALM_TABLE, other: tuple[Draw, ...] | Pass = OTHER_TABLE
    ) -> None:
        self._rule, self._calm, self._other = rule, calm, other
        self.asked: list[tuple[int, Perturbation]] = []

    def passes(
        self,
        log: EventLog,
        prefixes: Iterable[int],
        *,
        hidden: frozenset[int] = frozenset(),
        perturbation: Perturbation | None = None,
    ) -> Iterator[Pass]:
        way = perturbation or CALM
        for length in prefixes:
            self.asked.append((length, way))
            given = self._other if self._rule(way, length) else self._calm
            yield given if isinstance(given, Pass) else Pass(length, Outcome.SUSPENDED, given)

    def open(self, log: EventLog) -> Session:
        raise NotImplementedError


def steady() -> Moody:
    """One that perturbation does not move."""
    return Moody(lambda _way, _length: False)


def lost(**fields: Any) -> Pass:
    """A pass that diverged at its first event, of a step."""
    given: dict[str, Any] = {
        "reason": "name", "index": 0, "position": 1, "event_id": None, "event_type": "step_created", "rank": 1,
        "expected": "step:settleStep", "actual": "wait", "text": "no place",
    } | fields  # fmt: skip
    return Pass(1, Outcome.DIVERGED, CALM_TABLE, divergence=Divergence(**given))
