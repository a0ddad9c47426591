"""Perturbation: one prefix gives one draw table, however long reading a payload takes.

A prefix is replayed many ways, with other costs of hydration, a cold or warm cache, coarser timers and other handling
of attribute writes, and each pass is held against the calm one. What differs is the engine's doing and not the log's:
two deliveries of one run that read the same prefix would have asked for different things (vercel/workflow #3137, #3198,
#3879). The smallest perturbation that does it is looked for, and told with both bindings side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stormctl.engine.door import Divergence, Draw, Engine, Outcome, Pass, Perturbation
from stormctl.history import Capture, EventLog
from stormctl.history.kinds import ATTR_SET
from stormctl.sweeps.finding import Fault, Item, Unjudged
from stormctl.sweeps.rebinding import Rebinding, ids_are_ranks
from stormctl.sweeps.smallest import smallest
from stormctl.sweeps.ways import ways, words
from stormctl.sweeps.witness import line

NAME = "perturbation"
KINDS = ("draws", "outcome")
#: with more prefixes than this a sample of them is replayed
MOST_PREFIXES = 12
#: differences that are shrunk and told; further ones are counted
MOST_DIFFERENCES = 8
NOTHING = "not drawn"


@dataclass(frozen=True, slots=True)
class Unlike:
    """How a pass differs from the calm one over the same prefix. ``rank`` is the first that does, None for an outcome.

    ``calm`` and ``other`` are labels of the two bindings, or the two outcomes in words.
    """

    kind: str
    rank: int | None
    calm: str
    other: str


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference with the smallest perturbation that makes it, at the shortest of the prefixes that show it.

    ``prefix`` is the prefix's name and ``index`` the 0-based index of its last event. ``prefixes`` and ``passes`` are
    how many of those replayed differ in this way.
    """

    unlike: Unlike
    prefix: int
    index: int
    perturbation: Perturbation
    prefixes: int
    passes: int


@dataclass(frozen=True, slots=True)
class Perturbed:
    """What one engine made of the same prefixes in many ways.

    ``prefixes`` are the names of the prefixes that were replayed, ``of`` how many there were to choose from. ``more``
    counts differences beyond those that are told. ``blank`` says that the engine could not tell what it drew.
    """

    engine: str
    workload: str
    prefixes: tuple[int, ...]
    of: int
    ways: int
    seed: int
    replays: int
    differences: tuple[Difference, ...]
    more: int = 0
    blank: bool = False


@dataclass(slots=True)
class _Group:
    """All passes that differ in one way: the shortest prefix with the plainest perturbation, and who else does."""

    unlike: Unlike
    length: int
    way: Perturbation
    lengths: set[int]
    passes: int = 0


def sample(lengths: Sequence[int], log: EventLog, found: Rebinding | None = None) -> list[int]:
    """The prefix lengths to replay: all when they are few.

    Else the longest, those around the flips and the first divergence where an engine found some, and others evenly
    between.
    """
    if len(lengths) <= MOST_PREFIXES:
        return list(lengths)
    chosen = dict.fromkeys([lengths[-1]])
    if found is not None:
        marks = [] if found.divergence is None else [found.divergence.prefix]
        marks += [flip.after for flip in found.flips]
        for name in marks:
            length = log.length_of_prefix(name)
            chosen |= dict.fromkeys(near for near in (length, length - 1) if near in lengths)
    chosen = dict.fromkeys(list(chosen)[:MOST_PREFIXES])
    free = MOST_PREFIXES - len(chosen)
    for place in range(1, free + 1):
        at = place * len(lengths) // (free + 1)
        near = next((one for one in lengths[at:] if one not in chosen), None)
        if near is not None:
            chosen[near] = None
    return sorted(chosen)


def perturbed(
    log: EventLog,
    engine: Engine,
    lengths: Sequence[int],
    count: int,
    *,
    seed: int = 0,
    workload: str = "",
    found: Rebinding | None = None,
) -> Perturbed:
    """Replay a sample of the prefixes ``count`` ways and compare each pass with the calm one.

    ``found`` is what the rebinding sweep said of the same engine; it decides which prefixes are worth a replay.
    """
    chosen = sample(lengths, log, found)
    calm = dict(zip(chosen, engine.passes(log, chosen), strict=True))
    replays = len(chosen)
    groups: dict[Unlike, _Group] = {}
    blank = any(_table(one) is None for one in calm.values())
    if not blank:
        for way in ways(count, seed, chosen[-1] if chosen else 0):
            for length, replay in zip(chosen, engine.passes(log, chosen, perturbation=way), strict=True):
                replays += 1
                unlike = difference(log, calm[length], replay)
                if unlike is not None:
                    _note(groups, unlike, length, way)
    told = sorted(groups.values(), key=lambda group: (group.length, group.unlike.rank or 0))
    differences = []
    for group in told[:MOST_DIFFERENCES]:
        shrunk, tries = _shrunk(log, engine, calm[group.length], group)
        replays += tries
        differences.append(shrunk)
    return Perturbed(
        engine=engine.name,
        workload=workload or engine.workload or "",
        prefixes=tuple(map(log.name_of_prefix, chosen)),
        of=len(lengths),
        ways=count,
        seed=seed,
        replays=replays,
        differences=tuple(differences),
        more=len(told) - len(differences),
        blank=blank,
    )


def difference(log: EventLog, calm: Pass, other: Pass) -> Unlike | None:
    """How two passes over one prefix differ: the first rank of their tables that does, else their outcomes.

    Where ids do not follow the ranks (ids by kind, by call site) draws are compared by id: their order names nothing. A
    pass that diverged was cut off, so that the ranks it lacks say nothing. A run that ends while an attribute write
    is parked is stranded by that very handling, which is no difference either.
    """
    was, now = _table(calm) or (), _table(other) or ()
    if was == now:
        left: dict[int, Draw] = {}
        right: dict[int, Draw] = {}
    elif ids_are_ranks((*was, *now)):
        left, right = _by_rank(was), _by_rank(now)
    else:
        left, right = _by_id(was, now)
    if calm.divergence is not None or other.divergence is not None:
        ranks = left.keys() & right.keys()
    else:
        ranks = left.keys() | right.keys()
    for rank in sorted(ranks):
        one, two = left.get(rank), right.get(rank)
        if one is None or two is None or (one.kind, one.name) != (two.kind, two.name):
            return Unlike("draws", rank, _label(one), _label(two))
        if one.digest != two.digest:
            return Unlike("draws", rank, one.label, f"{two.label} with another input")
    if any(_stranded_attribute(one) for one in (calm, other)):
        return None
    ends = _end(log, calm), _end(log, other)
    if ends[0] != ends[1]:
        return Unlike("outcome", None, *ends)
    if (calm.value, calm.error) != (other.value, other.error):
        return Unlike("outcome", None, ends[0], f"{ends[1]} with another {'error' if other.error else 'value'}")
    return None


def _note(groups: dict[Unlike, _Group], unlike: Unlike, length: int, way: Perturbation) -> None:
    group = groups.get(unlike)
    if group is None:
        group = groups[unlike] = _Group(unlike, length, way, set())
    elif length < group.length:
        group.length, group.way = length, way
    group.lengths.add(length)
    group.passes += 1


def _shrunk(log: EventLog, engine: Engine, calm: Pass, group: _Group) -> tuple[Difference, int]:
    """The group's difference with its smallest perturbation. Any difference counts on the way there, and the one that
    the smallest makes is told."""
    seen = {group.way: group.unlike}

    def does_it(way: Perturbation) -> bool:
        (replay,) = engine.passes(log, (group.length,), perturbation=way)
        unlike = difference(log, calm, replay)
        if unlike is not None and unlike.kind == group.unlike.kind and unlike.rank == group.unlike.rank:
            seen[way] = unlike
            return True
        return False

    way, tries = smallest(does_it, group.way)
    name = log.name_of_prefix(group.length)
    return Difference(seen[way], name, group.length - 1, way, len(group.lengths), group.passes), tries


def _table(replay: Pass) -> tuple[Draw, ...] | None:
    """The draw table; an engine that cannot know it leaves None there."""
    return replay.draws


def _by_rank(table: Iterable[Draw]) -> dict[int, Draw]:
    return {draw.rank: draw for draw in table}


def _by_id(was: Iterable[Draw], now: Iterable[Draw]) -> tuple[dict[int, Draw], dict[int, Draw]]:
    """Both tables by id, an id being the rank of its first draw in the one, or else in the other."""
    left, right = ({draw.id: draw for draw in table} for table in (was, now))
    numbers = {key: draw.rank for key, draw in right.items()} | {key: draw.rank for key, draw in left.items()}
    place = {key: at for at, key in enumerate(sorted(numbers, key=lambda key: (numbers[key], key not in left)))}
    return {place[key]: draw for key, draw in left.items()}, {place[key]: draw for key, draw in right.items()}


def _label(draw: Draw | None) -> str:
    return NOTHING if draw is None else draw.label


def _end(log: EventLog, replay: Pass) -> str:
    """An outcome in words. A suspension that left results undelivered asks for too little, which is another outcome."""
    if replay.divergence is not None:
        return _diverged(log, replay.divergence)
    parts = [str(replay.outcome)]
    if replay.outcome is Outcome.SUSPENDED:
        parts += [f"with {replay.undelivered} results undelivered"] if replay.undelivered else []
        parts += ["and nothing to wake it"] if replay.stalled else []
    return " ".join(parts)


def _stranded_attribute(replay: Pass) -> bool:
    lost = replay.divergence
    return lost is not None and lost.reason == "stranded" and lost.event_type == ATTR_SET


def _diverged(log: EventLog, lost: Divergence) -> str:
    return f"diverged at {log.place(lost.index)}, of {lost.expected}, at {lost.actual}"


def faults(capture: Capture, found: Perturbed) -> Iterator[Item]:
    """The differences of one engine as faults of the sweep."""
    if found.blank:
        yield Unjudged(f"the draws of {found.engine}, which this engine does not tell")
    if not found.prefixes:
        yield Unjudged("a prefix in the given range")
    for one in found.differences:
        unlike, way = one.unlike, words(one.perturbation)
        what = f"ends {unlike.calm}" if unlike.rank is None else f"rank {unlike.rank} is {unlike.calm}"
        other = f"is {unlike.other}" if unlike.rank is not None else f"ends {unlike.other}"
        same = f"under {found.engine}, prefix {one.prefix} does not give one answer"
        entity = f"{found.engine}/{'' if unlike.rank is None else f'{unlike.rank}/'}{unlike.calm}/{unlike.other}"
        shown = (
            line(capture.log, one.index) + " (the end of the prefix)",
            f"calm: {what}",
            f"{way}: {other if unlike.rank is None else f'rank {unlike.rank} {other}'}",
        )
        calm_words = f"calm, {what}" if unlike.rank is not None else f"calm, it {what}"
        yield Fault(unlike.kind, f"{same}: {calm_words}; with {way}, it {other}", (one.index,), entity, shown)
