"""All that the tables of a storm show, as data: read once, rendered by the terminal, markdown, JSON and HTML alike."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stormctl.report import tally
from stormctl.report.findings import (
    FindingRow,
    WorldRow,
    findings_by_outcome,
    findings_by_world,
)
from stormctl.report.histogram_of import Histogram, histogram
from stormctl.report.latency import LATENCIES
from stormctl.report.load import Artefact
from stormctl.report.measured import RunMeasured, measure_run
from stormctl.report.signature import Said, Signature, parse
from stormctl.report.work import WorkRow, work_rows
from stormctl.stats import Percentiles, percentiles
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.outcome import Outcome

#: What is counted or timed per run or append, in the order of the tables, with its unit.
SECONDS, EVENTS, RESTARTS, APPENDS, REFUSED, PRECONDITIONS, APPEND_MS = (
    "duration", "events per run", "restarts per run", "appends per run", "refused appends per run", "412s per run",
    "append",
)  # fmt: skip
UNITS = {SECONDS: "s", EVENTS: "", RESTARTS: "", APPENDS: "", REFUSED: "", PRECONDITIONS: "", APPEND_MS: "ms"}
#: Runs with warnings that are listed one by one, those with most first.
MOST_WARNED = 20


@dataclass(frozen=True, slots=True)
class SignatureRow:
    """Failures that say the same. ``positions`` are those that are known, ``example`` is the first run of them;
    ``cells`` says how many attempts of each cell."""

    signature: Signature
    count: int
    cells: Mapping[Cell, int]
    positions: tuple[int, ...]
    example: Attempt


@dataclass(frozen=True, slots=True)
class WarnedRun:
    """A run whose replay diverged: ``warnings`` times, whether or not it recovered."""

    attempt: Attempt
    warnings: int


@dataclass(frozen=True, slots=True)
class WarningRow:
    """Divergence warnings of one cell. ``told`` are the attempts whose workers kept count, ``warned`` those that
    diverged at all, ``recovered`` those of them that completed all the same; ``most`` is the largest count of a run."""

    cell: Cell
    arm: str
    told: int
    warned: int
    recovered: int
    warnings: int
    most: int


@dataclass(frozen=True, slots=True)
class StuckRun:
    """A run that had not ended at its cap: how far it had come, and for how many milliseconds nothing had happened."""

    attempt: Attempt
    events: int
    last_event: str
    quiet_ms: float | None

    @property
    def slow(self) -> bool:
        """Whether it was still making progress; else it was dormant."""
        return self.attempt.outcome is Outcome.SLOW


@dataclass(frozen=True, slots=True)
class QuantityRow:
    """One quantity (a key of ``UNITS``) over the runs or appends of one cell."""

    cell: Cell
    arm: str
    quantity: str
    values: Percentiles

    @property
    def unit(self) -> str:
        """``s``, ``ms``, or nothing for a count."""
        return UNITS[self.quantity]


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """One latency (a key of :data:`stormctl.report.latency.LATENCIES`) of one cell, in milliseconds."""

    cell: Cell
    arm: str
    latency: str
    values: Percentiles
    histogram: Histogram


@dataclass(frozen=True, slots=True)
class RefusalRow:
    """How often the store refused appends in one cell, by the first word of its reason."""

    cell: Cell
    arm: str
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StormFacts:
    """The typed data of every table of a storm. Rows are in plan order; a table with nothing to tell is empty.

    ``durations`` are seconds by shown outcome. ``logs`` is how many logs were measured; ``notes`` name what could not
    be read, beside those of the artefact.
    """

    outcomes: tuple[tally.OutcomeRow, ...]
    comparisons: tuple[tally.Comparison, ...]
    sweeps: tuple[tally.SweepRow, ...]
    findings_by_outcome: tuple[FindingRow, ...]
    findings_by_world: tuple[WorldRow, ...]
    signatures: tuple[SignatureRow, ...]
    warnings: tuple[WarningRow, ...]
    warned: tuple[WarnedRun, ...]
    stuck: tuple[StuckRun, ...]
    durations: Mapping[str, Percentiles]
    quantities: tuple[QuantityRow, ...]
    latencies: tuple[LatencyRow, ...]
    refusals: tuple[RefusalRow, ...]
    work: tuple[WorkRow, ...]
    logs: int = 0
    notes: tuple[str, ...] = ()


def storm_facts(artefact: Artefact) -> StormFacts:
    """Read every log and audit of an artefact once, one at a time, and count.

    Never raises for what a folder holds: what is absent leaves its table empty, what is damaged is named in ``notes``.
    """
    sums = _Sums(artefact)
    for attempt in artefact.attempts:
        sums.take(attempt)
    rows = tally.outcome_rows(artefact)
    return StormFacts(
        outcomes=tuple(rows),
        comparisons=tuple(tally.comparisons(rows)),
        sweeps=tuple(tally.sweep_rows(artefact)),
        findings_by_outcome=tuple(findings_by_outcome(artefact)),
        findings_by_world=tuple(findings_by_world(artefact)),
        signatures=sums.signature_rows(),
        warnings=tuple(_warnings(artefact)),
        warned=_warned(artefact.attempts),
        stuck=tuple(_stuck(one) for one in artefact.attempts if one.outcome.stuck),
        durations=tally.durations(artefact),
        quantities=sums.quantity_rows(),
        latencies=sums.latency_rows(),
        refusals=sums.refusal_rows(),
        work=tuple(work_rows(artefact)),
        logs=sums.logs,
        notes=tuple(sums.notes),
    )


def diverged(attempt: Attempt) -> int:
    """How often the run's replay diverged: as its workers counted, or as its error says where that is more."""
    said = parse(attempt.error_code, attempt.error_message).diverged if attempt.outcome.gates else None
    return max(attempt.work.get("divergences", 0), said or 0)


def told(attempt: Attempt) -> bool:
    """Whether the attempt's workers kept count of what they did."""
    return "deliveries" in attempt.work or "passes" in attempt.work


@dataclass(slots=True)
class _Sums:
    """Samples by cell: numbers only, never a log."""

    artefact: Artefact
    logs: int = 0
    notes: list[str] = field(default_factory=list)
    quantities: defaultdict[tuple[Cell, str], array[float]] = field(
        default_factory=lambda: defaultdict(lambda: array("d"))
    )
    latencies: defaultdict[tuple[Cell, str], array[float]] = field(
        default_factory=lambda: defaultdict(lambda: array("d"))
    )
    reasons: defaultdict[Cell, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    failed: dict[Signature, list[tuple[Attempt, int | None]]] = field(default_factory=dict)
    arms: dict[Cell, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arms = {cell: self.artefact.arm(cell) for cell in self.artefact.cells}

    def take(self, one: Attempt) -> None:
        failed = one.outcome.gates and not (one.outcome.stuck and not one.error_code)  # what is stuck says nothing
        said = parse(one.error_code, one.error_message) if failed else None
        run = None
        if one.run_id:
            run = measure_run(self.artefact.folder, one.run_id, said.event_id if said else None, self.notes)
        if said is not None:
            self.fail(one, said, run)
        if one.outcome is Outcome.INFRA:
            return
        self.add(one.cell, SECONDS, one.duration_ms / 1000)
        if one.events or run is not None:
            self.add(one.cell, EVENTS, run.events if run is not None else one.events)
        if told(one) and ("restarts" in one.work or "passes" in one.work):
            self.add(one.cell, RESTARTS, one.work.get("restarts", 0))
        if run is not None:
            self.measured(one.cell, run)

    def fail(self, one: Attempt, said: Said, run: RunMeasured | None) -> None:
        place = said.position if said.position is not None or run is None else run.place
        self.failed.setdefault(said.signature, []).append((one, place))

    def measured(self, cell: Cell, run: RunMeasured) -> None:
        self.logs += 1
        if run.appends is not None:
            self.add(cell, APPENDS, run.appends)
            self.add(cell, REFUSED, run.refused)
            self.add(cell, PRECONDITIONS, run.preconditions)
            self.quantities[cell, APPEND_MS].extend(run.append_ms)
            self.reasons[cell].update(run.reasons)
        for name, values in run.latencies.items():
            self.latencies[cell, name].extend(values)

    def add(self, cell: Cell, quantity: str, value: float) -> None:
        self.quantities[cell, quantity].append(value)

    def signature_rows(self) -> tuple[SignatureRow, ...]:
        """Most frequent first; equal ones as they came."""
        rows = [
            SignatureRow(
                signature,
                len(found),
                Counter(one.cell for one, _ in found),
                tuple(place for _, place in found if place is not None),
                found[0][0],
            )
            for signature, found in self.failed.items()
        ]
        return tuple(sorted(rows, key=lambda row: -row.count))

    def quantity_rows(self) -> tuple[QuantityRow, ...]:
        return tuple(
            QuantityRow(cell, arm, name, percentiles(values))
            for name in UNITS
            for cell, arm in self.arms.items()
            if (values := self.quantities.get((cell, name)))
        )

    def latency_rows(self) -> tuple[LatencyRow, ...]:
        return tuple(
            LatencyRow(cell, arm, name, percentiles(values), histogram(values))
            for name in LATENCIES
            for cell, arm in self.arms.items()
            if (values := self.latencies.get((cell, name)))
        )

    def refusal_rows(self) -> tuple[RefusalRow, ...]:
        return tuple(
            RefusalRow(cell, arm, dict(self.reasons[cell].most_common()))
            for cell, arm in self.arms.items()
            if self.reasons.get(cell)
        )


def _warnings(artefact: Artefact) -> Iterable[WarningRow]:
    """A row for every cell whose workers kept count; none at all when nothing diverged."""
    by_cell: dict[Cell, list[Attempt]] = {cell: [] for cell in artefact.cells}
    for one in artefact.attempts:
        if told(one) and one.outcome is not Outcome.INFRA:
            by_cell[one.cell].append(one)
    rows = []
    for cell, ones in by_cell.items():
        counts = [diverged(one) for one in ones]
        recovered = sum(
            bool(count) and one.outcome is Outcome.COMPLETED for one, count in zip(ones, counts, strict=True)
        )
        warned = sum(map(bool, counts))
        if ones:
            rows.append(WarningRow(cell, artefact.arm(cell), len(ones), warned, recovered, sum(counts), max(counts)))
    return rows if any(row.warnings for row in rows) else []


def _warned(attempts: Iterable[Attempt]) -> tuple[WarnedRun, ...]:
    found = [WarnedRun(one, count) for one in attempts if (count := diverged(one))]
    return tuple(sorted(found, key=lambda run: -run.warnings)[:MOST_WARNED])


def _stuck(one: Attempt) -> StuckRun:
    quiet = one.progress.get("quiet_ms")
    return StuckRun(
        one,
        one.events,
        str(one.progress.get("last_event") or ""),
        float(quiet) if isinstance(quiet, int | float) else None,
    )
