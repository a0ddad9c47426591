"""One schedule of each class: dynamic partial-order reduction with source sets and sleep sets.

Abdulla, Aronis, Jonsson, Sagonas: "Optimal Dynamic Partial Order Reduction" (POPL 2014), the source-DPOR of section 5.
After each schedule the races in it are looked for: two dependent turns of different actors with nothing between them
that orders them. The first one's place is then also given to an actor that could begin the reversed order. An actor
that was tried at a place sleeps there until a turn that it depends on; a schedule in which all who could go on are
asleep is one that was seen, and is abandoned.

Beyond the paper: a pick is tried each way, and a turn that had to be waited for races with all earlier turns that it
depends on. The one right before it cannot be overtaken (who gave a lock back), but an earlier one may (who took it).
Whether it may is not known before it is tried, so that models with waits have some abandoned schedules (1 in 20 of
small random ones); those without have next to none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stormctl.sim.classes import dependent
from stormctl.sim.kernel import Label, Pick, Run, Stage
from stormctl.sim.strategies.base import Abandoned


@dataclass(slots=True)
class Place:
    """A choice on the way of the present schedule.

    Of a turn: ``labels`` what each actor that can go on would do (in the kernel's order), ``tried`` those that must be
    tried here, ``asleep`` those whose schedules from here were seen, ``waits`` those that wait or have waited.
    Of a pick: ``width`` options, and ``chosen`` is an
    index.
    """

    chosen: int
    labels: dict[int, Label] = field(default_factory=dict)
    asleep: dict[int, Label] = field(default_factory=dict)
    tried: list[int] = field(default_factory=list)
    width: int = 0
    waits: dict[int, Label] = field(default_factory=dict)

    @property
    def label(self) -> Label:
        """What the turn is."""
        return self.labels[self.chosen]

    def still_asleep(self) -> dict[int, Label]:
        """Who sleeps on behind the turn."""
        label = self.label
        return {
            actor: other for actor, other in self.asleep.items() if actor != self.chosen and not dependent(label, other)
        }


@dataclass(frozen=True, slots=True)
class Seen:
    """What a schedule came by: the places behind its way, and how many actors there were at each of its turns and in
    the end. ``stuck`` are the turns that actors wait for in vain."""

    places: list[Place]
    counts: list[int]
    stuck: dict[int, Label]


class PlaceChooser:
    """Follows a way, then goes on with whoever is not asleep, and writes down the places that it comes by."""

    sees_every_turn = True

    def __init__(self, way: Sequence[int], asleep: dict[int, Label]) -> None:
        self._way = way
        self._at = 0
        self._asleep = asleep
        self._places: list[Place] = []
        self._counts: list[int] = []
        self._stage: Stage | None = None

    def turn(self, stage: Stage, options: Sequence[int]) -> int:
        """The index of the actor on the way; behind it, of the first that is awake. Abandoned where none is."""
        at, self._at = self._at, self._at + 1
        self._counts.append(len(stage.run.names))
        self._stage = stage
        if at < len(self._way):
            return options.index(self._way[at])
        asleep = self._asleep
        for index, actor in enumerate(options):
            if actor not in asleep:
                place = Place(actor, {number: stage.label(number) for number in options}, asleep, [actor])
                place.waits = stage.waits()
                self._places.append(place)
                self._asleep = place.still_asleep()
                return index
        raise Abandoned

    def pick(self, stage: Stage, actor: int, pick: Pick) -> int:
        """The option on the way; behind it the ordinary one."""
        at, self._at = self._at, self._at + 1
        if at < len(self._way):
            return self._way[at]
        self._places.append(Place(0, width=len(pick.options)))
        return 0

    def report(self, run: Run | None) -> Seen:
        """The places behind the way."""
        if run is None or self._stage is None:
            return Seen(self._places, self._counts, {})
        return Seen(self._places, [*self._counts, len(run.names)], self._stage.waits())


class Search:
    """The places of the present schedule, and which of them have something left to try."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._begun = False

    def chooser(self) -> PlaceChooser | None:
        """Who plays the next schedule; None when every class was seen."""
        if self._begun and not self._places:
            return None
        asleep: dict[int, Label] = {}
        for place in reversed(self._places):
            if not place.width:
                asleep = place.still_asleep()
                break
        return PlaceChooser([place.chosen for place in self._places], asleep)

    def learn(self, seen: Seen) -> None:
        """Add what the schedule came by, look for its races, and go back to where something is left."""
        self._begun = True
        places = self._places
        known = len(places)
        places.extend(seen.places)
        self._look_for_races(known - 1, seen)  # the place that was changed last is another one, too
        while places:
            place = places[-1]
            if place.width:
                if place.chosen + 1 < place.width:
                    place.chosen += 1
                    return
            else:
                place.asleep = {**place.asleep, place.chosen: place.label}
                for actor in place.tried:
                    if actor not in place.asleep:
                        place.chosen = actor
                        return
            places.pop()

    def _look_for_races(self, new: int, seen: Seen) -> None:
        """Look at each turn from place ``new`` on, and at those that are waited for in vain."""
        turns = [(at, place) for at, place in enumerate(self._places) if not place.width]
        before: list[int] = []  # for each turn a set of bits: the turns that must come before it
        last: dict[int, int] = {}  # the last turn of each actor, at first that which spawned it
        for index, (at, place) in enumerate(turns):
            label, actor = place.label, place.chosen
            mask = 0
            if actor in last:
                mask = before[last[actor]] | 1 << last[actor]
            if actor in place.waits and not label.resource:
                mask |= self._woken(turns, before, index, actor)
            own = mask
            races: list[int] = []
            for earlier in range(index - 1, -1, -1):
                if not mask >> earlier & 1 and dependent(turns[earlier][1].label, label):
                    mask |= before[earlier] | 1 << earlier
                    races.append(earlier)
            before.append(mask)
            if at >= new:
                if actor in place.waits:
                    races = self._earlier(turns, label, own, actor, last.get(actor, -1), index)
                for earlier in races:
                    self._reverse(turns, before, earlier, index, actor, mask)
            last[actor] = index
            for child in range(seen.counts[index], seen.counts[index + 1] if index + 1 < len(seen.counts) else 0):
                last[child] = index
        for actor, label in seen.stuck.items():
            own = before[last[actor]] | 1 << last[actor] if actor in last else 0
            for earlier in self._earlier(turns, label, own, actor, last.get(actor, -1), len(turns)):
                self._reverse(turns, before, earlier, len(turns), actor, own)

    @staticmethod
    def _woken(turns: list[tuple[int, Place]], before: list[int], index: int, actor: int) -> int:
        """The turns before one that was waited for without saying what for: the one that let it go on, and those
        before that."""
        for earlier in range(index - 1, -1, -1):
            if actor not in turns[earlier][1].labels:
                return before[earlier] | 1 << earlier
        return 0

    @staticmethod
    def _earlier(
        turns: list[tuple[int, Place]], label: Label, own: int, actor: int, last: int, before: int
    ) -> list[int]:
        """All turns before number ``before`` that a turn depends on, unless its own actor's turns before it (``own``)
        do, of which ``last`` is the last.

        Left out is a turn at whose place the actor waited already and could not go on: without that turn it could not
        either, for whatever lets it go on touches what it waits for, and so comes behind that turn.
        """
        found = []
        for earlier in range(before - 1, -1, -1):
            place = turns[earlier][1]
            if own >> earlier & 1 or not dependent(place.label, label):
                continue
            if earlier > last and actor in place.waits and actor not in place.labels:
                continue
            found.append(earlier)
        return found

    def _reverse(
        self, turns: list[tuple[int, Place]], before: list[int], earlier: int, later: int, actor: int, mask: int
    ) -> None:
        """Let the turn ``later`` of ``actor``, behind those of ``mask``, come before the turn ``earlier`` some day."""
        place = turns[earlier][1]
        first: list[int] = []
        seen = 0
        for at in range(earlier + 1, later):
            if before[at] >> earlier & 1:
                continue
            if not before[at] & seen:
                first.append(turns[at][1].chosen)
            seen |= 1 << at
        if not mask & seen:
            first.append(actor)
        if any(who in place.tried for who in first):
            return
        able = [who for who in (actor, *first) if who in first and who in place.labels]
        if able:
            place.tried.append(able[0])
