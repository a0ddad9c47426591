"""What the simulator found, for a terminal: the book, a search, one schedule."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from stormctl.sim.book import BOOK, LATER_ONES, Played
from stormctl.sim.explore import Exploration
from stormctl.sim.kernel import Model, TapeChooser, play
from stormctl.sim.oracles import ORACLES
from stormctl.sim.real.worlds import WORLDS
from stormctl.sim.show import lines_of, picture
from stormctl.sim.strategies.registry import STRATEGIES


def list_text(width: int) -> Iterator[str]:
    """Scenarios, worlds, strategies and oracles, each with a line."""
    yield from _section("scenarios", {entry.id: entry.title for entry in (*BOOK, *LATER_ONES)}, width)
    yield from _section("worlds", {name: world.condition.leaves for name, world in WORLDS.items()}, width)
    yield from _section("strategies", {name: said for name, (said, _) in STRATEGIES.items()}, width)
    yield from _section("oracles", {name: (one.__doc__ or "").splitlines()[0] for name, one in ORACLES.items()}, width)


def _section(title: str, rows: Mapping[str, str], width: int) -> Iterator[str]:
    yield title
    indent = max(map(len, rows)) + 4
    for name, text in rows.items():
        first, *rest = textwrap.wrap(text, max(20, width - indent)) or [""]
        yield f"  {name:<{indent - 4}}  {first}".rstrip()
        yield from (" " * indent + line for line in rest)
    yield ""


def book_text(played: Mapping[str, Sequence[Played]], width: int) -> Iterator[str]:
    """Each scenario with its outcome in each world, what is red below, and the counts."""
    worlds = list(played)
    entries = [one.entry for one in next(iter(played.values()))]
    indent = max(len(entry.id) for entry in entries) + 2
    yield " " * indent + "  ".join(worlds)
    for number, entry in enumerate(entries):
        marks = ("ok" if played[world][number].passed else "RED" for world in worlds)
        cells = "  ".join(f"{mark:<{len(world)}}" for mark, world in zip(marks, worlds, strict=True))
        yield f"{entry.id:<{indent}}{cells}".rstrip()
    yield ""
    for world in worlds:
        red = [one for one in played[world] if not one.passed]
        yield f"{world}: {len(red)} red of {len(played[world])}"
        for one in red:
            text = f"{one.entry.id}: {one.problems[0].text}" if one.problems else f"{one.entry.id}: it goes on for ever"
            yield from textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ")


def exploration_lines(model: Model, found: Exploration) -> Iterator[str]:
    """How many schedules were tried, and what was found."""
    tried = f"{found.runs:,} schedules of {found.classes:,} classes by {found.strategy}, seed {found.seed}"
    yield f"{found.verdict:<9} {model.name}: {tried}"
    if found.exhausted:
        yield "          every schedule was tried"
    elif found.proved is not None and found.proved >= 0:
        yield f"          every schedule with <= {found.proved} preemptions and faults was tried"
    if found.verdict == "vacuous":
        yield "          no schedule had a choice: this says nothing"
    for violation in found.violations.values():
        share = f"first by schedule {violation.run}, by {violation.count} in all"
        yield f"          {violation.signature}: {share}"


def schedule_lines(model: Model, tape: Sequence[int], signature: str, proof: str, width: int) -> list[str]:
    """One schedule: its lanes, what raced, what is proved, and how to play it again. 25 lines at most."""
    run = play(model, TapeChooser(tape))
    return ["", *lines_of(picture(model, run, proof=proof, signature=signature), width=width)]
