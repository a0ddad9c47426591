"""Proof that a schedule is as simple as can be: every schedule with fewer preemptions and faults is played.

certificate = certify(model, signature, fewer_than=2)
str(certificate)    # minimal: no failing schedule with <= 1 preemption (18 checked)
"""

from __future__ import annotations

from dataclasses import dataclass

from stormctl.sim.kernel import MOST_STEPS, Model
from stormctl.sim.pool import perform
from stormctl.sim.strategies.bounded import Bounded

#: schedules that are played for a proof, by default
MOST_CHECKED = 20_000


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was proved of a failure that takes ``number`` preemptions and faults.

    ``checked`` schedules were played; ``proved`` is up to how many preemptions and faults that was all there are (-1:
    none was done with). ``simpler`` is the tape of a failing schedule with fewer, where there was one. ``faults`` says
    whether anything but preemptions was there to be chosen.
    """

    number: int
    checked: int
    proved: int
    simpler: tuple[int, ...] | None = None
    faults: bool = False

    @property
    def complete(self) -> bool:
        """Whether the failure was proved minimal."""
        return self.simpler is None and self.proved >= self.number - 1

    def __str__(self) -> str:
        checked = f"({self.checked:,} checked)"
        if self.simpler is not None:
            return f"not minimal: a schedule with fewer {self._kinds(2)} fails {checked}"
        if self.number == 0:
            return f"minimal: it takes no {self._kinds(1)}"
        if self.complete:
            return f"minimal: no failing schedule with <= {self.number - 1} {self._kinds(self.number - 1)} {checked}"
        if self.proved < 0:
            return f"not proved minimal: the limit of schedules was reached {checked}"
        return (
            f"not proved minimal: no failing schedule with <= {self.proved} {self._kinds(self.proved)}; the limit of "
            f"schedules was reached at {self.proved + 1} {checked}"
        )

    def _kinds(self, number: int) -> str:
        ending = "" if number == 1 else "s"
        return f"preemption{ending}" + (f" and fault{ending}" if self.faults else "")


def certify(
    model: Model,
    signature: str,
    *,
    fewer_than: int,
    most: int = MOST_CHECKED,
    most_steps: int = MOST_STEPS,
) -> Certificate:
    """Play every schedule with fewer preemptions and faults, until one fails with the signature or ``most`` are done.

    A schedule that was given up for its length has not failed, and is not counted as proved either.
    """
    strategy = Bounded(fewer_than - 1)
    checked, faults = 0, False
    cut: int | None = None  # the least number at which a schedule was given up
    while fewer_than > 0 and (tasks := strategy.ask(min(100, most - checked))):
        outcomes = []
        for task in tasks:
            outcome = perform([model], task, most_steps)
            outcomes.append(outcome)
            checked += 1
            number = outcome.preemptions + outcome.faults
            faults = faults or bool(outcome.picks)
            if outcome.cut:
                cut = number if cut is None else min(cut, number)
            if any(found == signature for found, _, _ in outcome.found):
                return Certificate(fewer_than, checked, number - 1, outcome.tape, faults)
        strategy.learn(outcomes)
        if checked >= most:
            break
    proved = fewer_than - 1 if fewer_than <= 0 or _done(strategy) else strategy.proved
    return Certificate(fewer_than, checked, proved if cut is None else min(proved, cut - 1), None, faults)


def _done(strategy: Bounded) -> bool:
    """Whether the last schedule was also the last that there is."""
    if not strategy.exhausted:
        strategy.ask(1)
    return strategy.exhausted
