"""The reports about the Workflow SDK, its worlds and stores like them, as logs.

Every log is our own, written from what a report says went wrong; names, tokens and times are made up. ``python -m
tests.sweeps.write_cases`` writes them under ``fixtures/logs``, and a test holds the two equal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stormctl.history import Capture, Event, Inline, ids, kinds
from stormctl.testing import START_MS, LogBuilder, run_serially
from stormctl.workloads.registry import WORKLOADS
from tests.sweeps.case_base import CLEAN, Judged, Register, run

CASES = Register()
OPEN = Judged("unknown", reason="still going")


def hook_sleep(**given: Any) -> LogBuilder:
    """A hook-sleep that was woken in its first iteration."""
    workload = WORKLOADS["hook-sleep"]
    payload = {"sentAt": START_MS + 50}
    return run_serially(workload, workload.input_type(token="demo", **given), payloads={"demo": payload})


def at(built: LogBuilder, place: int, ms: int) -> LogBuilder:
    """The event at a place, that many milliseconds after the start."""
    return built.changed(place, created_at=START_MS + ms)


def captured(built: LogBuilder, ms: int, **fields: Any) -> Capture:
    """A run that was still going when it was captured, that many milliseconds after the start."""
    return built.capture(data={"captured_at": START_MS + ms}, live=True, **fields)


# -- what replays bind -------------------------------------------------------------------------------------------------


def unconsumed_hook() -> Capture:
    built = hook_sleep()
    waiting = next(at for at, event in enumerate(built.events, 1) if event.type == kinds.WAIT_CREATED)
    return built.until(waiting).hook_created(3, "other").hook_received(0, {"sentAt": START_MS}).run_failed().capture()


def slept_although_woken(*, woken_first: bool) -> Capture:
    """A wake and the end of a sleep, one after the other, and then the sleep's branch."""
    workload = WORKLOADS["hook-sleep"]
    built = run_serially(workload, workload.input_type(token="demo", return_on_wake=True), late=[2])
    place = next(at for at, event in enumerate(built.events, 1) if event.type == kinds.WAIT_COMPLETED)
    cut = built.until(place - 1)
    due = built.events[place - 1].resume_at
    first, second = ("hook", "wait") if woken_first else ("wait", "hook")
    for one in (first, second):
        if one == "hook":
            cut = cut.hook_received(0, {"sentAt": START_MS}).changed(len(cut.events), created_at=due)
        else:
            cut = cut.wait_completed(2)
    rank = 3
    for _ in range(2):
        cut = cut.wait_created(rank)
        rank += 1
    return cut.capture(live=True)


CASES.pair(
    "vercel/workflow#3070",
    {
        "name": "3070-hook-that-no-replay-asks-for",
        "symptom": "A run failed over a hook_created that no replay of the log asks for; the log is dense.",
        "log": unconsumed_hook,
        "judged": Judged("violated", ("rebinding/divergence",), never=("dense", "lifecycle", "one-body")),
    },
    {
        "name": "3070-every-hook-asked-for",
        "symptom": "The same run without that hook.",
        "log": lambda: hook_sleep().capture(),
        "judged": Judged("clean"),
    },
    engine="dispenser",
)


def answered_at_the_door() -> Capture:
    """The answer came first, so the run went in."""
    built = run().hook_created(0, "door").wait_created(1).step_created(2, "knock").step_started(2)
    built = built.hook_received(0).wait_completed(1)
    built = built.event(kinds.STEP_COMPLETED, 2, created_at=built.events[-1].created_at)
    built = built.event(kinds.STEP_CREATED, 3, name="goIn", created_at=built.events[-1].created_at, payload=Inline([]))
    return built.capture(live=True)


CASES.pair(
    "vercel/workflow#2171",
    {
        "name": "2171-kept-payload-loses-when-replayed",
        "symptom": "A hook was received in a step, before a sleep was due; the replaying engine lets the sleep win.",
        "log": answered_at_the_door,
        "engine": "nets",
        "judged": Judged("violated", ("rebinding/divergence",), never=("dense", "lifecycle")),
    },
    {
        "name": "2171-kept-payload-wins-when-replayed",
        "symptom": "The same log, replayed by an engine that gives the race to what is first in the log.",
        "log": answered_at_the_door,
        "engine": "opposite",
        "judged": OPEN,
    },
    workload="fixtures/workflows/buffered.py:door",
)
CASES.pair(
    "vercel/workflow#2029",
    {
        "name": "2029-slept-although-woken-first",
        "symptom": "A hook received just before a sleep was due, and the run took the sleep's branch.",
        "log": lambda: slept_although_woken(woken_first=True),
        "judged": Judged("violated", ("log-order/contradiction", "rebinding/divergence"), never=("dense",)),
    },
    {
        "name": "2029-slept-before-it-was-woken",
        "symptom": "The sleep was due first, the hook received after it, and the run took the sleep's branch.",
        "log": lambda: slept_although_woken(woken_first=False),
        "judged": OPEN,
    },
    engine="dispenser",
)


def ranks_back(depth: int) -> LogBuilder:
    """Creates that step back: twelve side by side, and one that far below the newest."""
    built = run()
    for rank in (*range(4, 16), *range(40, 44)) if depth > 40 else range(4, 16):
        built = built.step_created(rank, f"part{rank}")
    built = built.step_created(0, "late")
    for rank in (*range(4, 16), *(range(40, 44) if depth > 40 else ()), 0):
        built = built.step_started(rank).step_completed(rank)
    return built


CASES.pair(
    "vercel/workflow#3418",
    {
        "name": "3418-failed-without-a-word",
        "symptom": "A failed run with an error code and no message; its ids step back, as those of branches do.",
        "log": lambda: ranks_back(15).run_failed().capture(),
        "judged": Judged("unknown", never=("ranks/too-deep",), reason="engine suspect"),
    },
    {
        "name": "3418-drawn-far-behind",
        "symptom": "The same, but one id was drawn farther back than all open branches together reach.",
        "log": lambda: ranks_back(43).run_failed().capture(),
        "judged": Judged("violated", ("ranks/too-deep",)),
    },
)
CASES.pair(
    "vercel/workflow#3543",
    {
        "name": "3543-finalized-twice",
        "symptom": "The same finalization was created twice, under two ids, by writers with different prefixes.",
        "judged": Judged(
            "violated", ("roles/excess", "rebinding/divergence"), never=("dense", "lifecycle", "id-order")
        ),
    },
    {
        "name": "clean-step-storm",
        "symptom": "A complete step-storm: nothing may be found.",
        "judged": Judged("clean"),
    },
    engine="dispenser",
)


def in_production(ms: int) -> Capture:
    """A fan-out of two steps under a watchdog, one of them not started."""
    built = run().step_created(0, "export").step_created(1, "import").wait_created(2, 600_000)
    return captured(built.step_started(0), ms)


CASES.pair(
    "vercel/workflow#2737",
    {
        "name": "2737-step-never-started",
        "symptom": "A step was created under a watchdog and nobody ever starts it; the run stays as it is.",
        "log": lambda: in_production(300_000),
        "judged": Judged("violated", ("liveness/unstarted-step",)),
    },
    {
        "name": "2737-step-just-created",
        "symptom": "The same log, captured a second after the create.",
        "log": lambda: in_production(1_000),
        "judged": Judged("unknown", never=("liveness",), reason="still going"),
    },
)

# -- the lifecycle of steps --------------------------------------------------------------------------------------------

CASES.pair(
    "vercel/workflow#2331",
    {
        "name": "2331-step-started-after-its-end",
        "symptom": "Two workers finish and claim one step: it is started after it has completed.",
        "judged": Judged("violated", ("lifecycle/start-after-step-end",)),
    },
    {
        "name": "2331-step-started-again-after-a-retry",
        "symptom": "A step is started again because its first attempt failed.",
        "judged": CLEAN,
    },
)


def created_within_120_ms(*ranks: int) -> Capture:
    """Four creates of replays that ran side by side."""
    built = run()
    for rank, ms in zip(ranks, (386, 445, 463, 501), strict=True):
        built = built.step_created(rank, "charge", 1)
        built = at(built, len(built.events), ms)
    for rank in dict.fromkeys(ranks):
        for event_type in (kinds.STEP_STARTED, kinds.STEP_COMPLETED):
            built = built.event(event_type, rank)
            built = at(built, len(built.events), 600 + len(built.events))
    built = built.run_completed()
    return at(built, len(built.events), 700).capture()


CASES.pair(
    "vercel/workflow#2039",
    {
        "name": "2039-step-created-four-times",
        "symptom": "Four replays at once created one step within 120 ms.",
        "log": lambda: created_within_120_ms(0, 0, 0, 0),
        "judged": (
            Judged("violated", ("lifecycle/repeat-step-created",)),
            Judged("unknown", profile="workflow@5", milder=("lifecycle/repeat-step-created",)),
        ),
    },
    {
        "name": "2039-four-steps-created-at-once",
        "symptom": "Four steps of one name, each created once, within 120 ms.",
        "log": lambda: created_within_120_ms(0, 1, 2, 3),
        "judged": CLEAN,
    },
)


def without_positions(built: LogBuilder) -> LogBuilder:
    def strip(events: list[Event]) -> None:
        events[:] = [replace(event, position=None) for event in events]

    return built.edited(strip)


CASES.pair(
    "vercel/workflow#1877",
    {
        "name": "1877-two-files-for-one-create",
        "symptom": "Two processes on one folder wrote a file each for the create of one step.",
        "log": lambda: (
            without_positions(run().step_created(0, "charge").repeated(3).step_started(0).step_completed(0))
            .run_completed()
            .capture()
        ),
        "judged": Judged("violated", ("lifecycle/repeat-step-created",)),
    },
    {
        "name": "1877-hook-made-again",
        "symptom": "A hook is given up and made again: two creates, one after the other's end.",
        "log": lambda: (
            without_positions(run().hook_created(0).hook_received(0).hook_disposed(0).hook_created(0).hook_disposed(0))
            .run_completed()
            .capture()
        ),
        "judged": CLEAN,
    },
)


def recovered(*, twice: bool) -> Capture:
    """A peer's start-up recovery replays a run that is being worked on."""
    built = run()
    for rank in (0, 1, 2):
        built = built.step_created(rank, f"part{rank}")
        if twice:
            built = built.repeated(len(built.events))
    for rank in (0, 1, 2):
        built = built.step_started(rank)
        built = built.step_started(rank) if twice else built.step_retrying(rank).step_started(rank)
    for rank in (0, 1, 2):
        built = built.step_completed(rank)
    return built.run_completed().capture()


CASES.pair(
    "vercel/workflow#3758",
    {
        "name": "3758-recovered-a-peers-run",
        "symptom": "A server that starts re-enqueues the runs of a live peer: double creates, bursts of double starts.",
        "log": lambda: recovered(twice=True),
        "judged": Judged("violated", ("lifecycle/repeat-step-created",), milder=("lifecycle/repeat-start",)),
    },
    {
        "name": "3758-started-again-after-retries",
        "symptom": "Each step is started twice because its first attempt failed.",
        "log": lambda: recovered(twice=False),
        "judged": Judged("unknown", never=("lifecycle",), reason="a workload"),
    },
)
CASES.pair(
    "vercel/workflow#4199",
    {
        "name": "4199-step-started-twice-and-lost",
        "symptom": "A process was killed in a step: started twice, never retried, never ended, and the run failed.",
        "judged": Judged("violated", ("lifecycle/abandoned-start",)),
    },
    {
        "name": "4199-step-started-twice-and-ended",
        "symptom": "A step that was started twice and ended, as many healthy runs have.",
        "judged": Judged("unknown", milder=("lifecycle/repeat-start",), never=("lifecycle/abandoned-start",)),
    },
)
CASES.pair(
    "vercel/workflow#3849",
    {
        "name": "3849-attribute-set-twice",
        "symptom": "The write of an attribute was retried, and its second event is stranded at the end.",
        "log": lambda: run().attr_set(0, stage="paid").step(1, "ship").repeated(3).capture(),
        "judged": (
            Judged("violated", ("lifecycle/repeat-attr-set",)),
            Judged("unknown", profile="workflow@5", milder=("lifecycle/repeat-attr-set",)),
        ),
    },
    {
        "name": "3849-two-attributes-set",
        "symptom": "Two writes of one attribute, each under an id of its own.",
        "log": lambda: run().attr_set(0, stage="paid").step(1, "ship").attr_set(2, stage="paid").capture(),
        "judged": CLEAN,
    },
)
CASES.pair(
    "vercel/workflow#2780",
    {
        "name": "2780-hook-starts-a-running-step",
        "symptom": "A hook arrives during a step, and the delivery that it wakes starts the step once more.",
        "log": lambda: (
            run()
            .hook_created(0)
            .step_created(1, "pack")
            .step_started(1)
            .hook_received(0, "now")
            .step_started(1)
            .step_completed(1)
            .hook_disposed(0)
            .run_completed()
            .capture()
        ),
        "judged": Judged("unknown", milder=("lifecycle/repeat-start",), reason="a workload"),
    },
    {
        "name": "2780-hook-during-a-step",
        "symptom": "A hook arrives during a step, which is started once.",
        "log": lambda: (
            run()
            .hook_created(0)
            .step_created(1, "pack")
            .step_started(1)
            .hook_received(0, "now")
            .step_completed(1)
            .hook_disposed(0)
            .run_completed()
            .capture()
        ),
        "judged": Judged("unknown", never=("lifecycle",), reason="a workload"),
    },
)


def created_late(*, after_end: bool) -> Capture:
    """The create of a step that a slow writer adds: to a step that has ended, or to one that goes on."""
    built = run().step_created(0, "charge").step_started(0)
    built = built.step_completed(0).repeated(3) if after_end else built.repeated(3).step_completed(0)
    return built.run_failed().capture() if after_end else built.run_completed().capture()


CASES.pair(
    "vercel/workflow#3381",
    {
        "name": "3381-created-again-after-its-end",
        "symptom": "A step's create is written again when the step has ended: engines before the fix cannot pass it.",
        "log": lambda: created_late(after_end=True),
        "judged": (
            Judged("violated", ("lifecycle/late-step-created",)),
            Judged("violated", ("lifecycle/late-step-created",), profile="workflow@4.6"),
            Judged("unknown", profile="workflow@5", milder=("lifecycle/late-step-created",)),
        ),
    },
    {
        "name": "3381-created-again-while-it-runs",
        "symptom": "The same, while the step is still open.",
        "log": lambda: created_late(after_end=False),
        "judged": (
            Judged("violated", ("lifecycle/repeat-step-created",)),
            Judged("unknown", profile="workflow@4.6", milder=("lifecycle/repeat-step-created",)),
        ),
    },
)

# -- hooks and waits ---------------------------------------------------------------------------------------------------


def refused(built: LogBuilder, rank: int, run_id: str | None = None, token: str = "order-7") -> LogBuilder:
    """A hook that is refused its token."""
    data = {"conflictingRunId": built.run_id if run_id is None else run_id}
    return built.event(kinds.HOOK_CONFLICT, rank, token=token, data=data)


OTHER_RUN = "wrun_01KE1111111111111111111111"
CASES.pair(
    "vercel/workflow#2295",
    {
        "name": "2295-hook-conflicts-with-itself",
        "symptom": "A retried create meets its own first attempt: created and refused, run, hook and token the same.",
        "log": lambda: refused(run().hook_created(0, "order-7"), 0).run_failed("HOOK_CONFLICT").capture(),
        "judged": Judged("violated", ("lifecycle/conflict-and-created",)),
    },
    {
        "name": "2295-hook-of-another-run",
        "symptom": "A hook is refused its token, which a hook of another run owns.",
        "log": lambda: refused(run(), 0, OTHER_RUN).run_completed().capture(),
        "judged": Judged("unknown", never=("lifecycle", "hook-conflicts"), reason="a workload"),
    },
)
CASES.pair(
    "vercel/workflow#2777",
    {
        "name": "2777-refused-before-the-disposal",
        "symptom": "A hook gives its token back and another asks for it: the refusal is recorded before the disposal.",
        "log": lambda: refused(run().hook_created(0, "order-7"), 1).hook_disposed(0).run_completed().capture(),
        "judged": Judged("violated", ("hook-conflicts/conflict-before-disposal",)),
    },
    {
        "name": "2777-refused-while-it-is-held",
        "symptom": "A hook is refused a token that another holds, and gives back only after it has received.",
        "log": lambda: (
            refused(run().hook_created(0, "order-7"), 1).hook_received(0).hook_disposed(0).run_completed().capture()
        ),
        "judged": Judged("unknown", never=("hook-conflicts",), reason="a workload"),
    },
)


def slept_through(ms: int) -> Capture:
    return captured(run().step(0, "warm").wait_created(1, 5_000), ms)


CASES.pair(
    "vercel/workflow#510",
    {
        "name": "510-sleep-never-ends",
        "symptom": "The server restarted during a sleep; its time is long past and it has not completed.",
        "log": lambda: slept_through(900_000),
        "judged": Judged("violated", ("liveness/overdue-wait",)),
    },
    {
        "name": "510-sleep-goes-on",
        "symptom": "The same sleep, captured before it is due.",
        "log": lambda: slept_through(3_000),
        "judged": Judged("unknown", never=("liveness",), reason="still going"),
    },
)

# -- ids and positions -------------------------------------------------------------------------------------------------

CASES.pair(
    "vercel/workflow#3696",
    {
        "name": "3696-one-rank-step-and-wait",
        "symptom": "One ordinal is bound to a step and to a wait.",
        "judged": Judged("violated", ("one-body/two-kinds",)),
    },
    {
        "name": "3696-a-rank-for-each",
        "symptom": "A step and a wait, each with an ordinal of its own.",
        "log": lambda: run().step_created(9, "finalize").wait_created(10).capture(),
        "judged": CLEAN,
    },
)
CASES.pair(
    "vercel/workflow#4017",
    {
        "name": "4017-failed-with-a-clean-log",
        "symptom": "A run failed as corrupted, and its log is consistent: only its engine can be the cause.",
        "judged": Judged("unknown", reason="engine suspect"),
    },
    {
        "name": "4017-completed-with-a-clean-log",
        "symptom": "A run with a consistent log, completed.",
        "log": lambda: hook_sleep().capture(),
        "judged": Judged("clean"),
    },
    engine="dispenser",
)
CASES.pair(
    "vercel/workflow#3492",
    {
        "name": "3492-position-lost",
        "symptom": "A process was killed between staging an event and publishing it: its position stays empty.",
        "judged": Judged("violated", ("dense/gap",)),
    },
    {
        "name": "3492-position-filled",
        "symptom": "The store filled the lost position with an event that means nothing.",
        "log": lambda: (
            run().hook_created(0).event(kinds.NOOP).hook_received(0).hook_disposed(0).run_completed().capture()
        ),
        "judged": Judged("unknown", never=("dense", "lifecycle"), reason="a workload"),
    },
)
CASES.pair(
    "vercel/workflow#3656",
    {
        "name": "3656-slot-and-ulid-ids",
        "symptom": "A run holds ids of two schemes: slots, and a ULID that a second writer minted.",
        "judged": Judged("violated", ("id-order/mixed-ids",)),
    },
    {
        "name": "3656-slot-ids-alone",
        "symptom": "A run whose ids are slots.",
        "log": lambda: LogBuilder(slots=True).run_created().run_started().step(0, "charge").run_completed().capture(),
        "judged": CLEAN,
    },
)


def read_before(*, inserted: bool) -> LogBuilder:
    """The later capture: a receipt stands before an event that was already read, or behind it."""
    built = without_positions(run().hook_created(0).step_created(1, "pack").step_started(1))
    if inserted:
        late = built.hook_received(0, "late").events.pop()
        moment = START_MS + 35
        late = replace(late, event_id=f"evnt_{ids.compose(moment, 77)}", created_at=moment, position=None)
        built.events.insert(3, late)
        return built
    built = built.hook_received(0, "late")
    built.events[-1] = replace(built.events[-1], position=None)
    return built


def first_capture() -> Capture:
    return without_positions(run().hook_created(0).step_created(1, "pack").step_started(1)).capture(live=True)


CASES.pair(
    "vercel/workflow#2228",
    {
        "name": "2228-event-inserted-before-one-that-was-read",
        "symptom": "An event with an earlier id is committed late: it appears before one that was already read.",
        "log": lambda: read_before(inserted=True).capture(live=True),
        "earlier": first_capture,
        "judged": Judged("violated", ("append-only/inserted",)),
    },
    {
        "name": "2228-event-appended",
        "symptom": "The same event, behind everything that was read.",
        "log": lambda: read_before(inserted=False).capture(live=True),
        "earlier": first_capture,
        "judged": OPEN,
    },
)


def captured_twice(*, same: bool) -> Capture:
    """An event that stands twice in a capture: taken from two pages, or two events under one id."""
    built = run().step(0, "charge").run_completed()
    again = built.events[3] if same else replace(built.events[4], event_id=built.events[3].event_id)
    built.events.insert(4, again) if same else built.events.__setitem__(4, again)
    return built.capture()


CASES.pair(
    "vercel/workflow#2179",
    {
        "name": "2179-one-id-for-two-events",
        "symptom": "Two events of the store bear one id.",
        "log": lambda: captured_twice(same=False),
        "judged": Judged("violated", ("id-order/repeat-id",)),
    },
    {
        "name": "2179-pages-overlap",
        "symptom": "The pages of a capture overlap: one event of the store stands in it twice.",
        "log": lambda: captured_twice(same=True),
        "judged": Judged("unknown", never=("dense", "lifecycle", "id-order")),
    },
)


def with_serials(*serials: int) -> Capture:
    built = run().step(0, "charge").run_completed()
    events = [replace(event, data={"serial": serial}) for event, serial in zip(built.events, serials, strict=True)]
    return built.edited(lambda held: held.__setitem__(slice(None), events)).capture()


CASES.pair(
    "platformatic/platformatic-world#166",
    {
        "name": "platformatic-166-serial-against-slot",
        "symptom": "Rows are numbered by a sequence beside their slots; the row 41 has the slot before that of 40.",
        "log": lambda: with_serials(36, 37, 38, 41, 40, 42),
        "judged": Judged("violated", ("id-order/serial-behind",)),
    },
    {
        "name": "platformatic-166-serials-rise",
        "symptom": "The numbers rise with the slots; that one is missing means nothing.",
        "log": lambda: with_serials(36, 37, 38, 40, 41, 42),
        "judged": CLEAN,
    },
)

__all__ = ["CASES", "OPEN", "without_positions"]
