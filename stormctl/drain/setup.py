"""What a run is made of: a loop, what is there when it begins, what is done to it, and who else takes turns."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stormctl.drain.inject import Injection, parse_all
from stormctl.drain.knobs import Knobs

#: who may take turns beside the loop where schedules are explored
ACTORS = ("compact", "consequence", "park", "shadow", "unrelated")


@dataclass(frozen=True, slots=True)
class Setup:
    """A run. Plain data, so that it crosses processes and its text names it.

    ``injections`` are done at their places. ``clients`` append (stream, event) one after another, whenever they are
    let; ``patient`` ones wait until what they append is no duplicate. ``actors`` are others of :data:`ACTORS`, each
    acting ``times``; ``faults`` are the points of the loop that may fail, ``most_faults`` times in all. ``observed``
    says that the loop is told of commits that are not its own; where it is not, only admissions reach it. ``emits`` are
    handlers that append an event: (event, stream, event). ``until`` is the virtual time at which timers cease to go
    off, None for a time that is long enough to see that nothing happens any more. ``tenures`` is how many there are at
    most.
    """

    name: str
    knobs: Knobs
    injections: tuple[Injection, ...] = ()
    clients: tuple[tuple[str, str], ...] = ()
    actors: tuple[str, ...] = ()
    times: int = 1
    faults: tuple[str, ...] = ()
    most_faults: int = 2
    observed: bool = True
    emits: tuple[tuple[str, str, str], ...] = ()
    until: int | None = None
    tenures: int = 1
    patient: bool = False

    def under(self, knobs: Knobs) -> Setup:
        """The same with another loop."""
        return replace(self, knobs=knobs)


def scripted(
    name: str,
    knobs: Knobs,
    *texts: str,
    until: int = 0,
    emits: tuple[tuple[str, str, str], ...] = (),
    tenures: int = 1,
) -> Setup:
    """A run in which everything is said: the loop is told of admissions only, and its own commits do not wake it."""
    knobs = replace(knobs, echo_wakes=False)
    return Setup(name, knobs, parse_all(*texts), observed=False, until=until, emits=emits, tenures=tenures)
