"""The reports about stores that are not the Workflow SDK's, and harnesses that measured too early, as logs of ours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stormctl.history import COMMIT_CLOCK, COMMIT_TIMES, Capture, Event, kinds
from stormctl.testing import START_MS, LogBuilder
from tests.sweeps.case_base import CLEAN, Judged, Register, run
from tests.sweeps.case_logs import OPEN, without_positions

CASES = Register()


def two_writers(*, same: bool) -> Capture:
    """Two writers at one place of a run, with different payloads."""
    built = run().hook_created(0)
    for value in ("left", "right"):
        built = built.hook_received(0, value)
    if same:
        built = built.changed(5, position=4)
    return built.capture(live=True)


CASES.pair(
    "commontoolsinc/labs#4457",
    {
        "name": "labs-4457-two-values-at-one-place",
        "symptom": "Two writers at once: one sequence number holds two events with different values.",
        "log": lambda: two_writers(same=True),
        "judged": Judged("violated", ("dense/repeat",)),
    },
    {
        "name": "labs-4457-a-place-for-each",
        "symptom": "The same two events, one after the other.",
        "log": lambda: two_writers(same=False),
        "judged": OPEN,
    },
)


def with_counter(seq: int) -> Capture:
    built = run().step(0, "charge").run_completed()
    return built.capture(data={"counter": {"seq": seq, "lastEventId": built.events[-1].event_id}})


CASES.pair(
    "commontoolsinc/labs#3560",
    {
        "name": "labs-3560-counter-moved-back",
        "symptom": "A stale upsert moves a run's counter back behind its last event.",
        "log": lambda: with_counter(5),
        "judged": Judged("violated", ("counter/counter-behind",)),
    },
    {
        "name": "labs-3560-counter-at-the-end",
        "symptom": "The counter stands at the last event.",
        "log": lambda: with_counter(6),
        "judged": CLEAN,
    },
)


def shown(lost: int) -> Capture:
    """Ten steps; their rows are all there, and some of their events are not."""
    built, rows = run(), dict[str, Any]()
    for rank in range(10):
        rows[built.id(kinds.STEP, rank)] = {"status": "completed"}
        if rank < 10 - lost:
            built = built.step(rank, f"part{rank}")
    return built.run_completed().capture(data={"rows": rows})


CASES.pair(
    "commontoolsinc/labs#4405",
    {
        "name": "labs-4405-rows-without-events",
        "symptom": "More is stored than the log shows: two entities have rows and no events.",
        "log": lambda: shown(2),
        "judged": Judged("violated", ("rows/row-without-create",)),
    },
    {
        "name": "labs-4405-a-row-for-each",
        "symptom": "Every row has its events.",
        "log": lambda: shown(0),
        "judged": CLEAN,
    },
)


def forty(count: int) -> LogBuilder:
    """Four writers with ten receipts each, of which so many are there."""
    built = run().hook_created(0, "orders")
    for number in range(count):
        built = built.hook_received(0, {"writer": number % 4, "number": number // 4})
    return built


CASES.pair(
    "commontoolsinc/labs OW52",
    {
        "name": "labs-ow52-seventeen-lost",
        "symptom": "Seventeen of forty writes are gone, and others behind them are there.",
        "log": lambda: _thinned().capture(live=True),
        "judged": Judged("violated", ("dense/open-gap",)),
    },
    {
        "name": "labs-ow52-measured-too-early",
        "symptom": "Seventeen of forty writes are not there yet: what each writer wrote ends earlier, without a hole.",
        "log": lambda: forty(40).capture(live=True),
        "earlier": lambda: forty(23).capture(live=True),
        "judged": Judged("unknown", never=("dense", "append-only", "lifecycle"), reason="still going"),
    },
)


def _thinned() -> LogBuilder:
    def thin(events: list[Event]) -> None:
        del events[10:27]

    return forty(40).edited(thin)


def polled(*order: int) -> Capture:
    """Rows numbered by a sequence, committed in the given order of their places, a millisecond apart."""
    built = without_positions(run().hook_created(0).hook_received(0).hook_received(0).hook_disposed(0).run_completed())
    events = [replace(event, event_id=str(100 + place)) for place, event in enumerate(built.events)]
    built = built.edited(lambda held: held.__setitem__(slice(None), events))
    times = {f"{100 + place}": (START_MS + 20 * rank) * 1000 for rank, place in enumerate(order)}
    return built.capture(data={COMMIT_CLOCK: "server", COMMIT_TIMES: times})


CASES.pair(
    "windmill-labs/windmill#10894",
    {
        "name": "windmill-10894-committed-after-the-next",
        "symptom": "Numbers are taken before the commit: row 104 appears after a reader has passed 105.",
        "log": lambda: polled(0, 1, 2, 3, 5, 4, 6),
        "judged": Judged("violated", ("commit-order/late-publish",), milder=("cursor-exposure/window",)),
    },
    {
        "name": "windmill-10894-committed-in-order",
        "symptom": "Rows appear in the order of their numbers.",
        "log": lambda: polled(0, 1, 2, 3, 4, 5, 6),
        "judged": Judged("unknown", never=("commit-order", "cursor-exposure"), reason="positions"),
    },
)
