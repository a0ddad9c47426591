"""The story of a corruption, in the manner of Elle: what happened first, what then, and what cannot hold with it."""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.explain.conflicts import Clash, Conflict, Side
from stormctl.explain.explanation import Beat
from stormctl.explain.facts import Facts
from stormctl.explain.taxonomy import Match
from stormctl.explain.words import call, count, named_ranges, ranges
from stormctl.history import EventLog
from stormctl.sweeps.finding import MAX_WITNESS
from stormctl.sweeps.rebinding import Flip
from stormctl.sweeps.witness import line, witness


def story_of(facts: Facts, match: Match | None) -> tuple[Beat, ...]:
    """The story that the facts tell; empty where there is none."""
    conflict = facts.conflict(Clash.CALL) or facts.conflict(Clash.RANK)
    guilty = facts.guilty
    if guilty is not None and guilty.view is not None and guilty.view.hidden:
        return tuple(_hole(facts))
    if conflict is not None and guilty is not None and guilty.view is not None:
        return tuple(_clash(facts, conflict))
    if facts.flip is not None and facts.shaken is None:
        return tuple(_latent(facts, facts.flip))
    if guilty is not None:
        return tuple(_lost(facts))
    if match is not None and match.at:
        return tuple(_plain(facts.log, match))
    return ()


def witness_of(facts: Facts, match: Match | None) -> tuple[str, ...]:
    """The smallest set of events that shows it, at most six, in log order."""
    at: set[int] = set()
    if match is not None:
        at |= set(match.at)
    if facts.guilty is not None:
        at.add(facts.guilty.create.index)
    conflict = facts.conflict(Clash.CALL) or facts.conflict(Clash.RANK)
    if conflict is not None:
        at |= {create.index for create in conflict.creates}
    best = facts.best
    if best is not None and best.divergence is not None:
        at.add(best.divergence.index)
    return witness(facts.log, sorted(at))[:MAX_WITNESS]


def prefixes_of(facts: Facts, writer: str, length: int) -> str:
    """The prefixes that a writer can have read, by name."""
    for batch in facts.batches:
        if batch.writer == writer:
            return ranges(named_ranges(facts.log, batch.prefixes))
    return str(facts.log.name_of_prefix(length))


def _reader(facts: Facts, side: Side) -> str:
    return f"{side.writer} (prefix {prefixes_of(facts, side.writer, side.length)})"


def _clash(facts: Facts, conflict: Conflict) -> Iterator[Beat]:
    log, flip = facts.log, facts.flip
    stale, fresh = conflict.stale, conflict.fresh
    first = stale
    yield Beat("first", f"{_reader(facts, first)} binds rank {first.rank} to {first.label}")
    if flip is not None:
        yield Beat("then", f"{line(log, log.length_of_prefix(flip.after) - 1)} is read")
        yield Beat("however", f"from prefix {flip.after} on rank {flip.rank} is {flip.now}, which was {flip.was}")
    yield Beat("then", f"{_reader(facts, fresh)} binds {_bound(conflict, fresh)}")
    for side in sorted((one for one in (stale, fresh) if one.create is not None), key=_place):
        assert side.create is not None
        behind = side.create.place - log.name_of_prefix(side.length)
        yield Beat("then", f"{side.writer} writes {call(side.create)} at {side.create.place}, {behind} behind its view")
    yield from _end(facts, conflict)


def _place(side: Side) -> int:
    return -1 if side.create is None else side.create.place


def _bound(conflict: Conflict, side: Side) -> str:
    if conflict.clash is Clash.CALL:
        return f"the same call to rank {side.rank}"
    return f"rank {side.rank} to {side.label}"


def _end(facts: Facts, conflict: Conflict | None) -> Iterator[Beat]:
    best = facts.best
    ends = "" if best is None or best.divergence is None else f"; under {best.engine} {best.divergence.text}"
    if conflict is None:
        if ends:
            yield Beat("so", ends.removeprefix("; "))
    elif conflict.clash is Clash.CALL:
        yield Beat("so", f"one call is in the log under ranks {conflict.one.rank} and {conflict.other.rank}{ends}")
    else:
        yield Beat("so", f"rank {conflict.one.rank} stands for two calls{ends}")


def _hole(facts: Facts) -> Iterator[Beat]:
    log, guilty = facts.log, facts.guilty
    assert guilty is not None
    assert guilty.view is not None
    hidden = guilty.view.hidden
    shown = ", ".join(line(log, index) for index in hidden[:2])
    more = f" and {count(len(hidden) - 2, 'more event')}" if len(hidden) > 2 else ""
    yield Beat("first", f"a writer reads up to {log.name_of_prefix(guilty.view.length)}, and not {shown}{more}")
    yield Beat("then", f"it asks for {call(guilty.create)}, and writes it at {guilty.create.place}")
    conflict = facts.conflict(Clash.RANK)
    if conflict is not None and conflict.other.create is not guilty.create:
        other = conflict.other
        yield Beat("however", f"whoever has read it binds rank {other.rank} to {other.label}")
    else:
        yield Beat("however", "no reader of a whole prefix asks for that")
    yield from _end(facts, None)


def _latent(facts: Facts, flip: Flip) -> Iterator[Beat]:
    log = facts.log
    yield Beat("first", f"readers of up to {flip.before} bind rank {flip.rank} to {flip.was}")
    yield Beat("then", f"{line(log, log.length_of_prefix(flip.after) - 1)} is read")
    yield Beat("however", f"from prefix {flip.after} on rank {flip.rank} is {flip.now}")
    guilty = facts.guilty
    if guilty is None:
        yield Beat("so", "two writers on either side would have clashed; in this log none did")
        return
    create = guilty.create
    yield Beat("then", f"{call(create)} is written at {create.place} by a writer from before the flip")
    yield from _end(facts, None)


def _lost(facts: Facts) -> Iterator[Beat]:
    guilty, best = facts.guilty, facts.best
    assert guilty is not None
    yield Beat("first", f"{call(guilty.create)} is written at {guilty.create.place}")
    if guilty.view is None:
        whole = any(search.create is guilty.create and search.tried == search.facts for search in facts.searches)
        more = ", nor does one that lacks any single fact" if whole else ""
        yield Beat("however", f"no prefix of the log asks for it{more}")
    elif facts.shaken is not None:
        yield Beat("then", f"a pass over prefix {facts.log.name_of_prefix(guilty.view.length)} asks for it")
        yield Beat("however", f"only when {facts.shaken.how}, under {facts.shaken.engine}")
    if best is not None and best.divergence is not None:
        yield Beat("so", f"under {best.engine} {best.divergence.text}")


def _plain(log: EventLog, match: Match) -> Iterator[Beat]:
    places = sorted(set(match.at))[:MAX_WITNESS]
    for number, index in enumerate(places):
        yield Beat("then" if number else "first", line(log, index))
    if match.because:
        yield Beat("however", match.because[0])
