"""What a sweep answers: findings, verdicts, and what it could not judge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

#: A witness is the smallest set of events that shows a fault, and never more than this many.
MAX_WITNESS = 6


class Severity(StrEnum):
    """What a finding does to a run, as a profile reads it.

    ``FATAL`` breaks the run or the store's contract. ``INERT`` is skipped by the engines of that profile. ``LEGAL`` is
    unusual and allowed there.
    """

    FATAL = "fatal"
    INERT = "inert"
    LEGAL = "legal"


class Verdict(StrEnum):
    """``VIOLATED``: at least one fatal finding. ``UNKNOWN``: nothing fatal was seen, and evidence was missing."""

    CLEAN = "clean"
    VIOLATED = "violated"
    UNKNOWN = "unknown"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict over several: violated, else unknown, else clean. No verdicts at all are clean."""
    seen = set(verdicts)
    for verdict in (Verdict.VIOLATED, Verdict.UNKNOWN):
        if verdict in seen:
            return verdict
    return Verdict.CLEAN


@dataclass(frozen=True, slots=True)
class Fault:
    """What a check saw, before a profile says how bad it is.

    ``kind`` is the check's own word for the class of fault. ``at`` are 0-based indices of the events it is about and
    ``witness`` those that show it (``at`` when not given), or ready sentences. ``entity`` is what the fault is a
    property of (a correlation id, a position of a dense store, a role): with sweep and kind it makes the key.
    """

    kind: str
    message: str
    at: tuple[int, ...]
    entity: str
    witness: tuple[int | str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """Something absent that does not stop the check from judging, such as a position declared to be left out."""

    what: int | str


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Something absent without which part of the question stays open: the sweep cannot answer clean."""

    what: int | str


Item = Fault | Noted | Unjudged


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, judged. ``positions`` are store positions (1-based indices where the store has none).

    ``key`` names the fault and not its place: two captures of one run give it the same key. ``about`` is the type of
    the event that it is about, the first of several; empty where it is about none.
    """

    sweep: str
    severity: Severity
    run: str
    positions: tuple[int, ...]
    message: str
    witness: tuple[str, ...]
    key: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class SweepResult:
    """One sweep's answer on one log. ``missing`` names what it lacked: facets, reasons, positions declared left out."""

    sweep: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    missing: tuple[int | str, ...] = ()

    @property
    def fatal(self) -> tuple[Finding, ...]:
        """The findings that make the verdict."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.FATAL)
