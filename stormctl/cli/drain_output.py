"""What the commands of ``stormctl drain`` show, and what they exit with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stormctl.cli.exit_code import combine
from stormctl.cli.output import emit, width
from stormctl.errors import EXIT_CLEAN, EXIT_UNKNOWN, EXIT_VIOLATIONS, UsageError

if TYPE_CHECKING:
    from stormctl.drain.explored import Searched
    from stormctl.sim.kernel import Run
    from stormctl.sim.shrink import Shrunk

#: schedules that are played to make one small, and to prove it minimal
_MOST_TRIED, _MOST_CHECKED = 400, 0


@dataclass(frozen=True, slots=True)
class Search:
    """How schedules are looked for: see the options of ``stormctl drain explore``."""

    situations: tuple[str, ...]
    strategy: str
    seeds: int
    budget: str
    seed: int
    jobs: int
    shrink: bool


def tell_all() -> None:
    """Print what there is, by name."""
    from stormctl.report.drain_text import presets_text

    emit("\n".join(presets_text(width())))


def table(*, report_only: bool) -> int:
    """Print the golden table; the exit code."""
    from stormctl.drain.table import ROWS, agrees, measure
    from stormctl.report.drain_text import table_text

    rows = [(row, measure(row)) for row in ROWS]
    emit("\n".join(table_text(rows)))
    red = any(not agrees(row, found) for row, found in rows)
    return combine([EXIT_VIOLATIONS if red else EXIT_CLEAN], report_only=report_only)


def run(preset: str, injections: Sequence[str], until: int, trace: Path | None, *, report_only: bool) -> int:
    """Run one loop; the exit code."""
    from stormctl.drain.explored import judge
    from stormctl.drain.inject import parse_all
    from stormctl.drain.knobs import preset as knobs_of
    from stormctl.drain.model import DrainModel
    from stormctl.drain.setup import scripted
    from stormctl.drain.table import ADMITTED
    from stormctl.sim.kernel import TapeChooser, play

    knobs = knobs_of(preset)
    own = any(one.place == "start" and one.action == "admit" for one in parse_all(*injections))
    texts = tuple(injections) if own else (*ADMITTED, *injections)
    played = play(DrainModel(scripted(preset, knobs, *texts, until=until, tenures=2), judge), TapeChooser(), most=5_000)
    return _told(preset, played, trace, report_only=report_only)


def replay(text: str, trace: Path | None, *, report_only: bool) -> int:
    """Play a schedule of a search again; the exit code."""
    from stormctl.drain.explored import MOST_STEPS, model_named
    from stormctl.sim.kernel import TapeChooser, play
    from stormctl.sim.token import Token

    token = Token.parse(text)
    model = model_named(token.model)
    if not model.digest.startswith(token.digest):
        raise UsageError(
            f"the token is for {token.model} as it was before it changed",
            remedy="Search again with `stormctl drain explore`.",
        )
    played = play(model, TapeChooser(token.tape), most=MOST_STEPS)
    return _told(model.setup.name, played, trace, report_only=report_only)


def _told(title: str, played: Run, trace: Path | None, *, report_only: bool) -> int:
    from stormctl.drain.explored import residual
    from stormctl.drain.model import Play
    from stormctl.drain.scenarios import told
    from stormctl.report.drain_text import run_text
    from stormctl.sweeps.drain.ndjson import write

    assert isinstance(played.instance, Play)
    emit("\n".join(run_text(title, played, width())))
    codes = [EXIT_VIOLATIONS for one in told(played) if not residual(one.signature)]
    if played.cut:
        emit("it goes on for ever: it was given up")
        codes.append(EXIT_UNKNOWN)
    if trace is not None:
        write(played.instance.trace(), trace)
        emit(f"trace  {trace}")
    return combine(codes, report_only=report_only)


def explore(presets: Sequence[str], how: Search, *, report_only: bool) -> int:
    """Search the interleavings of each loop; the exit code."""
    from stormctl.drain.explored import search
    from stormctl.drain.knobs import GENERATIONS
    from stormctl.drain.knobs import preset as knobs_of
    from stormctl.report.drain_text import search_text
    from stormctl.sim.explore import Budget
    from stormctl.storm.planfile import parse_duration

    budget = Budget(how.seeds, parse_duration(how.budget, "--budget") / 1000)
    names = tuple(presets) or tuple(GENERATIONS)
    for name in names:
        knobs_of(name)  # a name that is none ends the command before anything is searched
    codes = []
    for name in names:
        found = search(name, how.situations, budget=budget, strategy=how.strategy, seed=how.seed, jobs=how.jobs)
        emit("\n".join(search_text(found, _small(found) if how.shrink else {}, width())))
        codes.append(EXIT_VIOLATIONS if found.faults else EXIT_UNKNOWN if found.exploration.cut else EXIT_CLEAN)
    return combine(codes, report_only=report_only)


def _small(found: Searched) -> dict[str, Shrunk]:
    """The first schedule of each class, made small."""
    from stormctl.drain.explored import MOST_STEPS
    from stormctl.sim.shrink import shrink

    return {
        one.signature: shrink(
            found.models[one.model],
            one.tape,
            one.signature,
            most=_MOST_TRIED,
            most_checked=_MOST_CHECKED,
            most_steps=MOST_STEPS,
            models=False,
        )
        for one in found.exploration.violations.values()
    }


def show(names: Sequence[str], *, report_only: bool) -> int:
    """Show failures step by step; the exit code: violations where one is not closed by what closes it."""
    from stormctl.drain.scenarios import SCENARIOS, scenario, told
    from stormctl.report.drain_text import scenario_text

    codes = []
    for one in [scenario(name) for name in names] or SCENARIOS:
        failing, passing = one.play(one.fails), one.play(one.passes)
        emit("\n".join((*scenario_text(one, failing, passing, width()), "")))
        shown = {problem.signature for problem in told(failing)} >= set(one.shows)
        closed = not {problem.signature for problem in told(passing)} & set(one.shows)
        codes.append(EXIT_CLEAN if shown and closed else EXIT_VIOLATIONS)
    return combine(codes, report_only=report_only)


def latency(events: int, seed: int, *, steady: bool) -> None:
    """Print how long events wait under each loop."""
    from stormctl.drain.latency import compare
    from stormctl.report.drain_text import latency_text

    emit("\n".join(latency_text(compare(events=events, seed=seed, steady=steady))))
