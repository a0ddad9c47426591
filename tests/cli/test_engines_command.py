"""``stormctl engines``: what a person reads who asks which engine wrote a log."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from stormctl.engine.generations import GENERATIONS
from stormctl.engine.strategies import KNOBS


def heads(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith(" ")]


def test_the_list_fits_eighty_columns_and_says_of_each_what_it_fixed_and_still_broke(
    stormctl: Callable[..., Any], stored: Callable[[str, str], None]
) -> None:
    ran = stormctl("engines")
    assert ran.code == 0
    text: str = ran.out
    assert max(map(len, text.splitlines())) <= 80
    assert [line.split()[0] for line in heads(text)] == list(GENERATIONS)
    assert [line for line in heads(text) if line.endswith("  newest")] == ["registered  newest"]
    assert text.count("  fixed  ") == text.count("  leaves  ") == len(GENERATIONS)
    assert "knobs" not in text
    stored("engines.txt", text)


@pytest.mark.parametrize("name", ["dispenser", "3554", "#3554"])
def test_one_engine_is_shown_with_all_its_strategies_by_name_or_pull_request(
    stormctl: Callable[..., Any], stored: Callable[[str, str], None], name: str
) -> None:
    ran = stormctl("engines", name)
    assert ran.code == 0
    stored("engines-dispenser.txt", ran.out)


def test_a_strategy_that_is_changed_shows_in_json(stormctl: Callable[..., Any]) -> None:
    ran = stormctl("engines", "nets[clock=delivered]", "rearm", "--format", "json")
    document = json.loads(ran.out)
    assert document["schema"] == "stormctl.engines/1"
    changed, rearm = document["engines"]
    assert changed["name"] == "nets[clock=delivered]"
    assert changed["strategies"]["clock"] == "delivered"
    assert list(changed["strategies"]) == list(KNOBS)
    assert rearm["upstream"][-1] == 3879
    assert not rearm["newest"]


def test_json_without_names_lists_them_all(stormctl: Callable[..., Any]) -> None:
    document = json.loads(stormctl("engines", "--format", "json").out)
    assert [one["name"] for one in document["engines"]] == list(GENERATIONS)
    assert [one["name"] for one in document["engines"] if one["newest"]] == ["registered"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("dispensr", "there is no generation 'dispensr'. Did you mean 'dispenser'?"),
        ("#1", "no generation was made by pull request 1."),
        ("nets[clok=delivered]", "'clok=delivered' changes no knob of a generation. Did you mean 'clock'?"),
        ("nets[clock=stopped]", "clock cannot be 'stopped'. It is one of consumed, delivered."),
    ],
)
def test_a_mistyped_engine_is_one_sentence(stormctl: Callable[..., Any], name: str, sentence: str) -> None:
    ran = stormctl("engines", name)
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err
    assert "Traceback" not in ran.err
