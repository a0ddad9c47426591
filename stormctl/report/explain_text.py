"""An explanation for a terminal: the class and the guilty write first, then the story, the bindings, the generations.

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

from stormctl.explain import Answer, Explanation
from stormctl.explain.explanation import Binding, BindingPair, GenerationRow, GuiltyWrite, Named, WriterView
from stormctl.explain.words import pulls, ranges
from stormctl.readers import Unreadable
from stormctl.sweeps.witness import clean

MOST_COLUMNS = 100
#: positions that a row of the generations lists
MOST_POSITIONS = 4

_STYLES = {
    Answer.EXPLAINED: "bold red",
    Answer.UNCLASSIFIED: "bold red",
    Answer.OPEN: "yellow",
    Answer.NEEDS_WORKLOAD: "yellow",
    Answer.CLEAN: "green",
}


def explain_text(
    logs: Sequence[Explanation], unreadable: Sequence[Unreadable] = (), *, width: int = 80, color: bool = False
) -> str:
    """The explanations as text for so many columns. NO_COLOR turns colour off whatever ``color`` says."""
    sink = io.StringIO()
    console = Console(file=sink, width=min(width, MOST_COLUMNS), force_terminal=color or None, highlight=False)
    console.print(_all(logs, unreadable), crop=False)
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines())


def _all(logs: Sequence[Explanation], unreadable: Sequence[Unreadable]) -> RenderableType:
    parts: list[RenderableType] = []
    if len(logs) + len(unreadable) != 1:
        counts = Counter(log.answer for log in logs)
        words = [f"{counts[answer]} {answer}" for answer in Answer if counts[answer]]
        if unreadable:
            words.append(f"{len(unreadable)} unreadable")
        parts += [Text(", ".join(words) or "no log was given"), Text()]
    for log in logs:
        parts += [*_log(log), Text()]
    for one in unreadable:
        parts += [_head("unreadable", "bold red", one.source), _indented(Text(clean(one.text)), 2), Text()]
    return Group(*parts[:-1])


def _head(word: str, style: str, source: str) -> Text:
    """The answer and the path, which is never broken so that it can be copied."""
    return Text.assemble((word, style), f"  {clean(source)}", no_wrap=True, overflow="ignore")


def _log(log: Explanation) -> Iterator[RenderableType]:
    yield _head(str(log.answer), _STYLES[log.answer], log.source)
    workload = f", workload {clean(log.workload)}" if log.workload else ""
    yield _indented(Text(f"run {clean(log.run_id)}, {log.events} events{workload}", style="dim"), 2)
    yield Text()
    yield _indented(Text(log.headline, style="bold"), 2)
    if log.named is not None:
        yield from _class(log.named)
    if log.guilty is not None:
        yield from _section("the guilty write", [_guilty(log.guilty)])
    if log.story:
        grid = _grid(2)
        for beat in log.story:
            grid.add_row(beat.word, beat.text)
        yield from _section("what happened", [grid])
    if log.bindings:
        yield from _section("the two bindings", [_bindings(log.bindings)])
    if log.witness:
        yield from _section("witness", [Text(line) for line in log.witness])
    if log.generations:
        yield from _section("generations", [*map(Text, writer_words(log)), _generations(log.generations)])
    if log.today is not None:
        text = f"{log.today.would}: {log.today.text}"
        yield from _section("would today's engine still do it", [Text(text)])
    if log.findings and log.named is None:
        yield from _section("what the sweeps found", [Text(line) for line in log.findings])
    if log.also:
        yield from _section("it also shows", [_also(one) for one in log.also])
    if log.open:
        yield from _section("open", [Text(line) for line in log.open])
    if log.left_out:
        yield from _section("left out", [Text(line) for line in log.left_out])


def _class(named: Named) -> Iterator[RenderableType]:
    how = "shown" if named.weight == "shown" else "it fits; others would look alike"
    yield _indented(Text(f"{named.group} ({how})", style="dim"), 2)
    yield Text()
    yield _indented(Text(named.mechanism), 2)
    closed = f" ({pulls(named.closed_by)})" if named.closed_by and not _names_all(named) else ""
    yield from _section("closed upstream", [Text(f"{named.closed}{closed}")])
    yield from _section("evidence", [Text(line) for line in named.evidence])


def _names_all(named: Named) -> bool:
    """Whether the sentence on what closed a class names the pull requests itself."""
    return all(f"#{number}" in named.closed for number in named.closed_by)


def _also(named: Named) -> Text:
    evidence = f": {named.evidence[0]}" if named.evidence else ""
    return Text(f"{named.title}{evidence}")


def _guilty(write: GuiltyWrite) -> Text:
    rank = "" if write.rank is None else f", rank {write.rank}"
    text = f"position {write.position}{rank}: {write.label}, written {write.written_as}"
    if write.writer is None:
        return Text(f"{text}; no view of the log explains it")
    return Text(f"{text} by {reader(write.writer)}; its view ended {write.staleness} before it")


def reader(view: WriterView) -> str:
    """A writer with what it had read, as one phrase."""
    hidden = f" without {', '.join(map(str, view.hidden))}" if view.hidden else ""
    audit = ""
    if view.audit is not None:
        said = "" if view.snapshot is None else f", which says that it had read {view.snapshot} events"
        audit = f" (the audit: {clean(view.audit)}{said})"
    return f"{view.name}, who had read up to {ranges(view.prefixes)}{hidden}{audit}"


def _bindings(pairs: Sequence[BindingPair]) -> Table:
    names = list(dict.fromkeys(side.writer.name for pair in pairs for side in (pair.one, pair.other)))
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    for _ in names:
        table.add_column(overflow="fold")
    views = {side.writer.name: side.writer for pair in reversed(pairs) for side in (pair.other, pair.one)}
    table.add_row("", *(Text(short_reader(views[name]), style="dim") for name in names))
    for rank, cells in binding_rows(pairs).items():
        table.add_row(f"rank {rank}", *(_cell(cells.get(name)) for name in names))
    return table


def short_reader(view: WriterView) -> str:
    """A writer and its prefix, for the head of a column."""
    hidden = f" without {', '.join(map(str, view.hidden))}" if view.hidden else ""
    return f"{view.name} (prefix {ranges(view.prefixes)}{hidden})"


def binding_rows(pairs: Sequence[BindingPair]) -> dict[int, dict[str, Binding]]:
    """By rank, what each writer bound it to."""
    rows: dict[int, dict[str, Binding]] = {}
    for pair in pairs:
        for side in (pair.one, pair.other):
            rows.setdefault(side.rank, {}).setdefault(side.writer.name, side)
    return dict(sorted(rows.items()))


def _cell(side: Binding | None) -> str:
    return "" if side is None else binding_words(side)


def binding_words(side: Binding) -> str:
    """What a writer bound, and where it wrote it."""
    return f"{side.label}, {'not written' if side.position is None else f'written at {side.position}'}"


def writer_words(log: Explanation) -> list[str]:
    """Which generation wrote the log, or by which it is judged where several can have."""
    if log.written_by is None:
        return []
    word = "written by" if log.written_by_sure else "judged by"
    return [f"{word} {log.written_by}: {log.written_by_why}"]


def _generations(rows: Sequence[GenerationRow]) -> Table:
    table = Table.grid(padding=(0, 2))
    for _ in range(4):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(*(Text(word, style="dim") for word in ("", "explains", "flips", "reads", "cannot explain")))
    for row in rows:
        reads, left = reads_words(row), left_words(row)
        table.add_row(row.engine, f"{row.explained}/{row.creates}", str(row.flips), reads, left)
    return table


def reads_words(row: GenerationRow) -> str:
    """How far a generation reads the log."""
    if row.diverges_at is not None:
        return f"to {row.clean_through}" if row.clean_through else "nothing"
    return "all of it" if row.cut is None else f"to {row.clean_through}, then cut"


def left_words(row: GenerationRow) -> str:
    """The positions that a generation cannot explain, shortened."""
    shown = ", ".join(map(str, row.unexplained[:MOST_POSITIONS]))
    more = len(row.unexplained) - MOST_POSITIONS
    return f"{shown} and {more} more" if more > 0 else shown


def _section(title: str, lines: Sequence[RenderableType]) -> Iterator[RenderableType]:
    yield Text()
    yield _indented(Text(title, style="bold"), 2)
    for line in lines:
        yield _indented(line, 4)


def _grid(columns: int) -> Table:
    grid = Table.grid(padding=(0, 2))
    for _ in range(columns):
        grid.add_column(overflow="fold")
    return grid


def _indented(content: RenderableType, columns: int) -> Padding:
    return Padding(content, (0, 0, 0, columns))
