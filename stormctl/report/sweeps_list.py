"""The sweeps for a terminal, and as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stormctl.sweeps.finding import Severity
from stormctl.sweeps.listing import Listed
from stormctl.sweeps.profiles import LINES, PROFILES

MOST_COLUMNS = 100
_STYLES = {Severity.FATAL: "red", Severity.INERT: "yellow", Severity.LEGAL: "green"}


def sweeps_text(sweeps: Sequence[Listed], *, width: int = 80, kinds: bool = False) -> str:
    """Each sweep with its question and what it needs; with ``kinds`` also its findings and how bad each is by line of
    releases. The text fits the width and loses nothing without colour."""
    sink = io.StringIO()
    console = Console(file=sink, width=min(width, MOST_COLUMNS), highlight=False)
    console.print(Group(*(_block(one, kinds=kinds) for one in sweeps)))
    return "\n".join(line.rstrip() for line in sink.getvalue().splitlines())


def sweeps_json(sweeps: Sequence[Listed]) -> str:
    """The sweeps with the severity of every kind of finding under every profile. Schema ``stormctl.sweeps/1``."""
    body = {
        "schema": "stormctl.sweeps/1",
        "profiles": [{"name": one.name, "summary": one.summary} for one in PROFILES.values()],
        "sweeps": [
            {
                "name": one.name,
                "question": one.question,
                "needs": list(one.needs),
                "without": "unknown" if one.always else "left out",
                "kinds": {
                    kind: {profile: str(severity) for profile, severity in found.items()}
                    for kind, found in one.kinds.items()
                },
            }
            for one in sweeps
        ],
    }
    return json.dumps(body, indent=2)


def _block(one: Listed, *, kinds: bool) -> RenderableType:
    parts: list[RenderableType] = [Text(one.name, style="bold"), Padding(Text(one.question), (0, 0, 0, 2))]
    if one.needs:
        tail = "" if one.always else " (left out without)"
        parts.append(Padding(Text(f"needs {', '.join(one.needs)}{tail}", style="dim"), (0, 0, 0, 2)))
    if kinds:
        parts += [Padding(_severities(one), (0, 0, 0, 2)), *(Padding(Text(note), (0, 0, 0, 2)) for note in _notes(one))]
    else:
        parts.append(Padding(Text(f"finds {', '.join(one.kinds)}", style="dim"), (0, 0, 0, 2)))
    return Padding(Group(*parts), (0, 0, 1, 0))


def _severities(one: Listed) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    for line in LINES:
        table.add_column(line.name.removeprefix("workflow"), no_wrap=True)
    for kind, found in one.kinds.items():
        table.add_row(kind, *(Text(found[line.name], style=_STYLES[found[line.name]]) for line in LINES))
    return table


def _notes(one: Listed) -> Iterator[str]:
    """Where a kind of store is read otherwise than its line of releases."""
    for name, profile in PROFILES.items():
        odd = [(kind, found[name]) for kind, found in one.kinds.items() if found[name] is not found[profile.line]]
        for kind, severity in odd:
            yield f"{name}: {kind} is {severity}"
