"""The numbers of a storm, counted once for the terminal, for markdown and for pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from stormctl.report.load import FATAL, Artefact, SweepResult, SweptLog
from stormctl.report.style import LOOKS, look
from stormctl.stats import Difference, Percentiles, Rate, difference, percentiles
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.outcome import Outcome


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """How one cell came out. ``n`` are the attempts that say something about the cell: all but infra.

    ``vacuous`` of the completed ones prove nothing: without pressure, or with every branch the same way.
    ``environment``: a control of this arm failed.
    """

    cell: Cell
    arm: str
    landed: int
    completed: int
    corrupted: int
    slow: int
    dormant: int
    other: int
    infra: int
    vacuous: int = 0
    environment: bool = False

    @property
    def n(self) -> int:
        return self.landed - self.infra

    @property
    def stuck(self) -> int:
        return self.slow + self.dormant

    @property
    def rate(self) -> Rate:
        """The rate of corrupted attempts."""
        return Rate(self.corrupted, self.n)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The old arm against the new one, for one scenario on one world: how much more of the old is corrupted."""

    scenario: str
    old: OutcomeRow
    new: OutcomeRow
    difference: Difference

    @property
    def reading(self) -> str:
        """What the interval says, in words."""
        if self.old.environment or self.new.environment:
            return "environment suspect"
        if self.difference.value is None:
            return "nothing to compare"
        return {1: "old corrupts more", -1: "new corrupts more", 0: "not told apart"}[self.difference.sign]


@dataclass(frozen=True, slots=True)
class SweepCell:
    """What one sweep found in the logs of one arm. ``findings`` are fatal ones, ``lesser`` inert and legal ones."""

    logs: int = 0
    violated: int = 0
    unknown: int = 0
    findings: int = 0
    lesser: int = 0

    def __str__(self) -> str:
        if not self.logs:
            return "no logs"
        judged = self.logs - self.unknown
        if not judged:
            return f"unknown in {self.logs} logs"
        count = f"{self.findings} in {self.violated} of" if self.findings or self.violated else "none in"
        return f"{count} {judged} logs" + (f", {self.unknown} unknown" if self.unknown else "")


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One sweep over the storm's logs, arm by arm (in the order of ``Artefact.arms``)."""

    sweep: str
    cells: tuple[SweepCell, ...]


def outcome_rows(artefact: Artefact) -> list[OutcomeRow]:
    """One row per cell, in plan order."""
    by_cell: dict[Cell, Counter[Outcome]] = {cell: Counter() for cell in artefact.cells}
    vacuous: Counter[Cell] = Counter()
    for attempt in artefact.attempts:
        by_cell[attempt.cell][attempt.outcome] += 1
        vacuous[attempt.cell] += bool(attempt.flags) and attempt.outcome is Outcome.COMPLETED
    rows = []
    for cell, counts in by_cell.items():
        shown = Counter(dict.fromkeys(("completed", "corrupted", "other", "infra"), 0))
        for outcome, count in counts.items():
            shown[look(outcome).word] += count
        rows.append(
            OutcomeRow(
                cell,
                artefact.arm(cell),
                counts.total(),
                shown["completed"],
                shown["corrupted"],
                counts[Outcome.SLOW],
                counts[Outcome.DORMANT],
                shown["other"],
                shown["infra"],
                vacuous[cell],
                artefact.suspect(cell),
            )
        )
    return rows


def comparisons(rows: Iterable[OutcomeRow]) -> list[Comparison]:
    """The first arm of each scenario and world against every later one. With more than two arms a comparison says which
    is the new one."""
    groups: dict[tuple[str, str], list[OutcomeRow]] = {}
    for row in rows:
        groups.setdefault((row.cell.scenario, row.cell.world), []).append(row)
    several = len({world for _, world in groups}) > 1
    found = []
    for (scenario, world), (old, *later) in groups.items():
        for new in later:
            what = f"{scenario} ({world})" if several else scenario
            if len(later) > 1:
                what += f", {new.cell.condition} + {new.cell.generation}"
            found.append(Comparison(what, old, new, difference(old.rate, new.rate)))
    return found


def sides_text(rows: Iterable[OutcomeRow]) -> str:
    """Which arm is old and which is new in :func:`comparisons`."""
    arms = tuple(dict.fromkeys(f"{row.cell.condition} + {row.cell.generation}" for row in rows))
    return f"old is {arms[0]}, new is {arms[-1]}" if len(arms) == 2 else f"old is {arms[0]}, new is each other"


def sweep_rows(artefact: Artefact) -> list[SweepRow]:
    """What each sweep found, arm by arm. Flips and divergences of the rebinding count as its findings."""
    arm_of = {attempt.run_id: artefact.arm(attempt.cell) for attempt in artefact.attempts if attempt.run_id}
    found: dict[str, dict[str, list[SweepResult]]] = {}
    for log in artefact.logs:
        arm = arm_of.get(log.run_id)
        for result in results_of(log):
            if arm is not None:
                found.setdefault(result.sweep, {}).setdefault(arm, []).append(result)
    return [
        SweepRow(sweep, tuple(sweep_cell(by_arm.get(arm, ())) for arm in artefact.arms))
        for sweep, by_arm in found.items()
    ]


def durations(artefact: Artefact) -> dict[str, Percentiles]:
    """Percentiles of the attempts' durations in seconds, by shown outcome, those without attempts left out."""
    grouped = grouped_seconds(artefact.attempts)
    return {word: percentiles(values) for word, values in grouped.items()}


def grouped_seconds(attempts: Iterable[Attempt]) -> dict[str, list[float]]:
    """Durations in seconds by shown outcome, in the order in which outcomes are shown."""
    grouped: dict[str, list[float]] = {one.word: [] for one in LOOKS}
    for attempt in attempts:
        grouped[look(attempt.outcome).word].append(attempt.duration_ms / 1000)
    return {word: values for word, values in grouped.items() if values}


def stuck_text(rows: Iterable[OutcomeRow]) -> str | None:
    """The split of the stuck attempts, which tables show as one number; None when there are none."""
    rows = list(rows)
    slow, dormant = sum(row.slow for row in rows), sum(row.dormant for row in rows)
    if not slow + dormant:
        return None
    return f"stuck: {slow} slow (still making progress at the cap), {dormant} dormant (not)"


def verdict_line(artefact: Artefact) -> str:
    """The one sentence that answers what the storm showed: the first and the last arm, world by world."""
    rows = outcome_rows(artefact)
    if not sum(row.n for row in rows):
        return "Nothing was judged: no attempt says anything about its cell."
    by_world: dict[str, list[str]] = {}
    for cell in artefact.cells:
        by_world.setdefault(cell.world, []).append(artefact.arm(cell))
    sides = []
    for arms in by_world.values():
        named = {"old": arms[0], "new": arms[-1]} if len(set(arms)) > 1 else {"": arms[0]}
        for age, arm in named.items():
            mine = [row for row in rows if row.arm == arm]
            rate = Rate(sum(row.corrupted for row in mine), sum(row.n for row in mine))
            sides.append(f"{age + ': ' if age else ''}{arm} corrupted {rate}")
    return "; ".join(sides)


def flag_texts(artefact: Artefact) -> list[str]:
    """Each flag with how many attempts carry it, cell by cell: such an attempt never counts as clean."""
    by_flag: dict[str, Counter[Cell]] = {}
    for attempt in artefact.attempts:
        for flag in attempt.flags:
            by_flag.setdefault(flag, Counter())[attempt.cell] += 1
    texts = []
    for flag, cells in sorted(by_flag.items()):
        count = cells.total()
        where = "; ".join(f"{cell.scenario}, {artefact.arm(cell)}: {number}" for cell, number in cells.items())
        texts.append(f"{flag}: {count} attempt{'s' if count != 1 else ''} ({where})")
    if by_flag:
        texts.append("attempts without pressure, or in which every branch went the same way, never count as clean")
    return texts


def environment_text(artefact: Artefact) -> str | None:
    """Which arms a failed control makes suspect; None when none did."""
    arms = tuple(dict.fromkeys(artefact.arm(cell) for cell in artefact.cells if artefact.suspect(cell)))
    if not arms:
        return None
    return f"environment: a control failed under {', '.join(arms)}; what else failed there is not counted against it"


def sweep_cell(results: Iterable[SweepResult]) -> SweepCell:
    """What one sweep said of some logs, counted."""
    results = list(results)
    fatal = [result.findings.get(FATAL, 0) for result in results]
    return SweepCell(
        logs=len(results),
        violated=sum(result.verdict == "violated" for result in results),
        unknown=sum(result.verdict == "unknown" for result in results),
        findings=sum(fatal),
        lesser=sum(sum(result.findings.values()) for result in results) - sum(fatal),
    )


def results_of(log: SweptLog) -> list[SweepResult]:
    """What all sweeps said of a log. Flips and divergences of the replay count as findings of the rebinding."""
    results = list(log.sweeps)
    if log.replayed and all(result.sweep != "rebinding" for result in results):
        count = log.flips + log.divergences
        results.append(SweepResult("rebinding", "violated" if count else "clean", {FATAL: count}))
    return results
