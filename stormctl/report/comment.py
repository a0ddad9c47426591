"""The sticky comment of a pull request: one for all lanes, short, and never larger than GitHub takes.

What it shows and how much is upstream's own lesson (vercel/workflow #3556): a verdict per lane, the newest five runs,
at most ten failing rows and three of infra per lane, the configuration folded away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stormctl.report.harmless import fence, markdown
from stormctl.report.history import MARKER, MOST_LANES, RunEntry, embed, newest
from stormctl.report.lane import Lane, LaneCounts, said
from stormctl.report.markdown import table
from stormctl.storm.plan import resolved_yaml

#: GitHub refuses a comment of this many characters. Bytes are held below it, which are never fewer.
LIMIT = 65_536
_MOST_CONFIG = 4_000
#: keys of a configuration that was not ours
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,60}")


@dataclass(frozen=True, slots=True)
class _Detail:
    """How much is told. Each next one tells less, until the comment fits."""

    config: bool = True
    message: int = 120
    failing: bool = True
    history: bool = True
    lanes: int = MOST_LANES


_DETAILS = (
    _Detail(),
    _Detail(config=False),
    _Detail(config=False, message=40),
    _Detail(config=False, failing=False),
    _Detail(config=False, failing=False, history=False),
    _Detail(config=False, failing=False, history=False, lanes=3),
)


def comment_text(lanes: Sequence[Lane], run: RunEntry, previous: Sequence[RunEntry] = ()) -> str:
    """The body of the comment, under ``LIMIT`` characters and bytes whatever the lanes hold."""
    runs = newest(run, previous)
    for detail in _DETAILS:
        text = _body(lanes, runs, detail)
        if len(text.encode()) < LIMIT:
            return text
    return f"{MARKER}\n\nThe report is too large for a comment; see the job's summary.\n"


def _body(lanes: Sequence[Lane], runs: Sequence[RunEntry], detail: _Detail) -> str:
    shown = lanes[: detail.lanes]
    parts = [MARKER + (f"\n{embed(runs)}" if detail.history else ""), "### Storms"]
    parts.append("\n".join(_verdict(lane) for lane in shown))
    if len(shown) < len(lanes):
        parts.append(f"and {len(lanes) - len(shown)} more lanes")
    if detail.history:
        parts += ["**Newest runs**", _history(runs)]
    if detail.failing:
        parts += _failing(shown, detail)
    if detail.config:
        parts += _config(shown)
    parts.append("<sub>Rates leave out infra, which is the harness's fault; their intervals are Wilson's, 95 %.</sub>")
    return "\n\n".join(parts) + "\n"


def _verdict(lane: Lane) -> str:
    counts = lane.counts
    said = markdown(counts.verdict)
    bad = counts.missing or (counts.gating and not counts.suspect)
    return f"- **{markdown(_short(lane.name, 60))}**: {f'**{said}**' if bad else said}"


def _history(runs: Sequence[RunEntry]) -> str:
    names = list(dict.fromkeys(name for run in runs for name in run.lanes))[:MOST_LANES]
    several = len(names) > 1
    head = ("Run", *(("Lane",) if several else ()), "Total", "Completed", "Corrupted (95 %)", "Stuck", "Other", "Infra")
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join([':--'] * (1 + several) + ['--:'] * 6)} |"]
    for run in runs:
        for index, name in enumerate(names):
            cells = ["" if index else _run(run), *((markdown(name),) if several else ()), *_row(run.lanes.get(name))]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _run(run: RunEntry) -> str:
    text = run.timestamp[5:16].replace("T", " ") + (f" no. {run.attempt}" if run.attempt > 1 else "")
    return f"[{text}]({run.url})" if run.url else text


def _row(counts: LaneCounts | None) -> tuple[str, ...]:
    if counts is None or counts.missing:
        return ("no results" if counts else "-", *["-"] * 5)
    stuck = f"{counts.slow + counts.dormant}"
    numbers = (counts.total, counts.completed, counts.rate, stuck, counts.other, counts.infra)
    return tuple(markdown(str(value)) for value in numbers)


def _failing(lanes: Sequence[Lane], detail: _Detail) -> list[str]:
    rows = []
    hidden = []
    for lane in lanes:
        for one in lane.listed:
            arm = lane.artefact.arm(one.cell) if lane.artefact else ""
            words = (lane.name, one.cell.scenario, arm, str(one.number), str(one.outcome), one.run_id or "")
            rows.append((*(_short(word, 60) for word in words), said(one, detail.message)))
        if len(lane.listed) < len(lane.failing):
            hidden.append(f"{lane.name}: {len(lane.listed)} of {len(lane.failing)} shown")
    if not rows:
        return []
    several = len(lanes) > 1
    head = ("Lane", "Scenario", "Condition + generation", "Attempt", "Outcome", "Run", "Why")
    cut: Callable[[Sequence[str]], Sequence[str]] = lambda row: row if several else row[1:]  # noqa: E731
    parts = ["**Attempts that did not complete**", table(cut(head), map(cut, rows), words=7)]
    return [*parts, markdown("; ".join(hidden))] if hidden else parts


def _config(lanes: Sequence[Lane]) -> list[str]:
    """The configuration of each lane in a fold; lanes that have the same share one."""
    by_text: dict[str, list[str]] = {}
    for lane in lanes:
        text = config_text(lane)
        if text:
            by_text.setdefault(text, []).append(lane.name)
    return [
        f"<details><summary>Configuration of {_summary(names)}</summary>\n\n{fence(text)}\n\n</details>"
        for text, names in by_text.items()
    ]


def config_text(lane: Lane) -> str:
    """The configuration of a lane as YAML, cut to what a fold can hold."""
    import yaml

    found = lane.artefact
    if found is None:
        return ""
    if found.plan is not None:
        text = resolved_yaml(found.plan)
    elif found.config:
        kept = {
            key: value
            for key, value in found.config.items()
            if _KEY.fullmatch(key) and isinstance(value, str | int | float | bool)
        }
        text = yaml.safe_dump(kept, sort_keys=False, allow_unicode=True)
    else:
        return ""
    return text if len(text) <= _MOST_CONFIG else text[:_MOST_CONFIG] + "\n# and more"


def _summary(names: Sequence[str]) -> str:
    """Names inside of a tag of HTML, where markdown's escapes do not hold, and where GitHub finds a mention even in
    what is written as an entity."""
    text = _short(", ".join(names), 100)
    return "".join(char if char.isalnum() or char in " ,.+_-" else "_" for char in text)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."
