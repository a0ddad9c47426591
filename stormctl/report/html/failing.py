"""The failing runs of the page: what each said, what the sweeps found in its log, its explanation, its commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stormctl.report.explained import Explained
from stormctl.report.load import FATAL, Artefact
from stormctl.report.pictures import engine_of
from stormctl.report.redacted import hidden, tokens_of
from stormctl.report.style import look
from stormctl.storm.attempt import Attempt
from stormctl.storm.outcome import Outcome
from stormctl.sweeps.witness import clean

#: runs that are listed: those that gate, then infra
MOST_GATING, MOST_INFRA = 400, 20
#: findings and lines of witness shown of one run
MOST_FINDINGS, MOST_WITNESS, MOST_MESSAGE = 8, 6, 1_200


@dataclass(frozen=True, slots=True)
class Finding:
    """One fatal finding: who found it, what, and the events that show it."""

    sweep: str
    message: str
    witness: tuple[str, ...]

    def without(self, tokens: Sequence[str]) -> Finding:
        """The same without these tokens of hooks."""
        return Finding(self.sweep, hidden(self.message, tokens), tuple(hidden(line, tokens) for line in self.witness))


@dataclass(frozen=True, slots=True)
class Failing:
    """A run that did not complete. ``group`` is the word under which outcomes are shown."""

    anchor: str
    outcome: str
    group: str
    where: str
    run_id: str
    number: int
    message: str
    seconds: float
    events: int
    findings: tuple[Finding, ...]
    said: Explained
    commands: tuple[str, ...]

    @property
    def headline(self) -> str:
        """The one line of a folded run."""
        found = self.findings[-1].message if self.findings else ""
        return self.said.headline or found or self.message.split("; ")[0] or self.outcome


def failing_attempts(artefact: Artefact) -> tuple[list[Attempt], int]:
    """The attempts that are listed, those that gate first, and how many there are in all."""
    gating = [one for one in artefact.attempts if one.outcome.gates]
    infra = [one for one in artefact.attempts if one.outcome is Outcome.INFRA]
    gating.sort(key=lambda one: one.outcome is not Outcome.CORRUPTED)  # so that these are not the ones cut off
    return gating[:MOST_GATING] + infra[:MOST_INFRA], len(gating) + len(infra)


def failing_runs(artefact: Artefact, attempts: Sequence[Attempt], said: Mapping[str, Explained]) -> list[Failing]:
    """What the page shows of each, the explained ones of each outcome first."""
    attempts = sorted(
        attempts,
        key=lambda one: (
            one.outcome is not Outcome.CORRUPTED,
            one.outcome is Outcome.INFRA,
            not said.get(one.run_id or "", Explained()).text,
        ),
    )
    findings = _findings(artefact, {one.run_id for one in attempts if one.run_id})
    return [
        Failing(
            anchor=f"run-{index}",
            outcome=str(one.outcome),
            group=look(one.outcome).word,
            where=f"{one.cell.scenario}, {artefact.arm(one.cell)}",
            run_id=one.run_id or "",
            number=one.number,
            message=(one.error_message or one.error_code or one.note or "")[:MOST_MESSAGE],
            seconds=one.duration_ms / 1000,
            events=one.events,
            findings=findings.get(one.run_id or "", ()),
            said=said.get(one.run_id or "", Explained(why="it never became a run")),
            commands=tuple(commands(artefact, one)),
        )
        for index, one in enumerate(attempts, start=1)
    ]


def commands(artefact: Artefact, attempt: Attempt) -> Iterator[str]:
    """What to type, in the artefact's folder, to replay a run's log at every prefix and to have it explained."""
    if not attempt.run_id:
        return
    log = shlex.quote(f"logs/{clean(attempt.run_id)}.ndjson")
    engine = engine_of(artefact, attempt.run_id)
    replay = "" if engine is None else f" --engine {shlex.quote(engine)}"
    yield f"stormctl sweep {log}{replay}"
    yield f"stormctl explain {log}"


def _findings(artefact: Artefact, runs: set[str]) -> dict[str, tuple[Finding, ...]]:
    """The fatal findings of each of the runs, as ``sweeps.json`` has them."""
    found: dict[str, tuple[Finding, ...]] = {}
    try:
        document: Any = json.loads((artefact.folder / "sweeps.json").read_bytes())
        for log in document["logs"]:
            if log.get("run_id") in runs:
                tokens = tuple(tokens_of(artefact.folder, log["run_id"]))
                found[log["run_id"]] = tuple(one.without(tokens) for one in _of_log(log))[:MOST_FINDINGS]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return found
    return found


def _of_log(log: Mapping[str, Any]) -> Iterator[Finding]:
    """Findings in the order of the sweeps; where the replay diverged, that comes last if no sweep says it."""
    told = False
    for sweep in log.get("sweeps", ()):
        for finding in sweep.get("findings", ()):
            if finding.get("severity", FATAL) == FATAL:
                told = told or sweep.get("sweep") == "rebinding"
                witness = tuple(str(line) for line in finding.get("witness", ())[:MOST_WITNESS])
                yield Finding(str(sweep.get("sweep", "")), str(finding.get("message", "")), witness)
    for one in () if told else log.get("rebinding", ()):
        if one.get("divergence"):
            text = one["divergence"].get("text", "the replay diverges")
            yield Finding(f"replay by {one.get('engine', '')}", str(text), ())
