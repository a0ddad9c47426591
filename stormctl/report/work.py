"""What the runtime had to do, cell by cell: a livelock shows here, and nowhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from stormctl.report.load import Artefact
from stormctl.storm.attempt import Cell
from stormctl.storm.faults.fired import FaultFired

#: The counts that a table shows when any of them is not zero, by the words of ``Attempt.work``.
SHOWN = ("restarts", "refused", "useless", "restart.useless", "reinvocation", "divergences", "reread")


@dataclass(frozen=True, slots=True)
class WorkRow:
    """The work of one cell's attempts, summed over them. ``useless`` refusals refused a fact, or a write to whose view
    a full read then added nothing; ``rereads`` are of logs with a gap."""

    cell: Cell
    arm: str
    attempts: int
    restarts: int
    refused: int
    useless: int
    reinvocations: int
    divergences: int
    rereads: int
    stuck: int

    @property
    def restarts_per_run(self) -> float:
        """Restarts in process after refused preconditions, per attempt."""
        return self.restarts / self.attempts if self.attempts else 0.0

    @property
    def quiet(self) -> bool:
        """Whether there is nothing to tell."""
        return not (self.restarts + self.refused + self.reinvocations + self.divergences + self.rereads)


def work_rows(artefact: Artefact) -> list[WorkRow]:
    """One row per cell in plan order; none at all when no cell had anything to tell."""
    totals: dict[Cell, Counter[str]] = {cell: Counter() for cell in artefact.cells}
    for one in artefact.attempts:
        totals[one.cell].update({name: one.work.get(name, 0) for name in SHOWN})
        totals[one.cell].update(attempts=1, stuck=int(one.outcome.stuck))
    rows = [
        WorkRow(
            cell,
            artefact.arm(cell),
            total["attempts"],
            total["restarts"],
            total["refused"],
            total["useless"] + total["restart.useless"],
            total["reinvocation"],
            total["divergences"],
            total["reread"],
            total["stuck"],
        )
        for cell, total in totals.items()
    ]
    return rows if any(not row.quiet for row in rows) else []


def faults_text(fired: Iterable[FaultFired]) -> str | None:
    """``faults fired: delay publish (in force), kill worker at publish 12``; None when none did."""
    counts: Counter[str] = Counter()
    for one in fired:
        counts[one.label] += one.struck
    if not counts:
        return None
    texts = (f"{label} {count}" if count else f"{label} (in force)" for label, count in sorted(counts.items()))
    return "faults fired: " + ", ".join(texts)
