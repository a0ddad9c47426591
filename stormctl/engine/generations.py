"""The generations of the replay scheduler, oldest first, and how a person names one.

A log can only be judged by the generation that wrote it, so old ones are kept. A new one is one record here; a new
strategy is one word in ``strategies`` and the code for it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any, get_type_hints

from stormctl.engine.strategies import (
    KNOBS,
    Capture,
    Claim,
    Clock,
    Generation,
    Idle,
    Ids,
    Orders,
    Patience,
    Registration,
    Rejected,
    Retires,
    Skip,
    Yields,
)
from stormctl.errors import UsageError, suggest

QUEUE = Generation(
    "queue",
    (),
    fixed="results are read one after the other, in the order of the log",
    leaves="which of two results reaches its branch first is decided by microtask hops: the end of a wait can win a "
    "race that the log gave to a payload",
    orders=Orders.NOTHING,
    capture=Capture.READ,
    skip=Skip.STUCK,
    retires=Retires.NOTHING,
    idle=Idle.READING,
    yields=Yields.NOTHING,
)

OPPOSITE = replace(
    QUEUE,
    name="opposite",
    upstream=(2171, 2185),
    fixed="payloads of hooks and ends of waits reach the workflow in the order of the log",
    leaves="steps keep to no order: a result that lies in the cache overtakes what the log holds before it, and the "
    "replays of one delivery draw differently (#3137)",
    orders=Orders.OPPOSITE,
    retires=Retires.NETS,
)

TRANSITIVE = replace(
    OPPOSITE,
    name="transitive",
    upstream=(*OPPOSITE.upstream, 3139),
    fixed="step outcomes keep to the order of the log, asked for as the event is consumed, with one turn of the loop "
    "for the branch just woken",
    leaves="a pass counts as idle while a delivery is parked, so that every barrier is retired at once and a pass may "
    "suspend too early (#3183); traffic to an unread hook starves it; a step overtakes a wait that is parked behind "
    "an unread payload",
    orders=Orders.BRANCHES,
    capture=Capture.CONSUMED,
    yields=Yields.TURN,
)

PARKED_IDLE = replace(
    TRANSITIVE,
    name="parked-idle",
    upstream=(*TRANSITIVE.upstream, 3198),
    fixed="a pass no longer counts as idle while a delivery is parked that resolves on its own",
    leaves="a step still overtakes a wait that is parked behind an unread payload; traffic to an unread hook starves a "
    "pass",
    idle=Idle.PARKED,
)

UNARMED = replace(
    PARKED_IDLE,
    name="unarmed",
    upstream=(*PARKED_IDLE.upstream, 3196),
    fixed="only unread payloads are retired, 32 turns after they could have been read at the latest, and a look-out "
    "for an idle turn ends 16 rounds after the latest delivery: traffic cannot starve a pass",
    leaves="never merged: retirement goes by turns of the loop, so that what it lets go first depends on how long "
    "reading takes and on the length of the log",
    skip=Skip.UNREAD,
    retires=Retires.UNARMED,
    patience=Patience.PROGRESS,
    lingers=True,
)

NETS = replace(
    PARKED_IDLE,
    name="nets",
    upstream=(*PARKED_IDLE.upstream, 3406),
    fixed="a step no longer overtakes an armed wait that is parked behind an unread payload",
    leaves="each barrier has its own net, and with several segments parked behind an unread hook the order in which "
    "nets fire depends on the length of the log (#3543)",
    skip=Skip.UNREAD,
)

DISPENSER_V1 = replace(
    NETS,
    name="dispenser-v1",
    upstream=(*NETS.upstream, 3554),
    fixed="barriers are retired lowest first, one per turn of the loop",
    leaves="never released: a pass may suspend between two retirements, with results undelivered, and its run stays "
    "dormant; a rejected promise queue ends the dispenser",
    retires=Retires.STEPWISE,
)

DISPENSER = replace(
    NETS,
    name="dispenser",
    upstream=(*NETS.upstream, 3554),
    fixed="barriers are retired lowest first by one dispenser, so the order no longer depends on the length of the log",
    leaves="a branch that a shorter log leaves blocked draws nothing, and its sibling takes its rank (#3696)",
    retires=Retires.SWEEP,
    idle=Idle.REGISTRY,
    rejected=Rejected.BACKS_OFF,
)

TURNSTILE = replace(
    DISPENSER,
    name="turnstile",
    upstream=(*DISPENSER.upstream, 3700),
    fixed="a result reaches the workflow only after what every earlier one set off has drawn all its ids",
    leaves="a payload that is read after its barrier was retired has none, and a later step overtakes it (#4017)",
    yields=Yields.QUIET,
)

REARM = replace(
    TURNSTILE,
    name="rearm",
    upstream=(*TURNSTILE.upstream, 3879),
    fixed="reading a payload whose barrier was retired installs the barrier again",
    leaves="the clock runs ahead of what was delivered, and a hook's registration overtakes the results that the log "
    "holds before it",
    claim=Claim.REARM,
)

REGISTERED = replace(
    REARM,
    name="registered",
    upstream=(*REARM.upstream, 4213, 4215),
    fixed="the clock moves with deliveries, and a hook's registration no longer overtakes the results that the log "
    "holds before it",
    leaves="nothing that is known",
    orders=Orders.HOOKS,
    registration=Registration.BARRIER,
    clock=Clock.DELIVERED,
)

GENERATIONS: dict[str, Generation] = {
    one.name: one
    for one in (
        QUEUE,
        OPPOSITE,
        TRANSITIVE,
        PARKED_IDLE,
        UNARMED,
        NETS,
        DISPENSER_V1,
        DISPENSER,
        TURNSTILE,
        REARM,
        REGISTERED,
    )
}

#: what today's engine does: the newest generation that is known
NEWEST = REGISTERED

#: pull requests that changed one answer rather than made a generation, and the name that they stand for
_BY_KNOB = {
    3554: "dispenser",
    4213: f"rearm[clock={Clock.DELIVERED}]",
    3301: f"dispenser[ids={Ids.PER_KIND}]",
    3179: f"dispenser[ids={Ids.CALL_SITE}]",
}

_BRACKETS = re.compile(r"([^\[\]]*)(?:\[([^\[\]]*)\])?\Z")
_NUMBER = re.compile(r"#?([0-9]{1,6})\Z")
_TYPES = get_type_hints(Generation)


@lru_cache(maxsize=256)
def generation(name: str) -> Generation:
    """The generation that a name stands for; UsageError lists what there is.

    A name is that of a generation or the number of the pull request that made it (``nets``, ``3406``, ``#3406``), and
    may change knobs: ``dispenser[clock=delivered,ids=call-site]``. A changed generation is named by what was changed.
    """
    found = _BRACKETS.match(name.strip())
    plain, changes = (name, None) if found is None else (found[1].strip(), found[2])
    made = _named(plain)
    return made if changes is None else _changed(made, plain, changes)


def _named(name: str) -> Generation:
    if name in GENERATIONS:
        return GENERATIONS[name]
    number = _NUMBER.match(name)
    if number is not None:
        wanted = int(number[1])
        if wanted in _BY_KNOB:
            return generation(_BY_KNOB[wanted])
        for one in GENERATIONS.values():
            if wanted in one.upstream:
                return one
        raise UsageError(
            f"no generation was made by pull request {wanted}",
            remedy=f"Known are {', '.join(map(str, sorted(_numbers())))}.",
        )
    raise UsageError(f"there is no generation {name!r}", remedy=suggest(name, GENERATIONS))


def _numbers() -> set[int]:
    return {number for one in GENERATIONS.values() for number in one.upstream} | set(_BY_KNOB)


def _changed(made: Generation, name: str, changes: str) -> Generation:
    values: dict[str, Any] = {}
    for change in changes.split(","):
        knob, equals, word = (part.strip() for part in change.partition("="))
        if knob not in KNOBS or not equals:
            raise UsageError(f"{change.strip()!r} changes no knob of a generation", remedy=suggest(knob, KNOBS))
        values[knob] = _value(knob, word)
    values = {knob: value for knob, value in values.items() if value != getattr(made, knob)}
    if not values:
        return made
    told = {**_told(made), **values}
    shown = ",".join(f"{knob}={_shown(told[knob])}" for knob in KNOBS if knob in told)
    return replace(made, name=f"{made.name.partition('[')[0]}[{shown}]", **values)


def _told(made: Generation) -> dict[str, Any]:
    """What the name of a generation already says was changed."""
    found = _BRACKETS.match(made.name)
    if found is None or found[2] is None:
        return {}
    return {knob: getattr(made, knob) for knob in (part.partition("=")[0] for part in found[2].split(","))}


def _value(knob: str, word: str) -> Any:
    kind = _TYPES[knob]
    words = ("yes", "no") if kind is bool else tuple(str(value) for value in kind)
    if word not in words:
        raise UsageError(f"{knob} cannot be {word!r}", remedy=f"It is one of {', '.join(words)}.")
    return word == "yes" if kind is bool else kind(word)


def _shown(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
