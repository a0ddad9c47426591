"""The races of a user's own body, found by replaying it: the user declares nothing.

A replay that follows a log to its end took the branches that the log shows. It tells, race by race, who won and where
each racer's result stands in the log; a winner that is not the first there is a contradiction. The generations are
tried in turn, because each has its own way of letting results race, and one that follows the log without a
contradiction settles it. Where none follows, races are made to go the other way, the latest first, as long as that
lets the replay follow the log further: then the log shows that they did. A log that no replay follows to its end (a
corrupted one) is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stormctl.engine.door import Outcome, Pass
from stormctl.engine.generations import GENERATIONS
from stormctl.engine.race_record import RaceRun, Recorder, Source, Untraced
from stormctl.history import EventLog, kinds
from stormctl.workloads.base import Workload
from stormctl.workloads.races import Race, Races, Trail, Untold
from stormctl.workloads.user_engine import UserEngine

#: how many races of one log may be found to have gone another way, and how many are tried for each
MOST_TURNED, MOST_TRIED = 32, 12


def races_of(workload: Workload) -> Races:
    """The declaration that a user's workload did not write."""

    def races(input: Any, trail: Trail) -> Iterator[Race]:
        yield from _Finder(workload, input, trail.log).races()

    return races


@dataclass(frozen=True, slots=True)
class _Followed:
    """One replay: how far it followed the log (an index), and its races."""

    made: Pass
    recorder: Recorder
    reached: int
    whole: bool


class _Finder:
    def __init__(self, workload: Workload, input: Any, log: EventLog) -> None:
        self._workload = workload
        self._input = input
        self._log = log
        # what ended the run is no result; where those events stood is kept for what is told
        self._kept = [index for index, event in enumerate(log) if not event.is_terminal]
        self._told = EventLog([log[index] for index in self._kept], log.run_id)
        self._end = next((index for index, event in enumerate(log) if event.is_terminal), None)
        self._places = _places(log)
        self._created = {
            log.rank(event): index for index, event in reversed(list(enumerate(log))) if event.type in kinds.CREATES
        }

    def races(self) -> Iterator[Race]:
        """The races of the replay that follows the log to its end; Untold where none does."""
        best: _Followed | None = None
        for name in reversed(GENERATIONS):
            found = self._replay(name)
            if found.whole:
                if not any(race.contradictions for race in self._told_of(found)):
                    yield from self._told_of(found)
                    return
                if best is None or not best.whole or self._wrong(found) < self._wrong(best):
                    best = found
            elif best is None or (not best.whole and found.reached > best.reached):
                best = found
        assert best is not None
        if not best.whole:
            best = self._turned()
        if not best.whole:  # which way its races went is a guess, and a guess must not convict
            where = self._log.place(self._kept[best.reached]) if best.reached < len(self._kept) else "its end"
            raise Untold(f"a replay that follows the log beyond {where}")
        yield from self._told_of(best)

    def _wrong(self, found: _Followed) -> int:
        return sum(1 for race in self._told_of(found) if race.contradictions)

    def _replay(self, generation: str, forced: Mapping[int, int] | None = None) -> _Followed:
        recorder = Recorder(forced or {})
        engine = UserEngine(generation, replace(self._workload, body=recorder.around(self._workload.body)), self._input)
        (made,) = engine.passes(self._told, [len(self._told)])
        stopped = [made.divergence.index] if made.divergence is not None else list(made.parked or ())[:1]
        return _Followed(made, recorder, min(stopped, default=len(self._told)), not stopped and self._ends_alike(made))

    def _ends_alike(self, made: Pass) -> bool:
        """Whether the replay ends as the run did."""
        end = None if self._end is None else self._log[self._end].type
        if end == kinds.RUN_COMPLETED:
            return made.outcome is Outcome.COMPLETED
        if end == kinds.RUN_FAILED:
            return made.outcome is Outcome.FAILED
        return made.outcome in (Outcome.SUSPENDED, Outcome.COMPLETED)

    def _turned(self) -> _Followed:
        """The replay in log order, with those races turned round that keep it from following the log."""
        newest = next(reversed(GENERATIONS))
        forced: dict[int, int] = {}
        best = self._replay(newest)
        for _ in range(MOST_TURNED):
            if best.whole:
                break
            better: _Followed | None = None
            for number, racer in self._others(best, forced):
                tried = self._replay(newest, {**forced, number: racer})
                further = tried.reached > best.reached or (tried.whole and not best.whole)
                if further and (better is None or (tried.whole, tried.reached) > (better.whole, better.reached)):
                    better, turned = tried, (number, racer)
            if better is None:
                break
            best = better
            forced[turned[0]] = turned[1]
        return best

    def _others(self, found: _Followed, forced: Mapping[int, int]) -> list[tuple[int, int]]:
        """The ways that races which were decided could have gone, the latest race first: to racers whose results the
        log holds where the replay stopped."""
        ways = []
        for race in reversed(found.recorder.races):
            if race.winner is None or race.number in forced:
                continue
            for racer, promise in enumerate(race.racers):
                place = self._place(found, promise, soon=True)
                stop = self._kept[found.reached] if found.reached < len(self._kept) else len(self._log)
                if racer != race.winner and place is not None and place < stop:
                    ways.append((race.number, racer))
        return ways[:MOST_TRIED]

    def _told_of(self, found: _Followed) -> list[Race]:
        return [race for one in found.recorder.races if (race := self._race(found, one)) is not None]

    def _race(self, found: _Followed, race: RaceRun) -> Race | None:
        """A race as the sweep takes it; None for one that is undecided, that the log cannot tell, or whose winner left
        nothing in the log."""
        shown = self._shown(found, race)
        if race.winner is None or shown is None:
            return None
        names: list[str] = []
        ends: dict[str, int] = {}
        for index, promise in enumerate(race.racers):
            name = found.recorder.name(promise)
            names.append(name if name not in names else f"{name} ({index + 1})")
            place = self._place(found, promise)
            if index == race.winner and place is None:
                return None
            # where a racer had settled before the race began the body decides, and not the log: also against one whose
            # result the log held earlier and that the body only then asked for (a payload that nobody had read)
            if place is not None and (index == race.winner or not {index, race.winner} & {*race.ready}):
                ends[names[-1]] = place
        where = f"race {race.number + 1} (line {race.line}, {race.function})"
        return Race((race.number + 1,), ends, ((names[race.winner], shown),), where)

    def _shown(self, found: _Followed, race: RaceRun) -> int | None:
        """The index of the first create after the race was decided, else of the run's end."""
        stop = self._kept[found.reached] if found.reached < len(self._kept) else len(self._log)
        ranks = range(race.drawn, len(found.made.draws))
        created = [index for rank in ranks if (index := self._created.get(rank)) is not None and index < stop]
        if created:
            return min(created)
        return self._end if found.whole else None

    def _place(self, found: _Followed, promise: Any, *, soon: bool = False) -> int | None:
        try:
            return found.recorder.place(promise, self._places.get, soon=soon)
        except Untraced:
            return None


def _places(log: EventLog) -> dict[Source, int]:
    """Where the results of the log's entities stand. A payload that is resent is the same one."""
    places: dict[Source, int] = {}
    received: dict[str, int] = {}
    resent: set[tuple[str, str]] = set()
    for index, event in enumerate(log):
        entity = event.correlation_id
        if entity is None:
            continue
        if event.type in kinds.STEP_TERMINAL or event.type == kinds.WAIT_COMPLETED:
            places.setdefault((entity, None), index)
        elif event.type == kinds.HOOK_RECEIVED:
            resume = event.data.get("resumeId")
            if isinstance(resume, str):
                if (entity, resume) in resent:
                    continue
                resent.add((entity, resume))
            places[entity, received.get(entity, 0)] = index
            received[entity] = received.get(entity, 0) + 1
    return places
