"""Ledger: what a completed run returned agrees with its input and with itself.

A run can complete and be wrong: a branch that took the other side of its race after a step had been run for the first
side leaves a ledger that does not add up. That is silent corruption, and only the returned value shows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.history import Capture, Facet
from stormctl.sweeps.base import Scenario, scenario_sweep
from stormctl.sweeps.finding import Fault, Item, Unjudged


@scenario_sweep("ledger", needs={Facet.RESULT}, kinds=("disagreement",))
def ledger(capture: Capture, scenario: Scenario) -> Iterator[Item]:
    """Does the returned value of a completed run add up?"""
    run = capture.run
    if run is None:
        yield Unjudged(str(Facet.RESULT))
        return
    if run.status != "completed":
        return  # a run that did not complete returned nothing that could be wrong
    problem = scenario.workload.check(run.output, scenario.input)
    if problem is not None:
        end = next((index for index, event in enumerate(capture.log) if event.is_terminal), None)
        at = () if end is None else (end,)
        yield Fault("disagreement", problem, at, capture.log.run_id)
