"""One schedule of a model: actors that take turns, and somebody who chooses whose turn it is.

An actor is a generator. It yields a :class:`Label` before each thing that others could notice, and does that thing when
it is resumed: so that whatever happens between two yields happens at once. It yields a :class:`Wait` where it cannot go
on, and is no option until what it waits for is there: nobody polls, and a deadlock is exact. It yields a :class:`Pick`
where something other than a turn is open (a message is lost, a read is short), and is sent which option was picked.

Every choice is an index, and 0 is what happens when nothing special does: the actor whose turn it is goes on; the first
option of a pick. A schedule is the list of its choices where there was more than one option, its *tape*. A tape that is
too short is continued with 0, and an index that is too large stands for the last option: every list of numbers is a
schedule.

    run = play(model, TapeChooser([0, 1]))
    run.problems        # what the model's own judge said
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

#: turns that one schedule may take before it is given up as going on for ever
MOST_STEPS = 100_000


class Label(NamedTuple):
    """What an actor does next: the operation, what it touches and whether it changes that.

    Two turns of different actors depend on each other when they touch one ``resource`` and one of them ``writes``. What
    touches nothing that is shared has the resource ``""``. ``detail`` is for tapes and pictures: the type of an event,
    whose entity it is of.
    """

    op: str
    resource: str = ""
    writes: bool = False
    detail: str = ""


class Wait(NamedTuple):
    """An actor that cannot go on until ``ready()``; then its turn is ``label``. ``missing`` is what a deadlock names.

    ``ready`` must hang on the model's state alone and change nothing.
    """

    label: Label
    ready: Callable[[], bool]
    missing: str


class Pick(NamedTuple):
    """Something that may go one way or another, other than whose turn it is. The first option is the ordinary one."""

    kind: str
    options: tuple[str, ...]


Body = Generator[Label | Wait | Pick, Any, None]


class Chooser(Protocol):
    """Who decides. Both are asked only where there is more than one option, and reply an index.

    One with a true attribute ``sees_every_turn`` is asked for every turn, also where nobody else could go on; such an
    answer is not part of the tape. It may raise, which ends the run with that error.
    """

    def turn(self, stage: Stage, options: Sequence[int]) -> int:
        """Whose turn it is: ``options`` are actor numbers, the one whose turn it was first if it can go on."""
        ...

    def pick(self, stage: Stage, actor: int, pick: Pick) -> int:
        """Which option of a pick."""
        ...


class Instance(Protocol):
    """One run of a model, from its beginning."""

    def judge(self, run: Run) -> Sequence[Problem]:
        """What is wrong with how it went; asked once, when nobody can go on any more."""
        ...


class Model(Protocol):
    """Something to be scheduled. ``digest`` changes whenever a tape would mean another schedule than before."""

    name: str
    digest: str

    def start(self, stage: Stage) -> Instance:
        """Begin anew: spawn the first actors. Nothing may be left of an earlier run."""
        ...


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that an oracle found. ``signature`` is equal for what is one failure: no times, no numbers of runs."""

    oracle: str
    signature: str
    text: str
    positions: tuple[int, ...] = ()


class Turn(NamedTuple):
    """One turn that was taken. ``choice`` is its index among ``width`` options."""

    actor: int
    label: Label
    choice: int
    width: int


class Picked(NamedTuple):
    """A pick that was made by ``actor`` in the turn before number ``at`` (0-based; 0 is before the first turn)."""

    at: int
    actor: int
    pick: Pick
    choice: int


@dataclass(slots=True)
class Run:
    """How one schedule went.

    ``tape`` holds the choices where there were more options than one, ``turns`` what was done. ``missing`` names what
    the actors wait for that never came (a deadlock, unless the model says that it may rest so), ``cut`` says that the
    run was given up after so many turns. ``preemptions`` counts the turns that were taken from an actor that could have
    gone on, ``faults`` the picks that went another way than the ordinary one.
    """

    names: list[str] = field(default_factory=list)
    tape: list[int] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    picks: list[Picked] = field(default_factory=list)
    missing: tuple[str, ...] = ()
    cut: bool = False
    preemptions: int = 0
    faults: int = 0
    problems: tuple[Problem, ...] = ()
    instance: Any = None

    @property
    def choices(self) -> int:
        """How many choices there were. A run without one says nothing about schedules."""
        return len(self.tape)


class Stage:
    """The actors of one run. A model spawns them, at its start and while others take their turns."""

    def __init__(self) -> None:
        self.run = Run()
        self.current = -1
        self._bodies: list[Body] = []
        self._labels: list[Label | None] = []  # what each would do next; None while it waits or has ended
        self._ready: list[int] = []
        self._last: list[int] = []
        self._waiting: dict[int, Wait] = {}
        self._chooser: Chooser | None = None

    def spawn(self, name: str, body: Body, *, last: bool = False) -> int:
        """Add an actor, which takes its first turn when it is chosen. ``last`` puts it behind all others that are not:
        by default it has its turn when nobody else can go on, as a clock has. Replies its number."""
        number = len(self._bodies)
        self.run.names.append(name)
        self._bodies.append(body)
        self._labels.append(None)
        if last:
            self._last.append(number)
        self._resume(number, None)
        return number

    def label(self, actor: int) -> Label:
        """What an actor that can go on does next."""
        label = self._labels[actor]
        assert label is not None
        return label

    def name(self, actor: int) -> str:
        """An actor's name."""
        return self.run.names[actor]

    def ended(self, actor: int) -> bool:
        """Whether an actor has done all it had to do: it neither can go on nor waits."""
        return self._labels[actor] is None and actor not in self._waiting

    # -- the loop ------------------------------------------------------------------------------------------------

    def play(self, chooser: Chooser, most: int) -> None:
        """Let actors take turns until nobody can go on."""
        self._chooser = chooser
        least = 1 if getattr(chooser, "sees_every_turn", False) else 2
        run, current = self.run, -1
        while True:
            options = self._options(current)
            if not options:
                break
            if len(run.turns) >= most:
                run.cut = True
                break
            choice, width = 0, len(options)
            if width >= least:
                choice = min(chooser.turn(self, options), width - 1)
            if width > 1:
                run.tape.append(choice)
                if choice and options[0] == current:
                    run.preemptions += 1
            current = self.current = options[choice]
            run.turns.append(Turn(current, self.label(current), choice, width))
            self._ready.remove(current)
            self._labels[current] = None
            self._resume(current, None)
        run.missing = tuple(wait.missing for _, wait in sorted(self._waiting.items()))

    def close(self) -> None:
        """End every actor where it stands."""
        for body in self._bodies:
            body.close()

    def _options(self, current: int) -> list[int]:
        """Who can go on: the one whose turn it was, then the others in the order of their numbers."""
        for number, wait in list(self._waiting.items()):
            if wait.ready():
                del self._waiting[number]
                self._enable(number, wait.label)
        ready = self._ready
        if len(ready) < 2:
            return list(ready)
        ready.sort(key=self._rank)
        if current in ready:
            return [current, *(number for number in ready if number != current)]
        return list(ready)

    def _rank(self, number: int) -> tuple[bool, int]:
        return number in self._last, number

    def _enable(self, number: int, label: Label) -> None:
        self._labels[number] = label
        self._ready.append(number)

    def _resume(self, number: int, reply: Any) -> None:
        body = self._bodies[number]
        while True:
            try:
                asked = body.send(reply)
            except StopIteration:
                return None
            if isinstance(asked, Label):
                return self._enable(number, asked)
            if isinstance(asked, Wait):
                self._waiting[number] = asked
                return None
            reply = self._picked(number, asked)

    def _picked(self, number: int, pick: Pick) -> int:
        if len(pick.options) < 2 or self._chooser is None:
            return 0
        choice = min(self._chooser.pick(self, number, pick), len(pick.options) - 1)
        self.run.tape.append(choice)
        self.run.picks.append(Picked(len(self.run.turns), number, pick, choice))
        self.run.faults += bool(choice)
        return choice


class TapeChooser:
    """Chooses as a tape says, and 0 where it has ended."""

    def __init__(self, tape: Sequence[int] = ()) -> None:
        self._tape = tape
        self._at = 0

    def turn(self, stage: Stage, options: Sequence[int]) -> int:
        """The next number of the tape."""
        return self._next()

    def pick(self, stage: Stage, actor: int, pick: Pick) -> int:
        """The next number of the tape."""
        return self._next()

    def _next(self) -> int:
        at = self._at
        self._at = at + 1
        return self._tape[at] if at < len(self._tape) else 0


def play(model: Model, chooser: Chooser, *, most: int = MOST_STEPS) -> Run:
    """Play one schedule of a model from its beginning, and let the model judge it."""
    stage = Stage()
    try:
        instance = model.start(stage)
        stage.play(chooser, most)
        stage.run.instance = instance
        stage.run.problems = tuple(instance.judge(stage.run))
        return stage.run
    finally:
        stage.close()
