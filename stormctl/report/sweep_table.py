"""The report of a sweep for a terminal: the verdict first, then what each sweep says, then the findings.

It fits 80 columns and loses nothing without colour.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stormctl.readers import Unreadable
from stormctl.report.binding_strip import binding_strip
from stormctl.report.sweep_tally import kind_of, type_of, types_in_words
from stormctl.sweeps import Finding, LogReport, Severity, SweepResult, Verdict, worst
from stormctl.sweeps.drain.swept import WORLD
from stormctl.sweeps.perturbation import Perturbed
from stormctl.sweeps.reading import From
from stormctl.sweeps.rebinding import Rebinding
from stormctl.sweeps.run import unknown_reason
from stormctl.sweeps.witness import clean

#: More findings than this are counted and not listed; the JSON report holds them all.
MOST_FINDINGS = 12
MOST_POSITIONS = 6
MOST_COLUMNS = 100
#: further engines that flip or diverge are not drawn; --picture draws them all
MOST_STRIPS = 3

VERDICT_STYLES = {Verdict.CLEAN: "green", Verdict.VIOLATED: "bold red", Verdict.UNKNOWN: "yellow"}
HINT = "No prefix was replayed. Name an engine with --engine to test what each prefix binds."


def sweep_text(
    logs: Sequence[LogReport], unreadable: Sequence[Unreadable] = (), *, width: int = 80, color: bool = False
) -> str:
    """The report as text for so many columns. NO_COLOR turns colour off whatever ``color`` says."""
    sink = io.StringIO()
    console = Console(file=sink, width=min(width, MOST_COLUMNS), force_terminal=color or None, highlight=False)
    console.print(sweep_table(logs, unreadable, width=console.width), crop=False)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines())


def sweep_table(logs: Sequence[LogReport], unreadable: Sequence[Unreadable] = (), *, width: int = 80) -> RenderableType:
    """The report as something that rich prints. A log that is alone shows what its ranks were bound to."""
    parts: list[RenderableType] = []
    if len(logs) + len(unreadable) != 1:
        parts += [_summary(logs, unreadable), Text()]
    for log in logs:
        parts += [*_log(log, width if len(logs) == 1 else 0), Text()]
    for one in unreadable:
        parts += [_head("unreadable", "bold red", one.source), _indented(Text(clean(one.text)), 2), Text()]
    replayable = [log for log in logs if log.world != WORLD]  # a drain trace is no log
    if replayable and not any(result.sweep == "rebinding" for log in replayable for result in log.sweeps):
        parts += [Text(HINT, style="dim"), Text()]
    return Group(*parts[:-1])


def _summary(logs: Sequence[LogReport], unreadable: Sequence[Unreadable]) -> Text:
    counts = Counter(log.verdict for log in logs)
    text = Text()
    if logs:
        text.append(worst(counts), style=VERDICT_STYLES[worst(counts)])
        words = [f"{counts[verdict]} {verdict}" for verdict in VERDICT_STYLES if counts[verdict]]
        text.append(f"  {', '.join(words)} of {len(logs)} logs")
    if unreadable:
        text.append("; " if logs else "unreadable  ")
        text.append(f"{len(unreadable)} could not be read")
    elif not logs:
        text.append("no log was given")
    return text


def _head(word: str, style: str, source: str) -> Text:
    """The first line of a log: its verdict and its path, which is never broken so that it can be copied."""
    return Text.assemble((word, style), f"  {clean(source)}", no_wrap=True, overflow="ignore")


def _log(log: LogReport, strip_width: int) -> Iterator[RenderableType]:
    yield _head(str(log.verdict), VERDICT_STYLES[log.verdict], log.source)
    facts = f"run {clean(log.run_id)}, {log.events} events, profile {log.profile}{_reading(log)}"
    yield _indented(Text(facts, style="dim"), 2)
    explained = {unknown_reason(result) for result in log.sweeps}
    for reason in log.reasons:
        if reason not in explained:
            yield _indented(Text(reason), 2)
    yield Text()
    yield _indented(_sweeps(log), 2)
    for replay in log.rebinding:
        yield _indented(_replay(replay), 2)
    for found in log.perturbation:
        yield _indented(_perturbed(found), 2)
    if strip_width:
        yield from _strips(log, strip_width)
    yield from _findings(log.findings)
    if log.payloads:
        yield Text()
        for place, text in log.payloads:
            yield _indented(Text.assemble((f"payload of {place}  ", "dim"), text), 2)


def _reading(log: LogReport) -> str:
    """Where the profile came from, unless it was named."""
    if log.profile_from is From.LOG:
        return f" (the log says {log.told})"
    return " (strictest reading)" if log.profile_from is From.STRICTEST else ""


def _sweeps(log: LogReport) -> Table:
    grid = Table.grid(padding=(0, 2))
    for _ in range(3):
        grid.add_column(overflow="fold")
    for result in log.sweeps:
        grid.add_row(result.sweep, Text(str(result.verdict), style=VERDICT_STYLES[result.verdict]), _remark(result))
    return grid


def _remark(result: SweepResult) -> str:
    counts = Counter(finding.severity for finding in result.findings)
    parts = [f"{counts[severity]} {severity}" for severity in Severity if counts[severity]]
    words = [str(what) for what in result.missing if isinstance(what, str)]
    places = [str(what) for what in result.missing if isinstance(what, int)]
    if words:
        parts.append(f"lacks {'; '.join(words)}")
    if places:
        parts.append(f"declared left out: {_places(places)}")
    return "; ".join(parts)


def _replay(replay: Rebinding) -> Text:
    text = Text.assemble("replay  ", f"{replay.engine}: {replay.prefixes} prefixes, ")
    text.append("none is clean" if replay.clean_through is None else f"clean through {replay.clean_through}")
    flips = len(replay.flips)
    text.append(f", {flips or 'no'} flip{'' if flips == 1 else 's'}, ")
    text.append("no divergence" if replay.divergence is None else f"diverges at {replay.divergence.prefix}")
    return text


def _perturbed(found: Perturbed) -> Text:
    few = len(found.prefixes) < found.of
    text = Text.assemble("replay  ", f"{found.engine}, perturbed: {len(found.prefixes)} ")
    text.append(f"of {found.of} prefixes" if few else "prefixes")
    text.append(f" x {found.ways} ways, seed {found.seed}, ")
    count = len(found.differences) + found.more
    return text.append(f"{count or 'no'} difference{'' if count == 1 else 's'}")


def _strips(log: LogReport, width: int) -> Iterator[RenderableType]:
    drawn = [
        (f"{found.engine}, what each {found.row} is bound to", lines)
        for found in log.maps
        if (lines := binding_strip(found, width - 4))
    ]
    for head, lines in drawn[:MOST_STRIPS]:
        yield Text()
        yield _indented(Text(head), 2)
        for line in lines:
            yield _indented(line, 2)
    if len(drawn) > MOST_STRIPS:
        yield _indented(Text(f"and {len(drawn) - MOST_STRIPS} more engines; --picture draws them all", style="dim"), 2)


def _findings(findings: Sequence[Finding]) -> Iterator[RenderableType]:
    fatal = [finding for finding in findings if finding.severity is Severity.FATAL]
    for finding in fatal[:MOST_FINDINGS]:
        yield Text()
        at = f" at {_places([str(place) for place in finding.positions])}" if finding.positions else ""
        yield _indented(Text.assemble((str(finding.severity), "red"), f"  {finding.sweep}{at}"), 2)
        yield _indented(Text(finding.message), 4)
        for line in finding.witness:
            yield _indented(Text(line, style="dim"), 6)
    if len(fatal) > MOST_FINDINGS:
        yield Text()
        yield _indented(Text(f"and {len(fatal) - MOST_FINDINGS} more; --format json lists them all"), 2)
    rest: dict[tuple[Severity, str], list[Finding]] = {}
    for finding in findings:
        if finding.severity is not Severity.FATAL:
            rest.setdefault((finding.severity, kind_of(finding.key)), []).append(finding)
    if rest:
        yield Text()
    for (severity, kind), found in rest.items():
        text = f"{severity}  {kind}"
        if len(found) == 1:
            yield _indented(Text(text, style="dim"), 2)
            yield _indented(Text(found[0].message, style="dim"), 9)
            continue
        types = types_in_words(Counter(type_of(finding.about) for finding in found), kind)
        yield _indented(Text(f"{text}  {len(found)} times" + (f": {types}" if types else ""), style="dim"), 2)


def _places(places: Sequence[str]) -> str:
    shown = ", ".join(places[:MOST_POSITIONS])
    return f"{shown} and {len(places) - MOST_POSITIONS} more" if len(places) > MOST_POSITIONS else shown


def _indented(content: RenderableType, columns: int) -> Padding:
    return Padding(content, (0, 0, 0, columns))
