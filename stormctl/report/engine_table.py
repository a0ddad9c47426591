"""The engines for a terminal, and as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stormctl.engine.generations import NEWEST
from stormctl.engine.strategies import Generation

MOST_COLUMNS = 100
_LABEL = 10


def engine_text(engines: Sequence[Generation], *, width: int = 80, strategies: bool = False) -> str:
    """Each engine, oldest first, with what it fixed and what it still broke; with ``strategies`` every answer that it
    gives. The text fits the width and loses nothing without colour."""
    sink = io.StringIO()
    console = Console(file=sink, width=min(width, MOST_COLUMNS), highlight=False)
    console.print(Group(*(_block(one, strategies=strategies) for one in engines)))
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines())


def engine_json(engines: Sequence[Generation]) -> str:
    """The engines with all their strategies. Schema ``stormctl.engines/1``."""
    body = {
        "schema": "stormctl.engines/1",
        "engines": [
            {
                "name": one.name,
                "upstream": list(one.upstream),
                "newest": one == NEWEST,
                "fixed": one.fixed,
                "leaves": one.leaves,
                "strategies": one.strategies(),
            }
            for one in engines
        ],
    }
    return json.dumps(body, indent=2)


def _block(one: Generation, *, strategies: bool) -> RenderableType:
    name = Text.assemble((one.name, "bold"), ("  newest" if one == NEWEST else "", "dim"))
    return Padding(Group(name, *(_hanging(*line) for line in _lines(one, strategies=strategies))), (0, 0, 1, 0))


def _lines(one: Generation, *, strategies: bool) -> Iterator[tuple[str, str]]:
    if one.upstream:
        yield "upstream", " ".join(f"#{number}" for number in one.upstream)
    yield "fixed", one.fixed
    yield "leaves", one.leaves
    if strategies:
        words = [f"{knob}={answer}" for knob, answer in one.strategies().items()]
        yield "knobs", ", ".join(words)


def _hanging(label: str, text: str) -> RenderableType:
    """The text with its label in a column of its own, so that what wraps stays beside it."""
    table = Table.grid(padding=0)
    table.add_column(width=_LABEL, no_wrap=True)
    table.add_column(ratio=1)
    table.add_row(Text(label, style="dim"), Text(text))
    return Padding(table, (0, 0, 0, 2))
