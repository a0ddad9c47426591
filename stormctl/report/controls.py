"""Controls: scenarios that are not meant to fail. Where one does, its environment is suspect and nothing gates."""

from __future__ import annotations

from collections.abc import Iterable

from stormctl.storm.attempt import Attempt, Cell
from stormctl.workloads.registry import WORKLOADS

Arm = tuple[str, str, str]


def arm_key(cell: Cell) -> Arm:
    """World, condition and generation: what a control stands for."""
    return cell.world, cell.condition, cell.generation


def is_control(scenario: str) -> bool:
    """Whether a scenario is a control. One that this version does not know is none."""
    known = WORKLOADS.get(scenario)
    return known is not None and known.control


def suspect_arms(attempts: Iterable[Attempt]) -> frozenset[Arm]:
    """The arms in which a control failed: a whole environment that is broken looks like a regression otherwise
    (vercel/workflow #3237: 758 of 758 runs stuck, 120 controls among them)."""
    return frozenset(arm_key(one.cell) for one in attempts if one.outcome.gates and is_control(one.cell.scenario))
