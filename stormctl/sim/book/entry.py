"""One scenario of the book: a workflow, a script, and what must come out of it in every world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stormctl.engine.generations import generation
from stormctl.runtime.rules import Rules
from stormctl.sim.book.bodies import BODIES
from stormctl.sim.kernel import Chooser, Problem, Run, play
from stormctl.sim.oracles import all_of
from stormctl.sim.real.machine import Machine
from stormctl.sim.real.scenario import Cancelled, Scenario, Sent
from stormctl.sim.real.system import System
from stormctl.sim.real.worlds import sim_world
from stormctl.sim.tape import ScriptChooser, Statement, parse
from stormctl.worlds.condition import Guard

ANY: Any = object()
#: scripts hold somebody for as long as they like
PATIENT = 40


#: what is wrong besides what the oracles say, or None
Check = Callable[[Machine], str | None]


@dataclass(frozen=True)
class Entry:
    """A scenario of the book. ``script`` is a semantic tape.

    ``status`` is what the run comes to (``stalled``: it waits for a hook that never comes), ``output`` what it returns.
    ``guard`` is the check of a writer's snapshot that the scenario is about.
    ``stale`` lets reads leave out what the script says, ``overlap`` lets deliveries of the run overlap, ``drops`` lets
    the queue lose what the script says.
    """

    id: str
    title: str
    body: str
    script: str = ""
    outside: tuple[Sent | Cancelled, ...] = ()
    status: str = "completed"
    output: Any = ANY
    input: Mapping[str, Any] = field(default_factory=dict)
    guard: Guard = Guard.WATERMARK
    stale: bool = False
    overlap: bool = False
    drops: bool = False
    check: Check | None = None
    generation: str = "nets"

    def system(self, world: str, *, generation_name: str | None = None, expected: bool = True) -> System:
        """The scenario in a world, with all oracles; ``expected`` adds what the entry states besides."""
        found = sim_world(world)
        condition = replace(found.condition, guard=self.guard)
        found = replace(
            found,
            condition=condition,
            stale=self.stale,
            serial=not self.overlap,
            drops=self.drops,
            hurry=PATIENT,
        )
        scenario = Scenario(
            self.id,
            BODIES[f"book-{self.body}"],
            self.input,
            self.outside,
            Rules(generation=generation(generation_name or self.generation)),
            rests=self.status == "stalled",
        )
        return System(scenario, found, self.judge if expected else all_of)

    def search(self, world: str, generation_name: str | None = None) -> System:
        """The workflow, and who acts on it, in a world as it is, with the oracles alone: for whoever looks for what no
        script says. It goes to other processes."""
        found = sim_world(world)
        name = generation_name or self.generation
        scenario = Scenario(
            self.id,
            BODIES[f"book-{self.body}"],
            self.input,
            self.outside,
            Rules(generation=generation(name)),
            rests=self.status == "stalled",
        )
        return System(scenario, found, all_of, made_by=(searched, (self.id, world, name)))

    def judge(self, machine: Machine, run: Run) -> list[Problem]:
        """What the oracles say, and where the run did not come to what the entry states."""
        problems = list(all_of(machine, run))
        row = machine.row
        status = row.status if row is not None and machine.ended else "stalled"
        if status != self.status:
            problems.append(Problem("expect", "expect/status", f"the run is {status} and should be {self.status}"))
        elif self.output is not ANY and row is not None and row.output != self.output:
            text = f"the run returned {row.output!r} and should return {self.output!r}"
            problems.append(Problem("expect", "expect/output", text))
        elif self.check is not None and (said := self.check(machine)) is not None:
            problems.append(Problem("expect", "expect/check", said))
        return problems


def searched(entry: str, world: str, generation_name: str) -> System:
    """The model of :meth:`Entry.search`, by names."""
    from stormctl.sim.book.scenarios import ENTRIES

    return ENTRIES[entry].search(world, generation_name)


@dataclass(frozen=True, slots=True)
class Played:
    """An entry, as it went in a world."""

    entry: Entry
    world: str
    run: Run
    missed: tuple[Statement, ...] = ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong. A run that did not follow its script and went well has shown nothing, which is wrong too."""
        if self.missed and not self.run.problems:
            return (Problem("expect", "expect/script", f"the run never came to `{self.missed[0]}`"),)
        return self.run.problems

    @property
    def passed(self) -> bool:
        """Whether nothing is."""
        return not self.problems and not self.run.cut


def play_entry(
    entry: Entry,
    world: str,
    *,
    rest: Chooser | None = None,
    generation_name: str | None = None,
    expected: bool = True,
) -> Played:
    """Play an entry's script in a world. Where a run ends early, the rest of its script is passed over."""
    chooser = ScriptChooser(parse(entry.script), rest, loosely=True)
    run = play(entry.system(world, generation_name=generation_name, expected=expected), chooser)
    chooser.finish(run)
    return Played(entry, world, run, tuple(chooser.missed))
