"""What happened in a drain, as typed records: the subject of the sweeps of this room.

The kinds are those of the reference's section 4.1. Ours are ``effects`` (that were committed outside a wave),
``consequence`` (that another writer set), ``floor`` (that a park cleared) and ``rest`` (what a loop left behind when it
lay down to wait). A record is a value, and its order in the trace is total (``n``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

#: an entry as the loop knows it: event id and seq; a legacy entry has no seq, a ghost has no event id
Ident = tuple[str | None, int | None]
#: a sidecar in a snapshot: its name, its frontier, and its entries (event id, seq, consequenced)
Snapshot = tuple[str, int, tuple[tuple[str | None, int | None, bool], ...]]


class Admit(NamedTuple):
    """A client's append. One that was deduplicated has no seq of its own. ``seq`` is also None for a legacy entry."""

    doc: str
    event_id: str
    seq: int | None
    deduped: bool = False


class Compact(NamedTuple):
    """Consumed entries were taken out of a sidecar."""

    doc: str
    removed: tuple[Ident, ...]


class Consequence(NamedTuple):
    """Another writer consequenced an entry, with its effects."""

    doc: str
    event_id: str
    seq: int | None


class Flush(NamedTuple):
    """A flush of the barrier: ``begin``, ``end`` or ``fail``."""

    phase: str


class Pull(NamedTuple):
    """An ordered response that was asked for: ``begin``, ``end`` or ``fail``."""

    phase: str


class Apply(NamedTuple):
    """A frame reached the view. ``version_seq`` is the seq of the last commit that it holds."""

    doc: str
    version_seq: int


class PassBegin(NamedTuple):
    """A pass that was owed begins; ``floor_before`` is cleared by it."""

    scan: int
    w: int
    floor_before: int | None


class PassEntry(NamedTuple):
    """What a pass did with one entry; ``view`` is what the view had at the index when it was last read."""

    doc: str
    event_id: str
    seq: int | None
    stored_i: int
    view: Ident | None
    action: str


class PassEnd(NamedTuple):
    """A pass is over. ``queued`` is None where it was cancelled."""

    queued: int | None
    floor_after: int | None


class Dispatch(NamedTuple):
    """A handler began."""

    event_id: str
    seq: int | None


class Wave(NamedTuple):
    """One derived commit. ``marks`` are (doc, index, event id, seq); ``skips`` those of them without effects;
    ``requeued`` the entries that a conflict threw back; ``emitted`` entries that the wave itself carried (doc, event
    id); ``settled`` says that the watermark was moved by the walk over own seqs."""

    seq: int
    w_before: int
    w_after: int
    exhausted: bool
    content: int
    marks: tuple[tuple[str, int, str, int | None], ...] = ()
    effects: tuple[Ident, ...] = ()
    skips: tuple[Ident, ...] = ()
    requeued: tuple[Ident, ...] = ()
    emitted: tuple[tuple[str, str], ...] = ()
    settled: bool = False
    sidecars: tuple[Snapshot, ...] = ()


class Effects(NamedTuple):
    """Effects of a handler that were committed without a mark."""

    seq: int
    event_id: str
    event_seq: int | None


class Timer(NamedTuple):
    """The backstop timer: ``arm``, ``fire`` or ``clear``."""

    phase: str


class Park(NamedTuple):
    """The end of a tenure: ``begin`` or ``end``."""

    phase: str


class Activate(NamedTuple):
    """A tenure begins: what it found pending, and the watermark."""

    pending: tuple[tuple[str, str | None, int | None], ...]
    w: int


class Floor(NamedTuple):
    """The floor changed outside a pass."""

    floor: int | None


class Rest(NamedTuple):
    """The loop waits for input: what could wake it, and what is pending and in nobody's hands."""

    scan_owed: bool
    timer: bool
    feed: int
    pending: tuple[tuple[str, str | None, int | None], ...]


class Counters(NamedTuple):
    """The counters as the loop reports them."""

    values: tuple[tuple[str, int], ...]


What = (
    Admit | Compact | Consequence | Flush | Pull | Apply | PassBegin | PassEntry | PassEnd | Dispatch | Wave | Effects
    | Timer | Park | Activate | Floor | Rest | Counters
)  # fmt: skip

#: kind in a file -> type. A phase is written behind a dot: ``flush.begin``.
KINDS: dict[str, type[What]] = {
    "admit": Admit,
    "compact": Compact,
    "consequence": Consequence,
    "flush": Flush,
    "pull": Pull,
    "apply": Apply,
    "pass.begin": PassBegin,
    "pass.entry": PassEntry,
    "pass.end": PassEnd,
    "dispatch": Dispatch,
    "wave.commit": Wave,
    "effects": Effects,
    "timer": Timer,
    "park": Park,
    "activate": Activate,
    "floor": Floor,
    "rest": Rest,
    "counters": Counters,
}
NAMES: dict[type[What], str] = {one: name for name, one in KINDS.items()}

#: what a pass can do with an entry
QUEUE, SKIP_CONSUMED, SKIP_TWIN, SKIP_INFLIGHT = "queue", "skip_consumed", "skip_twin", "skip_inflight"
DEFER_VIEW, DEFER_SYNC, DEFER_QUEUE, DEFER_LOADPARK = "defer_view", "defer_sync", "defer_queue", "defer_loadpark"
VANISHED = "vanished"
ACTIONS = (
    QUEUE, SKIP_CONSUMED, SKIP_TWIN, SKIP_INFLIGHT, DEFER_VIEW, DEFER_SYNC, DEFER_QUEUE, DEFER_LOADPARK, VANISHED,
)  # fmt: skip
DEFERRALS = frozenset({DEFER_VIEW, DEFER_SYNC, DEFER_QUEUE, DEFER_LOADPARK})


class Record(NamedTuple):
    """One record: its place, the virtual time in ms, the tenure (0: nobody's) and what happened."""

    n: int
    t: int
    tenure: int
    what: What


@dataclass(frozen=True, slots=True)
class DrainTrace:
    """A trace, whole: every record of one run, in order. ``name`` says of what, ``source`` where it was read."""

    name: str
    records: tuple[Record, ...]
    source: str = ""


def position(ident: Ident, doc: str) -> tuple[float, str]:
    """Where an entry stands in arrival order: by seq, legacy last, ties by sidecar."""
    return (float("inf") if ident[1] is None else ident[1], doc)


def said(ident: Ident) -> str:
    """An entry as a person reads it: ``A@2``; ``A@-`` is a legacy entry and ``ghost`` one without an event id."""
    event, seq = ident
    if not event:
        return "ghost"
    return f"{event}@{'-' if seq is None else seq}"
