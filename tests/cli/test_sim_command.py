"""`stormctl sim`: the book, a search, a schedule played again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from stormctl.cli.app import app, main

PAGE = Path(__file__).parents[2] / "docs" / "sim.md"


def sim(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["sim", *arguments], env={"COLUMNS": "80"})


def test_the_book_is_red_where_it_should_be_and_fits_the_screen() -> None:
    told = sim("run")
    assert told.exit_code == 1
    counts = re.findall(r"^(\S+): (\d+) red of 41$", told.stdout, re.MULTILINE)
    assert counts == [("mint-ulid", "6"), ("mint-slot", "3"), ("append-only", "0")]
    assert max(map(len, told.stdout.splitlines())) <= 80


def test_a_world_without_red_is_clean() -> None:
    told = sim("run", "--world", "append-only")
    assert (told.exit_code, "RED" in told.stdout) == (0, False)


def test_a_cluster_finds_what_one_process_finds() -> None:
    distributed = pytest.importorskip("distributed")
    search = ("run", "fork-mint", "--strategy", "random", "--seeds", "150", "--no-shrink")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        there = sim(*search, "--dask", cluster.scheduler_address)
    assert there.stdout == sim(*search).stdout
    assert there.exit_code == 1


def test_work_is_shared_in_one_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "run", "fork-mint", "--jobs", "2", "--dask", "tcp://127.0.0.1:1"]) == 2
    assert "--jobs and --dask are two ways to share the work" in capsys.readouterr().err


class TestTheLibrary:
    def test_tells_how_soon_each_bug_is_found(self) -> None:
        told = sim("library", "torn-hook", "lost-dispatch", "--seeds", "2")
        head, *lines = told.stdout.splitlines()
        assert told.exit_code == 0
        assert head == "2 seeds each             strategy  schedules p50  p95  seconds p50   p95  missed"
        assert [line.split()[:2] for line in lines] == [["torn-hook", "random"], ["lost-dispatch", "random"]]

    def test_is_data_too(self) -> None:
        found = json.loads(sim("library", "torn-hook", "--seeds", "1", "--format", "json").stdout)
        assert found["schema"] == "stormctl.library/1"
        (one,) = found["bugs"]
        assert (one["missed"], one["twin"]["verdict"], one["repaired"]["world"]) == (0, "pass", "append-only")

    def test_knows_no_other_bug(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["sim", "library", "torn-hok"]) == 2
        said = "stormctl: there is no bug 'torn-hok' in the library. Did you mean 'torn-hook'?\n"
        assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    "shown",
    re.findall(r"```console\n\$ stormctl sim (.*?) \| (head|tail) -(\d+)\n(.*?)```", PAGE.read_text(), re.DOTALL),
)
def test_the_page_shows_what_the_commands_print(
    shown: tuple[str, str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command, end, count, lines = shown
    monkeypatch.chdir(PAGE.parents[1])
    told = sim(*command.split()).stdout.splitlines()
    part = told[-int(count) :] if end == "tail" else told[: int(count)]
    assert part == lines.splitlines()


def test_the_page_has_no_command_that_nobody_runs() -> None:
    shown = re.findall(r"^\$ stormctl (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(shown) >= 5
    assert all(re.fullmatch(r"sim .* \| (head|tail) -\d+", one) for one in shown)


class TestASearch:
    def test_finds_shrinks_proves_and_draws_what_plays_again(self) -> None:
        told = sim("run", "fork-hook-wins", "--world", "mint-ulid", "--strategy", "pos", "--seeds", "150")
        assert told.exit_code == 1
        assert "cold/diverged: first by schedule" in told.stdout
        assert "minimal: no failing schedule with" in told.stdout
        assert re.search(r"^ +\d+ < ", told.stdout, re.MULTILINE), told.stdout
        assert "( )" in told.stdout
        token = told.stdout.split()[-1]
        assert len(token) <= 80
        again = sim("replay", token)
        assert again.exit_code == 1
        assert again.stdout.split()[-1] == token
        assert len(again.stdout.splitlines()) <= 26

    def test_is_clean_where_nothing_is_wrong_and_the_same_in_two_processes(self) -> None:
        arguments = ("run", "fork-hook-wins", "--world", "fenced", "--generation", "rearm", "--seeds", "40")
        told = sim(*arguments)
        assert (told.exit_code, told.stdout.split()[0]) == (0, "pass")
        assert sim(*arguments, "--jobs", "2").stdout == told.stdout

    def test_without_a_choice_says_nothing(self) -> None:
        told = sim("run", "smoke-one-step", "--world", "append-only", "--seeds", "5")
        assert told.exit_code == 3
        assert "vacuous" in told.stdout

    def test_reports_only_when_asked_to(self) -> None:
        assert sim("run", "--world", "mint-slot", "--report-only").exit_code == 0


def anonymous(text: str) -> str:
    """Without tokens, which change with every release."""
    return re.sub(r"sw1-[\w-]+", "sw1-TOKEN", text)


class TestSchedules:
    """By token, by script, from a log; drawn, as data, as a page."""

    def test_a_search_of_the_small_model_as_a_person_sees_it(
        self, stormctl: Callable[..., Any], stored: Callable[[str, str], None]
    ) -> None:
        ran = stormctl("sim", "run", "fork-mint", "--strategy", "bounded", "--seeds", "500")
        assert ran.code == 1
        assert "every schedule was tried" in ran.out
        assert "171 schedules of 54 classes" in ran.out
        stored("sim-run-fork-mint.txt", anonymous(ran.out))

    def test_a_search_of_the_real_runtime_as_a_person_sees_it(
        self, stormctl: Callable[..., Any], stored: Callable[[str, str], None]
    ) -> None:
        ran = stormctl("sim", "run", "in-flight-before-decision", "--world", "mint-ulid", "--seeds", "200")
        assert ran.code == 1
        stored("sim-run-in-flight.txt", anonymous(ran.out))
        token = ran.out.split()[-1]
        shrunk = stormctl("sim", "shrink", token)
        assert (shrunk.code, shrunk.out.split()[-1]) == (1, token)  # it is as small as can be already

    def test_logs_that_a_world_can_and_cannot_have_written(
        self, stormctl: Callable[..., Any], stored: Callable[[str, str], None]
    ) -> None:
        sound = "fixtures/logs/2029-slept-before-it-was-woken.ndjson"
        corrupt = "fixtures/logs/2029-slept-although-woken-first.ndjson"
        found = stormctl("sim", "produce", sound, "--world", "append-only")
        assert found.code == 0
        missed = stormctl("sim", "produce", corrupt, "--world", "append-only", "--preemptions", "1")
        assert missed.code == 3
        stored("sim-produce.txt", anonymous(found.out + missed.out))
        *_, token, option, log = found.out.split()
        assert (option, log) == ("--log", sound)
        assert stormctl("sim", "replay", token, "--log", log).code == 0
        without = stormctl("sim", "replay", token)
        assert (without.code, "Name the log with --log." in without.err) == (2, True)

    def test_what_is_found_is_data_and_its_script_is_the_same_run(
        self, stormctl: Callable[..., Any], tmp_path: Path
    ) -> None:
        searched = ("sim", "run", "in-flight-before-decision", "--world", "mint-ulid", "--seeds", "200")
        data = json.loads(stormctl(*searched, "--format", "json").out)
        assert data["schema"] == "stormctl.search/1"
        assert data["searches"][0]["verdict"] == "violation"
        (schedule,) = data["schedules"]
        script = tmp_path / "found.txt"
        script.write_text("\n".join(schedule["script"]))
        named = ("--scenario", "in-flight-before-decision", "--world", "mint-ulid")
        again = stormctl("sim", "replay", "--script", script, *named, "--format", "json")
        assert again.code == 1
        assert json.loads(again.out)["token"] == schedule["token"]

    def test_a_partial_script_leaves_the_rest_to_chance(self, stormctl: Callable[..., Any], tmp_path: Path) -> None:
        script = tmp_path / "part.txt"
        script.write_text("H: run up to resume\nH: mint\nO2: run to wait_completed committed\n")
        searched = ("sim", "run", "in-flight-before-decision", "--world", "mint-ulid", "--no-shrink")
        ran = stormctl(*searched, "--script", script, "--seeds", "30")
        assert ran.code == 1
        assert re.search(r"violation .*: 30 schedules of \d\d? classes by scripted", ran.out)

    def test_a_page_is_written_where_it_is_wanted(self, stormctl: Callable[..., Any], tmp_path: Path) -> None:
        page = tmp_path / "book.html"
        ran = stormctl("sim", "run", "--world", "mint-slot", "--format", "html", "--out", page)
        assert (ran.code, ran.out) == (1, f"written  {page}\n")
        text = page.read_text()
        assert text.count("<article>") == 3
        token = re.search(r"stormctl sim replay (sw1-[\w-]+)", text)
        assert token is not None
        assert stormctl("sim", "replay", token[1]).code == 1  # as its script is played, not as it is searched

    def test_the_book_is_data(self, stormctl: Callable[..., Any]) -> None:
        data = json.loads(stormctl("sim", "run", "--world", "append-only", "--format", "json").out)
        assert len(data["worlds"]["append-only"]) == 41
        assert all(row["passed"] for row in data["worlds"]["append-only"])

    def test_a_token_of_another_model_is_refused_and_the_script_is_offered(self, stormctl: Callable[..., Any]) -> None:
        from stormctl.sim.token import Token

        ran = stormctl("sim", "replay", Token.of("fork-hook-wins@mint-ulid/nets", "0011223344556677", [1]))
        assert ran.code == 2
        assert "as it was before it changed" in ran.err
        assert "--script" in ran.err


def test_what_there_is_is_listed() -> None:
    told = sim("list")
    assert told.exit_code == 0
    for word in ("in-flight-before-decision", "mint-ulid", "portfolio", "ledger"):
        assert word in told.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "fork-hook-win"), "there is no scenario 'fork-hook-win'"),
        (("run", "--world", "append-onyl"), "there is no world 'append-onyl'"),
        (("run", "fork-hook-wins", "--strategy", "luck"), "there is no strategy 'luck'"),
        (("run", "fork-hook-wins", "--budget", "soon"), "soon"),
        (("replay", "sw1-AAAA"), "checksum"),
        (("replay", "hello"), "is no token"),
        (("replay",), "a token or a script is played"),
        (("replay", "--script", "no-such-file", "--scenario", "fork-hook-wins", "--world", "fenced"), "cannot be read"),
        (("replay", "--script", "README.md"), "a script is of a scenario"),
        (("replay", "--script", "README.md", "--scenario", "fork-hook-wins"), "a script is played in a world"),
        (("run", "fork-hook-wins", "--script", "README.md"), "is no statement of a script"),
        (("produce", "fixtures/logs"), "more logs than one"),
        (("produce", "fixtures/logs/4199-step-started-twice-and-ended.ndjson"), "does not name the workflow"),
        (("produce", "fixtures/logs/clean-hook-storm.ndjson", "--budget", "soon"), "soon"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_a_remedy(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
