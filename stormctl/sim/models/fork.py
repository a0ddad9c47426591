"""A small model of how an event log forks: the fixture that the scheduler itself is measured and tested on.

A run races a hook against a timer that has elapsed. At the start its log holds the run, the hook and the wait; the
orchestrator's message was taken, and the payload of the hook is about to come in. A delivery of the orchestrator is

    read; mint and publish the wait's completion, if the log has none;
    then, until the run has ended: read, replay, and do what the replay asks for.

The replay follows whichever of payload and completion comes first in the log. Either branch has two steps, named by
position: the first step of the run is ``settle`` after the time-out and ``approve`` after the payload. For each step
the orchestrator mints and publishes its creation, then its completion (the step runs inside the delivery); then the
run's completion. A replay that meets another name at a position than its branch calls there has diverged, and the run
is failed. The hook mints and publishes one payload; nobody refuses it, not even after the end of the run.

Each mint, publication and read is a turn, so that one delivery beside one hook takes 17 + 2 turns. In the world
``mint`` an event has its place in the log from when its id was minted, and ids are handed out to all alike: the mint
is a shared write. In the world ``commit`` it has the place where it was published, so a mint is nobody else's business.
The store refuses a second event of the same kind for the same entity, and the delivery goes on from its next read.

``orchestrators=2`` is two deliveries of one run at a time, as after a lease that ran out. ``bystanders`` are actors
that touch nothing that others do: they must not add a class of schedules.

What holds, by brute force: 171 interleavings of one delivery, of which 28 are bad in the world ``mint`` and none in
``commit``; 54 classes (9 of them bad) and 12.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from stormctl.sim.kernel import Body, Label, Problem, Run, Stage

#: whichever comes first in the log decides on these two steps
BRANCHES = {"hook_received": ("approve", "notify"), "wait_completed": ("settle", "archive")}
WORLDS = ("mint", "commit")
#: the models by their names, as a person types them, and the world of each
SMALL = {f"fork-{world}": world for world in WORLDS}
_ENDS = ("run_completed", "run_failed")

_READ = Label("read", "log:run")


class Event(NamedTuple):
    """Something that is written. The store takes one event of a ``key``; ``name`` is the step's."""

    type: str
    key: str
    name: str = ""


#: an event at its place in the log
Entry = tuple[int, Event]


class Diverged(NamedTuple):
    """A replay that met another step in the log than its code calls there."""

    ordinal: int
    expected: str
    found: str


_WAIT_DONE = Event("wait_completed", "wait completed")
_PAYLOAD = Event("hook_received", "payload 0")
_DONE = Event("run_completed", "run ended")
_FAILED = Event("run_failed", "run ended")
_CREATED = {
    kind: tuple(Event("step_created", f"step {at} created", name) for at, name in enumerate(names))
    for kind, names in BRANCHES.items()
}
_STEPS_DONE = tuple(Event("step_completed", f"step {at} completed") for at in range(2))


def replay(log: Sequence[Entry]) -> Event | Diverged | None:
    """What the workflow asks for next on this log; None when it waits for the race to be decided."""
    branch = ""
    created: list[str] = []
    done = 0
    for _, (kind, _, name) in log:
        if kind == "step_created":
            created.append(name)
        elif kind == "step_completed":
            done += 1
        elif not branch and kind in BRANCHES:
            branch = kind
    if not branch:
        return None
    names = BRANCHES[branch]
    for at, name in enumerate(created):
        if name != names[at]:
            return Diverged(at, names[at], name)
    if done < len(created):
        return _STEPS_DONE[done]
    if len(created) < len(names):
        return _CREATED[branch][len(created)]
    return _DONE


_MINTS = {
    event: Label("mint", "mint", writes=True, detail=event.type + (f" {event.name}" if event.name else ""))
    for event in (
        _WAIT_DONE,
        _PAYLOAD,
        _DONE,
        _FAILED,
        *_STEPS_DONE,
        *(event for made in _CREATED.values() for event in made),
    )
}
_LOCAL_MINTS = {event: label._replace(resource="", writes=False) for event, label in _MINTS.items()}
_PUBLISHES = {event: Label("publish", "log:run", writes=True, detail=label.detail) for event, label in _MINTS.items()}


class Log:
    """The store of one run of the model."""

    __slots__ = ("_keys", "_minted", "end", "entries", "mints", "positions_at_mint")

    def __init__(self, *, positions_at_mint: bool) -> None:
        self.positions_at_mint = positions_at_mint
        self.mints = _MINTS if positions_at_mint else _LOCAL_MINTS
        self.entries: list[Entry] = []
        self.end: Event | None = None
        self._keys: set[str] = set()  # asked for members only, never walked
        self._minted = 0

    def mint(self) -> int:
        """A new id: its number is the place of the event where places are given at the mint."""
        self._minted = minted = self._minted + 1
        return minted

    def publish(self, minted: int, event: Event) -> bool:
        """Make an event readable; False where the log has one of its key."""
        key = event[1]
        if key in self._keys:
            return False
        self._keys.add(key)
        entries = self.entries
        position = minted if self.positions_at_mint else len(entries) + 1
        entries.append((position, event))
        if len(entries) > 1 and entries[-2][0] > position:
            entries.sort()
        if event[0] in _ENDS:
            self.end = event
        return True

    def judge(self, run: Run) -> Sequence[Problem]:
        """Replay the log without the run's end, which must come out again."""
        end = self.end
        if end is None:
            return (Problem("ended", "ended: the run never ended", "The run has no end in its log."),)
        found = replay(self.entries)  # it passes over the end
        if found == end:
            return ()
        if isinstance(found, Diverged):
            ordinal, expected, name = found
            text = f"Step {ordinal} in the log is {name}; a replay of the same log calls {expected} there."
            places = tuple(position for position, event in self.entries if event.key == f"step {ordinal} created")
            return (Problem("cold-replay", f"cold-replay: {name} where the log decides {expected}", text, places),)
        asked = "nothing" if found is None else found.type
        return (Problem("cold-replay", f"cold-replay: {end.type} is not derived", f"A replay asks for {asked}."),)

    def observed(self) -> str:
        """What the log holds, for a comparison of two runs."""
        return ", ".join(f"{position} {event.type} {event.name}".rstrip() for position, event in self.entries)


@dataclass(frozen=True, slots=True)
class Fork:
    """The model in one of its worlds, with so many deliveries at a time, payloads and bystanders."""

    world: str = "mint"
    orchestrators: int = 1
    payloads: int = 1
    bystanders: int = 0

    @property
    def name(self) -> str:
        """Which of the models."""
        extra = "".join(
            f"-{count}-{what}"
            for what, count, usual in (
                ("orchestrators", self.orchestrators, 1),
                ("payloads", self.payloads, 1),
                ("bystanders", self.bystanders, 0),
            )
            if count != usual
        )
        return f"fork-{self.world}{extra}"

    @property
    def digest(self) -> str:
        """The name says all that the model hangs on, beside its code: a change of that needs another number here."""
        from hashlib import blake2b

        return blake2b(f"fork 1 {self.name}".encode(), digest_size=8).hexdigest()

    def smaller(self) -> Iterator[Fork]:
        """The same with one actor fewer."""
        if self.bystanders:
            yield replace(self, bystanders=0)
            yield replace(self, bystanders=self.bystanders - 1)
        if self.orchestrators > 1:
            yield replace(self, orchestrators=self.orchestrators - 1)
        if self.payloads > 1:
            yield replace(self, payloads=self.payloads - 1)

    def start(self, stage: Stage) -> Log:
        """One delivery is under way, and whoever else there is comes to it."""
        log = Log(positions_at_mint=self.world == "mint")
        for number in range(self.orchestrators):
            stage.spawn(f"O{number + 1}", _deliver(log))
        for number in range(self.payloads):
            stage.spawn("H" if not number else f"H{number + 1}", _send(log, number))
        for number in range(self.bystanders):
            stage.spawn(f"B{number + 1}", _stand_by(number))
        if self.orchestrators:
            stage.begin_in(0)
        return log


def _deliver(log: Log) -> Body:
    entries, mints = log.entries, log.mints
    yield _READ
    event = None if any(event is _WAIT_DONE for _, event in entries) else _WAIT_DONE
    while True:
        if event is not None:
            yield mints[event]
            minted = log.mint()
            yield _PUBLISHES[event]
            log.publish(minted, event)
            if event.type == "step_created":
                event = _STEPS_DONE[event.key == "step 1 created"]
                continue
        yield _READ
        if log.end is not None:
            return
        asked = replay(entries)
        event = _FAILED if type(asked) is Diverged else asked  # type: ignore[assignment]  # the type says so


def _send(log: Log, number: int) -> Body:
    event = Event("hook_received", f"payload {number}") if number else _PAYLOAD
    yield log.mints[_PAYLOAD]
    minted = log.mint()
    yield _PUBLISHES[_PAYLOAD]
    log.publish(minted, event)


def _stand_by(number: int) -> Body:
    label = Label("row", f"rows:{number}", writes=True)
    yield label
    yield label
