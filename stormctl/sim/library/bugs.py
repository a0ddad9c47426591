"""The bug library: what a search must find without a script, and the repaired twin in which there is nothing to find.

A bug is a workflow, who acts on it from outside, a world and a generation of the engine. Its twin differs in the world
or in the generation and in nothing else, so that what is found is the bug's and not the workflow's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stormctl.engine.generations import generation
from stormctl.errors import UsageError, suggest
from stormctl.runtime.rules import Rules
from stormctl.sim.book.bodies import BODIES
from stormctl.sim.explore import Budget, explore
from stormctl.sim.oracles import all_of
from stormctl.sim.real.scenario import Scenario, Sent
from stormctl.sim.real.system import System
from stormctl.sim.real.worlds import sim_world

#: within which virtual time a payload that comes late does
TWO_HOURS_MS = 7_200_000


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug. ``signature`` is the beginning of that of the problem which shows it; ``strategy`` finds it within
    ``schedules``, whatever the seed. ``hook_ms`` is when a payload is sent at the earliest (None: nobody sends one)."""

    name: str
    title: str
    body: str
    world: str
    generation: str
    repaired_world: str
    repaired_generation: str
    signature: str
    hook_ms: int | None = 0
    strategy: str = "pct:3"
    schedules: int = 600

    def system(self, *, repaired: bool = False) -> System:
        """The bug as a model, or its twin. It goes to other processes."""
        world = self.repaired_world if repaired else self.world
        name = self.repaired_generation if repaired else self.generation
        outside = () if self.hook_ms is None else (Sent("H", "review", {"approved": True}, self.hook_ms),)
        rules = Rules(generation=generation(name))
        scenario = Scenario(self.name, BODIES[f"book-{self.body}"], {}, outside, rules, rests=True)
        return System(scenario, sim_world(world), all_of, made_by=(twin_of if repaired else model_of, (self.name,)))

    def found_by(self, seed: int = 0, *, strategy: str = "", model: System | None = None) -> int | None:
        """The number of the schedule, from 1, that first shows the bug; None within the budget.

        ``strategy`` is another than the bug's own. ``model`` may be one that was made before, for its passes.
        """
        found = explore(
            model or self.system(),
            strategy or self.strategy,
            budget=Budget(runs=self.schedules),
            seed=seed,
            stop_at_first=True,
            sought=self.signature,
        )
        runs = [one.run for signature, one in found.violations.items() if signature.startswith(self.signature)]
        return min(runs, default=None)


BUGS: Mapping[str, Bug] = {
    bug.name: bug
    for bug in (
        Bug(
            "in-flight-hole",
            "a payload has its id, is overtaken by the time-out that the run goes by, and is then readable before it",
            "fork", "mint-ulid", "nets", "fenced", "nets", "cold/diverged",
        ),
        Bug(
            "in-flight-slot",
            "a payload has its slot and is slow: its hole outlasts every reread, and the run is given up",
            "fork", "mint-slot", "nets", "fenced", "nets", "end/CORRUPTED_EVENT_LOG",
        ),
        Bug(
            "in-flight-answer",
            "the same in the last delivery: the run returns what its own log contradicts",
            "deadline", "mint-ulid", "nets", "fenced", "nets", "cold/other-answer", strategy="pos",
        ),
        Bug(
            "late-payload",
            "a payload is written to a run that has ended, since nothing is asked between the check and the write",
            "deadline", "mint-ulid", "nets", "fenced", "nets", "lifecycle/receive-after-end",
        ),
        Bug(
            "stale-read",
            "a read leaves out an event that others behind it do not",
            "fork", "mint-ulid[stale]", "nets", "fenced", "nets", "cold/diverged", strategy="random",
        ),
        Bug(
            "step-vs-step",
            "two steps of the run itself race, and the read that decides shows the later one only",
            "step-fork", "unguarded[stale]", "nets", "fenced", "nets", "cold/diverged", None, "random",
        ),
        Bug(
            "barrier-skip",
            "a step's result overtakes a wait that is parked behind an unread payload (vercel/workflow #3406)",
            "unclaimed", "fenced[overlap]", "opposite", "fenced[overlap]", "rearm", "ledger/rebound",
            strategy="random",
        ),
        Bug(
            "clock-by-consumption",
            "the clock runs ahead of what was delivered, and a branch goes by it (vercel/workflow #4213)",
            "clocked", "fenced[overlap]", "nets", "fenced[overlap]", "registered", "ledger/rebound",
            TWO_HOURS_MS, "pct:4",
        ),
        Bug(
            "moved-wait",
            "two deliveries ask for one wait until two times, by how much of the log each had read",
            "paused", "fenced[overlap]", "nets", "fenced[overlap]", "registered", "ledger/moved-wait", 1_000, "pct:4",
        ),
        Bug(
            "overlap-ends-twice",
            "two deliveries of one run overlap without a fence, and both end it",
            "fork", "append-only[overlap]", "rearm", "fenced[overlap]", "rearm", "lifecycle/run-end-repeat",
            strategy="random",
        ),
        Bug(
            "overlap-restarts-step",
            "one of them starts a step that the other has brought to its end",
            "probe", "unguarded[overlap]", "rearm", "fenced[overlap]", "rearm", "lifecycle/start-after-step-end",
            strategy="random",
        ),
        Bug(
            "row-behind-log",
            "one of them writes a step's row from what it knew, and the row is no fold of the log any more",
            "fork", "append-only[overlap]", "rearm", "fenced[overlap]", "rearm", "rows/row-attempt", strategy="random",
        ),
        Bug(
            "wait-created-twice",
            "both create the wait that the replay asks for, and the store has no key for it",
            "fork", "unguarded[overlap]", "nets", "fenced[overlap]", "nets", "lifecycle/repeat-wait-created",
            strategy="random",
        ),
        Bug(
            "lost-dispatch",
            "the queue takes a message and loses it; its key stays taken",
            "paused-fork", "append-only[drops]", "rearm", "append-only", "rearm", "end/dormant", strategy="random",
        ),
        Bug(
            "stranded-by-a-short-read",
            "the last delivery of a run reads a prefix that lacks what woke it, and nothing wakes the run again",
            "step-fork", "fenced[stale]", "rearm", "fenced", "rearm", "end/dormant", None, "random",
        ),
        Bug(
            "torn-hook",
            "a hook is found by its row before its event is in the log, and its payload stands before its creation",
            "review", "append-only[torn]", "nets", "append-only", "nets", "lifecycle/use-before-create",
            strategy="random",
        ),
    )
}  # fmt: skip


def bug(name: str) -> Bug:
    """The bug of a name. UsageError with the likeliest one."""
    if name not in BUGS:
        raise UsageError(f"there is no bug {name[:40]!r} in the library", remedy=suggest(name, BUGS))
    return BUGS[name]


def model_of(name: str) -> System:
    """The model of a bug."""
    return bug(name).system()


def twin_of(name: str) -> System:
    """The model of its repaired twin."""
    return bug(name).system(repaired=True)
