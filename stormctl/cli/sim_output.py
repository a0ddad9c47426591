"""What the commands of ``stormctl sim`` show, and what they exit with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stormctl.cli.exit_code import combine
from stormctl.cli.options import Format, PictureFormat
from stormctl.cli.output import emit, width
from stormctl.cli.run_output import check_engines, codes, console_for_results, show
from stormctl.cli.sim_schedules import Shown, model_named, put, script_at, write
from stormctl.errors import (
    EXIT_CLEAN,
    EXIT_INTERRUPTED,
    EXIT_UNKNOWN,
    EXIT_VIOLATIONS,
    UsageError,
    suggest,
)
from stormctl.storm.attempt import Attempt
from stormctl.storm.events import AttemptLanded
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import Plan

if TYPE_CHECKING:
    from stormctl.sim.book import Entry
    from stormctl.sim.explore import Budget, Violation
    from stormctl.sim.kernel import Model
    from stormctl.sim.library import Hunt
    from stormctl.sim.show import Picture
    from stormctl.sim.strategies.base import Strategy

#: schedules that a proof may take here: the real runtime plays some hundred in a second
MOST_PROVED = 2_000
_CODES = {"pass": EXIT_CLEAN, "violation": EXIT_VIOLATIONS, "vacuous": EXIT_UNKNOWN, "inconclusive": EXIT_UNKNOWN}


@dataclass(frozen=True, slots=True)
class Search:
    """How schedules are looked for: see the options of ``stormctl sim run``."""

    strategy: str | None
    seeds: int
    budget: str | None
    seed: int
    jobs: int
    dask: str | None = None
    script: Path | None = None
    shrinks: bool = True
    proof: int = MOST_PROVED


def tell_all() -> None:
    """Print what there is, by name."""
    from stormctl.report.sim_text import list_text

    emit("\n".join(list_text(width())))


def book(worlds: Sequence[str], generation: str | None, how: Shown, *, report_only: bool) -> int:
    """Play every scenario of the book in each world; the exit code."""
    from stormctl.report.sim_text import book_data, book_text
    from stormctl.sim.book import BOOK, WORLDS, play_entry
    from stormctl.sim.show import picture

    chosen = tuple(worlds) or WORLDS
    played = {name: [play_entry(entry, name, generation_name=generation) for entry in BOOK] for name in chosen}
    red = [(name, one) for name, all in played.items() for one in all if not one.passed]
    if how.format is PictureFormat.TABLE:
        write("\n".join(book_text(played, width())), how)
    elif how.format is PictureFormat.JSON:
        write(json.dumps(book_data(played), indent=2, ensure_ascii=False), how)
    else:
        drawn = [picture(one.entry.system(name, generation_name=generation), one.run) for name, one in red]
        put(drawn, how, " ".join(f"{name}: {sum(at == name for at, _ in red)} red of {len(BOOK)}." for name in chosen))
    return combine([EXIT_VIOLATIONS if red else EXIT_CLEAN], report_only=report_only)


def search(
    scenario: str, worlds: Sequence[str], generation: str | None, how: Search, shown: Shown, *, report_only: bool
) -> int:
    """Search the schedules of a scenario in each world; the exit code."""
    from stormctl.report.sim_text import exploration_data, exploration_lines
    from stormctl.sim.book import WORLDS
    from stormctl.sim.explore import explore
    from stormctl.sim.models.fork import SMALL
    from stormctl.sim.show import lines_of
    from stormctl.sim.show.page import schedule_data
    from stormctl.sim.tape import ScriptMismatch

    if how.dask is not None and how.jobs > 1:
        raise UsageError("--jobs and --dask are two ways to share the work", remedy="Give one of them.")
    entry = None if scenario in SMALL else entry_of(scenario)
    pictures, told, codes = [], [], []
    for name in ("",) if entry is None else tuple(worlds) or WORLDS:
        model = model_named(scenario) if entry is None else entry.search(name, generation)
        strategy, budget = _chosen(how, entry)
        try:
            found = explore(model, strategy, budget=budget, seed=how.seed, jobs=how.jobs, dask=how.dask)
        except ScriptMismatch as problem:
            raise UsageError(f"{model.name}: {problem}", remedy=problem.remedy) from None
        first = sorted(found.violations.values(), key=lambda one: one.run)[:1]
        drawn = [_small(model, violation, how) for violation in first]
        if shown.format is PictureFormat.TABLE and shown.out is None:
            emit("\n".join(exploration_lines(model, found)))
            for one in drawn:
                put([one], shown)
        pictures += drawn
        told.append((model, found))
        codes.append(_CODES[found.verdict])
    if shown.format is PictureFormat.JSON:
        data = {
            "schema": "stormctl.search/1",
            "searches": [exploration_data(model, found) for model, found in told],
            "schedules": [schedule_data(one) for one in pictures],
        }
        write(json.dumps(data, indent=2, ensure_ascii=False), shown)
    elif shown.format is PictureFormat.HTML:
        put(pictures, shown, " ".join(next(iter(exploration_lines(*one))) + "." for one in told))
    elif shown.out is not None:
        lines = [line for one in told for line in exploration_lines(*one)]
        write("\n".join([*lines, *(line for one in pictures for line in ["", *lines_of(one, width=width())])]), shown)
    return combine(codes, report_only=report_only)


def _chosen(how: Search, entry: Entry | None) -> tuple[str | Strategy, Budget]:
    """The strategy and the budget: a script pins a part of each schedule and leaves the rest to chance.

    ``scripted`` without a script plays the scenario's own. Left open, it is what finds soonest; of a
    small model all schedules can be tried.
    """
    from stormctl.sim.explore import Budget
    from stormctl.sim.strategies.registry import SOONEST
    from stormctl.sim.strategies.scripted import Scripted
    from stormctl.storm.planfile import parse_duration

    seconds = None if how.budget is None else parse_duration(how.budget, "--budget") / 1000
    if how.script is None and how.strategy != "scripted":
        return how.strategy or ("portfolio" if entry is None else SOONEST), Budget(how.seeds, seconds)
    script = ("" if entry is None else entry.script) if how.script is None else script_at(how.script)
    return Scripted([script], times=how.seeds, seed=how.seed), Budget(how.seeds, seconds)


def _small(model: Model, violation: Violation, how: Search) -> Picture:
    """The failure, made small and proved minimal where that is wanted."""
    from stormctl.sim.kernel import TapeChooser, play
    from stormctl.sim.show import picture
    from stormctl.sim.shrink import shrink

    if not how.shrinks:
        return picture(model, play(model, TapeChooser(violation.tape)), signature=violation.signature)
    small = shrink(model, violation.tape, violation.signature, most_checked=how.proof)
    run = play(small.model, TapeChooser(small.tape))
    return picture(small.model, run, proof=str(small.certificate), signature=violation.signature)


def library(names: Sequence[str], seeds: int, seed: int, form: Format, *, report_only: bool) -> int:
    """Look for the bugs of the library, and tell how soon each was found; the exit code."""
    from stormctl.report.sim_text import hunt_data, hunt_head, hunt_lines
    from stormctl.sim.library import hunts

    table = form is Format.TABLE
    done: list[Hunt] = []
    for found in hunts(names, seeds=seeds, seed=seed):
        if table and not done:
            emit(hunt_head(seeds))
        if table:
            emit("\n".join(hunt_lines(found)))
        done.append(found)
    if not table:
        data = {"schema": "stormctl.library/1", "bugs": [hunt_data(one) for one in done]}
        emit(json.dumps(data, indent=2, ensure_ascii=False))
    return combine([EXIT_CLEAN if all(one.good for one in done) else EXIT_VIOLATIONS], report_only=report_only)


def entry_of(name: str) -> Entry:
    """The scenario of that name; UsageError with the likeliest."""
    from stormctl.sim.book import ENTRIES

    if name not in ENTRIES:
        raise UsageError(f"there is no scenario {name!r}", remedy=suggest(name, ENTRIES))
    return ENTRIES[name]


def storm(plan: Plan, root: Path, jobs: int, *, report_only: bool) -> int:
    """Run the storm in virtual time, sweep its logs, show and keep the results; the exit code."""
    from stormctl.report.live import follow
    from stormctl.storm.after import sweep_storm
    from stormctl.storm.virtually import check, play, target_of

    check(plan)
    check_engines(plan)
    console = console_for_results()
    handler = follow(console)
    folder = StormFolder.create(plan, root)
    attempts: list[Attempt] = []
    try:
        with closing(play(plan, folder, jobs=jobs)) as events:
            for event in events:
                if isinstance(event, AttemptLanded):
                    attempts.append(event.attempt)
                handler.handle(event)
        with closing(sweep_storm(plan, folder, attempts, target_of(plan))) as swept:
            for told in swept:
                handler.handle(told)
    except KeyboardInterrupt:
        handler.close()
        show(folder.path, console, pictures=False)
        emit("interrupted: what landed is kept in the artefact folder")
        return EXIT_INTERRUPTED
    finally:
        handler.close()
    return combine(codes(show(folder.path, console, pictures=True)), report_only=report_only)
