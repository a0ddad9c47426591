"""``stormctl report`` as a person and as a CI job calls it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from stormctl.report.history import parse_previous
from tests.readers.samples import dumped, harness_results
from tests.report.logs import SEQUENTIAL, lay_log, tried
from tests.report.synthetic import build

RUN = "wrun_step-storm-seq-final-01"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = build(tmp_path / "made-up")
    audit = [tried(RUN, 4, "w1"), tried(RUN, 5, "w1", "step_completed"), tried(RUN, 7, "w1")]
    lay_log(made, RUN, SEQUENTIAL, audit=[*audit, tried(RUN, 8, "w2", reason="conflict: there already")])
    return made


@pytest.fixture(autouse=True)
def outside_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STEP_SUMMARY", "RUN_ATTEMPT", "RUN_ID", "REPOSITORY", "SERVER_URL"):
        monkeypatch.delenv(f"GITHUB_{name}", raising=False)


def test_the_tables_of_a_storm_are_as_stored(
    stormctl: Callable[..., Any], stored: Callable[[str, str], None], folder: Path
) -> None:
    ran = stormctl("report", folder)
    assert ran.code == 1
    assert all(len(line) <= 80 for line in ran.out.splitlines() if not line.startswith(("artefact:", "note:", "old:")))
    stored("report.txt", ran.out.replace(str(folder), "FOLDER"))


def test_report_only_says_the_same_and_passes(stormctl: Callable[..., Any], folder: Path) -> None:
    assert stormctl("report", folder, "--report-only").code == 0


def test_the_newest_storm_is_taken_when_none_is_named(
    stormctl: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stormctl.report import load

    build(tmp_path / "made-up" / "20260102T030405Z-X")
    (tmp_path / "made-up" / "latest").symlink_to("20260102T030405Z-X")
    real = load.newest
    monkeypatch.setattr(load, "newest", lambda: real(tmp_path))
    ran = stormctl("report", "--format", "json")
    assert json.loads(ran.out)["name"] == "made-up"


def test_markdown_and_json_hold_the_same_verdict(stormctl: Callable[..., Any], folder: Path) -> None:
    assert "**What failures say**" in stormctl("report", folder, "--format", "md").out
    document = json.loads(stormctl("report", folder, "--format", "json").out)
    assert document["verdict"].startswith("12 of 31 failed: 10 corrupted")
    assert document["refusals"][0]["reasons"] == {"conflict": 1}


def test_json_of_several_lanes_has_them_by_name(stormctl: Callable[..., Any], folder: Path) -> None:
    document = json.loads(stormctl("report", f"a={folder}", f"b={folder}", "--format", "json").out)
    assert list(document["lanes"]) == ["a", "b"]


def test_the_junit_file_lies_in_the_folder(stormctl: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    assert stormctl("report", folder, "--format", "junit").out == ""
    assert len(ET.parse(folder / "junit.xml").getroot()) == 4
    stormctl("report", folder, "--format", "junit", "--out", tmp_path / "other.xml")
    assert (tmp_path / "other.xml").read_text() == (folder / "junit.xml").read_text()
    assert stormctl("report", folder, "--format", "junit", "--out", "-").out.startswith("<?xml")


def test_the_page_lies_in_the_folder(stormctl: Callable[..., Any], folder: Path) -> None:
    ran = stormctl("report", folder, "--format", "html", "--report-only")
    assert (ran.code, ran.out) == (0, f"report: {folder / 'report.html'}\n")
    assert "made-up" in (folder / "report.html").read_text()


class TestLane:
    def github(self, stormctl: Callable[..., Any], *arguments: object) -> Any:
        return stormctl("report", *arguments, "--format", "github", "--report-only")

    def test_the_summary_goes_where_github_says_and_the_comment_beside(
        self, stormctl: Callable[..., Any], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        summary, comment = tmp_path / "summary.md", tmp_path / "comment.md"
        summary.write_text("of an earlier step\n")
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
        monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
        monkeypatch.setenv("GITHUB_REPOSITORY", "someone/some-engine")
        monkeypatch.setenv("GITHUB_RUN_ID", "77")
        monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "2")
        ran = self.github(stormctl, f"local={folder}", "--comment", comment)
        assert (ran.code, ran.out) == (0, "")
        assert summary.read_text().startswith("of an earlier step\n**old: main + nets corrupted")
        (run,) = parse_previous(comment.read_text())
        assert (run.url, run.attempt) == ("https://github.com/someone/some-engine/actions/runs/77", 2)
        assert run.lanes["local"].corrupted == 10

    def test_outside_of_a_job_the_summary_is_printed(
        self, stormctl: Callable[..., Any], folder: Path, tmp_path: Path
    ) -> None:
        ran = self.github(stormctl, folder, "--comment", tmp_path / "comment.md")
        assert "**What failures say**" in ran.out

    def test_the_runs_of_the_last_body_stay(self, stormctl: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
        comment, previous = tmp_path / "comment.md", tmp_path / "previous.md"
        self.github(stormctl, folder, "--comment", previous, "--previous", tmp_path / "absent.md")
        url = "https://github.com/someone/some-engine/actions/runs/78"
        self.github(stormctl, folder, "--comment", comment, "--previous", previous, "--run-url", url)
        assert [run.url for run in parse_previous(comment.read_text())] == [url, ""]

    def test_annotations_are_lines_for_the_runner(
        self, stormctl: Callable[..., Any], folder: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "summary.md"
        ran = self.github(stormctl, folder, "--annotations", "--out", out, "--comment", tmp_path / "comment.md")
        lines = ran.out.splitlines()
        assert lines[0].startswith("::notice title=made-up::12 of 31 failed")
        assert all(line.startswith("::error title=") for line in lines[1:])

    def test_a_lane_whose_results_are_missing_fails_after_all_was_written(
        self, stormctl: Callable[..., Any], folder: Path, tmp_path: Path
    ) -> None:
        comment = tmp_path / "comment.md"
        ran = self.github(stormctl, f"local={folder}", f"postgres={tmp_path / 'none'}", "--comment", comment)
        assert ran.code == 4
        assert "there are no results at" in ran.err
        assert "**postgres**: **no results; see the job's log**" in comment.read_text()
        assert "- **local**" in comment.read_text()

    def test_upstreams_results_file_is_a_lane(self, stormctl: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
        results, comment = tmp_path / "event-log-race-repro-results.json", tmp_path / "comment.md"
        results.write_bytes(dumped(harness_results()))
        assert self.github(stormctl, f"ours={folder}", f"vercel={results}", "--comment", comment).code == 0
        assert "- **vercel**: **1 of 2 failed: 1 corrupted; 1 infra**" in comment.read_text()


@pytest.mark.parametrize("format", ["table", "md", "json", "junit", "github"])
def test_missing_results_fail_in_every_format_whatever_is_asked(
    stormctl: Callable[..., Any], tmp_path: Path, format: str
) -> None:
    where = tmp_path / "out"
    ran = stormctl(
        "report", tmp_path / "none", "--format", format, "--report-only", "--out", where, "--comment", tmp_path / "c.md"
    )
    assert ran.code == 4
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--annotations"], "--format github"),
        (["--previous", "x.md"], "--format github"),
        (["=x"], "NAME=DIR"),
        (["a", "b", "--format", "html"], "holds one storm"),
        ([f"lane{index}" for index in range(40)], "too many"),
    ],
)
def test_a_wrong_command_is_told_in_one_sentence(stormctl: Callable[..., Any], arguments: list[str], word: str) -> None:
    ran = stormctl("report", *arguments)
    assert ran.code == 2
    assert word in ran.err


def test_what_cannot_be_written_is_told(stormctl: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    ran = stormctl("report", folder, "--format", "md", "--out", tmp_path / "no" / "such" / "folder.md")
    assert ran.code == 4
    assert "cannot be written" in ran.err


def test_hostile_attempts_are_harmless_on_a_terminal(stormctl: Callable[..., Any], folder: Path) -> None:
    nasty = "x \x1b[2J\r\n::set-output name=a::b @octocat ##[error]y [red]z[/red]"
    path = folder / "attempts.ndjson"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows[:3]:
        row.update(run_id=nasty, error_message=nasty, scenario=nasty, condition=nasty, flags=[nasty])
    rows[3].update(work={"divergences": "many"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = stormctl("report", folder)
    assert ran.code == 1
    assert "\x1b" not in ran.out
    assert "##[" not in ran.out
    assert not any(line.strip().startswith("::") for line in ran.out.splitlines())
    assert "line 4 is not an attempt" in ran.out
