"""Conflicts: two writers that gave one rank to two calls, or one call to two ranks.

A conflict is what makes stale views matter: as long as every prefix binds a rank to the same call, writers that
overlap write the same thing or nothing. A conflict needs the pass of a writer, not only what it managed to write,
because the write that lost against the other's (409) is not in the log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from stormctl.engine.door import Draw, Engine, Pass, Pending
from stormctl.explain.batches import Batch
from stormctl.explain.creates import Created
from stormctl.explain.writers import Reconstruction, short
from stormctl.history import EventLog, digest_value, ids

#: more pairs of writers than this are not looked into; each costs two replays
MAX_PAIRS = 12


class Clash(StrEnum):
    """What two writers disagree in. ``INPUT`` is one name under one rank, called with two inputs."""

    RANK = "one rank, two calls"
    CALL = "one call, two ranks"
    INPUT = "one rank, two inputs"


@dataclass(frozen=True, slots=True)
class Side:
    """One writer's side of a conflict: the prefix length it had read and what it bound there.

    ``create`` is what it wrote of it, None where its write lost or never came.
    """

    writer: str
    length: int
    rank: int
    label: str
    arguments: object
    create: Created | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two bindings that cannot both hold; ``one`` wrote first, or alone."""

    clash: Clash
    one: Side
    other: Side

    @property
    def creates(self) -> tuple[Created, ...]:
        """The creates of the log that take part."""
        return tuple(side.create for side in (self.one, self.other) if side.create is not None)

    @property
    def stale(self) -> Side:
        """The side that had read less."""
        return min(self.one, self.other, key=lambda side: side.length)

    @property
    def fresh(self) -> Side:
        """The side that had read more."""
        return max(self.other, self.one, key=lambda side: side.length)


def conflicts_of(
    log: EventLog, engine: Engine, found: Reconstruction, batches: Sequence[Batch]
) -> tuple[Conflict, ...]:
    """The conflicts between the writers of a reconstruction, ranks with two calls first."""
    ranks = list(_of_ranks(log, found, batches))
    calls = list(_of_calls(log, engine, batches, ranks))
    order = list(Clash)
    return tuple(sorted((*ranks, *calls), key=lambda one: order.index(one.clash)))


def _of_ranks(log: EventLog, found: Reconstruction, batches: Sequence[Batch]) -> Iterator[Conflict]:
    """What a writer wants under a rank that another has given, or was about to give, to another call."""
    owner = {create.index: batch for batch in batches for create in batch.creates}
    by_body: defaultdict[str, list[Created]] = defaultdict(list)
    for origin in found.origins:
        by_body[ids.split(origin.create.correlation_id)[1]].append(origin.create)
    seen: set[tuple[str, int]] = set()
    for batch in batches:
        for item in found.asked(batch.length) or ():
            for create in by_body.get(ids.split(item.correlation_id)[1], ()):
                theirs = owner.get(create.index)
                if theirs is batch or create.index < batch.length or (batch.writer, create.index) in seen:
                    continue
                clash = _clash(create, item, found, theirs)
                if clash is None:
                    continue
                seen.add((batch.writer, create.index))
                mine = _own_create(batch, item)
                yield Conflict(
                    clash,
                    _written(create, found, theirs),
                    Side(batch.writer, batch.length, item.rank, _label(item), item.arguments, mine),
                )


def _clash(create: Created, item: Pending, found: Reconstruction, theirs: Batch | None) -> Clash | None:
    if create.kind != item.kind or (create.name is not None and create.name != short(item.name)):
        return Clash.RANK
    if create.kind != "step":
        return None
    other = create.digest if found.compares(create) else None
    if other is None and theirs is not None:
        asked = _asked(found, theirs, create)
        other = None if asked is None else digest_value(asked.arguments)
    return Clash.INPUT if other is not None and other != digest_value(item.arguments) else None


def _asked(found: Reconstruction, batch: Batch, create: Created) -> Pending | None:
    wants = found.asked(batch.length) or ()
    return next((item for item in wants if item.correlation_id == create.correlation_id), None)


def _own_create(batch: Batch, item: Pending) -> Created | None:
    return next((one for one in batch.creates if one.correlation_id == item.correlation_id), None)


def _written(create: Created, found: Reconstruction, batch: Batch | None) -> Side:
    asked = None if batch is None else _asked(found, batch, create)
    return Side(
        writer="a writer that no prefix explains" if batch is None else batch.writer,
        length=create.index if batch is None else batch.length,
        rank=-1 if create.rank is None else create.rank,
        label=create.label,
        arguments=None if asked is None else asked.arguments,
        create=create,
    )


def _label(item: Pending) -> str:
    name = short(item.name)
    return f"{item.kind}:{name}" if name else item.kind


def _of_calls(log: EventLog, engine: Engine, batches: Sequence[Batch], ranks: Iterable[Conflict]) -> Iterator[Conflict]:
    """One call under two ranks: looked for between writers that already disagree about a rank.

    A call is its kind, name and input, and which of several equal ones it is.
    """
    by_name = {batch.writer: batch for batch in batches}
    pairs = dict.fromkeys(
        tuple(sorted((one.one.writer, one.other.writer))) for one in ranks if one.clash is not Clash.INPUT
    )
    known: dict[int, dict[tuple[object, ...], int]] = {}
    for names in list(pairs)[:MAX_PAIRS]:
        if not all(name in by_name for name in names) or len(names) != 2:
            continue
        first, second = sorted((by_name[name] for name in names), key=lambda batch: batch.length)
        for batch in (first, second):
            if batch.length not in known:
                known[batch.length] = _calls(next(iter(engine.passes(log, (batch.length,)))))
        yield from _moved(first, second, known[first.length], known[second.length])


def _calls(replay: Pass) -> dict[tuple[object, ...], int]:
    """The rank of every call of a pass."""
    found: dict[tuple[object, ...], int] = {}
    times: defaultdict[tuple[object, ...], int] = defaultdict(int)
    for draw in replay.draws:
        call = draw.kind, draw.name, _input(draw)
        found[*call, times[call]] = draw.rank
        times[call] += 1
    return found


def _input(draw: Draw) -> str:
    return draw.digest


def _moved(
    one: Batch, other: Batch, here: dict[tuple[object, ...], int], there: dict[tuple[object, ...], int]
) -> Iterator[Conflict]:
    ranks = {rank: call for call, rank in here.items()}
    for create in one.creates:
        call = None if create.rank is None else ranks.get(create.rank)
        if call is None or create.rank is None or call not in there or there[call] == create.rank:
            continue
        theirs = next((mate for mate in other.creates if mate.rank == there[call]), None)
        if theirs is None:
            continue
        sides = [
            Side(one.writer, one.length, create.rank, create.label, None, create),
            Side(other.writer, other.length, there[call], theirs.label, None, theirs),
        ]
        sides.sort(key=lambda side: side.create.index if side.create is not None else 0)
        yield Conflict(Clash.CALL, *sides)
