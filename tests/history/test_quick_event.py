"""An event that is made quickly is like any other."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from stormctl.history import Event, Sealed
from stormctl.history.event import quick_event

FIELDS = ("step_created", "wrun_1", "evnt_1", "step_1", 3, 5, "a//b", "t", 7, 4, Sealed("d"), {"attempt": 1})


def test_it_is_an_event_and_equal_to_one() -> None:
    made, plain = quick_event(*FIELDS), Event(*FIELDS)  # type: ignore[arg-type]
    assert type(made) is Event
    assert made == plain
    assert [getattr(made, field.name) for field in fields(Event)] == list(FIELDS)
    assert replace(made, position=9).position == 9
    assert pickle.loads(pickle.dumps(made)).short_name == "b"


def test_it_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        quick_event(*FIELDS).type = "x"  # type: ignore[misc]


def test_no_field_is_left_out() -> None:
    with pytest.raises(TypeError):
        quick_event(*FIELDS[:-1])
