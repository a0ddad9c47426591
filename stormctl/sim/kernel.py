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

    ``ready`` must hang on the model's state alone and change nothing. It is asked before every turn until the actor has
    its own: who was ready and was not chosen waits again where another took what there was to take. Whatever changes
    what ``ready`` says should write the resource of ``label``.
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

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...

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

    ``widths`` says of how many options each choice of the tape was, ``costs`` whether another index than 0 was a
    preemption or a fault there. ``parents`` names by number who spawned each actor (-1: the model, at its start).
    A run that was played lean has no turns, picks, widths and costs.
    """

    names: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    tape: list[int] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    costs: list[bool] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    picks: list[Picked] = field(default_factory=list)
    steps: int = 0
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

    __slots__ = ("_changed", "_chooser", "_labels", "_last", "_lean", "_ready", "_sends", "_waiting", "current", "run")

    def __init__(self) -> None:
        self.run = Run()
        self.current = -1
        self._sends: list[Callable[[Any], Label | Wait | Pick]] = []
        self._labels: list[Label | None] = []  # what each would do next; None while it cannot
        self._ready: list[int] = []
        self._last: list[int] = []
        self._waiting: dict[int, Wait] = {}
        self._chooser: Chooser | None = None
        self._changed = False  # whether somebody has begun or ceased to be ready since the options were made
        self._lean = False

    def spawn(self, name: str, body: Body, *, last: bool = False) -> int:
        """Add an actor, which takes its first turn when it is chosen. ``last`` puts it behind all others that are not:
        by default it has its turn when nobody else can go on, as a clock has. Replies its number."""
        number = len(self._sends)
        run = self.run
        run.names.append(name)
        run.parents.append(-1 if self._chooser is None else self.current)
        self._sends.append(body.send)
        self._labels.append(None)
        if last:
            self._last.append(number)
        self._resume(number)
        return number

    def begin_in(self, actor: int) -> None:
        """At the start of a model: the turn of this actor is under way, so that another's at once is a preemption."""
        self.current = actor

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

    def waits(self) -> dict[int, Label]:
        """The actors that wait, or waited and can go on now, and what each would do."""
        return {number: wait.label for number, wait in self._waiting.items()}

    # -- the loop ------------------------------------------------------------------------------------------------

    def play(self, chooser: Chooser, most: int, *, lean: bool = False) -> None:
        """Let actors take turns until nobody can go on. ``lean`` keeps the tape alone.

        The options are made anew only where another actor is current or somebody began or ceased to be ready: most
        turns are taken by one that goes on.
        """
        self._chooser, self._lean = chooser, lean
        least = 1 if getattr(chooser, "sees_every_turn", False) else 2
        run, sends, labels, waiting, turn_of = self.run, self._sends, self._labels, self._waiting, chooser.turn
        tape, widths, costs, turns = run.tape, run.widths, run.costs, run.turns
        current, options, width, steps = self.current, [0], 0, 0
        self._changed = True
        while True:
            if waiting:
                self._look_again()
            if self._changed:
                self._changed = False
                options = self._options(current)
                width = len(options)
                if not width:
                    break
            if steps >= most:
                run.cut = True
                break
            choice = 0
            if width >= least:
                choice = turn_of(self, options)
                if choice >= width:
                    choice = width - 1
            if width > 1:
                tape.append(choice)
                if not lean:
                    widths.append(width)
                    costs.append(options[0] == current)
                if choice and options[0] == current:
                    run.preemptions += 1
            actor = options[choice]
            if not lean:
                turns.append(Turn(actor, labels[actor], choice, width))  # type: ignore[arg-type]  # it is an option
            run.steps = steps = steps + 1
            if actor != current:
                current = self.current = actor
                self._changed = True
            if waiting:
                waiting.pop(actor, None)
            try:
                asked = sends[actor](None)
            except StopIteration:
                self._stop(actor)
                continue
            if type(asked) is Label:
                labels[actor] = asked
            else:
                self._stop(actor)
                self._take(actor, asked)
        run.missing = tuple(wait.missing for _, wait in sorted(waiting.items()))

    def close(self) -> None:
        """End every actor where it stands."""
        for send in self._sends:
            send.__self__.close()  # type: ignore[attr-defined]  # the generator's own method

    def _options(self, current: int) -> list[int]:
        """Who can go on: the one whose turn it was, then the others in the order of their numbers."""
        ready = self._ready
        if len(ready) < 2:
            return list(ready)
        if self._last:
            ready.sort(key=self._rank)
        else:
            ready.sort()
        if ready[0] != current and current in ready:
            return [current, *(number for number in ready if number != current)]
        return list(ready)

    def _rank(self, number: int) -> tuple[bool, int]:
        return number in self._last, number

    def _look_again(self) -> None:
        """Ask all who wait whether they can go on now."""
        labels = self._labels
        for number, wait in self._waiting.items():
            if bool(wait.ready()) is (labels[number] is None):
                if labels[number] is None:
                    self._start(number, wait.label)
                else:
                    self._stop(number)

    def _start(self, number: int, label: Label) -> None:
        self._labels[number] = label
        self._ready.append(number)
        self._changed = True

    def _stop(self, number: int) -> None:
        self._labels[number] = None
        self._ready.remove(number)
        self._changed = True

    def _resume(self, number: int, reply: Any = None) -> None:
        try:
            asked = self._sends[number](reply)
        except StopIteration:
            return
        self._take(number, asked)

    def _take(self, number: int, asked: Label | Wait | Pick) -> None:
        """What one that cannot go on has asked for: picks are answered until it is something else."""
        while isinstance(asked, Pick):
            try:
                asked = self._sends[number](self._picked(number, asked))
            except StopIteration:
                return
        if isinstance(asked, Wait):
            self._waiting[number] = asked
        else:
            self._start(number, asked)

    def _picked(self, number: int, pick: Pick) -> int:
        if len(pick.options) < 2 or self._chooser is None:
            return 0
        choice = min(self._chooser.pick(self, number, pick), len(pick.options) - 1)
        run = self.run
        run.tape.append(choice)
        if not self._lean:
            run.widths.append(len(pick.options))
            run.costs.append(True)
            run.picks.append(Picked(run.steps, number, pick, choice))
        run.faults += bool(choice)
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


def play(model: Model, chooser: Chooser, *, most: int = MOST_STEPS, lean: bool = False) -> Run:
    """Play one schedule of a model from its beginning, and let the model judge it.

    ``lean`` is for many schedules in a short time: the run then has its tape and what the judge said, and no turns. It
    is for models whose judge does not look at them.
    """
    stage = Stage()
    try:
        instance = stage.run.instance = model.start(stage)
        stage.play(chooser, most, lean=lean)
        stage.run.problems = tuple(instance.judge(stage.run))
        return stage.run
    finally:
        stage.close()
