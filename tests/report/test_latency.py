"""The engine's own latencies, from logs whose times are known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.report.latency import (
    FAN_FIRST,
    FAN_LAST,
    FIRST_STEP,
    HOP,
    INLINE,
    LATENCIES,
    OVERHEAD,
    UNSPLIT,
    Step,
    latencies_of,
)


def log(*rows: str) -> list[Step]:
    """``"120 step_started a w1"``: time, type, entity and writer."""
    made = []
    for row in rows:
        at, type, *rest = row.split()
        made.append(Step(type, rest[0] if rest else None, float(at), rest[1] if len(rest) > 1 else None))
    return made


SEQUENTIAL = (
    "0 run_created",
    "10 run_started",
    "20 step_created a",
    "30 step_started a w1",
    "130 step_completed a w1",
    "140 step_created b",
    "155 step_started b w1",
    "255 step_completed b w1",
    "300 step_created c",
    "305 step_started c w2",
    "310 step_completed c w2",
    "320 run_completed",
)


def test_steps_one_after_another() -> None:
    found = latencies_of(log(*SEQUENTIAL))
    assert found == {FIRST_STEP: [30.0], INLINE: [25.0], HOP: [50.0], OVERHEAD: [310.0 - 205.0]}


def test_without_an_audit_nobody_knows_who_wrote() -> None:
    found = latencies_of([step._replace(writer=None) for step in log(*SEQUENTIAL)])
    assert found[UNSPLIT] == [25.0, 50.0]
    assert INLINE not in found


@pytest.mark.parametrize("between", ["135 wait_completed w", "135 hook_received h"])
def test_what_the_workflow_waited_for_is_no_overhead(between: str) -> None:
    rows = [*SEQUENTIAL[:5], between, *SEQUENTIAL[5:]]
    assert INLINE not in latencies_of(log(*rows))


def test_a_step_in_flight_beside_it_may_be_what_the_next_one_waited_for() -> None:
    rows = ["0 run_created", "1 step_created a", "1 step_created b", "2 step_started a w", "3 step_started b w"]
    rows += ["9 step_completed a w", "10 step_created c", "11 step_started c w", "12 step_completed b w"]
    found = latencies_of(log(*rows, "13 step_completed c w"))
    assert INLINE not in found
    assert HOP not in found


def test_a_fan_out_has_a_first_and_a_last() -> None:
    rows = ["0 run_created", "100 step_created a", "101 wait_created w", "102 step_created b", "103 step_created c"]
    rows += ["110 step_started b", "150 step_completed b", "120 step_started a", "190 step_completed a"]
    rows += ["130 step_started c", "300 step_failed c"]
    found = latencies_of(log(*rows))
    assert (found[FAN_FIRST], found[FAN_LAST]) == ([50.0], [200.0])


def test_a_fan_out_that_was_not_joined_has_no_last() -> None:
    rows = ["0 run_created", "1 step_created a", "2 step_created b", "5 step_started a", "9 step_completed a"]
    found = latencies_of(log(*rows))
    assert found[FAN_FIRST] == [8.0]
    assert FAN_LAST not in found


def test_a_step_created_by_its_start_counts_once() -> None:
    rows = ["0 run_created", "1 step_created a", "1 step_started a", "2 step_completed a", "3 step_started a"]
    assert latencies_of(log(*rows)) == {FIRST_STEP: [1.0], OVERHEAD: [1.0]}


def test_steps_that_overlap_are_not_counted_twice() -> None:
    rows = ["0 run_created", "10 step_started a", "20 step_started b", "30 step_completed a", "60 step_completed b"]
    assert latencies_of(log(*rows))[OVERHEAD] == [10.0]


def test_a_log_without_times_has_no_latencies() -> None:
    assert latencies_of([step._replace(at=None) for step in log(*SEQUENTIAL)]) == {}
    assert latencies_of([]) == {}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "step_created",
                    "step_started",
                    "step_completed",
                    "step_failed",
                    "wait_completed",
                    "hook_received",
                    "x",
                ]
            ),
            st.one_of(st.none(), st.sampled_from("abc")),
            st.one_of(st.none(), st.floats(0, 1e6)),
            st.one_of(st.none(), st.sampled_from(["w1", "w2"])),
        ),
        max_size=40,
    )
)
def test_any_order_of_events_is_measured_without_a_fault(
    rows: list[tuple[str, str | None, float | None, str | None]],
) -> None:
    found = latencies_of([Step("run_created", None, 0.0, None), *(Step(*row) for row in rows)])
    assert set(found) <= set(LATENCIES)
    assert all(values for values in found.values())
