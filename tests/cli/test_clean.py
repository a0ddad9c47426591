"""``stormctl clean``, ``run --resume`` and ``worker`` as a person types them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from stormctl.storm.folder import StormFolder, without_dsn
from tests.storm.making import SMALL, plan

Run = Callable[..., Any]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A root with three storms that never ran."""
    for _ in range(3):
        StormFolder.create(plan(), tmp_path / "out")
    return tmp_path / "out"


class TestClean:
    def test_says_what_it_removed_and_freed(self, stormctl: Run, out: Path) -> None:
        ran = stormctl("clean", "--keep", "1", "--out", out)
        assert (ran.code, ran.err) == (0, "")
        lines = ran.out.splitlines()
        assert [line.startswith(f"removed {out}/small/") for line in lines] == [True, True, False]
        assert lines[-1].startswith("freed ")
        assert lines[-1].endswith(" of 2 storms")
        assert len(list((out / "small").glob("2*"))) == 1

    def test_only_says_so_on_a_dry_run(self, stormctl: Run, out: Path) -> None:
        ran = stormctl("clean", "--keep", "0", "--out", out, "--dry-run")
        assert ran.out.count("would remove ") == 3
        assert len(list((out / "small").glob("2*"))) == 3

    def test_keeps_a_running_one_and_says_whose_it_is(self, stormctl: Run, out: Path) -> None:
        folder = StormFolder((out / "small" / "latest").resolve())
        with folder.owned():
            ran = stormctl("clean", "--keep", "0", "--out", out)
        assert ran.code == 0
        assert f"kept {folder.path}: it is running: pid " in ran.out

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("--keep", "1", "--plan", "smal"), "there is no storm of plan 'smal'"),
            (("--keep", "-1"), None),
            ((), None),
        ],
    )
    def test_that_cannot_be_meant_is_a_wrong_command(
        self, stormctl: Run, out: Path, arguments: tuple[str, ...], said: str | None
    ) -> None:
        ran = stormctl("clean", *arguments, "--out", out)
        assert ran.code == 2
        assert said is None or said in ran.err
        assert len(list((out / "small").glob("2*"))) == 3


class TestResume:
    def test_makes_a_storm_that_never_began_and_then_there_is_nothing_left(self, stormctl: Run, out: Path) -> None:
        folder = (out / "small" / "latest").resolve()
        ran = stormctl("run", "--resume", folder, "--report-only")
        assert (ran.code, ran.err) == (0, "")
        assert "small, seed 3: 2 of 2 attempts landed" in ran.out
        again = stormctl("run", "--resume", folder)
        assert again.code == 2
        assert "is done: there is nothing to resume. Start a new one." in again.err

    @pytest.mark.parametrize("more", [("-P", "attempts=3"), ("--seed", "4"), ("--dry-run",)])
    def test_takes_nothing_that_its_folder_says_already(self, stormctl: Run, out: Path, more: tuple[str, ...]) -> None:
        ran = stormctl("run", "--resume", out / "small" / "latest", *more)
        assert ran.code == 2
        assert "--resume takes the plan and seed from its folder" in ran.err

    def test_of_what_is_no_folder_of_ours_is_one_sentence(self, stormctl: Run, tmp_path: Path) -> None:
        ran = stormctl("run", "--resume", tmp_path)
        assert ran.code == 4
        assert ran.err.count("\n") == 1


def test_no_plan_at_all_is_a_wrong_command(stormctl: Run) -> None:
    ran = stormctl("run")
    assert ran.code == 2
    assert "there is no plan to run" in ran.err


def test_a_fault_that_cannot_be_meant_is_one_sentence(stormctl: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump({**SMALL, "faults": [{"kill": "worker", "at": "pubish"}]}))
    ran = stormctl("run", path, "--dry-run")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "stormctl: faults[1].at is 'pubish'. Did you mean 'publish'?\n"


def test_a_dry_run_tells_of_the_faults(stormctl: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump({**SMALL, "faults": [{"kill": "worker", "at": "publish", "every": 9, "limit": 2}]}))
    ran = stormctl("run", path, "--dry-run")
    assert "faults:\n  kill worker at publish, one time in 9, at most 2 times\n" in ran.out


@pytest.mark.parametrize("written", [["--dsn", "postgresql://u:secret@h/d"], ["--dsn=postgresql://u:secret@h/d"]])
def test_a_command_line_is_kept_without_its_database(written: list[str]) -> None:
    assert "secret" not in " ".join(without_dsn(["run", "p.yaml", *written, "--seed", "3"]))
    assert without_dsn(["run", "p.yaml", *written, "--seed", "3"])[-2:] == ["--seed", "3"]
