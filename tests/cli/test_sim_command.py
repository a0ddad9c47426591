"""`stormctl sim`: the book, a search, a schedule played again."""

from __future__ import annotations

import re
from pathlib import Path

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


@pytest.mark.parametrize(
    "shown", re.findall(r"```console\n\$ stormctl sim (.*?) \| (.*?)\n(.*?)```", PAGE.read_text(), re.DOTALL)
)
def test_the_page_shows_what_the_commands_print(shown: tuple[str, str, str]) -> None:
    command, cut, lines = shown
    told = sim(*command.split()).stdout.splitlines()
    part = told[-7:] if cut == "tail -7" else told[:3]
    assert part == lines.splitlines()


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
    ],
)
def test_what_is_wrong_is_one_sentence_with_a_remedy(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
