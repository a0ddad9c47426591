"""Events without any sense, and everything that can lie beside them, through every sweep: no check fails, and soon."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.history import (
    CAPTURED_AT,
    COMMIT_CLOCK,
    COMMIT_TIMES,
    LOG_READ_AT,
    AuditRecord,
    Capture,
    Damaged,
    Event,
    EventLog,
    Evidence,
    Facet,
    Inline,
    ReadRecord,
    RunRow,
    Sealed,
    ids,
    kinds,
)
from stormctl.sweeps import PROFILES, SweepPlan, Verdict, sweep_log
from stormctl.workloads.registry import WORKLOADS
from tests.readers.looked import SECONDS, swept
from tests.readers.test_mutated import HOSTILE

pytestmark = pytest.mark.timeout(max(120, settings.default.max_examples))
RUN = "wrun_01KE0000000000000000000000"
BASE = ids.seeded_base(RUN)
WORDS = [
    "",
    "x",
    "é",
    "\x1b[2J",
    "step//./a//settleStep",
    "settleStep",
    "finalizeStep",
    "t",
    "t:poke",
    "../..",
    "_",
    "a_b_c",
]
#: Few enough that they meet one another again and again.
IDS = [
    *(f"{kind}_{ids.body_of(BASE + rank)}" for kind in ("step", "wait", "hook", "attr") for rank in range(4)),
    *(f"step_{ids.body_of(BASE + rank)}" for rank in (17, 10**6, 2**80)), "stepd_7", "step_" + "0" * 25 + "1", RUN, "",
    "noop_" + "0" * 25 + "2", "_", "\x00",
]  # fmt: skip
EVENT_IDS = [
    *(f"evnt_{ids.compose(1_767_355_200_000 + place, place)}" for place in range(6)),
    *(ids.slot_id(place) for place in range(5)), "wevt_1", "7", "12", "9" * 50, "", "evnt_", None,
]  # fmt: skip
TIMES = st.none() | st.integers(-5, 5) | st.integers(1_767_355_200_000, 1_767_355_300_000) | st.just(2**62)
SPECS = st.none() | st.integers(0, 9) | st.just(-(2**62))
VALUES = st.sampled_from(HOSTILE) | st.integers() | st.text(max_size=5) | st.sampled_from([*IDS, *WORDS, *EVENT_IDS])
PAYLOADS = st.none() | st.builds(Inline, VALUES) | st.builds(Sealed, st.sampled_from(WORDS)) | st.just(Damaged("cut"))
KEYS = [
    "attempt", "writer", "resumeId", "serial", "tokenRetentionUntil", "errorCode", "conflictingRunId", "deploymentId",
    "executionContext", "workflowCoreVersion", "stepId", "hookId", "token", "retryAfter",
]  # fmt: skip
DATA = st.dictionaries(
    st.sampled_from(KEYS),
    VALUES | st.dictionaries(st.sampled_from(["type", "stepId", "workflowCoreVersion"]), VALUES),
    max_size=3,
)
EVENTS = st.builds(
    Event,
    type=st.sampled_from(sorted(kinds.ALL_TYPES)) | st.sampled_from(["temporal:marker", "", "step_", "x"]),
    run_id=st.just(RUN),
    event_id=st.sampled_from(EVENT_IDS),
    correlation_id=st.none() | st.sampled_from(IDS),
    position=st.none() | st.integers(0, 8) | st.just(2**62),
    created_at=TIMES,
    name=st.none() | st.sampled_from(WORDS),
    token=st.none() | st.sampled_from(WORDS),
    resume_at=TIMES,
    spec=SPECS,
    payload=PAYLOADS,
    data=DATA,
)
NANOS = st.integers(0, 9)
AUDITS = st.builds(
    AuditRecord,
    run_id=st.just(RUN),
    writer=st.sampled_from(["a", "b"]),
    type=st.sampled_from(sorted(kinds.ALL_TYPES)),
    correlation_id=st.none() | st.sampled_from(IDS),
    admitted=st.booleans(),
    reason=st.sampled_from(WORDS),
    position=st.none() | st.integers(-1, 8),
    event_id=st.sampled_from(EVENT_IDS),
    snapshot=st.none() | st.integers(-1, 9),
    entered=NANOS,
    minted=NANOS,
    published=NANOS,
    returned=NANOS,
)
READS = st.builds(
    ReadRecord,
    reader=st.sampled_from(["a", "b"]),
    full=st.booleans(),
    last_event_id=st.sampled_from(EVENT_IDS),
    count=st.integers(-1, 9),
    began=NANOS,
    returned=NANOS,
)
ROWS = st.dictionaries(
    st.sampled_from(IDS), VALUES | st.dictionaries(st.sampled_from(["status", "attempt"]), VALUES), max_size=4
)
BESIDE = st.fixed_dictionaries(
    {},
    optional={
        "rows": ROWS | VALUES,
        "counter": st.dictionaries(st.sampled_from(["seq", "lastEventId"]), VALUES) | VALUES,
        "claims": st.lists(st.sampled_from(["steps/x.created", "runs/append.lock", "runs/terminal", "/", ""]) | VALUES)
        | VALUES,
        "staged": st.lists(VALUES, max_size=3) | VALUES,
        "claimed_events": st.lists(st.dictionaries(st.sampled_from(["claim", "hookId", "eventId"]), VALUES)) | VALUES,
        COMMIT_TIMES: st.dictionaries(st.sampled_from([one for one in EVENT_IDS if one]), st.integers(0, 99)),
        COMMIT_CLOCK: st.sampled_from(["server", "ctime"]),
        CAPTURED_AT: st.integers(0, 2**62),
        LOG_READ_AT: st.integers(0, 2**62),
        "world": VALUES,
        "workflowCoreVersion": st.sampled_from(["4.6.1", "5.0.0", "9.", ""]),
    },
)
EVIDENCE = st.builds(
    Evidence,
    origin=st.sampled_from(WORDS),
    missing=st.frozensets(st.sampled_from(list(Facet)), max_size=3),
    omitted=st.lists(st.integers(-1, 9), max_size=3).map(tuple),
    truncated=st.booleans(),
    live=st.booleans(),
)
RUNS = st.none() | st.builds(
    RunRow,
    status=st.sampled_from(["completed", "failed", "running", "cancelled", ""]),
    workload=st.none() | st.sampled_from([*WORKLOADS, "x", "/etc/passwd:x"]),
    input=st.just({}) | st.dictionaries(st.sampled_from(["token", "rounds", "width"]), VALUES),
    output=VALUES | st.fixed_dictionaries({"rounds": VALUES, "width": VALUES, "ledger": VALUES | st.lists(VALUES)}),
    error_code=st.none() | st.sampled_from(WORDS),
)


@st.composite
def captures(draw: st.DrawFn) -> Capture:
    def log() -> EventLog:
        return EventLog(draw(st.lists(EVENTS, max_size=12)), RUN)

    earlier = Capture("before", log(), draw(EVIDENCE)) if draw(st.booleans()) else None
    return Capture(
        "made",
        log(),
        draw(EVIDENCE),
        draw(RUNS),
        draw(st.none() | st.lists(AUDITS, max_size=6).map(tuple)),
        draw(st.none() | st.lists(READS, max_size=4).map(tuple)),
        draw(BESIDE),
        earlier,
    )


PLANS = st.builds(
    SweepPlan,
    profile=st.sampled_from([*PROFILES, "auto"]),
    workload=st.none() | st.sampled_from(sorted(WORKLOADS)),
    show_payloads=st.booleans(),
)


@given(captures(), PLANS)
def test_no_sweep_fails_over_what_makes_no_sense(capture: Capture, plan: SweepPlan) -> None:
    began = time.process_time()
    (report,) = swept(capture, [plan])
    assert report.to_json()
    assert time.process_time() - began < SECONDS


@given(captures(), st.sampled_from(sorted(PROFILES)))
def test_what_was_not_captured_whole_is_not_clean(capture: Capture, profile: str) -> None:
    if capture.evidence.truncated or capture.evidence.live:
        assert sweep_log(capture, SweepPlan(profile=profile)).verdict is not Verdict.CLEAN


WRITER = {"writer": {"type": "step", "stepId": IDS[0]}}
HEAVY: dict[str, Any] = {
    "one step a thousand times": lambda place: {"correlation_id": IDS[0], "type": "step_started"},
    "one hook that is made and given up": lambda place: {
        "correlation_id": IDS[8],
        "token": "t",
        "type": ["hook_created", "hook_disposed"][place % 2],
    },
    "one token": lambda place: {
        "correlation_id": f"hook_{ids.body_of(BASE + place)}",
        "token": "t",
        "type": "hook_created",
    },
    "one name": lambda place: {
        "correlation_id": f"step_{ids.body_of(BASE + place)}",
        "name": "a",
        "type": "step_created",
        "payload": Inline(1),
    },
    "falling ranks": lambda place: {
        "correlation_id": f"step_{ids.body_of(BASE + 9999 - place)}",
        "type": "step_created",
    },
    "ends": lambda place: {"type": "run_failed"},
    "one attribute": lambda place: {"type": "attr_set", "correlation_id": IDS[12], "data": WRITER},
    "one position": lambda place: {"type": "step_retrying", "correlation_id": IDS[1], "position": 7},
    "one id": lambda place: {
        "type": "hook_received",
        "event_id": EVENT_IDS[1],
        "data": {"resumeId": "r"},
        "correlation_id": IDS[place % 20],
    },
}


@pytest.mark.parametrize("what", HEAVY)
def test_what_is_bad_throughout_is_told_soon(what: str) -> None:
    """Whatever a check does for each fault must not grow with their number."""
    took = []
    for count in (2500, 5000, 5000):
        events = [
            Event(
                **{
                    "run_id": RUN,
                    "position": place + 1,
                    "event_id": f"evnt_{ids.compose(place, 9)}",
                    **HEAVY[what](place),
                }
            )
            for place in range(count)
        ]
        capture = Capture("made", EventLog(events, RUN), Evidence("made"), RunRow("completed"), data={})
        began = time.process_time()
        swept(capture, [SweepPlan()])
        took.append(time.process_time() - began)
    # the better of two, for a collection of what other tests left behind can fall into either
    assert min(took[1:]) < SECONDS
    assert min(took[1:]) < 3 * took[0] + 0.2, "twice the events take twice the time"
