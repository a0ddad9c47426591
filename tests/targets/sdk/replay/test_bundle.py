"""Where a flow bundle is found, what is told of it, and what is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stormctl.targets.sdk.replay import BundleFault, find_bundle

ENGINE_44 = 'var version5;\nversion5 = "5.0.0-beta.44";\nconst sent = {\n    workflowCoreVersion: version5,\n};\n'
ENGINE_4 = 'var version2 = "4.8.9";\nvar version3 = "4.7.4";\nsend({ workflowCoreVersion: version2 });\n'


def made(folder: Path, name: str = "flow.js", text: str = "module.exports = {};") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    "below",
    ["", ".well-known/workflow/v1", "workflow/v1", "app/.well-known/workflow/v1", "src/app/.well-known/workflow/v1"],
)
@pytest.mark.parametrize("name", ["flow.js", "flow.mjs", "flow.cjs", "flow/route.js"])
def test_a_bundle_is_found_below_what_is_given(tmp_path: Path, below: str, name: str) -> None:
    flow = made(tmp_path / below, name)
    found = find_bundle(tmp_path)
    assert (found.flow, found.label) == (flow, str(tmp_path))
    assert find_bundle(flow).flow == flow


def test_a_relative_path_becomes_an_absolute_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = made(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert find_bundle(Path()).flow == flow


def test_of_two_in_one_folder_the_newer_is_taken(tmp_path: Path) -> None:
    old, new = made(tmp_path, "flow.mjs"), made(tmp_path, "flow.js")
    os.utime(old, (1, 1))
    assert find_bundle(tmp_path).flow == new
    os.utime(new, (0, 0))
    assert find_bundle(tmp_path).flow == old


@pytest.mark.parametrize(
    ("text", "name", "version", "major"),
    [
        (ENGINE_44, "flow.mjs", "5.0.0-beta.44", 5),
        (ENGINE_4, "flow.js", "4.8.9", 4),
        ('var version2 = "4.8.9";', "flow.js", None, 4),
        ("export {};", "flow.mjs", None, 5),
        ("f({ workflowCoreVersion: v });", "flow.cjs", None, 4),
    ],
)  # fmt: skip
def test_the_version_is_read_out_of_the_bundle(
    tmp_path: Path, text: str, name: str, version: str | None, major: int
) -> None:
    made(tmp_path, name, text)
    found = find_bundle(tmp_path)
    assert (found.version, found.major) == (version, major)


def test_packages_above_the_bundle_know_the_version_better(tmp_path: Path) -> None:
    made(tmp_path / ".well-known/workflow/v1", "flow.mjs", ENGINE_44)
    made(tmp_path / "node_modules/@workflow/core", "package.json", '{"version": "5.0.0-beta.55"}')
    assert find_bundle(tmp_path).version == "5.0.0-beta.55"


def test_the_digest_is_that_of_all_files_that_the_bundle_takes(tmp_path: Path) -> None:
    flow = made(
        tmp_path, "flow.mjs", 'import "./__steps.mjs";\nimport { x } from "./x/y.mjs"; import fs from "node:fs";'
    )
    made(tmp_path, "other.mjs")
    before = find_bundle(flow).digest
    assert find_bundle(flow).digest == before
    made(tmp_path, "other.mjs", "// not taken")
    assert find_bundle(flow).digest == before
    made(tmp_path, "__steps.mjs", "// taken")
    os.utime(flow, (5, 5))
    with_steps = find_bundle(flow).digest
    assert with_steps != before
    made(tmp_path, "x/y.mjs", "import '../flow.mjs';")
    os.utime(flow, (6, 6))
    assert find_bundle(flow).digest not in (before, with_steps)


def test_what_is_no_bundle_is_told_with_what_to_give(tmp_path: Path) -> None:
    made(tmp_path, "notes.txt")
    for path, says in (
        (tmp_path / "not-there", "there is no "),
        (tmp_path, "holds no flow bundle: there is neither flow.js nor flow.mjs"),
        (tmp_path / "notes.txt", "is no JavaScript module"),
    ):
        with pytest.raises(BundleFault, match=says) as error:
            find_bundle(path)
        assert ".well-known/workflow/v1" in error.value.remedy
