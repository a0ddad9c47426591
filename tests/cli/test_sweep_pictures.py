"""``stormctl sweep --picture``: what is drawn, under which name, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FLIPS = "fixtures/storms/logs/step-storm-flips.ndjson"
HOOKS = "fixtures/storms/logs/hook-storm-corrupted.ndjson"


def test_one_log_under_one_engine_is_drawn_as_the_file_that_was_named(
    stormctl: Callable[..., Any], tmp_path: Path
) -> None:
    ran = stormctl("sweep", HOOKS, "--engine", "nets", "--picture", tmp_path / "map.png")
    assert ran.code == 1
    assert ran.out.splitlines()[-1] == f"picture  {tmp_path / 'map.png'}"
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_several_logs_and_engines_have_a_file_each(stormctl: Callable[..., Any], tmp_path: Path) -> None:
    arguments = ["--engine", "nets", "--engine", "dispenser[ids=call-site]", "--prefixes", "1:20"]
    stormctl("sweep", HOOKS, FLIPS, *arguments, "--picture", tmp_path / "map.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "map-hook-storm-corrupted-dispenser-ids=call-site.svg",
        "map-hook-storm-corrupted-nets.svg",
        "map-step-storm-flips-dispenser-ids=call-site.svg",
        "map-step-storm-flips-nets.svg",
    ]
    assert all("<svg" in path.read_text() for path in tmp_path.iterdir())


def test_logs_of_one_name_are_told_apart(stormctl: Callable[..., Any], tmp_path: Path, root: Path) -> None:
    for folder, log in (("a", HOOKS), ("b", FLIPS)):
        (tmp_path / folder).mkdir()
        for suffix in (".ndjson", ".meta.json"):
            shutil.copy((root / log).with_suffix("").as_posix() + suffix, tmp_path / folder / f"log{suffix}")
    paths = [tmp_path / folder / "log.ndjson" for folder in "ab"]
    stormctl("sweep", *paths, "--engine", "nets", "--prefixes", "1:20", "--picture", tmp_path / "map.png")
    assert len(list(tmp_path.glob("map-*.png"))) == 2


def test_a_picture_that_lies_there_is_written_over(stormctl: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "map.png").write_text("old")
    stormctl("sweep", HOOKS, "--engine", "nets", "--picture", tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_json_stays_json(stormctl: Callable[..., Any], tmp_path: Path) -> None:
    arguments = ["--engine", "nets", "--format", "json", "--picture", tmp_path / "map.png"]
    json.loads(stormctl("sweep", HOOKS, *arguments).out)
    assert (tmp_path / "map.png").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--picture", "map.png"], "there is nothing to draw without a replay. Name an engine with --engine."),
        (["--engine", "nets", "--picture", "map.gif"], "map.gif names no kind of picture. End it with .png or .svg."),
        (["--engine", "nets", "--picture", "none/map.png"], "there is no folder none."),
        (["--perturb", "5"], "there is nothing to perturb without a replay. Name an engine with --engine."),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_replayed(
    stormctl: Callable[..., Any], arguments: list[str], sentence: str
) -> None:
    ran = stormctl("sweep", HOOKS, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err


def test_a_log_that_cannot_be_replayed_is_not_drawn(stormctl: Callable[..., Any], tmp_path: Path) -> None:
    log = "fixtures/logs/3696-one-rank-step-and-wait.ndjson"
    ran = stormctl("sweep", log, "--engine", "nets", "--picture", tmp_path / "map.png")
    assert ran.out.splitlines()[-1] == "picture  nothing was replayed"
    assert list(tmp_path.iterdir()) == []


class TestPerturb:
    def test_a_difference_stands_in_the_report(
        self, stormctl: Callable[..., Any], stored: Callable[[str, str], None]
    ) -> None:
        arguments = ["--engine", "nets", "--perturb", "50", "--prefixes", "60:70"]
        ran = stormctl("sweep", FLIPS, *arguments)
        assert ran.code == 1
        assert "nets, perturbed: 11 prefixes x 50 ways, seed 0" in ran.out
        stored("storm-perturbed.txt", ran.out)

    def test_another_seed_draws_other_ways(self, stormctl: Callable[..., Any]) -> None:
        arguments = ["--engine", "dispenser", "--prefixes", "1:60", "--perturb", "12", "--format", "json"]
        (log,) = json.loads(stormctl("sweep", FLIPS, *arguments, "--perturb-seed", "5").out)["logs"]
        (found,) = log["perturbation"]
        assert (found["ways"], found["seed"], found["of"], len(found["prefixes"])) == (12, 5, 60, 12)
        assert found["differences"] == []
        assert {one["sweep"]: one["verdict"] for one in log["sweeps"]}["perturbation"] == "clean"

    @pytest.mark.parametrize("count", ["-1", "10001", "many"])
    def test_a_number_out_of_bounds_is_refused(self, stormctl: Callable[..., Any], count: str) -> None:
        assert stormctl("sweep", FLIPS, "--engine", "nets", "--perturb", count).code == 2
