"""Which write is to blame.

A create that nothing explains comes first. Where every create is explained and two writers conflict, it is the one that
today's engine would not write from the same view, else the staler one. Where nobody conflicts and the replay still
stops, it is the create of what it stops at.
"""

from __future__ import annotations

from collections.abc import Sequence

from stormctl.engine.door import Engine
from stormctl.explain.batches import Batch
from stormctl.explain.conflicts import Clash, Conflict, Side
from stormctl.explain.creates import Created
from stormctl.explain.facts import Facts, Guilty
from stormctl.explain.hidden import Search, Shaken, View, asks_for, leave_one_out, shaken
from stormctl.explain.known import KnownWriter
from stormctl.explain.writers import Origin, Reconstruction
from stormctl.sweeps.commit_order import publication_times

#: for how many creates that no prefix explains a hidden event is looked for
MAX_SEARCHES = 3
#: how many creates of two writers at odds are looked at
MAX_WRITTEN = 64
#: how many of the newest prefixes are replayed under perturbation
MAX_SHAKEN = 4

Found = tuple[Guilty | None, tuple[Search, ...], Shaken | None]


def guilty_of(facts: Facts, engine: Engine, today: Engine | None, others: Sequence[Engine]) -> Found:
    """The guilty write, the searches for hidden events that were made, and a perturbed pass that explains it."""
    best = facts.best
    assert best is not None
    if best.unexplained:
        return _unexplained(facts, engine, best, others)
    conflicts = [one for one in facts.conflicts if one.clash is not Clash.INPUT]
    if conflicts:
        return _in_conflict(facts, engine, today, _decisive(conflicts, best)), (), None
    lost = best.divergence
    if lost is not None:
        event = facts.log[lost.index]
        for origin in best.origins:
            if origin.create.correlation_id == event.correlation_id and origin.create.index <= lost.index:
                return _of_origin(facts, origin), (), None
    return None, (), None


# -- what no prefix explains ------------------------------------------------------------------------------------------


def _unexplained(facts: Facts, engine: Engine, best: Reconstruction, others: Sequence[Engine]) -> Found:
    searches: list[Search] = []
    late = _published_late(facts)
    for origin in best.unexplained[:MAX_SEARCHES]:
        create = origin.create
        known = facts.known.get(create.index)
        if known is not None and (view := _audited(facts, engine, best, known, late)) is not None:
            return Guilty(create, view, None, known, "audit"), tuple(searches), None
        search = leave_one_out(facts.log, engine, create, first=late, inputs=best.compares(create))
        searches.append(search)
        if search.view is not None:
            # an event that is known to have come late settles it; else a pass that only time explains might as well
            settled = search.view.hidden[0] in late
            other = None if settled else _shake(facts, (engine, *others), best, create)
            return Guilty(create, search.view, None, known, "hidden event"), tuple(searches), other
    first = best.unexplained[0].create
    found = _shake(facts, (engine, *others), best, first)
    if found is not None:
        guilty = Guilty(first, View(found.length, ()), None, facts.known.get(first.index), "perturbed pass")
        return guilty, tuple(searches), found
    return Guilty(first, None, None, facts.known.get(first.index)), tuple(searches), None


def _shake(facts: Facts, engines: Sequence[Engine], best: Reconstruction, create: Created) -> Shaken | None:
    """A perturbed pass that explains the create, under the log's own generation first."""
    lengths = _shakeable(best, create)
    for engine in engines:
        found = shaken(facts.log, engine, create, lengths, inputs=best.compares(create))
        if found is not None:
            return found
    return None


def _audited(
    facts: Facts, engine: Engine, best: Reconstruction, known: KnownWriter, late: Sequence[int]
) -> View | None:
    """The view that the audit tells of, if a replay of it asks for the create.

    A delivery that reads on behind its cursor can have skipped one of the events that were published by then; it then
    had read one more of the others, which the count alone does not tell.
    """
    if known.length is None:
        return None
    plain = View(known.length, known.hidden)
    holes = [index for index in late if index < known.create.index and index not in known.hidden]
    for view in (plain, *(View(known.create.index, (index,)) for index in holes if not known.hidden)):
        (replay,) = engine.passes(facts.log, (view.length,), hidden=frozenset(view.hidden))
        if asks_for(replay, known.create, inputs=best.compares(known.create)):
            return view
    return None


def _published_late(facts: Facts) -> list[int]:
    """Events published after one that follows them in the log, the latest such first."""
    if not facts.capture.audit:
        return []
    late: list[int] = []
    earliest: int | None = None
    times = publication_times(facts.capture)
    for index in range(len(times) - 1, -1, -1):
        time = times[index]
        if time is None:
            continue
        if earliest is not None and time > earliest:
            late.append(index)
        earliest = time if earliest is None else min(earliest, time)
    return late


def _shakeable(best: Reconstruction, create: Created) -> list[int]:
    """The newest prefixes before the create that the workflow can follow."""
    end = create.index if best.diverges_at is None else min(create.index, best.diverges_at - 1)
    return list(range(end, max(0, end - MAX_SHAKEN), -1))


# -- conflicts --------------------------------------------------------------------------------------------------------


def _decisive(conflicts: Sequence[Conflict], best: Reconstruction) -> Conflict:
    """The conflict that the replay stops at, else the first in the log."""
    lost = best.divergence
    if lost is not None:
        for one in conflicts:
            if any(create.index == lost.index for create in one.creates):
                return one
    return min(conflicts, key=lambda one: min(create.index for create in one.creates))


def _in_conflict(facts: Facts, engine: Engine, today: Engine | None, conflict: Conflict) -> Guilty:
    """The side that today's engine would not write, else the staler one."""
    ranks = {conflict.one.rank, conflict.other.rank}
    sides: list[Side] = []
    for one in facts.conflicts:
        if one.clash is not Clash.INPUT and {one.one.writer, one.other.writer} == {
            conflict.one.writer,
            conflict.other.writer,
        }:
            sides += [side for side in (one.one, one.other) if side.create is not None]
            ranks |= {one.one.rank, one.other.rank}
    written = {side.create.index: side for side in sides if side.create is not None}
    refused = [side for side in written.values() if not _asked_for(facts, today, side)]
    if not refused:
        # the clash was lost, and what the loser wrote of the same view is what cannot stand
        names = {conflict.one.writer, conflict.other.writer}
        refused = [side for side in _all_written(facts, names) if not _asked_for(facts, today, side)][:1]
    asked = refused or list(written.values())
    side = min(asked, key=lambda one: (one.length, one.create.index if one.create is not None else 0))
    assert side.create is not None
    batch = _batch(facts, side.create)
    return Guilty(side.create, View(side.length, ()), batch, facts.known.get(side.create.index), "prefix")


def _all_written(facts: Facts, writers: set[str]) -> list[Side]:
    """What the two writers wrote, in log order, but for the few that either can have written."""
    found = [
        Side(batch.writer, batch.length, -1 if create.rank is None else create.rank, create.label, None, create)
        for batch in facts.batches
        if batch.writer in writers
        for create in batch.creates
    ]
    return sorted(found, key=lambda side: 0 if side.create is None else side.create.index)[:MAX_WRITTEN]


def _asked_for(facts: Facts, engine: Engine | None, side: Side) -> bool:
    assert side.create is not None
    best = facts.best
    if engine is None or best is None:
        return True
    try:
        (replay,) = engine.passes(facts.log, (side.length,))
    except Exception:  # an engine that fails tells nothing
        return True
    return replay.divergence is not None or asks_for(replay, side.create, inputs=best.compares(side.create))


def _of_origin(facts: Facts, origin: Origin) -> Guilty:
    view = None if origin.freshest is None or not origin.explained else View(origin.freshest, ())
    batch = _batch(facts, origin.create)
    if batch is not None:
        view = View(batch.length, ())
    how = "none" if view is None else "prefix"
    return Guilty(origin.create, view, batch, facts.known.get(origin.create.index), how)


def _batch(facts: Facts, create: Created) -> Batch | None:
    return next((batch for batch in facts.batches if batch.wrote(create.index)), None)
