"""The report of a sweep as values and as JSON, schema ``stormctl.sweep/1``. The keys are a contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stormctl.readers.open import Unreadable
from stormctl.sweeps.bindings import BindingMap
from stormctl.sweeps.finding import Finding, SweepResult, Verdict
from stormctl.sweeps.perturbation import Difference, Perturbed
from stormctl.sweeps.reading import From
from stormctl.sweeps.rebinding import FirstDivergence, Flip, Rebinding
from stormctl.sweeps.ways import away

SCHEMA = "stormctl.sweep/1"
#: The schema of a line that tells of one log; its keys are those of a log in the report.
LINE_SCHEMA = "stormctl.sweep-line/1"


@dataclass(frozen=True, slots=True)
class LogReport:
    """What every sweep said about one log. ``reasons`` tell why something stayed open.

    ``profile`` is the one that the log was read by, ``profile_from`` where that came from, and ``told`` what the log
    said of its release. ``world`` is the kind of store that it is from, in one word. ``payloads`` are those of the
    events that findings name, where they were asked for. ``maps`` are the data of pictures, one per engine where they
    were asked for; JSON leaves them out.
    """

    source: str
    run_id: str
    events: int
    profile: str
    verdict: Verdict
    reasons: tuple[str, ...]
    sweeps: tuple[SweepResult, ...]
    rebinding: tuple[Rebinding, ...] = ()
    perturbation: tuple[Perturbed, ...] = ()
    maps: tuple[BindingMap, ...] = ()
    profile_from: From = From.NAMED
    told: str = ""
    payloads: tuple[tuple[int, str], ...] = ()
    world: str = ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all sweeps, in the order of the sweeps."""
        return tuple(finding for result in self.sweeps for finding in result.findings)

    def fatal_by_sweep(self) -> dict[str, int]:
        """How many fatal findings each sweep has; sweeps without one are left out."""
        return {result.sweep: len(result.fatal) for result in self.sweeps if result.fatal}

    @property
    def unknown_sweeps(self) -> tuple[str, ...]:
        """The sweeps that could not judge."""
        return tuple(result.sweep for result in self.sweeps if result.verdict is Verdict.UNKNOWN)

    def to_json(self) -> dict[str, Any]:
        """The log's entry in the report."""
        shown = [{"position": place, "payload": text} for place, text in self.payloads]
        return {
            "source": self.source,
            "run_id": self.run_id,
            "events": self.events,
            "profile": self.profile,
            "profile_from": str(self.profile_from),
            "profile_told": self.told,
            "verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "sweeps": [_result(result) for result in self.sweeps],
            "rebinding": [_rebinding(found) for found in self.rebinding],
            "perturbation": [_perturbed(found) for found in self.perturbation],
            "world": self.world,
            **({"payloads": shown} if shown else {}),
        }


def sweep_report(logs: Sequence[LogReport], unreadable: Sequence[Unreadable] = ()) -> dict[str, Any]:
    """The whole report."""
    return {
        "schema": SCHEMA,
        "logs": [log.to_json() for log in logs],
        "unreadable": unreadable_rows(unreadable),
    }


def unreadable_rows(unreadable: Sequence[Unreadable]) -> list[dict[str, str]]:
    """What could not be read, as every report has it."""
    return [{"source": one.source, "error": one.text} for one in unreadable]


def _result(result: SweepResult) -> dict[str, Any]:
    return {
        "sweep": result.sweep,
        "verdict": str(result.verdict),
        "findings": [_finding(finding) for finding in result.findings],
        "missing": list(result.missing),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "severity": str(finding.severity),
        "positions": list(finding.positions),
        "message": finding.message,
        "witness": list(finding.witness),
        "key": finding.key,
    }


def _rebinding(found: Rebinding) -> dict[str, Any]:
    return {
        "engine": found.engine,
        "workload": found.workload,
        "prefixes": found.prefixes,
        "clean_through": found.clean_through,
        "flips": [_flip(flip) for flip in found.flips],
        "swaps": [asdict(swap) for swap in found.swaps],
        "divergence": None if found.divergence is None else _divergence(found.divergence),
        "whole": _whole(found) if found.whole else None,
    }


def _whole(found: Rebinding) -> dict[str, Any]:
    """How the replay of the whole log ended."""
    return {
        "output": None if found.answer is None else found.answer.digest,
        "event_id": None if found.lost is None else found.lost.event_id,
        "divergence": None if found.lost is None else found.lost.text,
    }


def _flip(flip: Flip) -> dict[str, Any]:
    return {
        "from": flip.before,
        "to": flip.after,
        "rank": flip.rank,
        "was": flip.was,
        "now": flip.now,
        "input_changed": flip.input_changed,
    }


def _divergence(lost: FirstDivergence) -> dict[str, Any]:
    return {
        "prefix": lost.prefix,
        "position": lost.position,
        "rank": lost.rank,
        "expected": lost.expected,
        "actual": lost.actual,
        "text": lost.text,
    }


def _perturbed(found: Perturbed) -> dict[str, Any]:
    return {
        "engine": found.engine,
        "workload": found.workload,
        "prefixes": list(found.prefixes),
        "of": found.of,
        "ways": found.ways,
        "seed": found.seed,
        "replays": found.replays,
        "differences": [_difference(one) for one in found.differences],
        "more": found.more,
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "kind": one.unlike.kind,
        "prefix": one.prefix,
        "rank": one.unlike.rank,
        "calm": one.unlike.calm,
        "other": one.unlike.other,
        "perturbation": {**away(one.perturbation), "seed": one.perturbation.seed},
        "prefixes": one.prefixes,
        "passes": one.passes,
    }
