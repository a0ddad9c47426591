"""The table of ``docs/sdk.md``: published versions of the SDK by world and scenario, from one storm's artefact.

Beside what the SDK says of its runs stands what their logs say: a completed run that went on with a racer which is not
the first in its own log is silently wrong, and is counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stormctl.errors import UnreadableInput
from stormctl.report.load import FATAL, Artefact, SweptLog
from stormctl.report.tally import OutcomeRow, outcome_rows
from stormctl.stats import Rate
from stormctl.storm.attempt import Cell
from stormctl.storm.outcome import Outcome

BEGIN, END = "<!-- sdk-table: made by `make sdk-table` -->", "<!-- end of sdk-table -->"
CONTRADICTS = "log-order"
_HEAD = (
    "version", "world", "scenario", "n", "completed", "corrupted (95 %)", "stuck", "other",
    "silent contradictions", "predicted",
)  # fmt: skip


def table_text(artefact: Artefact, command: str) -> str:
    """The table in GitHub's markdown, with the command that makes it, the date and the machine."""
    predicted = _predictions(artefact.folder)
    lines = [f"| {' | '.join(_HEAD)} |", "|---|---|---|" + "---:|" * (len(_HEAD) - 3)]
    for row in outcome_rows(artefact):
        lines.append(f"| {' | '.join(_cells(artefact, row, predicted))} |")
    return "\n".join([*lines, "", *_foot(artefact, command)])


def put_into(page: Path, text: str) -> None:
    """Replace the table in a page. UnreadableInput when the page has no place for it."""
    try:
        old = page.read_text(encoding="utf-8")
    except OSError as bad:
        raise UnreadableInput(f"{page} cannot be read: {bad.strerror}", remedy="Name docs/sdk.md.") from None
    head, begin, rest = old.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise UnreadableInput(f"{page} has no place for the table", remedy=f"Write {BEGIN} and {END} where it goes.")
    page.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}", encoding="utf-8")


def contradictions(artefact: Artefact, cell: Cell) -> Rate:
    """How many of a cell's completed runs, of those whose log was swept for it, their own log contradicts."""
    logs: Mapping[str, SweptLog] = {log.run_id: log for log in artefact.logs}
    counts: Counter[bool] = Counter()
    for attempt in artefact.attempts:
        log = logs.get(attempt.run_id or "")
        if attempt.cell != cell or attempt.outcome is not Outcome.COMPLETED or log is None:
            continue
        for one in log.sweeps:
            if one.sweep == CONTRADICTS and one.verdict != "unknown":
                counts[bool(one.findings.get(FATAL))] += 1
    return Rate(counts[True], counts.total())


def _cells(artefact: Artefact, row: OutcomeRow, predicted: Mapping[str, bool]) -> Iterator[str]:
    cell = row.cell
    silent = contradictions(artefact, cell)
    judged = [
        predicted[one.run_id]
        for one in artefact.attempts
        if one.cell == cell and one.outcome is Outcome.CORRUPTED and one.run_id is not None and one.run_id in predicted
    ]
    version = cell.condition.removeprefix("workflow ")
    yield version if cell.generation == "as published" else f"{version}, `{cell.generation}`"
    yield cell.world
    yield cell.scenario
    yield str(row.n)
    yield str(row.completed) + (f" ({row.vacuous} vacuous)" if row.vacuous else "")
    yield str(row.rate)
    yield str(row.stuck)
    yield f"{row.other}" + (f" and {row.infra} infra" if row.infra else "")
    yield f"{silent.k} of {silent.n}" if silent.n else "none completed"
    yield f"{sum(judged)} of {len(judged)}" if judged else ""


def _foot(artefact: Artefact, command: str) -> Iterator[str]:
    env = artefact.env
    plan = artefact.plan
    load = env.get("load")
    asked = " ".join(map(str, env.get("argv", ())))
    yield f"`{command}` (`{asked}`), seed {plan.seed if plan else 'unknown'}, begun {env.get('started_at')}"
    yield (
        f"on {env.get('platform')} with {env.get('cores')} cores, load {load[0] if load else 'unknown'} before it "
        f"began, Python {env.get('python')}, stormctl {env.get('stormctl')}."
    )
    if artefact.reason != "done":
        yield f"The storm did not end by itself ({artefact.reason}): {len(artefact.attempts)} attempts landed."


def _predictions(folder: Path) -> dict[str, bool]:
    try:
        found: Any = json.loads((folder / "predictions.json").read_bytes())
        return {str(one["run_id"]): bool(one["predicted"]) for one in found["logs"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
