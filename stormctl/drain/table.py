"""The golden table: a loop in one situation, what is published of it, and what ours does.

Each row begins with W = 1, then A@2 on the stream a and B@3 on the stream b, and a second A that is deduplicated. Waves
are (W, the shared log, what is pending under W). Counters are barriers / recoveries / deferrals / timers armed / fired,
as they stand before the first timer goes off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stormctl.drain.counters import Counters
from stormctl.drain.knobs import G0, G1, G2, G3, Check, Knobs
from stormctl.drain.model import DrainModel, Play
from stormctl.drain.setup import Setup, scripted
from stormctl.sim.kernel import TapeChooser, play

TIMER = 250
ADMITTED = ("start: admit a A", "start: admit b B", "start: admit a A")


@dataclass(frozen=True, slots=True)
class Row:
    """One row: the loop, what is done to it, and what is published. None is a cell that is not; ``called`` are the
    handlers that ran before the timer, in their order; ``more`` are further counters, before and after it."""

    name: str
    knobs: Knobs
    injections: tuple[str, ...]
    before: str | None
    counters: str | None = None
    after: str | None = None
    called: str | None = None
    more: tuple[tuple[str, int], ...] = ()
    more_after: tuple[tuple[str, int], ...] = ()
    emits: tuple[tuple[str, str, str], ...] = ()
    until: int = TIMER
    first: int = TIMER - 1
    crashes: bool = False

    def setup(self) -> Setup:
        """The run of the row."""
        return scripted(self.name, self.knobs, *self.injections, until=self.until, emits=self.emits)


@dataclass(frozen=True, slots=True)
class Measured:
    """What ours does in a row's situation."""

    before: str
    counters: str
    after: str
    called: str
    crashed: bool
    more: tuple[tuple[str, int], ...]
    more_after: tuple[tuple[str, int], ...]


_DELIVERED = (*ADMITTED, "start: deliver")
_HIDDEN = (*ADMITTED, "A2: shadow a absent")
_OTHER_SEQ = (*ADMITTED, "A2: shadow a A@102")
_LATE = "(3,[A,B],[])"
_TWICE = "(3,[],[A,B]) (3,[A,B],[])"
_LT1 = ("start: admit a A", "A1 b (*): fail")
#: the first two are consumed; then C is admitted behind A, and A is compacted away while the barrier waits
_COMPACTED = (*ADMITTED, "300ms: admit a C", "A3 (2): compact a", "A3 (2): deliver")

ROWS: tuple[Row, ...] = (
    Row("G1 baseline", G1, ADMITTED, _TWICE, "0/0/1/1/0"),
    Row(
        "G2 fixed",
        G2,
        ADMITTED,
        _LATE,
        "1/1/0/0/0",
        "",
        more=(("responses", 1),),
        more_after=(("deferredRescansFired", 0),),
    ),
    Row(
        "floor, no barrier",
        replace(G2, barrier=G1.barrier),
        ADMITTED,
        "",
        "0/0/1/1/0",
        _LATE,
        more_after=(("deferredRescansFired", 1),),
    ),
    Row(
        "G2 + flush failure",
        G2,
        (*ADMITTED, "A2: fail"),
        "",
        "1/0/1/1/0",
        _LATE,
        "",
        more_after=(("deferredRescansFired", 1), ("visibilityBarriers", 1)),
    ),
    Row(
        "G2 + pull failure",
        G2,
        (*ADMITTED, "A3: fail"),
        "",
        "1/0/1/1/0",
        _LATE,
        "",
        more_after=(("deferredRescansFired", 1), ("visibilityBarriers", 1)),
    ),
    Row(
        "same without floor",
        replace(G2, floor_input=False, floor_settle=False),
        (*ADMITTED, "A2: fail"),
        _TWICE,
        "1/0/1/1/0",
    ),
    Row(
        "G2 + queue always throws",
        G2,
        (*ADMITTED, "queue (*): throw"),
        "(3,[],[A,B])",
        "1/1/0/1/0",
        "",
        "",
        (("queueCalls", 2),),
        (("queueCalls", 3), ("deferredRescansFired", 1), ("deferredRescansArmed", 2)),
    ),
    Row(
        "same, floor_on_queue_throw",
        replace(G2, floor_on_queue_throw=True),
        (*ADMITTED, "queue (*): throw"),
        "",
        "1/1/0/1/0",
        None,
        "",
        (("queueCalls", 1),),
    ),
    Row(
        "throw + park (G2)",
        G2,
        (*ADMITTED, "queue: park", "queue: throw"),
        "",
        "1/1/0/1/0",
        "",
        "",
        (("queueCalls", 1),),
        (("deferredRescansFired", 0),),
    ),
    Row(
        "throw + park (G3)",
        G3,
        (*ADMITTED, "queue: park", "queue: throw"),
        "",
        "1/1/0/0/0",
        "",
        "",
        (("queueCalls", 1),),
        (("deferredRescansFired", 0),),
    ),
    Row(
        "shadowed A, absent",
        G2,
        (*_HIDDEN, "260ms: release"),
        "",
        "1/0/1/1/0",
        "",
        "",
        (("responses", 1),),
        (
            ("visibilityBarriers", 2),
            ("visibilityDeferrals", 2),
            ("deferredRescansArmed", 2),
            ("deferredRescansFired", 1),
            ("responses", 2),
        ),
    ),
    Row("shadowed A, released", G2, (*_HIDDEN, "260ms: release"), "", "1/0/1/1/0", _LATE, "", until=2 * TIMER),
    Row(
        "shadowed A, seq 102",
        G2,
        (*_OTHER_SEQ, "260ms: release"),
        "",
        "1/0/1/1/0",
        "",
        "",
        (("responses", 1),),
        (
            ("visibilityBarriers", 2),
            ("visibilityDeferrals", 2),
            ("deferredRescansArmed", 2),
            ("deferredRescansFired", 1),
            ("responses", 2),
        ),
    ),
    Row("seq 102, released", G2, (*_OTHER_SEQ, "260ms: release"), "", "1/0/1/1/0", _LATE, "", until=2 * TIMER),
    Row("seq 102, check=id", replace(G2, check=Check.ID), _OTHER_SEQ, None, "1/1/0/0/0", None, "A B"),
    Row("compaction in pull, refind off", replace(G2, refind=False), _COMPACTED, None, first=400, crashes=True),
    Row("consumed in pull", G2, (*ADMITTED, "A3: consequence a A"), None, "1/0/0/0/0", None, "B"),
    Row(
        "consumed in pull, no recheck",
        replace(G2, recheck_consumed=False),
        (*ADMITTED, "A3: consequence a A"),
        None,
        "1/1/0/0/0",
        None,
        "A B",
    ),
    Row(
        "G0, first sync of a fails",
        G0,
        (*_DELIVERED, "A1 a: fail"),
        "(3,[B],[A]) (3,[B,A],[])",
        None,
        more=(("deferredRescansArmed", 1),),
    ),
    Row("G1 same", G1, (*_DELIVERED, "A1 a: fail"), _TWICE, None, more=(("deferredRescansArmed", 1),)),
    Row("G2 same", G2, (*_DELIVERED, "A1 a: fail"), "", "0/0/0/1/0", _LATE),
    Row(
        "LT1 entry, floor_settle off",
        replace(G2, floor_settle=False),
        _LT1,
        "(2,[A],[]) (3,[A],[L])",
        emits=(("A", "b", "L"),),
    ),
    Row("LT1 entry, floor_settle on", G2, _LT1, "(2,[A],[])", emits=(("A", "b", "L"),)),
)


def measure(row: Row) -> Measured:
    """Run a row's situation."""
    early, late = _played(row, row.first), _played(row, row.until)
    seen = early.space.counters
    return Measured(
        _waves(early, 0),
        counted(seen),
        _waves(late, TIMER),
        " ".join(early.space.called),
        bool(early.crashed),
        _named(seen, row.more),
        _named(late.space.counters, row.more_after),
    )


def agrees(row: Row, found: Measured) -> bool:
    """Whether ours does what is published, in every cell that is."""
    pairs = (
        (row.before, found.before),
        (row.counters, found.counters),
        (row.after, found.after),
        (row.called, found.called),
    )
    if any(said is not None and said != seen for said, seen in pairs):
        return False
    return row.crashes == found.crashed and row.more == found.more and row.more_after == found.more_after


def counted(counters: Counters) -> str:
    """The five counters as the table has them."""
    return "/".join(
        str(value)
        for value in (
            counters.visibility_barriers,
            counters.visibility_recoveries,
            counters.visibility_deferrals,
            counters.deferred_rescans_armed,
            counters.deferred_rescans_fired,
        )
    )


def _played(row: Row, until: int) -> Play:
    run = play(DrainModel(replace(row.setup(), until=until)), TapeChooser())
    found = run.instance
    assert isinstance(found, Play)
    return found


def _waves(play: Play, since: int) -> str:
    return " ".join(str(wave) for wave in play.space.waves if wave.t >= since)


def _named(counters: Counters, wanted: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    known = dict(counters.reported())
    return tuple((name, known[name]) for name, _ in wanted)
