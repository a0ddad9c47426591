"""The known failures, each as one run that shows it and the loop that passes the same run.

Numbers are those of the reference, section 2. A run is its injections, and where the order of turns matters a script in
the words of the simulator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stormctl.drain.explored import judge
from stormctl.drain.knobs import G0, G1, G2, G3, G_1, Barrier, Guard, Knobs
from stormctl.drain.model import DrainModel, Play
from stormctl.drain.setup import scripted
from stormctl.drain.table import ADMITTED
from stormctl.errors import UsageError, suggest
from stormctl.sim.kernel import Problem, Run, TapeChooser, play
from stormctl.sim.tape import ScriptChooser, parse

#: turns of one run: a loop without a look at the view makes ghosts for ever
MOST_TURNS = 150


@dataclass(frozen=True, slots=True)
class Scenario:
    """A failure: the loop that has it, and the one that does not under the same ``injections`` and ``script``.

    ``shows`` are the signatures that the failing run must have, ``closes`` says what mended it in words.
    """

    id: str
    title: str
    fails: Knobs
    passes: Knobs
    closes: str
    injections: tuple[str, ...]
    shows: tuple[str, ...]
    script: str = ""
    until: int = 600
    emits: tuple[tuple[str, str, str], ...] = ()
    tenures: int = 1

    def model(self, knobs: Knobs) -> DrainModel:
        """The run under a loop."""
        setup = scripted(self.id, knobs, *self.injections, until=self.until, emits=self.emits, tenures=self.tenures)
        return DrainModel(setup, judge)

    def play(self, knobs: Knobs) -> Run:
        """The run, played."""
        chooser = ScriptChooser(parse(self.script), loosely=True) if self.script else TapeChooser()
        return play(self.model(knobs), chooser, most=MOST_TURNS)


def signatures(run: Run) -> tuple[str, ...]:
    """What is wrong with a run, by class."""
    return tuple(problem.signature for problem in run.problems)


def crashed(run: Run) -> str:
    """What crashed the loop, or nothing."""
    assert isinstance(run.instance, Play)
    return run.instance.crashed


def told(run: Run) -> tuple[Problem, ...]:
    """What is wrong with a run, a crash of the loop among it."""
    text = crashed(run)
    crash = (Problem("crash", "crash/loop-failed", text),) if text else ()
    return (*crash, *run.problems)


_AGAIN = ("start: admit a x", "300ms: admit a x")
_HISTORY = (*ADMITTED, "300ms: admit a C")

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "F1", "a ghost: a mark at an index that the view does not have", G_1, G0,
        "G0: the view must show the event before it is marked", _AGAIN, ("drain-own-index/ghost",),
    ),
    Scenario(
        "F2", "an index from before the barrier, used behind it", replace(G2, refind=False), G2,
        "G2: the entry is found again behind the barrier",
        (*_HISTORY, "A3 (2): compact a", "A3 (2): deliver"), ("crash/loop-failed",),
    ),
    Scenario(
        "F3", "another occurrence of the event is marked, or none", G1, G2,
        "G2: event id and seq are compared",
        ("start: admit a x", "300ms: compact a", "300ms: admit a x"),
        ("drain-barrier/other-seq", "drain-once/effect-without-mark", "drain-once/double-effect"),
        script="H: run to handle (2)",
    ),
    Scenario(
        "F4", "a second copy is queued while the first is under way", replace(G2, guard=Guard.NONE), G2,
        "the in-flight guard, held until the outcome of the wave is known",
        (*ADMITTED, "start: deliver", "settle: cut"), ("drain-single-copy/second-copy", "drain-once/double-effect"),
        script="H: run to handle\nL: run to settled",
    ),
    Scenario(
        "F5", "what came later runs first", G0, G1, "G1: a deferral stops the pass",
        (*ADMITTED, "start: deliver", "A1 a: fail"), ("drain-arrival/overtaken", "drain-arrival/queued-behind"),
    ),
    Scenario(
        "F6", "the watermark passes events that were never run", G1, G2, "G2: the barrier, and a floor under W",
        ADMITTED, ("drain-coverage/view",),
    ),
    Scenario(
        "F7", "the walk over own seqs passes an event that a wave carried", replace(G2, floor_settle=False), G2,
        "G2: no settle advance while a floor stands", ("start: admit a A", "A1 b (*): fail"),
        ("drain-coverage/sync", "drain-floor/settled-past"), emits=(("A", "b", "L"),),
    ),
    Scenario(
        "F8", "nothing wakes the loop when the view has caught up", replace(G2, barrier=Barrier.OFF, timer_ms=None),
        G2, "the barrier, and a backstop for when it fails", ADMITTED, ("drain-wake/stuck",),
    ),
    Scenario(
        "F9", "a pass goes on when its tenure has ended", G1, G2, "G2 (A1 to A3) and G4 (A4): the pass is abandoned",
        ("start: admit a A", "start: deliver", "A1: park"),
        ("drain-tenure/queued-after-park", "drain-once/effect-without-mark", "drain-once/double-effect"), tenures=2,
    ),
    Scenario(
        "F10", "a parked tenure arms its timer", G2, G3, "G3: no backstop without a tenure",
        (*ADMITTED, "queue: park", "queue: throw"), ("drain-tenure/armed-after-park",),
    ),
    Scenario(
        "F11", "an event that was consequenced during the wait runs again", replace(G2, recheck_consumed=False), G2,
        "G2: the entry is looked at again behind the barrier", (*ADMITTED, "A3: consequence a A"),
        ("drain-once/double-effect",),
    ),
    Scenario(
        "F12", "the drain waits for its own writes, which wait for the drain", replace(G2, barrier=Barrier.DURABILITY),
        G2, "G2: an ordered response, not durability", (*ADMITTED, "A2: shadow c absent"),
        ("deadlock/its own sealed writes",),
    ),
    Scenario(
        "F13a", "the watermark passes an event whose queueing threw", G2, replace(G2, floor_on_queue_throw=True),
        "the knob floor_on_queue_throw; no generation", (*ADMITTED, "queue (*): throw"),
        ("drain-coverage/residual-queue",), until=200,
    ),
    Scenario(
        "F13b", "a wave that throws an event back moves the watermark over it", G2,
        replace(G2, advance_on_requeue=False), "the knob advance_on_requeue=off; no generation",
        (*_HISTORY, "A5 (2): compact a"), ("drain-coverage/residual-requeue",),
    ),
)  # fmt: skip
BY_ID = {one.id: one for one in SCENARIOS}


def scenario(name: str) -> Scenario:
    """The scenario of that number. UsageError for one that there is not."""
    found = BY_ID.get(name.upper().replace("A", "a").replace("B", "b"))
    if found is None:
        raise UsageError(f"there is no scenario {name[:40]!r}", remedy=suggest(name, BY_ID))
    return found
