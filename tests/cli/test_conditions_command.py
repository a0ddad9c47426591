"""``stormctl conditions``: what a person reads who wants to choose one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from stormctl.worlds import CONDITIONS


def test_the_list_fits_eighty_columns_and_says_of_each_what_it_closes_and_leaves(
    stormctl: Callable[..., Any], stored: Callable[[str, str], None]
) -> None:
    ran = stormctl("conditions")
    assert ran.code == 0
    text: str = ran.out
    assert max(map(len, text.splitlines())) <= 80
    assert [line for line in text.splitlines() if line and not line.startswith(" ")] == list(CONDITIONS)
    assert text.count("  closes  ") == text.count("  leaves  ") == len(CONDITIONS)
    stored("conditions.txt", text)


def test_one_condition_is_shown_with_its_knobs_as_the_world_follows_it(stormctl: Callable[..., Any]) -> None:
    local = stormctl("conditions", "main").out
    postgres = stormctl("conditions", "main", "--world", "postgres").out
    assert "knobs   none" in local
    assert "rollback=full" in postgres
    assert "unique_tokens=false" in postgres


def test_a_knob_that_is_turned_shows_in_json(stormctl: Callable[..., Any]) -> None:
    ran = stormctl("conditions", "seq-final[stale_ms=inf,tells=delta+counts]", "--format", "json")
    (one,) = json.loads(ran.out)["conditions"]
    assert (one["stale_ms"], one["tells"]) == ("inf", ["counts", "delta"])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("seq-finl", "there is no condition 'seq-finl'. Did you mean 'seq-final'?"),
        ("seq-final[stale_mss=1]", "a condition has no knob 'stale_mss'. Did you mean 'stale_ms'?"),
        ("seq-final[gate=decision]", "gate is 'decision'. Did you mean 'decisions'?"),
        ("seq-final[stale_ms=soon]", "stale_ms is 'soon', not milliseconds. Write stale_ms=2000, or stale_ms=inf."),
        ("seq-final[stale_ms=-1]", "stale_ms is '-1', not milliseconds. Write stale_ms=2000, or stale_ms=inf."),
        ("seq-final[batch_atomic=yes]", "batch_atomic is 'yes'. Write true or false."),
        ("seq-final[stale_ms]", "sets no knob. Write it as seq-final[stale_ms=2000]."),
        ("seq-final[name=x]", "a condition has no knob 'name'."),
        ("seq-final[gate=all", "there is no condition 'seq-final[gate=all'."),
    ],
)
def test_a_mistyped_condition_is_one_sentence(stormctl: Callable[..., Any], name: str, sentence: str) -> None:
    ran = stormctl("conditions", name)
    assert ran.code == 2
    assert sentence in ran.err
    assert "Traceback" not in ran.err
