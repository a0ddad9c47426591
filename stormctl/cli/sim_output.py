"""What the commands of ``stormctl sim`` show, and what they exit with."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stormctl.cli.exit_code import combine
from stormctl.cli.output import emit, width
from stormctl.cli.run_output import check_engines, codes, console_for_results, show
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
    from stormctl.sim.explore import Violation
    from stormctl.sim.kernel import Model

#: schedules that a proof may take here: the real runtime plays some hundred in a second
MOST_PROVED = 2_000
_CODES = {"pass": EXIT_CLEAN, "violation": EXIT_VIOLATIONS, "vacuous": EXIT_UNKNOWN, "inconclusive": EXIT_UNKNOWN}


@dataclass(frozen=True, slots=True)
class Search:
    """How schedules are looked for: see the options of ``stormctl sim run``."""

    strategy: str
    seeds: int
    budget: str | None
    seed: int
    jobs: int


def tell_all() -> None:
    """Print what there is, by name."""
    from stormctl.report.sim_text import list_text

    emit("\n".join(list_text(width())))


def book(worlds: Sequence[str], generation: str | None, *, report_only: bool) -> int:
    """Play every scenario of the book in each world; the exit code."""
    from stormctl.report.sim_text import book_text
    from stormctl.sim.book import BOOK, WORLDS, play_entry

    chosen = tuple(worlds) or WORLDS
    played = {name: [play_entry(entry, name, generation_name=generation) for entry in BOOK] for name in chosen}
    emit("\n".join(book_text(played, width())))
    red = any(not one.passed for all in played.values() for one in all)
    return combine([EXIT_VIOLATIONS if red else EXIT_CLEAN], report_only=report_only)


def search(scenario: str, worlds: Sequence[str], generation: str | None, how: Search, *, report_only: bool) -> int:
    """Search the schedules of a scenario in each world; the exit code."""
    from stormctl.report.sim_text import exploration_lines
    from stormctl.sim.book import WORLDS
    from stormctl.sim.explore import Budget, explore
    from stormctl.storm.planfile import parse_duration

    entry = entry_of(scenario)
    seconds = None if how.budget is None else parse_duration(how.budget, "--budget") / 1000
    codes = []
    for name in tuple(worlds) or WORLDS:
        model = entry.search(name, generation)
        found = explore(model, how.strategy, budget=Budget(how.seeds, seconds), seed=how.seed, jobs=how.jobs)
        emit("\n".join(exploration_lines(model, found)))
        for violation in sorted(found.violations.values(), key=lambda one: one.run)[:1]:
            emit("\n".join(_small(model, violation)))
        codes.append(_CODES[found.verdict])
    return combine(codes, report_only=report_only)


def _small(model: Model, violation: Violation) -> list[str]:
    """The failure, made small, proved minimal and drawn."""
    from stormctl.report.sim_text import schedule_lines
    from stormctl.sim.shrink import shrink

    small = shrink(model, violation.tape, violation.signature, most_checked=MOST_PROVED)
    return schedule_lines(small.model, small.tape, violation.signature, str(small.certificate), width())


def replay(text: str, *, report_only: bool) -> int:
    """Play a schedule again; the exit code."""
    from stormctl.report.sim_text import schedule_lines
    from stormctl.sim.kernel import TapeChooser, play
    from stormctl.sim.token import Token

    token = Token.parse(text)
    scenario, _, rest = token.model.partition("@")
    world, _, generation = rest.partition("/")
    model = entry_of(scenario).search(world, generation or None)
    if not model.digest.startswith(token.digest):
        raise UsageError(
            f"the token is for {token.model} as it was before it changed",
            remedy="Search again with `stormctl sim run`, or write the schedule down as a script.",
        )
    run = play(model, TapeChooser(token.tape))
    signature = run.problems[0].signature if run.problems else ""
    emit("\n".join(schedule_lines(model, token.tape, signature, "", width())))
    return combine([EXIT_VIOLATIONS if run.problems else EXIT_CLEAN], report_only=report_only)


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
