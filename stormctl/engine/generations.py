"""The generations of the replay scheduler, as records of strategies.

A generation says how a delivery that waits for earlier ones is let go, and when a pass counts as idle. A log can only
be judged by the generation that wrote it, so old ones are kept. A generation is one record here; a new strategy is one
class in ``barriers``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stormctl.engine.barriers import Dispenser, Nets, Retirement
from stormctl.errors import UsageError


class Idle(StrEnum):
    """When nothing is on its way to user code, so that a pass may suspend.

    ``PARKED``: no payload is being read and no live barrier resolves on its own (vercel/workflow #3198).
    ``REGISTRY``: no payload is being read and no barrier is registered at all (#3554, second form).
    """

    PARKED = "parked"
    REGISTRY = "registry"


class Registration(StrEnum):
    """How the news that a hook was registered, or refused, reaches a workflow that waits for it.

    ``QUEUE``: in its turn of the promise queue, which earlier results may still be parked behind. ``BARRIER``: through
    a delivery barrier, after everything that the log holds before it (#4215).
    """

    QUEUE = "queue"
    BARRIER = "barrier"


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation. ``upstream`` are the pull requests that made it, newest last."""

    name: str
    upstream: tuple[int, ...]
    retirement: type[Retirement]
    idle: Idle
    fixed: str
    leaves: str
    registration: Registration = Registration.QUEUE


NETS = Generation(
    "nets",
    (3139, 3198, 3406),
    retirement=Nets,
    idle=Idle.PARKED,
    fixed="a step no longer overtakes an armed wait that is parked behind an unread payload",
    leaves="each barrier has its own net, and with several segments parked behind an unread hook the order in which "
    "nets fire depends on the length of the log",
)

DISPENSER = Generation(
    "dispenser",
    (3139, 3198, 3406, 3554),
    retirement=Dispenser,
    idle=Idle.REGISTRY,
    fixed="barriers are retired lowest first by one dispenser, so the order no longer depends on the length of the log",
    leaves="a branch that a shorter log leaves blocked draws nothing, and its sibling takes its rank (#3696)",
)

REGISTERED = Generation(
    "registered",
    (3139, 3198, 3406, 3554, 4215),
    retirement=Dispenser,
    idle=Idle.REGISTRY,
    fixed="a hook's registration no longer overtakes the results that the log holds before it",
    leaves="as the dispenser's: a branch that a shorter log leaves blocked draws nothing (#3696)",
    registration=Registration.BARRIER,
)

GENERATIONS: dict[str, Generation] = {generation.name: generation for generation in (NETS, DISPENSER, REGISTERED)}


def generation(name: str) -> Generation:
    """The generation of that name; UsageError lists the known ones."""
    try:
        return GENERATIONS[name]
    except KeyError:
        raise UsageError(
            f"there is no generation {name!r}",
            remedy=f"The generations are {', '.join(GENERATIONS)}.",
        ) from None
