"""``summary.md``: the storm for a step summary or a comment, in GitHub's markdown."""

from __future__ import annotations

from pathlib import Path

from stormctl.report import tally
from stormctl.report.facts import StormFacts, storm_facts
from stormctl.report.grid_text import grid_markdown
from stormctl.report.grids import grids
from stormctl.report.harmless import fence
from stormctl.report.load import Artefact
from stormctl.report.markdown import escape as _escape
from stormctl.report.markdown import table as _table
from stormctl.report.printed import printed
from stormctl.report.storm import head, remarks
from stormctl.storm.outcome import Outcome
from stormctl.storm.plan import resolved_yaml

#: Failing attempts listed one by one: gating ones first, then a few of infra (as upstream's renderer does).
MOST_GATING, MOST_INFRA = 10, 3
MOST_NOTES = 20


def write_summary(artefact: Artefact) -> Path:
    """Write ``summary.md`` into the artefact's folder. Reads its logs, as :func:`storm_facts` does."""
    path = artefact.folder / "summary.md"
    path.write_text(summary_text(artefact), encoding="utf-8")
    return path


def summary_text(artefact: Artefact, facts: StormFacts | None = None) -> str:
    """The verdict line first; then every table of the storm, what failed one by one, what could not be read; the
    configuration in a fold at the end."""
    facts = storm_facts(artefact) if facts is None else facts
    outcomes, *others = printed(artefact, facts)
    parts = [f"**{_escape(tally.verdict_line(artefact))}**", _escape(head(artefact)), grid_markdown(outcomes)]
    parts += [_escape(text) for text in remarks(artefact)]
    parts += [grid_markdown(grid) for grid in (*others, *grids(facts)) if grid.rows]
    parts += _failing(artefact)
    parts += [f"note: {_escape(note)}" for note in dict.fromkeys((*artefact.notes, *facts.notes[:MOST_NOTES]))]
    if artefact.plan:
        parts.append(
            f"<details><summary>Configuration</summary>\n\n{fence(resolved_yaml(artefact.plan))}\n\n</details>"
        )
    return "\n\n".join(parts) + "\n"


def _failing(artefact: Artefact) -> list[str]:
    gating = [attempt for attempt in artefact.attempts if attempt.outcome.gates]
    infra = [attempt for attempt in artefact.attempts if attempt.outcome is Outcome.INFRA]
    shown = gating[:MOST_GATING] + infra[:MOST_INFRA]
    if not shown:
        return []
    total = len(gating) + len(infra)
    counted = f" ({len(shown)} of {total})" if len(shown) < total else ""
    return [
        f"Attempts that did not complete{counted}:",
        _table(
            ("scenario", "condition + generation", "attempt", "outcome", "run", "message"),
            (
                (
                    attempt.cell.scenario,
                    artefact.arm(attempt.cell),
                    attempt.number,
                    attempt.outcome,
                    attempt.run_id or "",
                    _shorten(attempt.error_message or attempt.error_code or ""),
                )
                for attempt in shown
            ),
            words=2,
        ),
    ]


def _shorten(text: str, most: int = 160) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
