"""What is shown of a drain at the terminal: the golden table, a run, a scenario, a search, a histogram of latencies."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from stormctl.drain.counters import Counters
from stormctl.drain.explored import SITUATIONS, Searched, residual
from stormctl.drain.knobs import SUMMARIES
from stormctl.drain.latency import EDGES, Latencies
from stormctl.drain.model import Play
from stormctl.drain.picture import lanes
from stormctl.drain.scenarios import SCENARIOS, Scenario, told
from stormctl.drain.space import WaveSeen
from stormctl.drain.table import Measured, Row, agrees
from stormctl.report.named import named
from stormctl.sim.kernel import Problem, Run
from stormctl.sim.show.lanes import drawn
from stormctl.sim.shrink import Shrunk
from stormctl.sim.token import Token
from stormctl.sweeps.drain.records import Counters as Told
from stormctl.sweeps.drain.records import DrainTrace, Park, PassBegin, PassEnd, Rest

#: lines of a run's picture, and of what a scenario shows of its run
MOST_LANES, MOST_SHOWN = 30, 10
#: letters of a column of the histogram
_WIDE = 6
_SILENT = (PassBegin, PassEnd, Rest, Told)


def presets_text(width: int) -> Iterator[str]:
    """The loops, the situations and the scenarios by name."""
    yield from named("loops", SUMMARIES, width)
    yield from named("scenarios", {one.id: one.title for one in SCENARIOS}, width)
    yield "situations of a search"
    yield from textwrap.wrap(", ".join(SITUATIONS), width, initial_indent="  ", subsequent_indent="  ")


# -- the golden table ------------------------------------------------------------------------------------------------


def table_text(rows: Sequence[tuple[Row, Measured]]) -> Iterator[str]:
    """Each row: what ours does, and whether that is what is published."""
    yield "W = 1, then A@2 on a, B@3 on b, a second A. Waves: (W,[log],[pending under W])."
    yield "Counters before the timer: barriers/recoveries/deferrals/timers armed/fired."
    yield ""
    for row, found in rows:
        same = agrees(row, found)
        yield f"{'ok ' if same else 'RED'} {row.name}"
        before = "the pass crashes" if found.crashed else found.before or "no wave"
        yield f"      {before}   {found.counters}"
        for label, said, seen in (
            ("after", row.after, found.after or "no wave"),
            ("called", row.called, found.called or "nobody"),
        ):
            if said is not None:
                yield f"      {label} {'the timer ' if label == 'after' else ''}{seen}"
        for when, more in (("before it", found.more), ("at its end", found.more_after)):
            if more:
                named = f"{when}: {', '.join(f'{name} {value}' for name, value in more)}"
                yield from textwrap.wrap(named, 72, initial_indent=" " * 6, subsequent_indent=" " * 8)
        if not same:
            yield f"      published: {row.before} {row.counters} {row.after} {row.called} {row.more} {row.more_after}"
    yield ""
    red = sum(not agrees(row, found) for row, found in rows)
    yield f"{len(rows)} rows, {red} red"


# -- one run ---------------------------------------------------------------------------------------------------------


def waves_text(waves: Sequence[WaveSeen]) -> Iterator[str]:
    """The waves of a run, a line each."""
    if not waves:
        yield "no wave was committed"
        return
    yield "      ms  commit    W  log and what is pending under W"
    for wave in waves:
        under = f"  PENDING {' '.join(map(str, wave.under))}" if wave.under else ""
        yield f"  {wave.t:>6}  {wave.seq:>6}  {wave.w:>3}  [{' '.join(wave.log)}]{under}"


def counters_text(counters: Counters, width: int) -> Iterator[str]:
    """The counters that are not 0."""
    named = [f"{name} {value}" for name, value in counters.reported() if value]
    yield from textwrap.wrap("counters: " + (", ".join(named) or "none"), width, subsequent_indent="  ")


def problems_text(problems: Sequence[Problem], width: int) -> Iterator[str]:
    """What is wrong, a class a line; what is known of the last generation is said to be."""
    for one in problems:
        mark = "residual" if residual(one.signature) else "violated"
        yield from textwrap.wrap(f"{mark}  {one.signature}: {one.text}", width, subsequent_indent="          ")


def run_text(title: str, run: Run, width: int) -> Iterator[str]:
    """A run: its waves, its counters, its lanes, and what is wrong with it."""
    play = run.instance
    assert isinstance(play, Play)
    problems = told(run)
    yield title
    yield from waves_text(play.space.waves)
    yield from counters_text(play.space.counters, width)
    yield ""
    yield from drawn(lanes(play.trace(), title="", raced=_about(problems)), width=width, most=MOST_LANES)
    yield ""
    yield from problems_text(problems, width)
    if not problems:
        yield "nothing is wrong with it"


def _about(problems: Sequence[Problem]) -> frozenset[int]:
    """The records that the first problem is about."""
    return frozenset(problems[0].positions) if problems else frozenset()


# -- a scenario ------------------------------------------------------------------------------------------------------


def scenario_text(one: Scenario, failing: Run, passing: Run, width: int) -> Iterator[str]:
    """A failure step by step, and the same run under the loop that has it no more: under 20 lines."""
    yield f"{one.id}  {one.title}"
    problems = [problem for problem in told(failing) if problem.signature in one.shows]
    assert isinstance(failing.instance, Play)
    yield from _steps(failing.instance.trace(), problems, width)
    for problem in problems[:2]:
        yield _cut(f"violated  {problem.signature}: {problem.text}", width)
    left = [problem.signature for problem in told(passing) if problem.signature in one.shows]
    assert isinstance(passing.instance, Play)
    waves = " ".join(map(str, passing.instance.space.waves)) or "no wave"
    yield _cut(f"closed by {one.closes}", width)
    yield _cut(f"the same run then: {'STILL ' + ' '.join(left) if left else waves}", width)


def _steps(trace: DrainTrace, problems: Sequence[Problem], width: int) -> Iterator[str]:
    """The last things that happened up to where the failure can be seen."""
    from stormctl.sweeps.drain.lines import text

    ends = [min(max(one.positions), len(trace.records)) for one in problems if one.positions]
    end = max(ends, default=len(trace.records))
    shown = [
        record
        for record in trace.records[:end]
        if not isinstance(record.what, _SILENT) or (isinstance(record.what, Rest) and record.n == end)
    ]
    if len(shown) > MOST_SHOWN:
        yield f"   ... {len(shown) - MOST_SHOWN} steps before"
    for record in shown[-MOST_SHOWN:]:
        who = "" if record.tenure < 2 else f" (tenure {record.tenure})"
        mark = "!" if isinstance(record.what, Park) and record.what.phase == "begin" else " "
        yield _cut(f" {mark} {record.t:>4} ms  {text(record.what)}{who}", width)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "~"


# -- a search --------------------------------------------------------------------------------------------------------


def search_text(found: Searched, small: dict[str, Shrunk], width: int) -> Iterator[str]:
    """What a search found: each class with the failure that it is, the smallest schedule, and how to play it again."""
    one = found.exploration
    rate = one.runs / one.seconds if one.seconds else 0
    of = f"{len(found.models)} situation{'' if len(found.models) == 1 else 's'}"
    yield f"{found.loop}: {one.runs:,} schedules of {of} by {one.strategy}, seed {one.seed},"
    yield f"  {one.classes:,} classes, {one.seconds:.1f} s, {rate:,.0f} schedules/s"
    if one.cut:
        yield f"  {one.cut:,} were given up: they went on for ever"
    if found.wanted:
        unmet = found.not_caught_at(found.wanted)
        yield from textwrap.wrap(
            f"must be caught at {', '.join(found.wanted)}: "
            + (f"NOT CAUGHT AT {', '.join(unmet)}" if unmet else "it was, at each"),
            width,
            initial_indent="  ",
            subsequent_indent="    ",
        )
    for violation in (*found.faults, *found.residuals):
        name = found.explanation(violation) or "UNEXPLAINED"
        kind = "residual" if residual(violation.signature) else "violated"
        yield f"  {kind}  {violation.signature}  {name}"
        yield _cut(f"      {violation.text}", width)
        where = found.situation_of(violation)
        yield f"      in {where}, first by schedule {violation.run}, by {violation.count:,} in all"
        shrunk = small.get(violation.signature)
        if shrunk is not None:
            yield _cut(f"      {shrunk.preemptions} preemptions, {shrunk.faults} faults, {shrunk.steps} turns", width)
        tape = violation.tape if shrunk is None else shrunk.tape
        model = found.models[violation.model]
        yield f"      stormctl drain run --token {Token.of(model.name, model.digest, tape)}"
    if not found.faults:
        yield "  nothing beyond the residual" if found.residuals else "  nothing is wrong"


# -- latency ---------------------------------------------------------------------------------------------------------


def latency_text(found: Sequence[Latencies]) -> Iterator[str]:
    """A histogram for each loop, in virtual milliseconds."""
    yield "virtual ms from admission to the commit with the mark"
    indent = max(len(one.loop) for one in found) + 2
    labels = [str(EDGES[0]), *(f"-{edge}" for edge in EDGES[1:])]
    yield " " * indent + "".join(f"{label:>{_WIDE}}" for label in labels)
    for one in found:
        yield f"{one.loop:<{indent}}" + "".join(f"{count or '.':>{_WIDE}}" for count in one.histogram())
    yield ""
    yield f"{'':<{indent}}{'mean ms':>9}{'waves':>8}{'deferrals':>11}"
    for one in found:
        yield f"{one.loop:<{indent}}{one.mean:>9.1f}{one.waves:>8}{one.deferrals:>11}"
