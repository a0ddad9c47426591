"""One lane of a CI job: a storm by its name, what it counted, and the lines that a reviewer reads first."""

from __future__ import annotations

from dataclasses import dataclass

from stormctl.report import tally
from stormctl.report.load import Artefact
from stormctl.report.signature import CAP, TEXT, parse
from stormctl.stats import Rate
from stormctl.storm.attempt import Attempt
from stormctl.storm.outcome import Outcome

#: Failing attempts that a lane lists one by one, those that gate before those of the harness.
MOST_GATING, MOST_INFRA = 10, 3
_WHY = {
    "budget": "launch budget spent",
    "interrupted": "interrupted",
    "failed": "a store or worker failed",
    "resolved": "its arms were told apart",
}


@dataclass(frozen=True, slots=True)
class LaneCounts:
    """What a lane counted. ``planned`` is None where nobody knows; ``why`` is why fewer landed. ``missing``: it left no
    results. ``suspect``: a control failed, so that nothing there is counted against the change."""

    total: int = 0
    planned: int | None = None
    completed: int = 0
    corrupted: int = 0
    slow: int = 0
    dormant: int = 0
    other: int = 0
    infra: int = 0
    why: str = ""
    missing: bool = False
    suspect: bool = False

    @property
    def gating(self) -> int:
        """Attempts that count against what was tested."""
        return self.corrupted + self.slow + self.dormant + self.other

    @property
    def judged(self) -> int:
        """Attempts that say anything: all but infra."""
        return self.total - self.infra

    @property
    def rate(self) -> Rate:
        """The rate of corrupted attempts."""
        return Rate(self.corrupted, self.judged)

    @property
    def verdict(self) -> str:
        """``clean, 24 attempts`` or ``20 of 24 failed: 18 corrupted, 2 stuck (1 slow, 1 dormant)``."""
        if self.missing:
            return "no results; see the job's log"
        if not self.judged:
            said = "nothing was judged"
        elif not self.gating:
            said = f"clean, {self.judged} attempts"
        else:
            parts = [f"{self.corrupted} corrupted"] if self.corrupted else []
            if self.slow + self.dormant:
                parts.append(f"{self.slow + self.dormant} stuck ({self.slow} slow, {self.dormant} dormant)")
            if self.other:
                parts.append(f"{self.other} other")
            said = f"{self.gating} of {self.judged} failed: {', '.join(parts)}"
        if self.suspect:
            said += "; a control failed, so the environment is suspect"
        if self.infra:
            said += f"; {self.infra} infra"
        if self.planned is not None and self.total < self.planned:
            said += f"; {self.total} of {self.planned} planned attempts"
            said += f", {_WHY[self.why]}" if self.why in _WHY else ", the job ended first"
        return said


@dataclass(frozen=True, slots=True)
class Lane:
    """A storm in a comment. ``artefact`` is None for one that left no results."""

    name: str
    artefact: Artefact | None

    @property
    def counts(self) -> LaneCounts:
        """What it counted."""
        found = self.artefact
        if found is None:
            return LaneCounts(missing=True)
        rows = tally.outcome_rows(found)
        return LaneCounts(
            total=sum(row.landed for row in rows),
            planned=found.planned,
            completed=sum(row.completed for row in rows),
            corrupted=sum(row.corrupted for row in rows),
            slow=sum(row.slow for row in rows),
            dormant=sum(row.dormant for row in rows),
            other=sum(row.other for row in rows),
            infra=sum(row.infra for row in rows),
            why=found.reason or "",
            suspect=any(row.environment for row in rows),
        )

    @property
    def failing(self) -> tuple[Attempt, ...]:
        """All attempts that did not complete, those that gate first."""
        if self.artefact is None:
            return ()
        gating = [one for one in self.artefact.attempts if one.outcome.gates]
        return (*gating, *(one for one in self.artefact.attempts if one.outcome is Outcome.INFRA))

    @property
    def listed(self) -> tuple[Attempt, ...]:
        """Those of them that are listed one by one."""
        gating = [one for one in self.failing if one.outcome.gates][:MOST_GATING]
        infra = [one for one in self.failing if not one.outcome.gates][:MOST_INFRA]
        return (*gating, *infra)


def said(attempt: Attempt, most: int = 160) -> str:
    """Why an attempt failed, in few words: its signature and position where that can be parsed, else its text, else its
    outcome."""
    found = parse(attempt.error_code, attempt.error_message)
    if found.signature.kind in (TEXT, CAP):
        text = " ".join((attempt.error_message or attempt.error_code or str(attempt.outcome)).split())
    else:
        at = f" at {found.position}" if found.position is not None else ""
        text = found.signature.text + at
    return text if len(text) <= most else text[: most - 3] + "..."
