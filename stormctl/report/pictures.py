"""All pictures of a storm, each with its text alternative: what ``plots/`` and the HTML report hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from stormctl.engine.generations import generation
from stormctl.errors import StormctlError
from stormctl.history import Capture
from stormctl.report.load import Artefact
from stormctl.report.tally import durations, outcome_rows
from stormctl.storm.attempt import Attempt
from stormctl.storm.outcome import Outcome
from stormctl.sweeps.bindings import BindingMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stormctl.report.lag import StormLag
    from stormctl.report.timeline import Timeline

#: runs that are looked at to find the one that shows most
CANDIDATES = 8
#: a longer log is not replayed for its rebinding map
MOST_REPLAYED = 1_500


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn figure. ``text`` says in words what it shows, for whoever cannot see it; ``how`` tells how it is read."""

    name: str
    title: str
    text: str
    how: str
    figure: Figure


def pictures(artefact: Artefact, *, logs: bool = True) -> Iterator[Picture]:
    """The pictures of a storm, in the order in which they are read. ``logs``: also those that need its logs."""
    from stormctl.report.bars import outcome_figure
    from stormctl.report.cells import cells_figure
    from stormctl.report.histogram import EVENTS, histogram_figure

    yield Picture(
        "outcomes",
        "Outcomes",
        _outcomes(artefact),
        "A bar per cell. Beside it the corrupted share with its 95 % Wilson interval.",
        outcome_figure(artefact),
    )
    yield Picture(
        "cells",
        "The matrix",
        _outcomes(artefact),
        "A square per cell: the darker, the more of its attempts were corrupted. Below k/n the interval: where two "
        "intervals overlap widely, the storm was too small to tell the cells apart.",
        cells_figure(artefact),
    )
    yield Picture(
        "durations",
        "Durations",
        _durations(artefact),
        "Attempts by wall time; outcomes are stacked. Corrupted runs end early, stuck ones at the cap.",
        histogram_figure(artefact),
    )
    yield Picture(
        "events",
        "Events per run",
        _events(artefact),
        "Attempts by the length of their logs. Where the corrupted ones stand tells how far runs come first.",
        histogram_figure(artefact, EVENTS),
    )
    if logs:
        yield from _of_logs(artefact)


def write_plots(artefact: Artefact, *, logs: bool = False) -> tuple[Path, ...]:
    """Each picture as PNG and SVG under ``plots/`` in the artefact's folder. Those that need logs take some seconds."""
    return save_pictures(pictures(artefact, logs=logs), artefact.folder)


def save_pictures(drawn: Iterable[Picture], folder: Path) -> tuple[Path, ...]:
    """Pictures that are drawn already, as files under ``plots/`` in a folder. OSError when they cannot be written."""
    from stormctl.report.style import save

    plots = folder / "plots"
    plots.mkdir(exist_ok=True)
    return tuple(path for one in drawn for path in save(one.figure, plots / one.name))


def _of_logs(artefact: Artefact) -> Iterator[Picture]:
    from stormctl.report.lag import storm_lag
    from stormctl.report.lag_picture import lag_figure
    from stormctl.report.timeline_picture import timeline_figure

    lag = storm_lag(artefact)
    if lag.events:
        yield Picture(
            "lag",
            "Commit behind mint",
            _lag(lag),
            "An id is minted before its event can be read. What is minted later and committed sooner overtakes it; "
            "whoever reads in between misses the event. Stores that give positions at commit time have no such events.",
            lag_figure(lag),
        )
    found = telling(artefact)
    if found is None:
        return
    capture, one = found
    yield Picture(
        "timeline",
        "One run's timeline",
        _timeline(one),
        "From left to right in the order of commits; the numbers are those of the log. A number that is smaller than "
        "one before it was overtaken. A bar is a pass: it begins where its delivery read the log. A circle on a bar is "
        "an event that the read missed.",
        timeline_figure(one),
    )
    bound = bindings(artefact, capture)
    if bound is not None:
        from stormctl.report.binding_map import binding_figure

        yield Picture(
            "rebinding",
            "One run's rebinding",
            _bindings(bound),
            "The same run, replayed at every prefix: a stripe is a rank, its colour what the rank is bound to. A "
            "stripe that changes its colour is a flip.",
            binding_figure(bound, capture.log.run_id),
        )


def telling(artefact: Artefact) -> tuple[Capture, Timeline] | None:
    """The run that shows most of how runs fail here: of the shortest failed ones the one with the most passes after a
    read with holes, then with the most overtaken events. None without a failed run whose log is there."""
    from stormctl.report.lag import captures
    from stormctl.report.timeline import timeline

    failed = [one for one in artefact.attempts if one.outcome.gates and one.run_id and one.events]
    failed.sort(key=lambda one: (one.outcome is not Outcome.CORRUPTED, one.events))
    found = [(capture, timeline(capture)) for _, capture in islice(captures(artefact, failed), CANDIDATES)]
    return max(found, key=lambda pair: (pair[1].blind, pair[1].backwards, len(pair[1].passes)), default=None)


def bindings(artefact: Artefact, capture: Capture) -> BindingMap | None:
    """What the generation that wrote a run binds at every prefix of its log; None where it cannot be replayed."""
    from stormctl.sweeps.plan import SweepPlan
    from stormctl.sweeps.run import sweep_log

    name = engine_of(artefact, capture.log.run_id)
    if name is None or len(capture.log) > MOST_REPLAYED:
        return None
    try:
        report = sweep_log(capture, SweepPlan(engines=(name,), maps=True, only=("rebinding",)))
    except StormctlError:
        return None
    return next((one for one in report.maps if one.rows), None)


def engine_of(artefact: Artefact, run_id: str) -> str | None:
    """The generation of ours that a run's log is replayed by: its cell's, else the first that its sweep used."""
    log = next((one for one in artefact.logs if one.run_id == run_id), None)
    attempt = next((one for one in artefact.attempts if one.run_id == run_id), None)
    names = [attempt.cell.generation] if attempt is not None else []
    names += log.engines if log is not None else ()
    return next((name for name in names if known_engine(name)), None)


def known_engine(name: str) -> bool:
    """Whether a name is that of a generation of ours."""
    try:
        generation(name)
    except StormctlError:
        return False
    return True


def _outcomes(artefact: Artefact) -> str:
    return "; ".join(
        f"{row.cell.scenario}, {row.arm}: {row.completed} completed, corrupted {row.rate}"
        + (f", {row.stuck} stuck" if row.stuck else "")
        for row in outcome_rows(artefact)
    )


def _durations(artefact: Artefact) -> str:
    return "; ".join(
        f"{word}: {_count(one.n, 'attempt')}, p50 {one.p50:.1f} s, p90 {one.p90:.1f} s, at most {one.max:.1f} s"
        for word, one in durations(artefact).items()
    )


def _events(artefact: Artefact) -> str:
    from stormctl.report.style import LOOKS, look

    by_word: dict[str, list[Attempt]] = {one.word: [] for one in LOOKS}
    for attempt in artefact.attempts:
        if attempt.run_id is not None:
            by_word[look(attempt.outcome).word].append(attempt)
    return "; ".join(
        f"{word}: {_count(len(found), 'run')} of {_range([one.events for one in found])} events"
        for word, found in by_word.items()
        if found
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _range(values: list[int]) -> str:
    return f"{min(values)}" if min(values) == max(values) else f"{min(values)} to {max(values)}"


def _lag(lag: StormLag) -> str:
    arms = [
        f"{name}: {len(arm.overtaken)} of {arm.events} events overtaken, in {arm.hit} of {arm.runs} runs"
        + ("" if arm.mean is None else f", for {arm.mean:.0f} ms on average")
        for name, arm in lag.arms.items()
        if arm.events
    ]
    return "; ".join(arms)


def _timeline(one: Timeline) -> str:
    text = f"Run {one.run_id}, {len(one.marks)} events"
    if not one.exact:
        return f"{text}; without commit times"
    return f"{text}: {one.backwards} overtaken, {one.blind} of {len(one.passes)} reads missed events"


def _bindings(found: BindingMap) -> str:
    text = f"{found.engine} over {len(found.prefixes)} prefixes: {_count(len(found.changes), 'flip')}"
    if found.diverges is not None:
        text += f", diverges at prefix {found.prefixes[found.diverges]}"
    return text
