"""A lane's verdict, the step's summary, annotations, JUnit and JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from stormctl.report.facts import storm_facts
from stormctl.report.facts_json import report_json, report_text
from stormctl.report.junit import junit_text
from stormctl.report.lane import Lane, LaneCounts
from stormctl.report.load import Artefact, load_artefact
from stormctl.report.step_summary import MOST_ANNOTATIONS, annotation_lines, step_summary
from stormctl.storm.attempt import Cell
from stormctl.storm.outcome import Outcome
from tests.report.synthetic import build

NASTY = 'x | <b> & "q" @octocat\r\n::set-output name=a::b\n##[error]c \x1b[2J \ud800'


@pytest.fixture
def artefact(tmp_path: Path) -> Artefact:
    return load_artefact(build(tmp_path))


def nasty(artefact: Artefact) -> Lane:
    attempts = [
        replace(one, run_id=NASTY, error_message=NASTY, cell=Cell(NASTY, NASTY, NASTY, NASTY))
        for one in artefact.attempts
        if one.outcome.gates
    ]
    return Lane(NASTY, replace(artefact, attempts=tuple(attempts), plan=None, logs=()))


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        (LaneCounts(total=24, planned=24, completed=24), "clean, 24 attempts"),
        (
            LaneCounts(total=24, completed=4, corrupted=18, slow=1, dormant=1),
            "20 of 24 failed: 18 corrupted, 2 stuck (1 slow, 1 dormant)",
        ),
        (LaneCounts(total=3, completed=2, infra=1), "clean, 2 attempts; 1 infra"),
        (LaneCounts(total=3, infra=3), "nothing was judged; 3 infra"),
        (
            LaneCounts(total=5, planned=24, completed=5, why="budget"),
            "clean, 5 attempts; 5 of 24 planned attempts, launch budget spent",
        ),
        (
            LaneCounts(total=1, planned=2, completed=1),
            "clean, 1 attempts; 1 of 2 planned attempts, the job ended first",
        ),
        (
            LaneCounts(total=2, corrupted=2, suspect=True),
            "2 of 2 failed: 2 corrupted; a control failed, so the environment is suspect",
        ),
        (LaneCounts(missing=True), "no results; see the job's log"),
    ],
)
def test_the_verdict_of_a_lane_is_one_line(counts: LaneCounts, verdict: str) -> None:
    assert counts.verdict == verdict


def test_a_lane_counts_what_the_tables_count(artefact: Artefact) -> None:
    counts = Lane("local", artefact).counts
    assert (counts.total, counts.planned, counts.gating, counts.infra, counts.judged) == (32, 32, 12, 1, 31)
    assert str(counts.rate) == "10/31 (32 %, 19 to 50)"


class TestSummary:
    def test_it_holds_every_table_of_the_storm_and_the_configuration_at_its_end(self, artefact: Artefact) -> None:
        text = step_summary([(Lane("local", artefact), storm_facts(artefact))])
        assert text.startswith("**old: main + nets corrupted 10/15")
        assert "**What failures say**" in text
        assert "**Stuck runs: 1 slow, 1 dormant**" in text
        assert text.index("What failures say") < text.index("<details>")

    def test_several_lanes_stand_under_their_names(self, artefact: Artefact) -> None:
        text = step_summary([(Lane("local", artefact), storm_facts(artefact)), (Lane("postgres", None), None)])
        assert text.startswith("## local\n")
        assert text.rstrip().endswith("**postgres: no results; see the job's log**")

    def test_it_is_cut_between_two_blocks(self, artefact: Artefact) -> None:
        text = step_summary([(Lane("local", artefact), storm_facts(artefact))], limit=2000)
        assert len(text.encode()) < 2000
        assert text.endswith("The rest is too large for a step's summary; see the artefact.\n")

    def test_hostile_names_are_harmless(self, artefact: Artefact) -> None:
        lane = nasty(artefact)
        assert lane.artefact is not None
        text = step_summary([(lane, storm_facts(lane.artefact))])
        assert "@octocat" not in text
        assert "<b>" not in text.replace("\\<b\\>", "")
        assert "\x1b" not in text
        assert not any(line.strip().startswith("::") for line in text.splitlines())
        assert text.encode()


class TestAnnotations:
    def test_a_lane_has_a_notice_and_its_failures_are_errors(self, artefact: Artefact) -> None:
        lines = annotation_lines([Lane("local", artefact)])
        assert lines[0] == "::notice title=local::12 of 31 failed: 10 corrupted, 2 stuck (1 slow, 1 dormant); 1 infra"
        assert lines[1].startswith("::error title=local%3A corrupted::step-storm/local/main/nets no. 1: step_created: ")
        assert len(lines) == 1 + MOST_ANNOTATIONS + 1
        assert lines[-1] == "::error title=storm::and 3 more; see the summary"

    def test_a_lane_without_results_is_an_error(self) -> None:
        assert annotation_lines([Lane("x", None)]) == ["::error title=x::no results; see the job's log"]

    def test_no_name_or_message_begins_another_command(self, artefact: Artefact) -> None:
        for line in annotation_lines([nasty(artefact)]):
            assert line.startswith(("::notice title=", "::error title="))
            assert "\n" not in line
            assert "\r" not in line
            assert "\x1b" not in line
            title = line.split("::")[1].split("title=", 1)[1]
            assert "," not in title
            assert ":" not in title


class TestJunit:
    def test_each_attempt_is_a_case_and_each_cell_a_suite(self, artefact: Artefact) -> None:
        root = ET.fromstring(junit_text([Lane("local", artefact)]))
        suites = {suite.get("name"): suite for suite in root}
        assert list(suites) == [f"local: {cell.label}" for cell in artefact.cells]
        main = suites["local: step-storm/local/main/nets"]
        assert (main.get("tests"), main.get("failures"), main.get("skipped")) == ("8", "7", "0")
        failure = main.find("testcase/failure")
        assert failure is not None
        assert failure.get("type") == "corrupted"
        assert "releaseStep" in (failure.text or "")

    def test_infra_is_skipped(self, artefact: Artefact) -> None:
        root = ET.fromstring(junit_text([Lane("local", artefact)]))
        assert len(root.findall(".//skipped")) == 1

    def test_what_fails_beside_a_failed_control_is_skipped(self, artefact: Artefact) -> None:
        control = replace(artefact.attempts[0], cell=replace(artefact.attempts[0].cell, scenario="hook-sleep"))
        root = ET.fromstring(junit_text([Lane("x", replace(artefact, attempts=(*artefact.attempts, control)))]))
        assert {case.get("type") for case in root.findall(".//failure")} == {"slow"}

    def test_a_lane_without_results_is_an_error(self) -> None:
        root = ET.fromstring(junit_text([Lane("x", None)]))
        assert root.find(".//error") is not None

    def test_hostile_names_give_xml_that_can_be_read(self, artefact: Artefact) -> None:
        root = ET.fromstring(junit_text([nasty(artefact)]).encode())
        assert "octocat" in (root[0].get("name") or "")


class TestJson:
    def test_it_says_what_the_tables_say(self, artefact: Artefact) -> None:
        document = json.loads(report_text(report_json(Lane("local", artefact), storm_facts(artefact))))
        assert document["schema"] == "stormctl.report/1"
        assert document["counts"]["corrupted"] == 10
        assert document["signatures"][0]["signature"]["expected"] == "releaseStep"
        assert document["signatures"][0]["example"]["run_id"] == "wrun_step-storm-main-01"
        assert [run["attempt"]["outcome"] for run in document["stuck"]] == ["dormant", "slow"]

    def test_hostile_names_and_numbers_that_json_has_not(self, artefact: Artefact) -> None:
        lane = nasty(artefact)
        assert lane.artefact is not None
        empty = replace(lane.artefact, attempts=(replace(lane.artefact.attempts[0], outcome=Outcome.INFRA),))
        text = report_text(report_json(Lane("x", empty), storm_facts(empty)))
        assert json.loads(text)
        assert text.isascii()
