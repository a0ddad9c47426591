"""What the simulator found, for a terminal: the book, a search, one schedule."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from stormctl.report.named import named
from stormctl.sim.book import BOOK, LATER_ONES, Played
from stormctl.sim.explore import Exploration
from stormctl.sim.kernel import Model
from stormctl.sim.library import BUGS, Hunt
from stormctl.sim.models.fork import SMALL
from stormctl.sim.oracles import ORACLES
from stormctl.sim.real.worlds import WORLDS
from stormctl.sim.strategies.registry import STRATEGIES


def list_text(width: int) -> Iterator[str]:
    """Scenarios, worlds, strategies and oracles, each with a line."""
    yield from named("scenarios", {entry.id: entry.title for entry in (*BOOK, *LATER_ONES)}, width)
    small = {
        name: f"a small model of an event log that forks, places given by {world}" for name, world in SMALL.items()
    }
    yield from named("small models", small, width)
    yield from named("bugs", {name: one.title for name, one in BUGS.items()}, width)
    yield from named("worlds", {name: world.condition.leaves for name, world in WORLDS.items()}, width)
    own = {"scripted": "the scenario's own script, or that of --script; what it leaves open at random"}
    yield from named("strategies", {name: said for name, (said, _) in STRATEGIES.items()} | own, width)
    yield from named("oracles", {name: (one.__doc__ or "").splitlines()[0] for name, one in ORACLES.items()}, width)


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


def hunt_head(seeds: int) -> str:
    """What stands above the lines of :func:`hunt_lines`."""
    first = f"{seeds} seed{'' if seeds == 1 else 's'} each"
    return f"{first:<25}{'strategy':<10}{'schedules p50  p95':>18}{'seconds p50   p95':>19}  missed"


def hunt_lines(found: Hunt) -> Iterator[str]:
    """How soon a bug was found, in one line, and what is not as it should be."""
    runs, seconds = found.schedules, found.seconds
    counts = f"{runs.p50:>13.0f}{runs.p95:>5.0f}{seconds.p50:>13.2f}{seconds.p95:>6.2f}" if runs.n else f"{'-':>37}"
    yield f"{found.bug.name:<25}{found.bug.strategy:<10}{counts}  {found.missed or '':>6}".rstrip()
    if found.twin.verdict != "pass":
        wrong = ", ".join(found.twin.violations) or found.twin.verdict
        yield f"  its repaired twin is not clean: {wrong}"


def hunt_data(found: Hunt) -> dict[str, Any]:
    """The same as data for JSON."""
    one = found.bug
    return {
        "bug": one.name,
        "title": one.title,
        "world": one.world,
        "generation": one.generation,
        "repaired": {"world": one.repaired_world, "generation": one.repaired_generation},
        "strategy": one.strategy,
        "seeds": found.seeds,
        "missed": found.missed,
        "schedules": asdict(found.schedules) if found.schedules.n else None,
        "seconds": asdict(found.seconds) if found.seconds.n else None,
        "twin": {"verdict": found.twin.verdict, "schedules": found.twin.runs, "found": list(found.twin.violations)},
    }


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


def exploration_data(model: Model, found: Exploration) -> dict[str, Any]:
    """The same as data for JSON."""
    return {
        "model": model.name,
        "digest": model.digest,
        "verdict": found.verdict,
        "strategy": found.strategy,
        "seed": found.seed,
        "schedules": found.runs,
        "classes": found.classes,
        "exhausted": found.exhausted,
        "proved": found.proved,
        "stopped": found.stopped,
        "violations": [
            {"signature": one.signature, "oracle": one.oracle, "text": one.text, "first": one.run, "count": one.count}
            for one in found.violations.values()
        ],
    }


def book_data(played: Mapping[str, Sequence[Played]]) -> dict[str, Any]:
    """The book as data for JSON."""
    rows = {
        world: [
            {
                "scenario": one.entry.id,
                "passed": one.passed,
                "problems": [{"signature": problem.signature, "text": problem.text} for problem in one.problems],
            }
            for one in all
        ]
        for world, all in played.items()
    }
    return {"schema": "stormctl.book/1", "worlds": rows}
