"""Rebinding: an ordinal of the run's id sequence means the same call, whatever prefix the workflow is replayed from.

Every prefix of the log is replayed, and the whole table of draws (consumed ones included) is compared with the one
before. Where an ordinal changes its meaning from one prefix to the next, two writers that had read so far would have
given one id to two calls: that is how correct stores come to hold corrupted logs (vercel/workflow #3543: ordinal 198
was finalizeStep for readers of up to event 611 and releaseStep from 612 on). A prefix that the workflow cannot follow
at all is a divergence.

An ordinal that is missing from one of the two tables is no flip: the shorter prefix had not drawn it yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from stormctl.engine.door import Divergence, Draw, Engine, Outcome, Pass
from stormctl.history import Capture, EventLog
from stormctl.sweeps.finding import Fault, Item, Unjudged
from stormctl.sweeps.witness import line

NAME = "rebinding"
KINDS = ("flip", "divergence")


@dataclass(frozen=True, slots=True)
class Flip:
    """An ordinal whose meaning changed from one prefix to the next. ``was`` and ``now`` are labels, prefixes names.

    ``input_changed`` tells whether the arguments of the call differ too.
    """

    before: int
    after: int
    rank: int
    was: str
    now: str
    input_changed: bool

    @property
    def renames(self) -> bool:
        """Whether the ordinal went to another call, and not only to another input of one call."""
        return self.was != self.now


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
    None when the very first diverged. ``blank`` says that the engine could not tell what it drew.
    """

    engine: str
    workload: str
    prefixes: int
    clean_through: int | None
    flips: tuple[Flip, ...]
    divergence: FirstDivergence | None
    blank: bool = False


@dataclass(slots=True)
class _Tally:
    prefixes: int = 0
    clean_through: int | None = None
    flips: list[Flip] = field(default_factory=list)
    divergence: FirstDivergence | None = None
    blank: bool = False


def rebinding(
    log: EventLog, engine: Engine, lengths: Iterable[int], *, workload: str = "", include_input_only: bool = False
) -> Rebinding:
    """Replay each prefix length, in order, and compare the draw table of each with the one before.

    With ``include_input_only`` an ordinal that kept its call and changed its input counts as a flip as well. That is
    off, because a call's input legitimately depends on results that only the longer prefix holds.
    """
    tally = _Tally()
    previous: Pass | None = None
    last = 0
    for length, replay in _replays(log, engine, lengths):
        tally.prefixes += 1
        name = log.name_of_prefix(length)
        if replay.divergence is not None and tally.divergence is None:
            tally.divergence = _first(log, name, replay.divergence)
        if tally.divergence is None and replay.outcome is not Outcome.DIVERGED:
            tally.clean_through = name
        if previous is not None and previous is not replay:
            found = flips(previous, replay, (last, name), include_input_only=include_input_only)
            if found is None:
                tally.blank = True
            else:
                tally.flips.extend(found)
        previous, last = replay, name
    return Rebinding(
        engine=engine.name,
        workload=workload or engine.workload or "",
        prefixes=tally.prefixes,
        clean_through=tally.clean_through,
        flips=tuple(tally.flips),
        divergence=tally.divergence,
        blank=tally.blank,
    )


def _replays(log: EventLog, engine: Engine, lengths: Iterable[int]) -> Iterator[tuple[int, Pass]]:
    """Each length with its pass: the one before again where the engine knows that the added event binds nothing.

    About half of a storm's events are of that kind. A test holds the result equal to replaying every prefix.
    """
    before: Pass | None = None
    reached = 0
    for length in lengths:
        if before is None or length != reached + 1 or not engine.binds_nothing_new(before, log[length - 1]):
            before = next(iter(engine.passes(log, (length,))))
        reached = length
        yield length, before


def flips(before: Pass, after: Pass, names: tuple[int, int], *, include_input_only: bool = False) -> list[Flip] | None:
    """The flips between two passes; None when one of them has no draw table."""
    tables = _table(before), _table(after)
    if tables[0] is None or tables[1] is None:
        return None
    return [
        Flip(names[0], names[1], was.rank, was.label, now.label, input_changed=was.digest != now.digest)
        for was, now in _shared(tables[0], tables[1])
        if _differs(was, now, include_input_only=include_input_only)
    ]


def _table(replay: Pass) -> tuple[Draw, ...] | None:
    """The draw table; an engine that cannot know it leaves None there."""
    return replay.draws


def _differs(was: Draw, now: Draw, *, include_input_only: bool) -> bool:
    """The one place that decides what counts as a flip."""
    if was is now:
        return False
    if was.name != now.name or was.kind != now.kind:
        return True
    return include_input_only and was.digest != now.digest


def _shared(before: tuple[Draw, ...], after: tuple[Draw, ...]) -> Iterator[tuple[Draw, Draw]]:
    """The draws of one rank in both tables. Tables of our engines are dense, so that pairs align by place."""
    aligned = True
    for was, now in zip(before, after, strict=False):
        if was.rank != now.rank:
            aligned = False
            break
    if aligned:
        yield from zip(before, after, strict=False)
        return
    by_rank = {draw.rank: draw for draw in after}
    for was in before:
        if was.rank in by_rank:
            yield was, by_rank[was.rank]


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
    for flip in found.flips:
        index = log.length_of_prefix(flip.after) - 1
        what = f"is {flip.was} up to {flip.before} and {flip.now} from {flip.after} on"
        if not flip.renames:
            what = f"is {flip.was} with another input from {flip.after} on"
        shown = (
            f"prefix {flip.before}: rank {flip.rank} is {flip.was}",
            f"{line(log, index)} (the event that flips it)",
            f"prefix {flip.after}: rank {flip.rank} is {flip.now}",
        )
        entity = f"{found.engine}/{flip.rank}/{flip.was}/{flip.now}"
        yield Fault("flip", f"under {found.engine}, rank {flip.rank} {what}", (index,), entity, shown)
    lost = found.divergence
    if lost is not None:
        event = log[lost.index]
        at = f"under {found.engine}, the event at {lost.position} belongs to {lost.expected}"
        there = "the workflow does not ask for it" if lost.actual == "nothing" else f"the workflow is at {lost.actual}"
        text = f"{at}, but {there} there"
        entity = f"{found.engine}/{event.correlation_id or event.type}/{event.type}"
        both = (line(log, lost.index), f"replayed from prefix {lost.prefix}: {lost.text}")
        yield Fault("divergence", text, (lost.index,), entity, both)
