"""The page as text: whole, escaped, small, and under a policy that lets nothing else run."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from stormctl.report.explained import MOST_TEXT, Explained
from stormctl.report.facts import storm_facts
from stormctl.report.html import html_text, write_html
from stormctl.report.html.failing import commands
from stormctl.report.html.tables import sort_key, tables
from stormctl.report.load import Artefact, load_artefact
from stormctl.storm.attempt import Attempt
from stormctl.storm.outcome import Outcome
from tests.report.synthetic import attempts, build
from tests.report.with_logs import RUNS, build_with_logs

HOSTILE = (
    '</code></script><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7*7 }}\u202e\x1b[2J&quot;" onclick="x'
)


class Seen(HTMLParser):
    """The elements of a page, its visible text, and whatever would run or load something."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(artefact: Artefact) -> str:
    return html_text(artefact, storm_facts(artefact), seconds=0)


def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures have tests of their own, and take most of the time."""
    monkeypatch.setattr("stormctl.report.html.page.pictures", lambda _: ())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, root: Path) -> tuple[Artefact, str]:
    artefact = load_artefact(build_with_logs(tmp_path_factory.mktemp("page") / "storm", root))
    return artefact, html_text(artefact, storm_facts(artefact), seconds=120)


class TestWhole:
    def test_says_the_verdict_and_shows_pictures_runs_tables_and_the_plan(self, whole: tuple[Artefact, str]) -> None:
        seen = Seen(whole[1])
        assert "old: main + nets corrupted 10/15 (67 %, 42 to 85)" in seen.text
        assert seen.tags.count("svg") == 7
        assert seen.tags.count("details") == 13 + 2  # failed runs; the plan, the machine
        assert "schema: stormctl.plan/1" in seen.text
        assert "and why" not in seen.text

    def test_each_picture_has_a_text_alternative_that_says_its_numbers(self, whole: tuple[Artefact, str]) -> None:
        said = re.findall(
            r'aria-labelledby="([\w-]+)-is \1-says"><title id="\1-is">[^<]+</title><desc[^>]+>([^<]+)', whole[1]
        )
        assert [name for name, _ in said] == [
            "outcomes", "cells", "durations", "events", "lag", "timeline", "rebinding",
        ]  # fmt: skip
        told = dict(said)
        assert "corrupted 6/8 (75 %, 41 to 93)" in told["outcomes"]
        assert re.search(r"\d+ overtaken", told["timeline"])

    def test_a_failed_run_has_its_explanation_and_its_commands(self, whole: tuple[Artefact, str]) -> None:
        text = Seen(whole[1]).text
        for run in RUNS:
            assert f"stormctl sweep logs/{run}.ndjson --engine nets" in text
            assert f"stormctl explain logs/{run}.ndjson" in text
        assert text.count("what happened") == len(RUNS)

    def test_the_policy_allows_its_own_style_and_script_alone(self, whole: tuple[Artefact, str]) -> None:
        page = whole[1]
        policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
        assert policy is not None
        rules = policy[1].replace("&#39;", "'")
        assert rules.startswith("default-src 'none'; ")
        assert "unsafe" not in rules
        for tag in ("style", "script"):
            (inside,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{digest}'" in rules

    def test_nothing_in_it_loads_anything_or_has_a_style_or_a_handler_of_its_own(
        self, whole: tuple[Artefact, str]
    ) -> None:
        seen = Seen(whole[1])
        assert not {"link", "iframe", "object", "embed", "base", "form", "img"} & set(seen.tags)
        for name, value in seen.attributes:
            assert name != "style"
            assert not name.startswith("on")
            if name in ("href", "src"):
                assert (value or "").startswith(("#", "data:image/png;base64,"))

    def test_ids_are_unique_and_every_reference_finds_one(self, whole: tuple[Artefact, str]) -> None:
        attributes = Seen(whole[1]).attributes
        ids = [value for name, value in attributes if name == "id"]
        assert len(ids) == len(set(ids))
        for name, value in attributes:
            if name in ("aria-labelledby", "for"):
                assert set((value or "").split()) <= set(ids)
            if name == "href" and (value or "").startswith("#"):
                assert (value or "")[1:] in ids

    def test_the_same_artefact_gives_the_same_page(self, whole: tuple[Artefact, str]) -> None:
        artefact, page = whole
        assert html_text(artefact, storm_facts(artefact), seconds=120) == page


class TestHostile:
    def test_names_and_messages_stay_text(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        without_pictures(monkeypatch)
        artefact = load_artefact(build(tmp_path / "storm"))
        made = tuple(
            replace(
                one, run_id=HOSTILE, error_message=HOSTILE, error_code=HOSTILE, cell=replace(one.cell, scenario=HOSTILE)
            )
            for one in attempts()
        )
        page = page_of(replace(artefact, attempts=made, plan=None, notes=(HOSTILE,), env={HOSTILE: HOSTILE}))
        seen = Seen(page)
        assert seen.tags.count("script") == 1
        assert "img" not in seen.tags
        assert not [name for name, _ in seen.attributes if name.startswith("on")]
        assert "<img src=x onerror=alert(2)>" in seen.text
        assert "{{ 7*7 }}" in seen.text
        assert all(char.isprintable() or char == "\n" for char in page)

    def test_a_command_is_quoted_and_harmless(self, tmp_path: Path) -> None:
        artefact = load_artefact(build(tmp_path / "storm"))
        one = replace(attempts()[0], run_id="a; rm -rf $HOME\n`x`")
        for command in commands(artefact, one):
            assert "'logs/a; rm -rf $HOME\\n`x`.ndjson'" in command
            assert "\n" not in command


class TestPictures:
    def test_hostile_names_are_drawn_as_text(self, tmp_path: Path) -> None:
        artefact = load_artefact(build(tmp_path / "storm"))
        made = tuple(replace(one, cell=replace(one.cell, scenario="<script>x</script>$a$")) for one in attempts())
        page = page_of(replace(artefact, attempts=made, plan=None))
        assert Seen(page).tags.count("script") == 1


class TestSize:
    def test_200_failing_runs_stay_below_3_mb(
        self, whole: tuple[Artefact, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With the pictures of a real storm, and each explanation as long as one may be."""
        artefact, page = whole
        pictures = len(page)

        def long(_: Artefact, found: Sequence[Attempt], *, seconds: float) -> dict[str, Explained]:
            text = ("however   write 132 step_created rank 40 <step:releaseStep> & more\n" * 200)[:MOST_TEXT]
            return {one.run_id or "": Explained("explained", "a headline", text) for one in found}

        without_pictures(monkeypatch)
        monkeypatch.setattr("stormctl.report.html.page.explained", long)
        failed = next(one for one in attempts() if one.outcome is Outcome.CORRUPTED)
        made = tuple(replace(failed, run_id=f"wrun_{number:026d}", number=number) for number in range(1, 201))
        many = page_of(replace(artefact, attempts=made, plan=None))
        assert many.count('<details class="run"') == 200
        assert len(many.encode()) + pictures < 3_000_000

    def test_more_than_can_be_read_are_counted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        without_pictures(monkeypatch)
        artefact = load_artefact(build(tmp_path / "storm"))
        made = tuple(replace(attempts()[0], number=number) for number in range(1, 502))
        assert "400 of 501 are shown" in page_of(replace(artefact, attempts=made, plan=None))


class TestTables:
    @pytest.mark.parametrize(
        ("text", "key"),
        [("18/24 (75 %, 55 to 88)", 0.75), ("0/0 (not measured)", None), ("1,204", 1204), ("+42 points", 42),
         ("none in 48 logs", 48), ("", None), ("-3.5", -3.5)],
    )  # fmt: skip
    def test_cells_of_numbers_are_sorted_by_their_number(self, text: str, key: float | None) -> None:
        assert sort_key(text) == key

    def test_groups_become_a_column(self, tmp_path: Path) -> None:
        artefact = load_artefact(build(tmp_path / "storm"))
        found = {table.key: table for table in tables(artefact, storm_facts(artefact))}
        assert found["outcomes"].head[0] == "scenario"
        signatures = found["signatures"]
        assert signatures.head[0] == "code"
        assert signatures.rows[0][0].text == "CORRUPTED_EVENT_LOG"
        assert all(len(row) == len(table.head) for table in found.values() for row in table.rows)


class TestFile:
    def test_is_private_and_replaces_what_lay_there_only_when_whole(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        without_pictures(monkeypatch)
        artefact = load_artefact(build(tmp_path / "storm"))
        path = tmp_path / "report.html"
        path.write_text("old")
        assert write_html(artefact, storm_facts(artefact), path, seconds=0) == path
        assert path.read_text().startswith("<!doctype html>")
        assert path.stat().st_mode & 0o077 == 0
        with pytest.raises(OSError, match="No such file"):
            write_html(artefact, storm_facts(artefact), tmp_path / "none" / "report.html", seconds=0)
        assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []

    def test_its_pictures_lie_in_the_artefact_as_files(self, tmp_path: Path) -> None:
        artefact = load_artefact(build(tmp_path / "storm"))
        write_html(artefact, storm_facts(artefact), tmp_path / "report.html", seconds=0)
        names = {path.name for path in (artefact.folder / "plots").iterdir()}
        assert names == {
            f"{one}.{kind}" for one in ("outcomes", "cells", "durations", "events") for kind in ("png", "svg")
        }

    def test_of_an_empty_storm_is_still_written(self, tmp_path: Path) -> None:
        artefact = replace(load_artefact(build(tmp_path / "storm")), attempts=(), plan=None)
        assert "Nothing was judged" in Seen(page_of(artefact)).text
