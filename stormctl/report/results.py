"""The results file of upstream's storm harness as an artefact, so that its attempts stand in the same tables.

It tells how each attempt ended and holds no events: what needs a log stays empty. Tokens and addresses are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormctl.errors import UnreadableInput
from stormctl.readers.harness import MAX_ATTEMPTS, READER
from stormctl.readers.json_stream import Around, documents
from stormctl.report.load import Artefact, load_artefact
from stormctl.report.redacted import without_tokens
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.outcome import BY_ERROR_CODE, Outcome

FILE = "event-log-race-repro-results.json"
NAME = "event-log-race-repro"
_HEAD = 65_536
_OUTCOMES = {
    "completed": Outcome.COMPLETED,
    "CORRUPTED_EVENT_LOG": Outcome.CORRUPTED,
    "USER_ERROR": Outcome.USER_ERROR,
    "RUNTIME_ERROR": Outcome.RUNTIME_ERROR,
    "stuck": Outcome.DORMANT,
    "slow": Outcome.SLOW,
    "dormant": Outcome.DORMANT,
    "infra": Outcome.INFRA,
}
_UNSPLIT = "upstream's harness does not tell slow from dormant: its stuck attempts are shown as dormant"


def load_any(path: Path, lane: str = "") -> Artefact:
    """An artefact folder, or a results file of upstream's harness (or the folder that holds one).

    ``lane`` names the world that such a file is of. UnreadableInput when there is nothing to read: a lane whose results
    are missing did not run.
    """
    if path.is_dir() and not (path / "attempts.ndjson").exists() and (path / FILE).is_file():
        path = path / FILE
    if path.is_file():
        return load_results(path, lane)
    if not path.exists():
        raise UnreadableInput(f"there are no results at {path}", remedy="See why the storm left none: its own output.")
    return load_artefact(path)


def load_results(path: Path, lane: str = "") -> Artefact:
    """The results file as an artefact. UnreadableInput when it is none, or damaged."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as bad:
        raise UnreadableInput(f"{path} cannot be read: {bad.strerror}", remedy="Check its permissions.") from None
    if not READER.recognises(head, path):
        raise UnreadableInput(
            f"{path} is not a results file of the harness", remedy=f"Name an artefact folder, or {FILE}."
        )
    around: Mapping[str, Any] = {}
    attempts: list[Attempt] = []
    notes: list[str] = []
    broken = 0
    for piece in documents(path, ("results",)):
        if isinstance(piece, Around):
            around = piece.fields
        elif len(attempts) >= MAX_ATTEMPTS:
            notes.append(f"{path.name} holds more than {MAX_ATTEMPTS} attempts; the rest is left out")
            break
        elif isinstance(piece.value, dict) and not piece.bare:
            attempts.append(_attempt(piece.value, lane or "upstream"))
        else:
            broken += 1
    if broken:
        notes.append(f"{path.name}: {broken} of its results are no attempts")
    if any(one.outcome is Outcome.DORMANT for one in attempts):
        notes.append(_UNSPLIT)
    planned = around.get("plannedAttempts")
    config = around.get("config")
    return Artefact(
        folder=path.resolve().parent,
        attempts=tuple(attempts),
        reason=_reason(around),
        notes=tuple(notes),
        called=NAME,
        expected=planned if isinstance(planned, int) and not isinstance(planned, bool) else None,
        config=config if isinstance(config, dict) else {},
    )


def _reason(around: Mapping[str, Any]) -> str:
    if around.get("budgetExhausted") is True:
        return "budget"
    return "interrupted" if around.get("partial") is True else "done"


def _attempt(row: Mapping[str, Any], world: str) -> Attempt:
    outcome = _text(row, "outcome") or "other"
    code = _text(row, "errorCode")
    progress, pressure = _mapping(row, "progress"), _mapping(row, "pressure")
    resumes = {"resumes_sent": pressure.get("resumesSent"), "resumes_failed": pressure.get("resumesFailed")}
    number, events, took = row.get("attempt"), progress.get("events"), row.get("durationMs")
    made = Attempt(
        cell=Cell(_text(row, "scenario") or "unknown", world, "upstream", "as deployed"),
        number=number if isinstance(number, int) else 0,
        run_id=_text(row, "runId"),
        outcome=_OUTCOMES.get(outcome) or BY_ERROR_CODE.get(code or "", Outcome.OTHER),
        status=_text(row, "status"),
        error_code=code,
        error_message=_text(row, "errorMessage"),
        duration_ms=float(took) if isinstance(took, int | float) else 0.0,
        events=events if isinstance(events, int) else 0,
        pressure={key: value for key, value in resumes.items() if isinstance(value, int)},
        progress={"last_event": progress.get("lastEventType")} if progress else {},
    )
    token = _text(row, "token")
    return without_tokens(made, [token] if token else [])


def _text(row: Mapping[str, Any], key: str) -> str | None:
    value = row.get(key)
    return value if isinstance(value, str) else None


def _mapping(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = row.get(key)
    return value if isinstance(value, dict) else {}


__all__ = ["FILE", "load_any", "load_results"]
