"""Rebinding: an ordinal of the run's id sequence means the same call, whatever prefix the workflow is replayed from.

Every prefix of the log is replayed, and the whole table of draws (consumed ones included) is compared with the one
before. Where an ordinal changes its meaning from one prefix to the next, two writers that had read so far would have
given one id to two calls: that is how correct stores come to hold corrupted logs (vercel/workflow #3543: ordinal 198
was finalizeStep for readers of up to event 611 and releaseStep from 612 on). A prefix that the workflow cannot follow
at all is a divergence.

A create that the log holds with another input than a replay of all before it asks for is a swap: the engine compares
names only, and goes on with the result of another call.

An ordinal that is missing from one of the two tables is no flip: the shorter prefix had not drawn it yet. Where ids are
not ordinals, the same is asked of each id.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter, eq

from stormctl.engine.door import Divergence, Draw, Engine, Outcome, Pass, Pending
from stormctl.history import Capture, Damaged, Event, EventLog, Sealed, digest_value, ids
from stormctl.history.kinds import GIVES, RUN_FAILED, STEP_CREATED
from stormctl.sweeps.finding import Fault, Item, Noted, Unjudged
from stormctl.sweeps.witness import clean, line

NAME = "rebinding"
KINDS = ("flip", "divergence", "swap", "answer")
#: how many bodies there are: a run's sequence begins again at 0 behind the largest
_BODIES = 1 << 130
_binding = attrgetter("rank", "kind", "name", "id")
#: characters of somebody's error message that a report holds
MOST_OF_AN_ERROR = 300


@dataclass(frozen=True, slots=True)
class Flip:
    """An ordinal whose meaning changed from one prefix to the next. ``was`` and ``now`` are labels, prefixes names.

    ``input_changed`` tells whether the arguments of the call differ too. ``id`` is the id that was given twice, where
    ids do not follow the ranks; ``rank`` is then that of the first call.
    """

    before: int
    after: int
    rank: int
    was: str
    now: str
    input_changed: bool
    id: str | None = None

    @property
    def renames(self) -> bool:
        """Whether the ordinal went to another call, and not only to another input of one call."""
        return self.was != self.now


@dataclass(frozen=True, slots=True)
class Swap:
    """A step that the log holds with another input than a replay of everything before it asks for.

    ``index`` is its create's, ``recorded`` and ``asked`` are the digests of the two inputs.
    """

    index: int
    rank: int
    label: str
    recorded: str
    asked: str


@dataclass(frozen=True, slots=True)
class FirstDivergence:
    """The first prefix that the workflow could not follow, and what disagreed there."""

    prefix: int
    position: int
    rank: int | None
    expected: str
    actual: str
    text: str
    index: int
    event_id: str | None = None


@dataclass(frozen=True, slots=True)
class Rebinding:
    """What one engine made of the prefixes of one log.

    ``prefixes`` is how many were replayed. ``clean_through`` names the longest of them before the first divergence,
    None when the very first diverged. ``blank`` says that the engine could not tell what it drew. ``failure`` is the
    first prefix whose replay raised where the run went on, with the error: the body is not the one that wrote the log,
    or was not given what it read. ``answer`` is what the replay of the whole log returned, where it came to an end, and
    ``lost`` its divergence, where it diverged; ``whole`` says whether the whole log was replayed. ``swaps`` are found
    where a prefix was replayed behind which the create is the workflow's next word.
    """

    engine: str
    workload: str
    prefixes: int
    clean_through: int | None
    flips: tuple[Flip, ...]
    divergence: FirstDivergence | None
    blank: bool = False
    failure: tuple[int, str] | None = None
    answer: Answer | None = None
    swaps: tuple[Swap, ...] = ()
    whole: bool = False
    lost: FirstDivergence | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a workflow returned, by its digest."""

    digest: str


@dataclass(slots=True)
class _Tally:
    prefixes: int = 0
    clean_through: int | None = None
    flips: list[Flip] = field(default_factory=list)
    divergence: FirstDivergence | None = None
    blank: bool = False
    failure: tuple[int, str] | None = None
    answer: Answer | None = None
    swaps: list[Swap] = field(default_factory=list)
    whole: bool = False
    lost: FirstDivergence | None = None
    #: how many recorded inputs are what a replay calls the step with: without one, none can be compared
    same_inputs: int = 0

    def look_for_swaps(self, log: EventLog, replay: Pass, end: int) -> None:
        """Compare what the pass asks for with the creates that follow its prefix, up to ``end`` (an index of the log)
        or to the event that gives the workflow something: from there on it may ask for other things."""
        if replay.divergence is not None:
            return
        asked = {item.correlation_id: item for item in replay.pending if item.create and item.arguments is not None}
        for index in range(replay.prefix, end):
            event = log[index]
            if event.type in GIVES:
                return
            item = asked.pop(event.correlation_id or "", None)
            if item is not None and event.type == STEP_CREATED and event.payload is not None:
                self._compare(index, event, item, event.payload.digest)

    def _compare(self, index: int, event: Event, item: Pending, recorded: str) -> None:
        """A create that the log holds, and the call that a replay makes in its place."""
        if item.name not in (event.name, event.short_name):
            return
        asked = digest_value(item.arguments)
        if asked == recorded:
            self.same_inputs += 1
        else:
            self.swaps.append(Swap(index, item.rank, f"{item.kind}:{event.short_name}", recorded, asked))

    def sure_swaps(self) -> tuple[Swap, ...]:
        """The swaps, where some inputs agree: else they may all be encoded otherwise, or hang on what the log lacks."""
        return tuple(self.swaps) if self.same_inputs > len(self.swaps) else ()


def rebinding(
    log: EventLog,
    engine: Engine,
    lengths: Iterable[int],
    *,
    workload: str = "",
    include_input_only: bool = False,
    observer: Callable[[int, Pass], None] | None = None,
) -> Rebinding:
    """Replay each prefix length, in order, and compare the draw table of each with the one before.

    With ``include_input_only`` an ordinal that kept its call and changed its input counts as a flip as well. That is
    off, because a call's input legitimately depends on results that only the longer prefix holds. The ``observer`` is
    shown every length with its pass, for whoever has another use for them.
    """
    tally = _Tally()
    previous: Pass | None = None
    last = 0
    for length, replay in _replays(log, engine, lengths):
        tally.prefixes += 1
        if observer is not None:
            observer(length, replay)
        name = log.name_of_prefix(length)
        if replay.divergence is not None and tally.divergence is None:
            tally.divergence = _first(log, name, replay.divergence)
        if tally.divergence is None and replay.outcome is not Outcome.DIVERGED:
            tally.clean_through = name
            if tally.failure is None and replay.outcome is Outcome.FAILED and _went_on(log, length):
                tally.failure = (name, replay.error or "it failed")
        if length == len(log):
            tally.whole = True
            tally.lost = None if replay.divergence is None else _first(log, name, replay.divergence)
            if replay.outcome is Outcome.COMPLETED:
                tally.answer = Answer(digest_value(replay.value))
        if previous is not None:
            lost = replay.divergence
            tally.look_for_swaps(log, previous, length if lost is None else min(length, lost.index))
            found = flips(previous, replay, (last, name), include_input_only=include_input_only)
            if found is None:
                tally.blank = True
            else:
                tally.flips.extend(found)
        previous, last = replay, name
    if previous is not None:
        tally.look_for_swaps(log, previous, min(previous.prefix + 1, len(log)))
    return Rebinding(
        engine=engine.name,
        workload=workload or engine.workload or "",
        prefixes=tally.prefixes,
        clean_through=tally.clean_through,
        flips=tuple(tally.flips),
        divergence=tally.divergence,
        blank=tally.blank,
        failure=tally.failure,
        answer=tally.answer,
        swaps=tally.sure_swaps(),
        whole=tally.whole,
        lost=tally.lost,
    )


def _went_on(log: EventLog, length: int) -> bool:
    """Whether the run is known not to have failed at the end of a prefix: its log goes on, and not to a failure."""
    return length < len(log) and not any(event.type == RUN_FAILED for event in log)


def _replays(log: EventLog, engine: Engine, lengths: Iterable[int]) -> Iterator[tuple[int, Pass]]:
    """Each length with its pass. Whatever the engine has running for them ends with the iteration."""
    asked = list(lengths)
    passes = engine.passes(log, asked)
    try:
        yield from zip(asked, passes, strict=True)
    finally:
        if isinstance(passes, Generator):
            passes.close()


def flips(before: Pass, after: Pass, names: tuple[int, int], *, include_input_only: bool = False) -> list[Flip] | None:
    """The flips between two passes; None when one of them has no draw table."""
    tables = _table(before), _table(after)
    if tables[0] is None or tables[1] is None:
        return None
    old, new = _apart(tables[0], tables[1])
    if not include_input_only and all(map(eq, map(_binding, old), map(_binding, new))):
        return []  # one of the two may still hold more: that is no flip
    by_rank = ids_are_ranks((*old, *new))
    return [
        Flip(
            names[0],
            names[1],
            was.rank,
            was.label,
            now.label,
            input_changed=was.digest != now.digest,
            id=None if by_rank else was.id,
        )
        for was, now in _shared(old, new, by_rank=by_rank)
        if _differs(was, now, include_input_only=include_input_only)
    ]


def _table(replay: Pass) -> tuple[Draw, ...] | None:
    """The draw table; an engine that cannot know it leaves None there."""
    return replay.draws


def _apart(before: tuple[Draw, ...], after: tuple[Draw, ...]) -> tuple[list[Draw], list[Draw]]:
    """What one table holds and the other does not. Our engines put the same objects into the tables of one log.

    So of thousands of draws a few are left to compare, and what is left out is in both, with one rank and one id.
    """
    if before is after:
        return [], []
    common = min(len(before), len(after))
    pairs = [(was, now) for was, now in zip(before, after, strict=False) if was is not now]
    return [was for was, _ in pairs] + [*before[common:]], [now for _, now in pairs] + [*after[common:]]


def _differs(was: Draw, now: Draw, *, include_input_only: bool) -> bool:
    """The one place that decides what counts as a flip."""
    if was.name != now.name or was.kind != now.kind:
        return True
    return include_input_only and was.digest != now.digest


def _shared(before: list[Draw], after: list[Draw], *, by_rank: bool) -> Iterator[tuple[Draw, Draw]]:
    """The draws of one rank, or of one id, in both tables."""
    key = attrgetter("rank" if by_rank else "id")
    found = {key(draw): draw for draw in after}
    for was in before:
        now = found.get(key(was))
        if now is not None:
            yield was, now


def ids_are_ranks(draws: Iterable[Draw]) -> bool:
    """Whether the ids tell the rank and nothing else, or are not told.

    Where they do not (ids by kind, by call site), a rank is only a place in the order of the draws, and no event of the
    log refers to it: two calls were given one name only if they were given one id.
    """
    first: int | None = None
    for draw in draws:
        if draw.id is None:
            return True
        body = ids.split(draw.id)[1]
        if ids.is_count(body) or not ids.is_body(body):
            return False
        distance = (ids.ordinal(body) - draw.rank) % _BODIES
        if first is None:
            first = distance
        elif first != distance:
            return False
    return True


def _first(log: EventLog, prefix: int, divergence: Divergence) -> FirstDivergence:
    return FirstDivergence(
        prefix=prefix,
        position=log.place(divergence.index),
        rank=divergence.rank,
        expected=divergence.expected,
        actual=divergence.actual,
        text=divergence.text,
        index=divergence.index,
        event_id=divergence.event_id,
    )


def faults(capture: Capture, found: Rebinding) -> Iterator[Item]:
    """The flips and the divergence of one engine as faults of the sweep."""
    log = capture.log
    if found.blank:
        yield Unjudged(f"the draws of {found.engine}, which this engine does not tell")
    if found.failure is not None:
        prefix, error = found.failure
        raised = f"from prefix {prefix}, {found.workload} raised {clean(error)[:MOST_OF_AN_ERROR]}"
        yield Unjudged(f"a replay by {found.engine} that does not fail ({raised}, and the run went on)")
    for flip in found.flips:
        index = log.length_of_prefix(flip.after) - 1
        called = f"rank {flip.rank}" if flip.id is None else f"id {clean(flip.id)}"
        what = f"is {flip.was} up to {flip.before} and {flip.now} from {flip.after} on"
        if not flip.renames:
            what = f"is {flip.was} with another input from {flip.after} on"
        shown = (
            f"prefix {flip.before}: {called} is {flip.was}",
            f"{line(log, index)} (the event that flips it)",
            f"prefix {flip.after}: {called} is {flip.now}",
        )
        entity = f"{found.engine}/{flip.rank if flip.id is None else flip.id}/{flip.was}/{flip.now}"
        yield Fault("flip", f"under {found.engine}, {called} {what}", (index,), entity, shown)
    for swap in found.swaps:
        text = f"under {found.engine}, {swap.label} (rank {swap.rank}) was written with an input that no replay of "
        text += "all before it asks for; the engine compares names only"
        entity = f"{found.engine}/{swap.rank}/{swap.label}"
        inputs = (f"recorded input {swap.recorded}", f"input that is asked for {swap.asked}")
        yield Fault("swap", text, (swap.index,), entity, (line(log, swap.index), *inputs))
    yield from _other_answer(capture, found)
    lost = found.divergence
    if lost is not None:
        event = log[lost.index]
        at = f"under {found.engine}, the event at {lost.position} belongs to {lost.expected}"
        there = "the workflow does not ask for it" if lost.actual == "nothing" else f"the workflow is at {lost.actual}"
        text = f"{at}, but {there} there"
        entity = f"{found.engine}/{event.correlation_id or event.type}/{event.type}"
        both = (line(log, lost.index), f"replayed from prefix {lost.prefix}: {lost.text}")
        yield Fault("divergence", text, (lost.index,), entity, both)


def _other_answer(capture: Capture, found: Rebinding) -> Iterator[Item]:
    """A run that returned something else than a replay of its whole log does."""
    run = capture.run
    if found.answer is None or run is None or run.status != "completed" or run.output is None:
        return
    returned, replayed = digest_value(run.output), found.answer.digest
    if returned != replayed and any(isinstance(event.payload, (Sealed, Damaged)) for event in capture.log):
        yield Noted("the payloads that the run's answer may be made of")  # the replay had nothing in their place
    elif returned != replayed:
        last = len(capture.log) - 1
        both = (f"the run returned a value with digest {returned}", f"a replay returns one with digest {replayed}")
        text = f"under {found.engine}, the log leads to another answer than the one that the run returned"
        yield Fault("answer", text, (last,), found.engine, (line(capture.log, last), *both))
