"""What failures say: our own texts, the SDK's, and anybody else's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.report.signature import (
    CAP,
    NAME,
    RESUME_AT,
    STRANDED,
    TEXT,
    UNCONSUMED,
    Said,
    Signature,
    parse,
    positions_text,
)

CODE = "CORRUPTED_EVENT_LOG"
OURS = "replay diverged 4 times after 3 recovery replays; the last divergence was at evnt_01M8Q8J0PAPN0SWS522XBEWZER: "
SDK = (
    "Workflow replay diverged 4 times after 3 recovery replays; latest divergent event was "
    "wevt_01M8Q8J0PAPN0SWS522XBEWZER. Last divergence: Replay divergence: "
)


def test_our_own_text_says_everything() -> None:
    text = OURS + "step_created at position 89 belongs to releaseStep, but with rank 30 the workflow calls finalizeStep"
    assert parse(CODE, text) == Said(
        Signature(CODE, NAME, "step_created", "step", "releaseStep", "calls finalizeStep"),
        89,
        "evnt_01M8Q8J0PAPN0SWS522XBEWZER",
        4,
        3,
    )


def test_the_sdk_names_the_event_and_not_its_position() -> None:
    text = SDK + (
        'step event step_created for step_01M8QVH0D3E8HHEG5KH0Q9ME2Y belongs to "step//./workflows/storms//recover", '
        'but the current step consumer is "step//./workflows/storms//release"\n\nLearn more: https://x.example'
    )
    said = parse(CODE, text)
    assert said.signature == Signature(CODE, NAME, "step_created", "step", "recover", "calls release")
    assert (said.position, said.event_id) == (None, "wevt_01M8Q8J0PAPN0SWS522XBEWZER")


@pytest.mark.parametrize(
    ("log", "body", "actual"),
    [
        ("2026-12-01T03:52:26.723Z", "2026-12-01T03:52:26.724Z", "waits longer"),
        ("2026-12-01T03:52:26.724Z", "2026-12-01T03:52:26.723Z", "waits shorter"),
    ],
)
def test_of_two_times_only_their_order_is_kept(log: str, body: str, actual: str) -> None:
    text = SDK + (
        f'wait_completed event for wait_01M8QVH0D3E8HHEG5KH0Q9ME56 has resumeAt "{log}", '
        f'but the current wait consumer expects "{body}"'
    )
    assert parse(CODE, text).signature == Signature(CODE, RESUME_AT, "wait_completed", "wait", "a wait", actual)


def test_both_tongues_have_one_signature_for_one_time() -> None:
    ours = (
        OURS
        + "wait_completed at position 7 ends a wait until 1796077586583, but the workflow waits until 1796077586618"
    )
    sdk = SDK + (
        'wait_completed event for wait_x has resumeAt "2026-12-01T03:52:26.723Z", but the current wait consumer '
        'expects "2026-12-01T03:52:26.724Z"'
    )
    assert parse(CODE, ours).signature == parse(CODE, sdk).signature


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("hook_received at position 4 was not consumed: the workflow asks for nothing with its id", UNCONSUMED),
        ("step_created at position 4 was not consumed: with its id the workflow asks for wait", UNCONSUMED),
        ("Unconsumed event in event log: eventType=step_created, correlationId=step_1", UNCONSUMED),
        ("hook_received at position 9 was set aside, and the replay finished without asking for it", STRANDED),
        ("still running after 60000 ms", CAP),
        ("something else altogether", TEXT),
    ],
)
def test_every_kind_is_told_apart(text: str, kind: str) -> None:
    assert parse(CODE, text).signature.kind == kind


def test_unknown_texts_that_differ_by_ids_and_numbers_are_one() -> None:
    first = parse(
        "USER_ERROR", "could not reach 10.0.0.1:5432 for wrun_01M8Q8J0PAPN0SWS522XBEWZER at 2026-01-02T03:04:05Z"
    )
    second = parse(
        "USER_ERROR", "could not reach 10.0.0.7:5433 for wrun_01M8Q8J0PANXSTVRANTRQDM01Y at 2027-01-02T03:04:05Z"
    )
    other = parse("USER_ERROR", "could not reach the queue")
    assert first.signature == second.signature != other.signature


def test_another_code_is_another_signature() -> None:
    assert parse("A", "x").signature != parse("B", "x").signature


@given(st.text(max_size=300), st.one_of(st.none(), st.text(max_size=20)))
def test_any_text_has_a_signature(message: str, code: str | None) -> None:
    said = parse(code, message)
    assert said.signature.code == (code or "")
    assert said.signature.text


def test_a_huge_text_is_read_in_its_beginning() -> None:
    assert len(parse("X", "word " * 1_000_000).signature.expected) < 100


def test_positions_are_a_range() -> None:
    assert positions_text([375, None, 69]) == "69 to 375"
    assert positions_text([132, 132]) == "132"
    assert positions_text([None]) == ""
