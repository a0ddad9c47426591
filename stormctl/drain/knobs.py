"""What the loop does, as switches, and the generations by name."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from stormctl.errors import UsageError, suggest


class Order(StrEnum):
    """``doc_skip``: one sidecar after another, and what lags is skipped. ``arrival_barrier``: one list by seq, and what
    lags stops the pass."""

    DOC_SKIP = "doc_skip"
    ARRIVAL = "arrival_barrier"


class Check(StrEnum):
    """What of an entry the view must show at its index before the entry is touched."""

    NONE = "none"
    ID = "id"
    ID_SEQ = "id_seq"


class Barrier(StrEnum):
    """What is done, once in a pass, where the view does not show an entry."""

    OFF = "off"
    FLUSH = "flush_only"
    PULL = "pull_only"
    FLUSH_PULL = "flush_pull"
    DURABILITY = "durability"


class Guard(StrEnum):
    """How long an event that was queued is not queued again."""

    NONE = "none"
    SEAL = "until_seal"
    OUTCOME = "until_outcome"


class Ghosts(StrEnum):
    """What the store does with a mark at an index that the view did not have: it makes an element, or refuses the
    whole wave."""

    MATERIALISE = "materialise"
    REFUSE = "refuse"


#: the awaits of a pass behind which it can look whether its tenure still stands
CHECKED = ("A1", "A2", "A3", "A4")
STUCK_AFTER = 8
IDLE_PARK_MS = 30_000


@dataclass(frozen=True, slots=True)
class Knobs:
    """One loop. The defaults are the last generation.

    ``refind`` and ``recheck_consumed`` are about what a pass looks at anew behind its barrier; the ``floor_*`` say what
    a deferral holds down, and whether a queue that throws sets a floor too; ``tenure_checks`` are the awaits behind
    which the pass looks whether its tenure still stands; ``park_arms_timer`` lets a parked tenure arm its backstop;
    ``timer_ms`` is None where there is no backstop; ``echo_wakes`` lets the loop's own commits wake it; ``fanout_ms``
    is None where changes go out when somebody flushes, else they do after so long; ``park_drops_queued`` is open in the
    sources: whether handlers that were queued before a park are still run by the disposal; ``advance_on_requeue`` lets
    a wave move the watermark though a conflict threw something back (what the sources' own model forbids).
    """

    order: Order = Order.ARRIVAL
    check: Check = Check.ID_SEQ
    barrier: Barrier = Barrier.FLUSH_PULL
    refind: bool = True
    recheck_consumed: bool = True
    floor_input: bool = True
    floor_settle: bool = True
    floor_on_queue_throw: bool = False
    tenure_checks: tuple[str, ...] = CHECKED
    park_arms_timer: bool = False
    timer_ms: int | None = 250
    guard: Guard = Guard.OUTCOME
    echo_wakes: bool = True
    fanout_ms: int | None = None
    ghosts: Ghosts = Ghosts.MATERIALISE
    park_drops_queued: bool = True
    advance_on_requeue: bool = True


_NO_VIEW: dict[str, Any] = {
    "barrier": Barrier.OFF,
    "refind": False,
    "recheck_consumed": False,
    "floor_input": False,
    "floor_settle": False,
    "tenure_checks": (),
    "park_arms_timer": True,
}
G4 = Knobs()
G3 = replace(G4, tenure_checks=CHECKED[:3])
G2 = replace(G3, park_arms_timer=True)
G1 = replace(G2, check=Check.ID, **_NO_VIEW)
G0 = replace(G1, order=Order.DOC_SKIP)
G_1 = replace(G0, check=Check.NONE)

#: the generations, the oldest first
GENERATIONS: dict[str, Knobs] = {"G-1": G_1, "G0": G0, "G1": G1, "G2": G2, "G3": G3, "G4": G4}
#: the recorded mutations of G2: each must fail its own control
MUTATIONS: dict[str, Knobs] = {
    "no-barrier": replace(G2, barrier=Barrier.OFF),
    "no-floor": replace(G2, floor_input=False, floor_settle=False),
    "no-sequence-validation": replace(G2, check=Check.ID),
    "no-index-recheck": replace(G2, refind=False),
    "no-consumed-recheck": replace(G2, recheck_consumed=False),
    "full-durability-wait": replace(G2, barrier=Barrier.DURABILITY),
}
PRESETS: dict[str, Knobs] = GENERATIONS | MUTATIONS

#: what each preset changed, in a line
SUMMARIES: dict[str, str] = {
    "G-1": "a mark is sealed at the stored index, and nobody looks at the view",
    "G0": "one sidecar after another; what lags behind is skipped; the view must show the event id",
    "G1": "one list in arrival order; what lags behind stops the pass",
    "G2": "the visibility barrier: flush and pull once a pass, event id and seq, found again, with a floor under W",
    "G3": "a parked tenure arms no backstop",
    "G4": "the pass looks for its tenure behind the load of the stream document as well",
    "no-barrier": "G2 that never flushes and pulls",
    "no-floor": "G2 without a floor under the watermark",
    "no-sequence-validation": "G2 that compares event ids only",
    "no-index-recheck": "G2 that keeps the index from before the barrier",
    "no-consumed-recheck": "G2 that does not look whether the entry was consequenced meanwhile",
    "full-durability-wait": "G2 that waits for its own sealed writes instead of an ordered response",
}


def preset(text: str) -> Knobs:
    """The knobs of a name, with others in brackets laid over them: ``G2[barrier=off,timer_ms=none]``.

    UsageError for a name, knob or value that there is none of.
    """
    name, bracket, rest = text.partition("[")
    if name not in PRESETS:
        raise UsageError(f"there is no preset {name[:40]!r}", remedy=suggest(name, PRESETS))
    if bracket and not rest.endswith("]"):
        raise UsageError(f"{text[:60]!r} has an open bracket", remedy="Write knobs as G2[barrier=off].")
    knobs = PRESETS[name]
    for part in filter(None, rest.removesuffix("]").split(",")):
        key, _, value = part.partition("=")
        knobs = _laid(knobs, key.strip(), value.strip())
    return knobs


def _laid(knobs: Knobs, key: str, value: str) -> Knobs:
    known = {field.name for field in fields(Knobs)}
    if key not in known:
        raise UsageError(f"there is no knob {key[:40]!r}", remedy=suggest(key, known))
    now: Any = getattr(knobs, key)
    changes: dict[str, Any]
    if key in ("timer_ms", "fanout_ms"):
        if value != "none" and not (value.isascii() and value.isdigit() and len(value) < 7):
            raise UsageError(f"{key}={value[:20]} is no time", remedy="Write milliseconds, or none.")
        changes = {key: None if value == "none" else int(value)}
    elif key == "tenure_checks":
        points = frozenset(filter(None, value.split("+")))
        if points - {*CHECKED, "none"}:
            raise UsageError(f"{value[:40]!r} names no awaits", remedy="Write them as A1+A2+A3+A4, or none.")
        changes = {key: tuple(sorted(points - {"none"}))}
    elif isinstance(now, bool):
        if value not in ("on", "off"):
            raise UsageError(f"{key}={value[:20]}", remedy=f"Write {key}=on or {key}=off.")
        changes = {key: value == "on"}
    else:
        kinds = {str(one): one for one in type(now)}
        if value not in kinds:
            raise UsageError(f"{key}={value[:20]}", remedy=suggest(value, kinds))
        changes = {key: kinds[value]}
    return replace(knobs, **changes)
