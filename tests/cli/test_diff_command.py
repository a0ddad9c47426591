"""The diff command: what it prints for a terminal, for markdown and for programs, and what it exits with."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.report.folders import NEW, OLD, folder, outcomes

Run = Callable[..., Any]
Stored = Callable[[str, str], None]
MATRIX = {
    ("step-storm", OLD): outcomes(22, 24), ("step-storm", NEW): outcomes(1, 22) + "ii",
    ("hook-storm", OLD): outcomes(5, 14), ("hook-storm", NEW): outcomes(3, 14),
    ("hook-sleep", OLD): "......", ("hook-sleep", NEW): "......",
}  # fmt: skip


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    """A storm of two arms, one scenario told apart, one not, and a control."""
    return folder(tmp_path / "20260102T030000Z-A", MATRIX)


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """Another storm with the new arm alone, worse by now, on another machine and by another plan."""
    cells = {key: outcomes(12, 24) for key in MATRIX if key[1] == NEW and key[0] != "hook-sleep"}
    return folder(tmp_path / "20260103T030000Z-B", cells, seed=8, time_scale=0.05, env={"cores": 12})


class TestWhatItPrints:
    def test_of_one_storm(self, stormctl: Run, stored: Stored, matrix: Path) -> None:
        ran = stormctl("diff", matrix)
        assert (ran.code, ran.err) == (0, "")
        stored("diff-one-storm.txt", ran.out)

    def test_of_two_storms(self, stormctl: Run, stored: Stored, matrix: Path, later: Path) -> None:
        ran = stormctl("diff", matrix, later)
        assert (ran.code, ran.err) == (1, "")
        stored("diff-two-storms.txt", ran.out)

    def test_as_markdown(self, stormctl: Run, stored: Stored, matrix: Path) -> None:
        stored("diff-one-storm.md", stormctl("diff", matrix, "--format", "md").out)

    def test_as_json(self, stormctl: Run, stored: Stored, matrix: Path) -> None:
        text = stormctl("diff", matrix, "--format", "json").out
        found = json.loads(text)
        assert found["schema"] == "stormctl.diff/1"
        assert found["pooled"]["old"]["k"] == 27
        assert [one["control"] for one in found["cells"]] == [False, False, True]
        stored("diff-one-storm.json", re.sub(r"/[^ ]*/(?=2026)", "", _rounded(text)))

    @pytest.mark.parametrize("format", ["table", "md", "json"])
    def test_of_hostile_names_is_harmless(self, stormctl: Run, tmp_path: Path, format: str) -> None:
        bad = "ma\x1b[31min|<script>\u202e + nets"
        path = folder(tmp_path / "a", {("hook-storm", bad): "cccccc", ("hook-storm", NEW): "......"})
        (path / "plan.yaml").unlink()
        out = stormctl("diff", path, "--format", format).out
        assert "\x1b" not in out
        if format == "md":
            assert "<script>" not in out.replace("\\<", "")
        if format != "json":
            assert "\u202e" not in out

    def test_fits_80_columns_without_colour(self, stormctl: Run, matrix: Path, later: Path) -> None:
        for arguments in ([matrix], [matrix, later], [later, matrix, "--outcome", "any-failure"]):
            out = stormctl("diff", *arguments).out
            assert max(map(len, out.splitlines())) <= 80
            assert "\x1b" not in out


class TestExitCodes:
    @pytest.mark.parametrize(
        ("old", "new", "code"),
        [
            (outcomes(20, 24), outcomes(2, 24), 0),
            (outcomes(2, 24), outcomes(20, 24), 1),
            (outcomes(3, 14), outcomes(5, 14), 3),
            ("." * 24, "." * 24, 3),
            ("iiii", "....", 3),
        ],
    )
    def test_are_0_for_better_1_for_worse_and_3_for_not_told(
        self, stormctl: Run, tmp_path: Path, old: str, new: str, code: int
    ) -> None:
        path = folder(tmp_path / "a", {("hook-storm", OLD): old, ("hook-storm", NEW): new})
        assert stormctl("diff", path).code == code
        assert stormctl("diff", path, "--report-only").code == 0

    def test_of_more_completed_runs_is_0(self, stormctl: Run, tmp_path: Path) -> None:
        path = folder(tmp_path / "a", {("hook-storm", OLD): "cccccccc", ("hook-storm", NEW): "........"})
        assert stormctl("diff", path, "--outcome", "completed").code == 0
        assert stormctl("diff", path, "--outcome", "completed", "--arms", NEW, OLD).code == 1

    @pytest.mark.parametrize("report_only", [[], ["--report-only"]])
    def test_of_a_folder_that_is_none_is_4_whatever_is_asked(
        self, stormctl: Run, tmp_path: Path, report_only: list[str]
    ) -> None:
        ran = stormctl("diff", tmp_path, *report_only)
        assert (ran.code, ran.out) == (4, "")
        assert ran.err.startswith(f"stormctl: {tmp_path} is not an artefact folder: it has no attempts.ndjson. Name")

    def test_of_bad_usage_are_2(self, stormctl: Run, matrix: Path, later: Path) -> None:
        assert stormctl("diff").code == 2
        assert stormctl("diff", matrix, later, matrix).err == (
            "stormctl: 3 folders cannot be compared. Name one or two.\n"
        )
        ran = stormctl("diff", matrix, "--arms", OLD, "seq-finl + dispenser")
        assert (ran.code, ran.err) == (
            2,
            "stormctl: there is no arm 'seq-finl + dispenser'. Did you mean 'seq-final + dispenser'?\n",
        )
        assert stormctl("diff", matrix, "--outcome", "nothing").code == 2

    def test_an_arm_may_be_named_by_what_no_other_has(self, stormctl: Run, matrix: Path) -> None:
        whole = stormctl("diff", matrix, "--arms", OLD, NEW, "--format", "json")
        assert stormctl("diff", matrix, "--arms", "nets", "seq-final", "--format", "json").out == whole.out


def test_a_folder_cut_short_is_compared_by_what_landed(stormctl: Run, matrix: Path) -> None:
    whole = (matrix / "attempts.ndjson").read_text()
    (matrix / "attempts.ndjson").write_text(whole[: len(whole) - 40])
    (matrix / "sweeps.json").unlink()
    (matrix / "storm.json").unlink()
    assert stormctl("diff", matrix).code == 0


def _rounded(text: str) -> str:
    """Floats to six digits, so that the last ones may differ between machines."""
    return re.sub(r"-?\d+\.\d{7,}(e-?\d+)?", lambda found: f"{float(found[0]):.6g}", text)
