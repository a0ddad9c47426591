"""Events and payloads as data."""

from __future__ import annotations

import pytest

from stormctl.errors import UnreadableInput
from stormctl.history import Capture, Event, EventLog, Evidence, Facet, Inline, Sealed, digest_value, kinds


@pytest.mark.parametrize(
    ("type", "decision"),
    [
        ("step_created", True),
        ("hook_created", True),
        ("wait_created", True),
        ("run_completed", True),
        ("run_failed", True),
        ("run_cancelled", True),
        ("attr_set", True),
        ("step_started", False),
        ("step_completed", False),
        ("step_failed", False),
        ("step_retrying", False),
        ("wait_completed", False),
        ("hook_received", False),
        ("run_started", False),
    ],
)
def test_decisions_are_derived_from_a_prefix_and_facts_are_not(type: str, decision: bool) -> None:
    assert kinds.is_decision(type) is decision


def test_a_start_that_creates_its_step_is_a_decision() -> None:
    assert kinds.is_decision("step_started", lazy_start=True)


@pytest.mark.parametrize("type", sorted(kinds.ALL_TYPES))
def test_every_type_speaks_of_one_kind(type: str) -> None:
    kind = kinds.kind_of_type(type)
    assert kind == {"attr": "attr", "noop": "run"}.get(type.partition("_")[0], type.partition("_")[0])


def test_a_step_is_called_by_what_stands_behind_its_path() -> None:
    assert Event("step_created", name="step//./src/storms//settle").short_name == "settle"
    assert Event("step_created", name="settle").short_name == "settle"
    assert Event("wait_created").short_name is None


def test_payloads_are_equal_by_digest_whether_or_not_their_value_is_at_hand() -> None:
    value = {"b": 2, "a": [1, None]}
    kept, sealed = Inline(value), Sealed(digest_value({"a": [1, None], "b": 2}))
    assert kept == sealed
    assert hash(kept) == hash(sealed)
    assert kept != Inline({"a": 1})
    assert kept.load() is value


def test_a_payload_that_was_not_captured_says_how_to_get_it() -> None:
    with pytest.raises(UnreadableInput) as caught:
        Sealed("0123").load()
    assert "--with-payloads" in caught.value.remedy


def test_a_capture_names_what_it_lacks_in_the_order_of_the_facets() -> None:
    evidence = Evidence("a test", missing=frozenset({Facet.AUDIT, Facet.TIMES}))
    capture = Capture("x", EventLog([]), evidence)
    assert capture.lacks(frozenset(Facet)) == (Facet.TIMES, Facet.AUDIT)
    assert capture.lacks(frozenset({Facet.NAMES})) == ()
