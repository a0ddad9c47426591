"""What many sweeps come to, counted as the reports pass by: of a log nothing is kept but a few lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from stormctl.readers import Unreadable
from stormctl.sweeps import LogReport, Severity, Verdict, worst
from stormctl.sweeps.registered import in_order
from stormctl.sweeps.witness import clean

#: Failing logs and unreadable files that are told one by one.
MOST_FAILING = 20
#: Different reasons that are counted apart, and how many of them are told.
MOST_REASONS, TOLD_REASONS = 200, 8
#: No line of a stranger's log is longer than this in a summary.
LONGEST = 200
OTHER_REASONS = "other reasons"


@dataclass(frozen=True, slots=True)
class Failing:
    """A log with a fatal finding: where it is, how many of each kind it has, and what the first says."""

    source: str
    run_id: str
    kinds: tuple[tuple[str, int], ...]
    first: str

    @property
    def short(self) -> str:
        """``dense/gap 2, lifecycle/after-end``."""
        return ", ".join(kind if count == 1 else f"{kind} {count}" for kind, count in self.kinds)

    @property
    def run(self) -> str:
        """Whose log it is where the name of the file does not say so: one file may hold those of many runs."""
        return "" if self.run_id in self.source else f"run {clean(self.run_id)}: "


@dataclass(slots=True)
class Tally:
    """The counts. ``by`` has the sweeps, and under each the verdicts by world.

    ``findings`` counts findings by severity and kind, ``with_finding`` the logs that have one of that kind, and
    ``severities`` those that have one of that severity.
    """

    logs: int = 0
    events: int = 0
    unreadable: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    worlds: dict[str, Counter[Verdict]] = field(default_factory=lambda: defaultdict(Counter))
    by: dict[str, dict[str, Counter[Verdict]]] = field(default_factory=dict)
    findings: Counter[tuple[Severity, str]] = field(default_factory=Counter)
    with_finding: Counter[tuple[Severity, str]] = field(default_factory=Counter)
    failing: list[Failing] = field(default_factory=list)
    broken: list[Unreadable] = field(default_factory=list)
    severities: Counter[Severity] = field(default_factory=Counter)
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
        kinds = Counter((finding.severity, kind_of(finding.key)) for finding in item.findings)
        self.findings.update(kinds)
        self.with_finding.update(kinds.keys())
        self.severities.update({severity for severity, _ in kinds})
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

    def of_severity(self, severity: Severity) -> list[int]:
        """The findings of this severity, of any kind, and the logs that have one."""
        return [sum(n for (one, _), n in self.findings.items() if one is severity), self.severities[severity]]

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


def failing(log: LogReport) -> Failing:
    """A log in short."""
    fatal = [finding for finding in log.findings if finding.severity is Severity.FATAL]
    kinds = Counter(kind_of(finding.key) for finding in fatal)
    return Failing(log.source, log.run_id, tuple(kinds.most_common()), shortened(fatal[0].message) if fatal else "")


def shortened(text: str) -> str:
    """A text that is harmless and not long."""
    text = clean(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def cell(counts: Counter[Verdict]) -> str:
    """``980 / 12 / 8``: clean, violated, unknown."""
    return " / ".join(f"{counts[one]:,}" for one in Verdict) if counts else ""


__all__ = ["Failing", "Tally", "cell", "failing", "kind_of", "shortened"]
