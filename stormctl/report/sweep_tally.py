"""What many sweeps come to, counted as the reports pass by: of a log nothing is kept but a few lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from stormctl.history import kinds
from stormctl.readers import Unreadable
from stormctl.sweeps import LogReport, Severity, Verdict, worst
from stormctl.sweeps.finding import MAX_WITNESS
from stormctl.sweeps.registered import in_order
from stormctl.sweeps.witness import clean

#: Failing logs and unreadable files that are told one by one.
MOST_FAILING = 20
#: Different reasons that are counted apart, and how many of them are told.
MOST_REASONS, TOLD_REASONS = 200, 8
#: Event types that are told of one kind of finding.
TOLD_TYPES = 4
#: No line of a stranger's log is longer than this in a summary.
LONGEST = 200
OTHER_REASONS = "other reasons"
OTHER_TYPES = "other types"


@dataclass(frozen=True, slots=True)
class Failing:
    """A log with a fatal finding: where it is, how many of each kind it has, and what the first says."""

    source: str
    run_id: str
    kinds: tuple[tuple[str, int], ...]
    first: str

    @property
    def run(self) -> str:
        """The run, where the source does not name it: a table or a database holds many."""
        return "" if self.run_id in self.source else shortened(self.run_id)

    @property
    def short(self) -> str:
        """``dense/gap 2, lifecycle/after-end``."""
        return ", ".join(kind if count == 1 else f"{kind} {count}" for kind, count in self.kinds)


@dataclass(slots=True)
class Tally:
    """The counts. ``by`` has the sweeps, and under each the verdicts by world.

    Of each kind of finding ``of_types`` counts the types of event that it is about, ``places`` the events that it names
    and ``most_places`` those of the finding that names most; ``with_sweep`` counts the logs with a finding of a sweep.
    """

    logs: int = 0
    events: int = 0
    unreadable: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    worlds: dict[str, Counter[Verdict]] = field(default_factory=lambda: defaultdict(Counter))
    by: dict[str, dict[str, Counter[Verdict]]] = field(default_factory=dict)
    findings: Counter[tuple[Severity, str]] = field(default_factory=Counter)
    with_finding: Counter[tuple[Severity, str]] = field(default_factory=Counter)
    of_types: dict[tuple[Severity, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    places: Counter[tuple[Severity, str]] = field(default_factory=Counter)
    most_places: dict[tuple[Severity, str], int] = field(default_factory=lambda: defaultdict(int))
    with_sweep: Counter[str] = field(default_factory=Counter)
    failing: list[Failing] = field(default_factory=list)
    broken: list[Unreadable] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    replayed: bool = False

    def take(self, item: LogReport | Unreadable) -> None:
        """Count one report."""
        if isinstance(item, Unreadable):
            self.unreadable += 1
            if len(self.broken) < MOST_FAILING:
                self.broken.append(item)
            return
        self.logs += 1
        self.events += item.events
        self.verdicts[item.verdict] += 1
        self.worlds[item.world][item.verdict] += 1
        for result in item.sweeps:
            self.by.setdefault(result.sweep, defaultdict(Counter))[item.world][result.verdict] += 1
            self.replayed = self.replayed or result.sweep == "rebinding"
        found = Counter((finding.severity, kind_of(finding.key)) for finding in item.findings)
        self.findings.update(found)
        self.with_finding.update(found.keys())
        self.with_sweep.update({finding.sweep for finding in item.findings})
        for finding in item.findings:
            kind = (finding.severity, kind_of(finding.key))
            self.of_types[kind][type_of(finding.about)] += 1
            self.places[kind] += len(finding.positions)
            self.most_places[kind] = max(self.most_places[kind], len(finding.positions))
        if item.verdict is Verdict.VIOLATED and len(self.failing) < MOST_FAILING:
            self.failing.append(failing(item))
        if item.verdict is Verdict.UNKNOWN:
            self._reasons(item)

    @property
    def verdict(self) -> Verdict:
        """The worst of all logs."""
        return worst(self.verdicts)

    @property
    def line(self) -> str:
        """``980 clean, 12 violated, 8 unknown of 1,000 logs; 2 could not be read``."""
        if not self.logs:
            return f"{self.unreadable} could not be read" if self.unreadable else "no log was given"
        words = [f"{self.verdicts[one]:,} {one}" for one in Verdict if self.verdicts[one]]
        text = f"{', '.join(words)} of {self.logs:,} log{'' if self.logs == 1 else 's'}"
        return f"{text}; {self.unreadable:,} could not be read" if self.unreadable else text

    @property
    def word(self) -> str:
        """The first word of a report."""
        return str(self.verdict) if self.logs or not self.unreadable else "unreadable"

    @property
    def names_of_worlds(self) -> list[str]:
        """The worlds, those with most logs first."""
        return sorted(self.worlds, key=lambda name: (-self.worlds[name].total(), name))

    @property
    def sweeps(self) -> list[str]:
        """The sweeps in the order of reports; those that replay come last."""
        place = {one.name: number for number, one in enumerate(in_order())}
        return sorted(self.by, key=lambda name: place.get(name, len(place)))

    @property
    def kinds(self) -> list[tuple[Severity, str]]:
        """The kinds of finding, the worst first, then those in most logs."""
        order = list(Severity)
        return sorted(self.findings, key=lambda one: (order.index(one[0]), -self.with_finding[one], one[1]))

    def detail(self, kind: tuple[Severity, str]) -> str:
        """What the findings of a kind are about: ``step_created 61``, or how many events where each has many."""
        places, most = self.places[kind], self.most_places[kind]
        if most > MAX_WITNESS:
            at_most = f", at most {most:,} in one log" if self.with_finding[kind] > 1 else ""
            return f"{places:,} events{at_most}"
        return types_in_words(self.of_types[kind], kind[1])

    @property
    def of_several_kinds(self) -> list[tuple[str, int, int]]:
        """Each sweep with findings of more than one kind: its findings, and the logs with any of them."""
        by_sweep: dict[str, list[int]] = defaultdict(list)
        for (_, kind), count in self.findings.items():
            by_sweep[kind.partition("/")[0]].append(count)
        return [
            (name, sum(by_sweep[name]), self.with_sweep[name])
            for name in self.sweeps
            if len(by_sweep.get(name, ())) > 1
        ]

    @property
    def told_reasons(self) -> list[tuple[str, int]]:
        """The reasons for unknown that most logs have."""
        return self.reasons.most_common(TOLD_REASONS)

    def _reasons(self, item: LogReport) -> None:
        for reason in dict.fromkeys(item.reasons):
            text = shortened(reason)
            self.reasons[text if text in self.reasons or len(self.reasons) < MOST_REASONS else OTHER_REASONS] += 1


def kind_of(key: str) -> str:
    """The sweep and the kind out of a finding's key: ``dense/gap``."""
    return "/".join(key.split("/")[:2])


def type_of(about: str) -> str:
    """The type of event that a finding is about, as it is counted: a stranger's own types are one."""
    return about if not about or about in kinds.ALL_TYPES else OTHER_TYPES


def types_in_words(types: Counter[str], kind: str) -> str:
    """``step_created 40, wait_created 21``; empty where the kind of finding names the only one there is."""
    told = sorted(((name, count) for name, count in types.items() if name), key=lambda one: (-one[1], one[0]))
    if len(told) < 2 and all(name.replace("_", "-") in kind for name, _ in told):
        return ""
    return ", ".join(f"{name} {count:,}" for name, count in told[:TOLD_TYPES]) + (", ..." if told[TOLD_TYPES:] else "")


def failing(log: LogReport) -> Failing:
    """A log in short."""
    fatal = [finding for finding in log.findings if finding.severity is Severity.FATAL]
    found = Counter(kind_of(finding.key) for finding in fatal)
    return Failing(log.source, log.run_id, tuple(found.most_common()), shortened(fatal[0].message) if fatal else "")


def shortened(text: str) -> str:
    """A text that is harmless and not long."""
    text = clean(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def cell(counts: Counter[Verdict]) -> str:
    """``980 / 12 / 8``: clean, violated, unknown."""
    return " / ".join(f"{counts[one]:,}" for one in Verdict) if counts else ""


__all__ = ["Failing", "Tally", "cell", "failing", "kind_of", "shortened", "type_of", "types_in_words"]
