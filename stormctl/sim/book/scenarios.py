"""The scenarios of the book, in the order of its table (vercel/workflow #3328, with what #3389 and #3406 changed).

The names are those under which they are known; workflows and scripts are our own. Every one states the right outcome:
one that shows a corruption stays red until the world in which it does is mended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stormctl.history import kinds
from stormctl.sim.book.bodies import HOUR_MS
from stormctl.sim.book.entry import Check, Entry
from stormctl.sim.oracles.end import waits_for
from stormctl.sim.real.appends import RUN_ID
from stormctl.sim.real.machine import Machine
from stormctl.sim.real.scenario import Cancelled, Sent
from stormctl.worlds.condition import Guard

YES = Sent("H", "review", {"approved": True, "reviewer": "ada"})
NO = Sent("H", "review", {"approved": False, "reviewer": "ada"})
AGAIN = Sent("H2", "review", {"approved": True, "reviewer": "ada"})
SETTLED = {"status": "settled", "reviewer": "ada"}
RELEASED = {"status": "released", "reviewer": "ada"}
UNEVEN = {"first": 1, "second": 2}
#: the payload waits outside until it is named
LATER = "H: run up to resume\n"


def attributes(**wanted: str) -> Check:
    """The run's attributes are these."""

    def check(machine: Machine) -> str | None:
        row = machine.store.runs.get(RUN_ID)
        found = {} if row is None else dict(row.attributes)
        return None if found == wanted else f"the run's attributes are {found} and should be {wanted}"

    return check


def right_before_left(machine: Machine) -> str | None:
    """The step that was not held is done before the one that was."""
    done = [event.short_name for event in machine.events if event.type == kinds.STEP_COMPLETED]
    return None if done[:2] == ["right", "left"] else f"the steps ended in the order {done}"


def three_attempts(machine: Machine) -> str | None:
    """The step was started three times."""
    starts = sum(event.type == kinds.STEP_STARTED for event in machine.events)
    return None if starts == 3 else f"the step was started {starts} times"


def an_hour_later(machine: Machine) -> str | None:
    """The timer took its hour."""
    last = machine.events[-1].created_at or 0
    took = last - (machine.events[0].created_at or 0)
    return None if took >= 3_600_000 else f"the run took {took} ms"


def behind_the_end(machine: Machine) -> str | None:
    """The late result stands behind the end of the run, or nowhere."""
    types = [event.type for event in machine.events]
    late = kinds.STEP_COMPLETED in types[: types.index(kinds.RUN_COMPLETED)]
    return "the late result stands before the end of the run" if late else None


def waits_for_review(machine: Machine) -> str | None:
    """The token that is missing is named."""
    owed, tokens = waits_for(machine)
    return None if not owed and tokens == ["review"] else f"the run waits for {owed or tokens}"


BOOK: tuple[Entry, ...] = (
    Entry("smoke-no-steps", "an empty workflow", "empty", output="done"),
    Entry("smoke-one-step", "one step whose result is nothing", "one-step", output=None),
    Entry(
        "hook-at-step-started",
        "the hook lands once step_started is durable, before its writer goes on",
        "review",
        LATER + "S:charge: run to step_started committed\nH: end",
        (YES,),
        output=SETTLED,
    ),
    Entry(
        "hook-at-step-completed",
        "the hook lands right behind the step's result",
        "review",
        LATER + "S:charge: run to step_completed committed\nH: end",
        (YES,),
        output=SETTLED,
    ),
    Entry(
        "hook-at-hook-created",
        "the hook lands at the instant of its registration",
        "review",
        "O1.1: run to hook_created committed\nH: end",
        (NO,),
        output=RELEASED,
    ),
    Entry(
        "deadline-hook-wins",
        "the hook lands within the commit of the timer",
        "deadline",
        LATER + "O1.2: run to wait_created committed\nH: end",
        (YES,),
        output="approved",
    ),
    Entry("deadline-expires", "nobody answers for an hour", "deadline", output="timed-out", check=an_hour_later),
    Entry("long-sleep", "thirty days between two steps", "long-sleep", output="closed"),
    Entry(
        "hook-never-arrives",
        "nothing wakes the run, and the missing token is named",
        "waits-for-ever",
        status="stalled",
        check=waits_for_review,
    ),
    Entry("step-retries-twice", "a step fails twice", "retrying", output="ok", check=three_attempts),
    Entry("parallel-steps", "two steps suspend together", "parallel", output="left+right"),
    Entry(
        "hook-on-execution-state",
        "the hook lands when two steps are done, before anyone waits for it",
        "confirmed",
        LATER + "S:announce: run to step_completed committed\nH: end",
        (YES,),
        output="confirmed",
    ),
    Entry(
        "peek-hook-before-branch",
        "a look whether it has arrived; it lands just before the branch is written",
        "peek",
        LATER + "S:ship: run to step_started produced\nH: end",
        (YES,),
        output="shipped-unapproved",
    ),
    Entry(
        "peek-hook-after-branch",
        "the same, one write later",
        "peek",
        LATER + "S:ship: run to step_started committed\nH: end",
        (YES,),
        output="shipped-unapproved",
    ),
    Entry(
        "peek-hook-at-registration",
        "the same, as early as can be",
        "peek",
        "O1.1: run to hook_created committed\nH: end",
        (YES,),
    ),
    Entry(
        "race-hook-before-probe",
        "a hook against a step; it is ahead of the held result",
        "probe",
        LATER + "S:probe: run to step_completed produced\nH: end",
        (YES,),
        output="completed",
    ),
    Entry(
        "race-hook-after-probe",
        "a hook against a step; it is right behind the result",
        "probe",
        LATER + "S:probe: run to step_completed committed\nH: end",
        (YES,),
        output="completed",
    ),
    Entry(
        "race-duplicate-delivery",
        "the same payload twice, on both sides of the result",
        "probe",
        LATER
        + "H2: run up to resume\nS:probe: run to step_completed produced\nH: end\n"
        + "S:probe: run to step_completed committed\nH2: end",
        (YES, AGAIN),
        output="completed",
    ),
    Entry(
        "attr-hook-before-step",
        "an attribute that a hook brings about, ahead of a step's result",
        "tagged",
        LATER + "S:work: run to step_completed produced\nH: end",
        (YES,),
        output="approved",
        check=attributes(verdict="approved"),
    ),
    Entry(
        "attr-hook-after-step",
        "the mirror of it",
        "tagged",
        LATER + "S:work: run to step_completed committed\nH: end",
        (NO,),
        output="rejected",
        check=attributes(verdict="rejected"),
    ),
    Entry(
        "attr-from-step-body",
        "a step writes an attribute itself, and the hook lands meanwhile",
        "probed",
        LATER + "S:mark: run to attr_set committed\nH: end",
        (YES,),
        output="completed",
        check=attributes(stage="probed"),
    ),
    Entry(
        "fork-hook-after-timeout",
        "the time-out is durable; the hook lands before the branch is written",
        "fork",
        LATER + "O2: run to wait_completed committed\nH: end",
        (YES,),
    ),
    Entry(
        "fork-hook-before-timeout",
        "the hook lands ahead of the held time-out",
        "fork",
        LATER + "O2: run to wait_completed produced\nH: end",
        (YES,),
    ),
    Entry(
        "count-hook-after-timeout",
        "the time-out is durable; branches of one and two steps",
        "fork",
        LATER + "O2: run to wait_completed committed\nH: end",
        (YES,),
        input=UNEVEN,
    ),
    Entry(
        "count-hook-before-timeout",
        "the hook is ahead; branches of one and two steps",
        "fork",
        LATER + "O2: run to wait_completed produced\nH: end",
        (YES,),
        input=UNEVEN,
    ),
    Entry(
        "stale-read-step-count-fork",
        "the hook is ahead of the time-out, and hidden from the deciding read; branches of one and two steps",
        "fork",
        LATER + "O2: run to wait_completed produced\nH: end\nO2: pick unseen = hook_received\nO2: end",
        (YES,),
        input=UNEVEN,
        guard=Guard.NONE,
        stale=True,
    ),
    Entry(
        "stale-read-equal-step-counts",
        "the same with equal branches",
        "fork",
        LATER + "O2: run to wait_completed produced\nH: end\nO2: pick unseen = hook_received\nO2: end",
        (YES,),
        guard=Guard.NONE,
        stale=True,
    ),
    Entry(
        "step-vs-step-fork",
        "two of the run's own results race, and the earlier one is hidden from the deciding read",
        "step-fork",
        "S:fast: run to step_completed committed\nS:slow: run to step_completed committed\n"
        "O1: pick unseen = step_completed fast\nS:fast: end\nS:slow: end\nO1: end",
        input=UNEVEN,
        guard=Guard.NONE,
        stale=True,
    ),
    Entry(
        "step-vs-step-fork-fenced",
        "the same with the watermark, which cannot see a hole in the middle",
        "step-fork",
        "S:fast: run to step_completed committed\nS:slow: run to step_completed committed\n"
        "O1: pick unseen = step_completed fast\nS:fast: end\nS:slow: end\nO1: end",
        input=UNEVEN,
        stale=True,
    ),
    Entry(
        "fence-catches-benign-direction",
        "the later result is hidden",
        "step-fork",
        "S:fast: run to step_completed produced\nS:slow: run to step_completed committed\n"
        "S:fast: run to step_completed committed\nO1: pick unseen = step_completed fast\n"
        "S:fast: end\nS:slow: end\nO1: end",
        input=UNEVEN,
        stale=True,
    ),
    Entry(
        "in-flight-before-decision",
        "the hook has its place and is not readable when the time-out decides; it lands before the branch is written",
        "fork",
        LATER
        + "H: mint\nO2: run to wait_completed committed\nO2: go on\nS:settle: run to step_started produced\nH: end",
        (YES,),
        input=UNEVEN,
    ),
    Entry(
        "in-flight-before-decision-counted",
        "the same, and events are counted",
        "fork",
        LATER
        + "H: mint\nO2: run to wait_completed committed\nO2: go on\nS:settle: run to step_started produced\nH: end",
        (YES,),
        input=UNEVEN,
        guard=Guard.WATERMARK_COUNT,
    ),
    Entry(
        "in-flight-after-decision",
        "it lands while the delivery is inside its last write",
        "paused-fork",
        LATER + "H: mint\nO2: run to wait_completed committed\nO2: go on\nO2.1: run up to publish wait_created\nH: end",
        (YES,),
        input=UNEVEN,
    ),
    Entry(
        "stale-read-step-count-fork-fenced",
        "the hidden hook, with watermark and count",
        "fork",
        LATER + "O2: run to wait_completed produced\nH: end\nO2: pick unseen = hook_received\nO2: end",
        (YES,),
        input=UNEVEN,
        guard=Guard.WATERMARK_COUNT,
        stale=True,
    ),
    Entry("fork-hook-wins", "the hook long before the time-out", "fork", outside=(YES,)),
    Entry("fork-timeout-wins", "no hook", "fork"),
    Entry(
        "unclaimed-payload-under-fork",
        "an unread payload, then a time-out, then a result, all at once: who goes on first?",
        "unclaimed",
        LATER
        + "S:work: run to step_completed produced\nH: end\nO3: run up to take\n"
        + "O2: run to wait_completed committed\nS:work: end",
        (YES,),
        output=["wait", "step"],
        overlap=True,
    ),
    Entry(
        "claimed-payload-under-fork",
        "the same, and somebody reads the payload",
        "claimed",
        LATER
        + "S:work: run to step_completed produced\nH: end\nO3: run up to take\n"
        + "O2: run to wait_completed committed\nS:work: end",
        (YES,),
        output=["wait", "step"],
        overlap=True,
    ),
    Entry(
        "writers-independent-step-bodies",
        "one step is held, its sibling is not",
        "siblings",
        "S:left: run to step_completed produced\nS:right: end",
        output="left+right",
        check=right_before_left,
    ),
    Entry(
        "writers-scripted-tempo",
        "every order is stated",
        "review",
        "O1.1: run to hook_created committed\nS:charge: run to step_started committed\n"
        "H: run to hook_received committed\nS:charge: run to step_completed committed\nH: end\nS:charge: end",
        (YES,),
        output=SETTLED,
    ),
    Entry(
        "cancel-mid-step",
        "the run is cancelled while a step is under way",
        "work-then-end",
        "X: run up to cancel\nS:work: run to step_started committed\nX: end",
        (Cancelled("X"),),
        status="cancelled",
    ),
)

#: a delivery has read the step's result; then time goes on, and another reads the payload behind it as well
LONGER = (
    "O1: run to read\nO1.1: run to publish hook_created\nO1: run to join\nS:work: run to publish step_completed work\n"
    "O1: run to read\nclock: run to tick\nH: run to send run\nO2: run to take run"
)

#: what came after the book, with its stated result: the second to the fourth are red, and the second and the third are
#: mended by the generation ``registered``
LATER_ONES: tuple[Entry, ...] = (
    Entry(
        "step-vs-timer-early-settlement",
        "a held step, an hour that passes: the run ends without it, and its result comes too late",
        "early",
        "S:work: run to step_completed produced\nO2: run to run_completed committed\nS:work: end",
        output="timed-out",
        overlap=True,
        check=behind_the_end,
    ),
    Entry(
        "clock-after-race",
        "the run asks for the time, and two deliveries have read so much of its log each",
        "clocked",
        LONGER,
        (replace(YES, at_ms=2 * HOUR_MS),),
        overlap=True,
    ),
    Entry(
        "sleep-resumeat-recomputed",
        "two deliveries ask for one wait, each until another time",
        "paused",
        LONGER,
        (replace(YES, at_ms=1_000),),
        overlap=True,
    ),
    Entry(
        "lost-step-dispatch",
        "the queue takes a step's message and loses it, and nobody sends another",
        "retrying",
        "S:stubborn: pick queue = lost",
        output="ok",
        drops=True,
    ),
    Entry(
        "sleep-replay-inherits-resumeat",
        "the same two deliveries, and the wait is in the log already",
        "paused",
        LATER + "O1: end\nH: end",
        (YES,),
        output="closed",
        overlap=True,
    ),
)

ENTRIES: Mapping[str, Entry] = {entry.id: entry for entry in (*BOOK, *LATER_ONES)}
