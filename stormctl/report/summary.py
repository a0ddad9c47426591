"""``summary.md``: the storm for a step summary or a comment, in GitHub's markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stormctl.report import replayed, tally
from stormctl.report.harmless import fence
from stormctl.report.load import Artefact
from stormctl.report.markdown import escape as _escape
from stormctl.report.markdown import table as _table
from stormctl.report.predicted import HEAD, predicted
from stormctl.report.storm import head, remarks
from stormctl.report.work import work_rows
from stormctl.storm.outcome import Outcome
from stormctl.storm.plan import resolved_yaml

#: Failing attempts listed one by one: gating ones first, then a few of infra (as upstream's renderer does).
MOST_GATING, MOST_INFRA = 10, 3


def write_summary(artefact: Artefact) -> Path:
    """Write ``summary.md`` into the artefact's folder."""
    path = artefact.folder / "summary.md"
    path.write_text(summary_text(artefact), encoding="utf-8")
    return path


def summary_text(artefact: Artefact, after: Sequence[str] = ()) -> str:
    """The verdict line first; then the tables, and ``after`` them these; the configuration in a fold at the end."""
    rows = tally.outcome_rows(artefact)
    parts = [f"**{_escape(tally.verdict_line(artefact))}**", _escape(head(artefact))]
    vacuous = ("vacuous",) if any(row.vacuous for row in rows) else ()
    outcomes = ("completed", *vacuous, "corrupted (95 %)", "stuck", "other", "infra")
    parts.append(
        _table(
            ("scenario", "condition + generation", "n", *outcomes),
            (
                (
                    row.cell.scenario,
                    row.arm + (" (environment)" if row.environment else ""),
                    row.n,
                    row.completed,
                    *((row.vacuous,) if vacuous else ()),
                    row.rate,
                    row.stuck,
                    row.other,
                    row.infra,
                )
                for row in rows
            ),
            words=2,
        )
    )
    parts += [_escape(text) for text in remarks(artefact)]
    compared = tally.comparisons(rows)
    if compared:
        parts.append(_escape(f"{tally.sides_text(rows).capitalize()}."))
        parts.append(
            _table(
                ("corrupted", "old", "new", "old - new (95 %)", "reading"),
                ((one.scenario, one.old.rate, one.new.rate, one.difference, one.reading) for one in compared),
                words=1,
            )
        )
    work = work_rows(artefact)
    if work:
        parts.append(
            _table(
                ("scenario", "work", "restarts/run", "412s (useless)", "reinvoked", "diverged", "re-read", "stuck"),
                (
                    (
                        row.cell.scenario,
                        row.arm,
                        f"{row.restarts_per_run:.1f}",
                        f"{row.refused} ({row.useless})",
                        row.reinvocations,
                        row.divergences,
                        row.rereads,
                        row.stuck,
                    )
                    for row in work
                ),
                words=2,
            )
        )
    swept = tally.sweep_rows(artefact)
    if swept:
        parts.append("Fatal findings by sweep, in logs that could be judged:")
        parts.append(_table(("sweep", *artefact.arms), ((row.sweep, *row.cells) for row in swept), words=1))
    shares = predicted(artefact.folder)
    if shares.rows:
        parts.append("Corrupted logs whose printed divergence the generation that stands for their version predicts:")
        parts.append(_table(HEAD, (row.cells for row in shares.rows), words=2))
        parts += [_escape(_shorten(text, 300)) for text in shares.texts]
    again = replayed.replayed(artefact.folder)
    if again:
        parts.append(
            "Logs replayed by the real engine: completed runs with flips, and with contradictions by log-order; "
            "corrupted runs that get the text that the SDK printed, completed ones that get their recorded output:"
        )
        rows_again = ((one.cell.scenario, artefact.arm(one.cell), *one.cells) for one in again)
        parts.append(_table(("scenario", "condition + generation", *replayed.HEAD), rows_again, words=3))
    parts.append("Durations in seconds:")
    parts.append(
        _table(
            ("outcome", "n", "p50", "p90", "p95", "p99", "max"),
            (
                (word, one.n, *(f"{value:.1f}" for value in (one.p50, one.p90, one.p95, one.p99, one.max)))
                for word, one in tally.durations(artefact).items()
            ),
            words=1,
        )
    )
    parts += _failing(artefact)
    parts += after
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
