"""``stormctl run`` with a plan for the target url, whole: an app on loopback, and the output as it is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.targets.url.shop import HTML, Shop
from tests.targets.url.test_url_target import SMALL

Run = Callable[..., Any]

#: so wide apart in their time that the first branch is always settled and the last always late
MIXED = {
    "rounds": 1,
    "width": 2,
    "watchdog_ms": 20_000,
    "hook_resume_stagger_ms": 40_000,
    "between_round_sleep_ms": 500,
}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with Shop(tmp_path / "data") as made:
        yield made


@pytest.fixture
def path(shop: Shop, tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(
        yaml.safe_dump({"schema": "stormctl.app/1", **shop.document(version="5.0.0-beta.55")})
    )
    file = tmp_path / "plan.yaml"
    file.write_text(yaml.safe_dump({**SMALL, "app": "shop.yaml", "concurrency": 1, "input": MIXED}))
    return file


def same_everywhere(text: str, shop: Shop) -> str:
    """The output without what differs from run to run: the port, times, and the artefact's folder."""
    text = text.replace(str(shop.port), "PORT")
    text = re.sub(r"artefact: \S+", "artefact: FOLDER", text)
    text = re.sub(r"(none in 2 logs\n)(?:\S+ +none in 2 logs\n)+", r"\1(and so on)\n", text)
    text = re.sub(r"\n +seconds .*?(?=\n\nseconds)", "\n(histogram)", text, flags=re.DOTALL)
    return re.sub(r"\b\d+(\.\d+)? s\b|(?<![\d.])\d+\.\d(?![\d.])", "N", text)


def test_a_storm_on_an_app_is_run_swept_and_told(
    stormctl: Run, stored: Callable[[str, str], None], shop: Shop, path: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("COLUMNS", "100")
    ran = stormctl("run", path, "--out", tmp_path / "out")
    assert (ran.code, ran.err) == (0, ""), ran.out
    stored("url-storm.txt", same_everywhere(ran.out, shop))
    latest = tmp_path / "out/small/latest"
    rows = [json.loads(line) for line in (latest / "attempts.ndjson").read_text().splitlines()]
    assert [row["pressure"]["stragglers"] for row in rows] == [1, 1]
    again = stormctl("sweep", latest)
    assert again.code == 0, again.out
    assert "clean" in again.out


def test_a_dry_run_asks_the_app_nothing(stormctl: Run, shop: Shop, path: Path) -> None:
    ran = stormctl("run", path, "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    assert f"cell after cell on shop at http://127.0.0.1:{shop.port}" in ran.out
    assert shop.asked == []


def test_a_wrong_route_is_told_once_with_what_to_do_and_nothing_counts_as_judged(
    stormctl: Run, shop: Shop, path: Path, tmp_path: Path
) -> None:
    shop.answers["start"] = HTML
    ran = stormctl("run", path, "--out", tmp_path / "out")
    assert ran.code == 3
    assert ran.out.count("answered start (POST /storms) with 404 and an HTML page") == 1
    assert "Correct method and path of `start` in the app's file." in ran.out
    assert "Traceback" not in ran.out + ran.err


def test_a_wrong_file_ends_it_before_it_begins(stormctl: Run, path: Path, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text("name: shop\nurl: http://shop.example\n")
    ran = stormctl("run", path, "--out", tmp_path / "out")
    assert ran.code == 2
    assert "shop.example is another machine" in ran.err or "no route to start" in ran.err
    assert not (tmp_path / "out").exists()
