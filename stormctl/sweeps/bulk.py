"""Sweeping many logs for a few questions: whole columns at once, and event by event only what is not plainly in order.

The checks here find nothing. They show of a run that the sweeps of their names would find nothing and lack nothing; of
any other run nothing is said, and it is swept in the ordinary way. So a report reads the same whichever way it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from stormctl.errors import StormctlError
from stormctl.history import Capture, EventLog, Evidence, Facet, kinds
from stormctl.readers import columns, ndjson, parquet, reader_for
from stormctl.readers.columns import NEVER, Block, Run
from stormctl.readers.open import Place, Unreadable, guarded
from stormctl.sweeps.entities import CLOCK_SKEW_MS
from stormctl.sweeps.entity_rows import ENDED
from stormctl.sweeps.finding import SweepResult, Verdict
from stormctl.sweeps.plan import SweepPlan
from stormctl.sweeps.reading import reading_of
from stormctl.sweeps.registered import ORDER
from stormctl.sweeps.report import LogReport
from stormctl.sweeps.run import report_of, sweep_log

#: What a capture must not lack, so that none of these sweeps has anything to say of its evidence.
_NEEDS = frozenset({Facet.POSITIONS, Facet.EVENT_IDS, Facet.CORRELATION_IDS, Facet.RUN_BOUNDS, Facet.STARTS})

#: How many logs may wait for their block to be full.
_MOST_WAITING = 1024

Report = LogReport | Unreadable
#: How a place is read and swept in the ordinary way.
Ordinary = Callable[[Place], Iterator[Report]]


def serves(plan: SweepPlan) -> bool:
    """Whether all that a plan asks can be answered from columns."""
    asked = set(plan.only)
    plain = plan.workload is None and plan.earlier is None and not plan.engines and not plan.perturb
    return plain and bool(asked) and asked <= CHECKS.keys()


def sweep_columns(places: Iterable[Place | Unreadable], plan: SweepPlan, ordinary: Ordinary) -> Iterator[Report]:
    """One report per log, in order, for a plan that can be served so."""
    gathered = columns.NdjsonRuns()
    waiting: list[tuple[Place | Unreadable, bool]] = []
    for place in places:
        reader = None if isinstance(place, Unreadable) else _reader(place, plan)
        if reader is parquet.READER and isinstance(place, Path):
            yield from _told(gathered, waiting, plan, ordinary)
            yield from _parquet(place, plan, ordinary)
            continue
        waiting.append((place, reader is ndjson.READER and isinstance(place, Path) and gathered.add(place)))
        if gathered.full or len(waiting) >= _MOST_WAITING:
            yield from _told(gathered, waiting, plan, ordinary)
    yield from _told(gathered, waiting, plan, ordinary)


def _reader(place: Place, plan: SweepPlan) -> object:
    """Who reads a place; None where that is not a file, or cannot be told."""
    if not isinstance(place, Path) or place.is_dir():
        return None
    try:
        return reader_for(place, plan.read_as.reader)
    except (StormctlError, OSError):
        return None


def _told(
    gathered: columns.NdjsonRuns, waiting: list[tuple[Place | Unreadable, bool]], plan: SweepPlan, ordinary: Ordinary
) -> Iterator[Report]:
    """The reports of what waits, in its order: of a log in columns (True) from them, where it is plainly in order."""
    items = list(waiting)
    waiting.clear()
    runs = iter(_fine(gathered.block(), plan) if len(gathered) else ())
    for item, in_columns in items:
        run = next(runs) if in_columns else None
        if isinstance(item, Unreadable):
            yield item
        elif run is None:
            yield from ordinary(item)
        else:
            yield _clean(run, plan)


def _parquet(path: Path, plan: SweepPlan, ordinary: Ordinary) -> Iterator[Report]:
    """The reports of a file's runs. The reader of rows is asked for those alone that are not plainly in order."""
    runs: list[tuple[Run, bool]] = []
    try:
        for block in columns.parquet_blocks(path):
            runs += [(run, fine is not None) for run, fine in zip(block.runs, _fine(block, plan), strict=True)]
    except columns.NotColumns:
        yield from ordinary(path)
        return
    doubtful = [(run.first_row, run.first_row + run.events) for run, fine in runs if not fine]
    captures = guarded(path, parquet.READER.read_ranges(path, doubtful))
    for run, fine in runs:
        if fine:
            yield _clean(run, plan)
            continue
        for item in islice(captures, 1):
            yield item if isinstance(item, Unreadable) else sweep_log(item, plan)


def _clean(run: Run, plan: SweepPlan) -> LogReport:
    """The report of a run in which nothing was found."""
    capture = stand_in(run)
    results = [SweepResult(name, Verdict.CLEAN) for name in ORDER if name in plan.only]
    return report_of(capture, run.events, reading_of(capture, plan.profile), results)


def stand_in(run: Run) -> Capture:
    """A capture with the few events by which a log tells its release and its end, in place of one with all."""
    meta = run.meta
    declared = meta.evidence or Evidence("rows without a meta file")
    missing = declared.missing | ({Facet.ROWS} if meta.run is None else frozenset())
    evidence = Evidence(declared.origin, missing=missing, notes=declared.notes)
    return Capture(run.source, EventLog(run.few, meta.run_id), evidence, meta.run, data=meta.data)


def _fine(block: Block, plan: SweepPlan) -> list[Run | None]:
    """Each run of a block that is plainly in order; None in place of another."""
    doubtful = block.odd | ~_rows_are_bounded(block) | _dense(block) | _id_order(block)
    for name in plan.only:
        if name not in _ALWAYS:
            doubtful |= CHECKS[name](block)
    return [None if doubt or not _told_whole(run) else run for run, doubt in zip(block.runs, doubtful, strict=True)]


def _told_whole(run: Run) -> bool:
    """Whether nothing in what was captured beside the log leaves the log's verdict open."""
    meta = run.meta
    if meta.events is not None and meta.events != run.events:
        return False
    evidence = meta.evidence
    if evidence is not None and (evidence.truncated or evidence.live or evidence.omitted or evidence.missing & _NEEDS):
        return False
    ends = [event.type for event in run.few if event.is_terminal]
    if meta.run is not None and (meta.run.status == "failed" or (meta.run.status in ENDED and not ends)):
        return False
    return kinds.RUN_FAILED not in ends


def _rows_are_bounded(block: Block) -> Any:
    """Which runs have one creation, which is their first event, and at most one end, which is their last."""
    created, ended = block.has_type(kinds.RUN_CREATED), block.has_type(*sorted(kinds.RUN_TERMINAL))
    late = created.copy()
    late[block.firsts] = False
    early = ended.copy()
    early[block.lasts] = False
    return created[block.firsts] & ~block.runs_of(late | early)


# -- one check per sweep: which runs it cannot clear -----------------------------------------------------------------


def _dense(block: Block) -> Any:
    """Positions count the events."""
    return block.runs_of(block.positions != block.places())


def _id_order(block: Block) -> Any:
    """All ids are slots that are their positions, or all are ULIDs that rise with the positions, which count the
    events: then none stands twice, either."""
    slots = block.slots()
    is_slot = slots >= 0
    odd = ~block.has_body() | (block.positions != block.places())
    odd |= (is_slot & (slots != block.positions)) | (~is_slot & ~block.id_rises())
    # of both kinds in one run, none is told from the other here
    mixed = block.runs_of(is_slot) & block.runs_of(~is_slot)
    return block.runs_of(odd) | mixed


def _lifecycle(block: Block) -> Any:
    """Every entity has one of the lives in which no rule is broken (see ``entities``)."""
    lives = block.lives
    drawn = block.has_type(*sorted(kinds.DRAWN_TYPES))
    started = block.has_type(kinds.RUN_STARTED)
    again = block.runs_of(started) & (block.per_run(started) > 1)
    fine = _is_step(lives) | _is_wait(lives, block) | _is_hook(lives) | _is_attribute(lives) | (_events(lives) == 0)
    doubtful = block.runs_of(drawn & ~block.is_named()) | again
    doubtful |= block.runs_that_repeat(block.tokens) | block.runs_that_repeat(block.resumes)
    doubtful[lives.run[~fine]] = True
    return doubtful


_RULED = kinds.DRAWN_TYPES | {kinds.ATTR_SET}


def _events(lives: columns.Lives) -> Any:
    return lives.count(*sorted(_RULED))


def _is_step(lives: columns.Lives) -> Any:
    """Created, then started, then ended, each at most once."""
    made, started = lives.count(kinds.STEP_CREATED), lives.count(kinds.STEP_STARTED)
    ended = lives.count(*sorted(kinds.STEP_TERMINAL))
    end = lives.last(kinds.STEP_COMPLETED)
    failed = lives.count(kinds.STEP_FAILED) == 1
    end = end * ~failed + lives.last(kinds.STEP_FAILED) * failed
    begin = lives.first(kinds.STEP_STARTED)
    in_order = (started == 0) | (lives.first(kinds.STEP_CREATED) < begin)
    in_order &= (ended == 0) | ((started == 1) & (begin < end))
    return (made == 1) & (started <= 1) & (ended <= 1) & (_events(lives) == made + started + ended) & in_order


def _is_wait(lives: columns.Lives, block: Block) -> Any:
    """Created, then completed for the time that it was created for, and not before."""
    made, ended = lives.count(kinds.WAIT_CREATED), lives.count(kinds.WAIT_COMPLETED)
    alone = (made == 1) & (ended <= 1) & (_events(lives) == made + ended)
    both = alone & (ended == 1)
    create, end = lives.first(kinds.WAIT_CREATED)[both], lives.last(kinds.WAIT_COMPLETED)[both]
    due, told, at = block.due[create], block.due[end], block.created[end]
    timely = (told == NEVER) | (told == due)
    timely &= (at == NEVER) | (at >= due - CLOCK_SKEW_MS)
    found = alone.copy()
    found[both] = (create < end) & ((due == NEVER) | timely)
    return found


def _is_hook(lives: columns.Lives) -> Any:
    """Created once; whatever it receives comes behind that, and before it is disposed of."""
    made, received = lives.count(kinds.HOOK_CREATED), lives.count(kinds.HOOK_RECEIVED)
    gone = lives.count(kinds.HOOK_DISPOSED)
    create, dispose = lives.first(kinds.HOOK_CREATED), lives.first(kinds.HOOK_DISPOSED)
    in_order = (create < lives.first(kinds.HOOK_RECEIVED)) & (create < dispose)
    in_order &= (gone == 0) | (lives.last(kinds.HOOK_RECEIVED) < dispose)
    return (made == 1) & (gone <= 1) & (_events(lives) == made + received + gone) & in_order


def _is_attribute(lives: columns.Lives) -> Any:
    """Set once."""
    return (lives.count(kinds.ATTR_SET) == 1) & (_events(lives) == 1)


#: The two that every other relies on: no event stands twice, and the log's order is that of its positions.
_ALWAYS = ("dense", "id-order")
CHECKS: dict[str, Callable[[Block], Any]] = {"dense": _dense, "id-order": _id_order, "lifecycle": _lifecycle}

__all__ = ["CHECKS", "serves", "stand_in", "sweep_columns"]
