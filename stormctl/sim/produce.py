"""From a log to a schedule: can this world write this log, and how?

found = produce(capture, "mint-ulid")
found.sentence      # producible in mint-ulid, by a schedule of 1 preemption (73 tried)

Two logs are one log when they have the same events in the same order: the same types, step names and tokens, and
entities that are numbered alike by their first event. Ids and times are not compared.

Who acts from outside is read off the log: a sender for each payload of a hook, somebody who cancels. First some
schedules are steered towards the log: whoever would write its next event goes on, whoever would write another waits;
each sets out from where the closest so far was, or a little before.
Then every schedule is tried, those with the fewest preemptions and faults first, and given up as soon as what it has
written is no part of the log any more: what was published stays, so nothing can come of it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import NamedTuple

from stormctl.engine.generations import generation as generation_named
from stormctl.errors import StormctlError, UsageError
from stormctl.history import Capture, Event, EventLog, kinds
from stormctl.runtime.rules import Rules
from stormctl.sim.kernel import Pick, Run, Stage, TapeChooser, play
from stormctl.sim.real.machine import Machine
from stormctl.sim.real.scenario import Cancelled, Scenario, Sent
from stormctl.sim.real.system import System
from stormctl.sim.real.worlds import sim_world
from stormctl.sim.strategies.base import Abandoned
from stormctl.sim.stream import Stream
from stormctl.workloads.base import Workload

#: schedules that are tried by default, and one in so many of them is steered towards the log before every one is tried
MOST, STEERED = 5_000, 5
#: steered schedules after which those that came no further go back further, and after which it is given up
_AGAIN, _STUCK = 8, 150
#: preemptions and faults up to which every schedule is tried
PREEMPTIONS = 2
#: events of a log that is searched for
MOST_EVENTS = 2_000
#: a model of a log lets time overtake whom it likes
_PATIENT = 10_000
PREFIX = "log:"


class Key(NamedTuple):
    """What of an event must be there again. ``entity`` numbers entities by their first event in the log (0: none)."""

    type: str
    entity: int
    name: str
    token: str

    @property
    def plain(self) -> tuple[str, str, str]:
        """Without the number, which changes while a log still has holes."""
        return self.type, self.name, self.token

    def __str__(self) -> str:
        return " ".join(part for part in (self.type, self.name, self.token) if part)


@dataclass(frozen=True, slots=True)
class Produced:
    """What came of the search.

    ``tape`` is that of the schedule with the fewest preemptions that was found, None for none. ``checked`` counts the
    schedules that were begun, ``proved`` is up to how many preemptions and faults that was all there are (-1: not even
    those without any). ``reached`` is how many events of the log the closest schedule had written, and ``wanted`` the
    event behind them.
    """

    model: System
    world: str
    tape: tuple[int, ...] | None
    preemptions: int
    faults: int
    checked: int
    proved: int
    exhausted: bool
    reached: int
    events: int
    wanted: str = ""

    @property
    def found(self) -> bool:
        """Whether a schedule writes the log."""
        return self.tape is not None

    @property
    def sentence(self) -> str:
        """The answer, with its bound."""
        tried = f"({self.checked:,} tried)"
        if self.found:
            return f"producible in {self.world}, by a schedule of {_counted(self.preemptions, self.faults)} {tried}"
        at = f"; the closest wrote {self.reached} of {self.events} events and not {self.wanted}" if self.wanted else ""
        if self.exhausted:
            return f"not producible in {self.world}: every schedule was tried {tried}{at}"
        if self.proved < 0:
            return f"not found in {self.world}: the limit of schedules was reached {tried}{at}"
        return f"not within {_counted(self.proved)} in {self.world} {tried}{at}"


def _counted(preemptions: int, faults: int = 0) -> str:
    text = f"{preemptions} preemption{'' if preemptions == 1 else 's'}"
    return text + (f" and {faults} fault{'' if faults == 1 else 's'}" if faults else "")


def keys_of(events: Sequence[Event]) -> tuple[Key, ...]:
    """What of a log must be there again."""
    numbers: dict[str, int] = {}
    names: dict[str, str] = {}
    tokens: dict[str, str] = {}
    found = []
    for event in events:
        one = event.correlation_id or ""
        if one.startswith("wrun_") or event.kind == "run":
            one = ""
        number = numbers.setdefault(one, len(numbers) + 1) if one else 0
        name = event.short_name or names.get(one, "")
        token = event.token or tokens.get(one, "")
        if one:
            names.setdefault(one, name)
            tokens.setdefault(one, token)
        found.append(Key(event.type, number, name, token))
    return tuple(found)


def model_of(
    capture: Capture, world: str, *, workload: Workload | None = None, generation: str | None = None
) -> System:
    """The workflow of a captured run, with whoever acted on it from outside, in a world.

    UsageError where the log names no workload that is known here, or is too long.
    """
    code = workload if workload is not None else _workload(capture)
    if len(capture.log) > MOST_EVENTS:
        raise UsageError(
            f"a log of {len(capture.log):,} events", remedy=f"Logs of at most {MOST_EVENTS:,} are searched for."
        )
    tokens: dict[str, str] = {}
    outside: list[Sent | Cancelled] = []
    for event in capture.log:
        if event.token and event.correlation_id:
            tokens.setdefault(event.correlation_id, event.token)
        if event.type == kinds.HOOK_RECEIVED:
            token = event.token or tokens.get(event.correlation_id or "", "")
            name = "H" if not outside else f"H{len(outside) + 1}"
            outside.append(Sent(name, token, _payload(event)))
        elif event.type == kinds.RUN_CANCELLED:
            outside.append(Cancelled())
    given: Mapping[str, object] = capture.run.input if capture.run is not None else {}
    found = sim_world(world)
    rules = Rules(generation=generation_named(generation or "nets"))
    name = f"{PREFIX}{code.name}"
    scenario = Scenario(name, code, given, tuple(outside), rules, rests=not capture.log.ended)
    return System(scenario, replace(found, hurry=_PATIENT))


def _workload(capture: Capture) -> Workload:
    from stormctl.sim.book.bodies import BODIES
    from stormctl.workloads.registry import WORKLOADS

    name = capture.run.workload if capture.run is not None else None
    if name is None:
        raise UsageError("the log does not name the workflow that wrote it", remedy="Name it with --workload.")
    found = BODIES.get(name) or WORKLOADS.get(name)
    if found is None:
        raise UsageError(f"there is no workload {name!r} here", remedy="Name it with --workload FILE.py:NAME.")
    return found


def _payload(event: Event) -> object:
    """What was sent, where the capture has it: what only its digest is left of is sent as nothing."""
    if event.payload is None:
        return None
    try:
        return event.payload.load()
    except StormctlError:
        return None


class _Reached(Abandoned):
    """The run has written the whole log."""


class _Guide:
    """Chooses for one run, and ends it when the log is there, or cannot come any more."""

    def __init__(self, wanted: Sequence[Key], tape: Sequence[int] = (), steered: Stream | None = None) -> None:
        self._wanted, self._tape, self._stream = wanted, tape, steered
        self._plain = [key.plain for key in wanted]
        self._seen = -1
        self._have: list[bool] = []
        self.tape: list[int] = []
        self.widths: list[int] = []
        self.costs: list[bool] = []
        self.preemptions = self.faults = self.reached = 0
        self._minted = False
        self.kept = 0  # choices up to where the log was part of the wanted one for the last time

    def turn(self, stage: Stage, options: Sequence[int]) -> int:
        """The next of the tape; behind its end the ordinary one, or the one that leads to the log."""
        self.look(stage.run)
        at = len(self.tape)
        choice = self._tape[at] if at < len(self._tape) else 0
        if self._stream is not None and at >= len(self._tape):
            choice = self._steer(stage, options, self._stream)
        choice = min(choice, len(options) - 1)
        costs = options[0] == stage.current
        self._chose(choice, len(options), costs=costs)
        self.preemptions += bool(choice) and costs
        return choice

    def pick(self, stage: Stage, actor: int, pick: Pick) -> int:
        """The next of the tape; behind its end the ordinary one, when steered now and then another."""
        self.look(stage.run)
        at = len(self.tape)
        choice = self._tape[at] if at < len(self._tape) else 0
        if self._stream is not None and at >= len(self._tape) and not self._stream.below(8):
            choice = self._stream.below(len(pick.options))
        choice = min(choice, len(pick.options) - 1)
        self._chose(choice, len(pick.options), costs=True)
        self.faults += bool(choice)
        return choice

    def _chose(self, choice: int, width: int, *, costs: bool) -> None:
        self.tape.append(choice)
        self.widths.append(width)
        self.costs.append(costs)

    def look(self, run: Run) -> None:
        """Compare what is in the log with what should be: Abandoned where it cannot be any more, or is."""
        machine = run.instance
        assert isinstance(machine, Machine)
        if len(machine.happened) == self._seen:
            return  # nothing was written down since
        self._seen = len(machine.happened)
        events = machine.events
        have = keys_of(events)
        if not self._fits(events, have):
            alike = (one == other for one, other in zip(have, self._wanted, strict=False))
            self.reached = max(self.reached, sum(1 for _ in takewhile(bool, alike)))
            raise Abandoned
        self.reached, self.kept = len(have), len(self.tape)
        if have == tuple(self._wanted):
            raise _Reached

    def _fits(self, events: Sequence[Event], have: Sequence[Key]) -> bool:
        """Whether a log is part of the wanted one; which of its events are there."""
        self._have = [False] * len(self._plain)
        at = 0
        for event, key in zip(events, have, strict=True):
            if event.position is not None:
                at = event.position - 1
            while at < len(self._plain) and event.position is None and self._plain[at] != key.plain:
                at += 1
            if at >= len(self._plain) or self._plain[at] != key.plain:
                return False
            self._have[at] = True
            at += 1
        return True

    def _steer(self, stage: Stage, options: Sequence[int], stream: Stream) -> int:
        """Whoever would write the next event that is missing goes on; whoever would write another one waits."""
        if not stream.below(20):
            return stream.below(len(options))
        missing = [plain for plain, there in zip(self._plain, self._have, strict=True) if not there]
        scores = [self._score(stage, actor, missing) for actor in options]
        if any(stage.label(actor).op == "mint" for actor in options):
            self._minted = True
        if self._minted:  # the place is had by the mint; when it is published is as may be
            for at, actor in enumerate(options):
                if stage.label(actor).op == "publish":
                    scores[at] = stream.below(8)
        best = max(scores)
        among = [at for at, score in enumerate(scores) if score == best]
        return among[0] if stream.below(4) else among[stream.below(len(among))]

    @staticmethod
    def _score(stage: Stage, actor: int, missing: Sequence[tuple[str, str, str]]) -> int:
        op, _, _, detail = stage.label(actor)
        if op == "tick":
            return 1
        if op not in ("publish", "mint", "row", "lock", "guard"):
            return 2
        kind, _, name = detail.partition(" ")
        for place, (wanted, called, _) in enumerate(missing[:6]):
            if wanted == kind and (not name or not called or name.rpartition("//")[2] == called):
                return 6 - place if place == 0 or op != "publish" else 0
        return 0


@dataclass(slots=True)
class _Best:
    tape: tuple[int, ...] | None = None
    preemptions: int = 0
    faults: int = 0
    reached: int = 0

    @property
    def weight(self) -> int:
        return self.preemptions + self.faults


def produce(
    capture: Capture,
    world: str,
    *,
    workload: Workload | None = None,
    generation: str | None = None,
    preemptions: int = PREEMPTIONS,
    most: int = MOST,
    seconds: float | None = None,
    seed: int = 0,
) -> Produced:
    """Search for a schedule whose log is the captured one. See the module, and :func:`model_of` for what it raises."""
    model = model_of(capture, world, workload=workload, generation=generation)
    wanted = keys_of(capture.log.events)
    best = _Best()
    checked = 0
    until = None if seconds is None else time.monotonic() + seconds
    closest: tuple[int, ...] = ()
    reached = stuck = 0
    while checked < max(1, most // STEERED) and stuck < _STUCK and best.tape is None and not _over(until):
        stream = Stream("produce", seed, checked)
        back = stream.below(1 + stuck // _AGAIN * 4)
        guide = _Guide(wanted, closest[: max(0, len(closest) - back)], steered=stream)
        _attempt(model, guide, best)
        checked += 1
        stuck += 1
        if guide.reached > reached:
            closest, reached, stuck = tuple(guide.tape[: guide.kept]), guide.reached, 0
    if best.tape is not None:
        checked += _smaller(model, wanted, best)
    proved, exhausted, count = _every(model, wanted, best, preemptions, most - checked, until)
    missing = str(wanted[best.reached]) if best.tape is None and best.reached < len(wanted) else ""
    return Produced(
        model,
        world,
        best.tape,
        best.preemptions,
        best.faults,
        checked + count,
        proved,
        exhausted and best.tape is None,
        best.reached,
        len(wanted),
        missing,
    )


def _over(until: float | None) -> bool:
    return until is not None and time.monotonic() >= until


def _attempt(model: System, guide: _Guide, best: _Best) -> bool:
    """Play one schedule; whether it wrote the log. The best is kept."""
    reached = False
    try:
        run = play(model, guide)
        guide.look(run)
    except _Reached:
        reached = True
    except Abandoned:
        pass
    best.reached = max(best.reached, guide.reached)
    weight = guide.preemptions + guide.faults
    if reached and (best.tape is None or weight < best.weight):
        best.tape, best.preemptions, best.faults = tuple(guide.tape), guide.preemptions, guide.faults
    return reached


def _smaller(model: System, wanted: Sequence[Key], best: _Best) -> int:
    """Set ever smaller parts of a steered schedule's choices to 0 as long as it writes the log; how many were tried."""
    tried = 0
    size = max(1, sum(map(bool, best.tape or ())) // 2)
    while size:
        again = False
        special = [at for at, choice in enumerate(best.tape or ()) if choice]
        for first in range(0, len(special), size):
            dropped = frozenset(special[first : first + size])
            tape = tuple(0 if at in dropped else choice for at, choice in enumerate(best.tape or ()))
            before = best.tape
            tried += 1
            _attempt(model, _Guide(wanted, tape), best)
            if best.tape is not before:
                again = True
                break
        size = size if again and size == 1 else size // 2
    return tried


def _every(
    model: System, wanted: Sequence[Key], best: _Best, preemptions: int, most: int, until: float | None
) -> tuple[int, bool, int]:
    """Every schedule up to so many preemptions and faults, or with fewer than the best; up to how many that was done,
    whether there are no others, and how many were begun."""
    held: dict[int, deque[tuple[int, ...]]] = {0: deque([()])}
    count = 0
    level = 0
    while level <= preemptions and not (best.tape is not None and level >= best.weight):
        waiting = held.setdefault(level, deque())
        while waiting:
            if count >= most or _over(until):
                return level - 1, False, count
            tape = waiting.pop()
            guide = _Guide(wanted, tape)
            count += 1
            if _attempt(model, guide, best):
                break
            for at in range(len(tape), len(guide.tape)):
                number = level + guide.costs[at]
                held.setdefault(number, deque()).extend(
                    (*guide.tape[:at], other) for other in range(1, guide.widths[at])
                )
        level += 1
    return level - 1, not any(held.values()), count


def isomorphic(one: EventLog, other: EventLog) -> bool:
    """Whether two logs are one, but for ids and times."""
    return keys_of(one.events) == keys_of(other.events)


def replayed(model: System, tape: Sequence[int]) -> Run:
    """The run of a tape that was found, to its end."""
    return play(model, TapeChooser(tape))
