"""An explanation as GitHub's markdown, for an issue, a comment or a step summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stormctl.explain import Explanation
from stormctl.explain.explanation import BindingPair, GenerationRow, Named
from stormctl.explain.words import pulls
from stormctl.readers import Unreadable
from stormctl.report.explain_text import (
    binding_rows,
    binding_words,
    left_words,
    reader,
    reads_words,
    short_reader,
    writer_words,
)
from stormctl.report.harmless import unheard
from stormctl.sweeps.witness import clean

_ESCAPED = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|"})


def explain_markdown(logs: Sequence[Explanation], unreadable: Sequence[Unreadable] = ()) -> str:
    """The explanations as one markdown text."""
    blocks = [block for log in logs for block in _log(log)]
    blocks += [f"## {_text(one.source)}\n\nUnreadable: {_text(one.text)}" for one in unreadable]
    return "\n\n".join(blocks or ["No log was given."])


def _log(log: Explanation) -> Iterator[str]:
    yield f"## {_text(log.source)}"
    workload = f", workload {_text(log.workload)}" if log.workload else ""
    yield f"**{log.answer}**: {_text(log.headline)}"
    yield f"Run `{clean(log.run_id).replace('`', '')}`, {log.events} events{workload}."
    if log.named is not None:
        yield from _class(log.named)
    write = log.guilty
    if write is not None:
        rank = "" if write.rank is None else f", rank {write.rank}"
        whose = "no view of the log explains it"
        if write.writer is not None:
            whose = f"by {reader(write.writer)}; its view ended {write.staleness} before it"
        yield f"### The guilty write\n\nPosition {write.position}{rank}: " + _text(
            f"{write.label}, written {write.written_as}, {whose}"
        )
    if log.story:
        yield "### What happened\n\n" + "\n".join(f"* **{beat.word}** {_text(beat.text)}" for beat in log.story)
    if log.bindings:
        yield "### The two bindings\n\n" + _bindings(log.bindings)
    if log.witness:
        yield "### Witness\n\n" + _bullets(log.witness)
    if log.generations:
        yield "\n\n".join(["### Generations", *map(_text, writer_words(log))])
        yield _generations(log.generations)
    if log.today is not None:
        yield f"### Would today's engine still do it\n\n**{log.today.would}**: {_text(log.today.text)}"
    if log.findings and log.named is None:
        yield "### What the sweeps found\n\n" + _bullets(log.findings)
    if log.also:
        yield "### It also shows\n\n" + _bullets(
            [f"{one.title}: {one.evidence[0]}" if one.evidence else one.title for one in log.also]
        )
    if log.open:
        yield "### Open\n\n" + _bullets(log.open)
    if log.left_out:
        yield "### Left out\n\n" + _bullets(log.left_out)


def _class(named: Named) -> Iterator[str]:
    how = "shown" if named.weight == "shown" else "it fits; others would look alike"
    yield f"### {_text(named.title)}\n\n{_text(named.group)} ({how}): {_text(named.mechanism)}."
    closed = f" ({pulls(named.closed_by)})" if named.closed_by else ""
    yield f"Closed upstream{closed}: {_text(named.closed)}."
    yield "Evidence:\n\n" + _bullets(named.evidence)


def _bindings(pairs: Sequence[BindingPair]) -> str:
    names = list(dict.fromkeys(side.writer.name for pair in pairs for side in (pair.one, pair.other)))
    views = {side.writer.name: side.writer for pair in reversed(pairs) for side in (pair.other, pair.one)}
    head = ["rank", *(short_reader(views[name]) for name in names)]
    rows = [
        [str(rank), *(binding_words(cells[name]) if name in cells else "" for name in names)]
        for rank, cells in binding_rows(pairs).items()
    ]
    return _table(head, rows)


def _generations(rows: Sequence[GenerationRow]) -> str:
    head = ["generation", "explains", "flips", "reads", "cannot explain"]
    return _table(
        head,
        [
            [row.engine, f"{row.explained}/{row.creates}", str(row.flips), reads_words(row), left_words(row)]
            for row in rows
        ],
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(_text(cell) if line is not lines[1] else cell for cell in line) + " |" for line in lines
    )


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"* {_text(line)}" for line in lines)


def _text(text: str) -> str:
    """Text of a log as it is, and not as markup."""
    return unheard(clean(text).translate(_ESCAPED))
