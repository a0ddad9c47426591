"""The report of sweeps as GitHub's markdown, short enough for a comment on a pull request.

Whatever comes from a log or a file name stands in code spans: nothing in there is markup, a link, a mention or a
reference.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.report.markdown import table
from stormctl.report.sweep_tally import Failing, Tally, cell, shortened
from stormctl.sweeps import Verdict


def sweep_markdown(tally: Tally) -> str:
    """The summary as one markdown text."""
    return "\n\n".join(_blocks(tally))


def _blocks(tally: Tally) -> Iterator[str]:
    yield f"**{tally.word}**: {tally.line}"
    worlds = tally.names_of_worlds
    if worlds:
        rows = [("all sweeps", *(cell(tally.worlds[world]) for world in worlds))]
        rows += [
            (sweep, *(cell(tally.by[sweep][world]) if world in tally.by[sweep] else "" for world in worlds))
            for sweep in tally.sweeps
        ]
        yield table(("clean / violated / unknown", *worlds), rows, words=1)
    if tally.findings:
        kinds = [(*one, tally.findings[one], tally.with_finding[one]) for one in tally.kinds]
        yield table(("severity", "kind", "findings", "logs"), kinds, words=2)
    if tally.failing:
        lines = [_failing(one) for one in tally.failing]
        yield "### Violated\n\n" + "\n".join([*lines, *_more(tally.verdicts[Verdict.VIOLATED], len(lines))])
    if tally.reasons:
        lines = [f"* {count:,}: {code(reason)}" for reason, count in tally.told_reasons]
        yield "### Unknown because\n\n" + "\n".join(lines)
    if tally.broken:
        lines = [f"* {code(one.source)}: {code(one.text)}" for one in tally.broken]
        yield "### Unreadable\n\n" + "\n".join([*lines, *_more(tally.unreadable, len(lines))])


def _failing(one: Failing) -> str:
    where = f"{code(one.source)} {code(one.run)}" if one.run else code(one.source)
    return f"* {where}: {one.short}" + (f"\n  {code(one.first)}" if one.first else "")


def _more(count: int, told: int) -> list[str]:
    return [f"* and {count - told:,} more"] if count > told else []


def code(text: str) -> str:
    """A stranger's text in a code span, where it means nothing."""
    return f"`{shortened(text).replace('`', chr(39)).strip() or ' '}`"
