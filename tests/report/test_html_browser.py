"""The page in a headless Chromium: accessible, quiet, sortable, and as narrow as a phone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stormctl.report.facts import storm_facts
from stormctl.report.html import write_html
from stormctl.report.load import load_artefact
from tests.report.browser import opened
from tests.report.test_html import HOSTILE
from tests.report.with_logs import build_with_logs

pytestmark = [pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]  # the driver's own
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A real page, with one run whose every text is hostile."""
    folder = tmp_path_factory.mktemp("browser")
    artefact = load_artefact(build_with_logs(folder / "storm", root))
    first, *others = artefact.attempts
    hostile = replace(first, run_id=HOSTILE, error_message=HOSTILE, error_code=HOSTILE)
    artefact = replace(artefact, attempts=(hostile, *others), notes=(HOSTILE,))
    return write_html(artefact, storm_facts(artefact), folder / "report.html", seconds=120)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_the_console_is_silent(page: Path, scheme: str) -> None:
    with opened(page, color_scheme=scheme) as found:
        found.page.click("#open-all")
        for fold in found.page.locator("#configuration ~ details > summary").all():
            fold.click()
        assert found.violations() == []
        assert found.complaints == []
        assert [url for url in found.requests if not url.startswith(("file:", "data:"))] == []


def test_a_phone_scrolls_down_only_and_axe_finds_nothing_there(page: Path) -> None:
    with opened(page, **PHONE) as found:
        width = "document.documentElement.scrollWidth"
        assert found.page.evaluate(width) == 360
        found.page.click("#open-all")
        assert found.page.evaluate(width) == 360
        assert found.violations() == []


def test_columns_are_sorted_by_mouse_and_keyboard_and_say_so(page: Path) -> None:
    with opened(page) as found:
        table = found.page.locator("table[aria-labelledby=table-outcomes]")
        head = table.locator("thead th", has_text="corrupted")

        def column() -> list[str]:
            return table.locator("tbody tr td.number:nth-child(5)").all_inner_texts()

        def turn() -> tuple[str | None, list[str]]:
            return head.get_attribute("aria-sort"), [text.split()[0] for text in column()]

        start = turn()
        assert start == (None, ["6/8", "0/8", "4/7", "0/8"])
        head.locator("button").click()
        assert turn() == ("ascending", ["0/8", "0/8", "4/7", "6/8"])
        found.page.keyboard.press("Enter")
        assert turn() == ("descending", ["6/8", "4/7", "0/8", "0/8"])
        assert found.page.inner_text("#sorted") == "sorted by corrupted (95 %), descending"
        found.page.keyboard.press("Space")
        assert turn() == start
        other = table.locator("thead th", has_text="scenario")
        other.locator("button").click()
        assert other.get_attribute("aria-sort") == "ascending"
        assert table.locator("tbody tr").first.inner_text().startswith("hook-storm")
        assert found.complaints == []


def test_runs_are_folded_opened_filtered_and_found_by_their_address(page: Path) -> None:
    with opened(page) as found:
        runs = found.page.locator("details.run")
        assert runs.count() == 13
        assert not runs.first.evaluate("run => run.open")
        runs.first.locator("summary").focus()
        found.page.keyboard.press("Enter")
        assert runs.first.evaluate("run => run.open")
        assert runs.first.locator("pre").first.is_visible()
        found.page.fill("#filter", "dormant step-storm")
        assert [run.is_visible() for run in runs.all()].count(True) == 1
        assert found.page.inner_text("#filtered") == "1 of 13"
        found.page.fill("#filter", "")
        found.page.evaluate("location.hash = 'run-7'")
        found.page.wait_for_function("document.getElementById('run-7').open")
        found.page.click("#close-all")
        assert not any(run.evaluate("run => run.open") for run in runs.all())


def test_without_scripts_everything_is_there_to_read(page: Path) -> None:
    with opened(page, java_script_enabled=False) as found:
        assert found.page.locator("table.sortable").count() > 4
        assert found.page.locator("details.run").count() == 13
        assert found.complaints == []


def test_print_is_black_on_white_and_as_wide_as_the_paper(page: Path) -> None:
    with opened(page, color_scheme="dark", viewport={"width": 718, "height": 1000}) as found:
        found.page.emulate_media(media="print", color_scheme="dark")
        assert found.page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
        assert not found.page.locator(".tools").is_visible()
        wide = (
            "[...document.querySelectorAll('table, svg')].filter(one => one.getBoundingClientRect().right > 720).length"
        )
        assert found.page.evaluate(wide) == 0
