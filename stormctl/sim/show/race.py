"""The pair of turns that makes the difference between a schedule that fails and one that does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stormctl.sim.kernel import Label, Run, Turn

#: turns of which pairs are looked at: a schedule that is shown was shrunk, and is far shorter
MOST_TURNS = 5_000
_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Race:
    """Two turns of one run, 0-based, ``first`` taken before ``second``; the other run has them the other way round,
    or has only one of them."""

    first: int
    second: int


def depend(one: Label, other: Label) -> bool:
    """Whether two turns of different actors do not commute: they touch one thing and one of them changes it."""
    return bool(one.resource) and one.resource == other.resource and (one.writes or other.writes)


def racing_pair(run: Run, other: Run) -> Race | None:
    """The earliest two dependent turns of ``run`` that ``other`` took in the opposite order, the closest of those that
    begin there; of reads and writes of the log where there are such. None when there are none. A turn is known by its
    actor's name and its number among that actor's."""
    return _pair(run, other, "log ") or _pair(run, other, "")


def _pair(run: Run, other: Run, about: str) -> Race | None:
    there = {key: at for at, key in enumerate(_keys(other))}
    turns = run.turns[:MOST_TURNS]
    keys = list(_keys(run))[: len(turns)]
    writers: dict[str, list[int]] = {}
    best: Race | None = None
    for second, turn in enumerate(turns):
        if not turn.label.resource or not turn.label.resource.startswith(about):
            continue
        for first in reversed(writers.get(turn.label.resource, ())):
            if best is not None and first >= best.first:
                continue
            before = turns[first]
            if before.actor == turn.actor or not depend(before.label, turn.label):
                continue
            if _turned_round(keys[first], keys[second], there):
                best = Race(first, second)
        writers.setdefault(turn.label.resource, []).append(second)
    return best


def _turned_round(first: _Key, second: _Key, there: dict[_Key, int]) -> bool:
    return first in there and second in there and there[second] < there[first]


def _keys(run: Run) -> Iterator[_Key]:
    counts: dict[int, int] = {}
    for turn in run.turns:
        number = counts.get(turn.actor, 0)
        counts[turn.actor] = number + 1
        yield run.names[turn.actor], number


def split(one: Sequence[Turn], other: Sequence[Turn]) -> int:
    """How many turns two runs of one model have in common from the beginning on."""
    for at, (here, there) in enumerate(zip(one, other, strict=False)):
        if here.actor != there.actor:
            return at
    return min(len(one), len(other))
