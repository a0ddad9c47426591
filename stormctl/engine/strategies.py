"""What the generations of the replay scheduler differ by: one enumeration per question, and the record of the answers.

Everything here is data. What a word does is in ``barriers`` (who waits for whom), ``retirement`` (how a wait is let
go), ``delivery`` (the way of one result to user code), ``identity`` (ids) and ``context`` (idleness, the clock).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum


class Orders(StrEnum):
    """Which deliveries keep to the order of the log, by a barrier at the index of their event.

    ``NOTHING``: the promise queue alone orders them. ``OPPOSITE``: a hook's payload waits for earlier ends of waits,
    and the end of a wait for earlier payloads (#2171). ``BRANCHES``: step outcomes too, which wait for all three kinds
    (#3139). ``HOOKS``: a payload waits for earlier payloads as well.
    """

    NOTHING = "nothing"
    OPPOSITE = "opposite"
    BRANCHES = "branches"
    HOOKS = "hooks"


class Capture(StrEnum):
    """When a delivery asks what it has to wait for: as its payload has been ``READ``, or as its event is
    ``CONSUMED`` (#3139). A payload that a later read claims asks as it is claimed, in every generation."""

    READ = "read"
    CONSUMED = "consumed"


class Skip(StrEnum):
    """Which earlier deliveries a step's outcome passes by.

    ``STUCK``: each that does not resolve on its own, so also a wait that is parked behind an unread payload.
    ``UNREAD``: the unread payload only (#3406).
    """

    STUCK = "stuck"
    UNREAD = "unread"


class Retires(StrEnum):
    """What lets a delivery go that waits for one which nobody will make.

    ``NOTHING``. ``NETS``: every barrier has a net of its own, which takes it at the first idle turn. ``UNARMED``: as
    nets, and only for unread payloads, with a deadline (#3196). ``STEPWISE``: one dispenser takes the lowest barrier
    and comes back in the next turn. ``SWEEP``: one dispenser takes the lowest and goes on until somebody wakes (#3554).
    """

    NOTHING = "nothing"
    NETS = "nets"
    UNARMED = "unarmed"
    STEPWISE = "stepwise"
    SWEEP = "sweep"


class Abandons(StrEnum):
    """What the deadline of unarmed retirement applies to: ``ANY`` barrier from its registration on, or an ``UNREAD``
    payload from the moment that it could have been read (#3196, first and last form)."""

    ANY = "any"
    UNREAD = "unread"


class Idle(StrEnum):
    """When nothing is on its way to user code, so that a pass may suspend.

    ``READING``: no payload is being read. ``PARKED``: and no live barrier resolves on its own (#3198). ``REGISTRY``:
    and no barrier is registered at all (#3554, second form).
    """

    READING = "reading"
    PARKED = "parked"
    REGISTRY = "registry"


class Patience(StrEnum):
    """How long a look-out for an idle turn goes on: ``ENDLESS``, for a number of ``ROUNDS``, or for that number since
    the latest delivery (``PROGRESS``); after that the pass counts as idle (#3196)."""

    ENDLESS = "endless"
    ROUNDS = "rounds"
    PROGRESS = "progress"


class Yields(StrEnum):
    """What a delivery does between being let go and resolving.

    ``NOTHING``. ``TURN``: one turn of the loop when it had to wait (#3139). ``QUIET``: turns of the loop until one drew
    nothing, nothing is being read and no armed delivery of a lower index is left (#3700).
    """

    NOTHING = "nothing"
    TURN = "turn"
    QUIET = "quiet"


class Claim(StrEnum):
    """What a read does with the barrier of the payload that it claims: ``ARM`` it where it still stands, or ``REARM``:
    install it again if it had been retired (#3879)."""

    ARM = "arm"
    REARM = "rearm"


class Registration(StrEnum):
    """How the news that a hook was registered, or refused, reaches a workflow that waits for it.

    ``QUEUE``: in its turn of the promise queue, which earlier results may still be parked behind. ``BARRIER``: through
    a delivery barrier, after everything that the log holds before it (#4215).
    """

    QUEUE = "queue"
    BARRIER = "barrier"


class Rejected(StrEnum):
    """What a dispenser does that has to wait for the promise queue when the queue was rejected by a payload that cannot
    be read: it ``DIES`` with it, or ``BACKS_OFF`` and looks again after 50 ms (#3554, second form)."""

    DIES = "dies"
    BACKS_OFF = "backs-off"


class Clock(StrEnum):
    """What moves the run's clock: every event ``CONSUMED``, or every result ``DELIVERED`` to user code (#4213)."""

    CONSUMED = "consumed"
    DELIVERED = "delivered"


class Ids(StrEnum):
    """How correlation ids are drawn.

    ``ORDINAL``: from one sequence per run. ``PER_KIND``: steps and waits are counted from 1 each, hooks and attributes
    draw from a sequence of their own (#3301). ``CALL_SITE``: from the kind, the name, the arguments and how often that
    call was made before (#3179).
    """

    ORDINAL = "ordinal"
    PER_KIND = "per-kind"
    CALL_SITE = "call-site"


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation of the replay scheduler, as its answers.

    ``upstream`` are the pull requests of vercel/workflow that made it, newest last. ``fixed`` is what it mended and
    ``leaves`` what it still got wrong, each one sentence without a full stop. ``lingers`` says that a delivery still
    counts as earlier for one turn after it was made (#3196).
    """

    name: str
    upstream: tuple[int, ...]
    fixed: str
    leaves: str
    orders: Orders
    capture: Capture
    skip: Skip
    retires: Retires
    idle: Idle
    yields: Yields
    claim: Claim = Claim.ARM
    registration: Registration = Registration.QUEUE
    rejected: Rejected = Rejected.DIES
    patience: Patience = Patience.ENDLESS
    abandons: Abandons = Abandons.UNREAD
    lingers: bool = False
    clock: Clock = Clock.CONSUMED
    ids: Ids = Ids.ORDINAL

    def strategies(self) -> dict[str, str]:
        """Every knob with its value in words, in the order of the record."""
        return {knob: _word(getattr(self, knob)) for knob in KNOBS}


#: the fields that may be changed by name, as in ``nets[clock=delivered]``
KNOBS = tuple(field.name for field in fields(Generation) if field.name not in ("name", "upstream", "fixed", "leaves"))


def _word(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
