"""All pictures of a storm: which there are, what they say in words, and the example in their page of the docs."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from stormctl.report.load import Artefact, load_artefact
from stormctl.report.pictures import bindings, engine_of, pictures, telling, write_plots
from tests.report.synthetic import build
from tests.report.with_logs import RUNS, build_with_logs


@pytest.fixture(scope="module")
def artefact(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Artefact:
    return load_artefact(build_with_logs(tmp_path_factory.mktemp("pictures") / "storm", root))


def test_with_logs_there_are_seven_and_all_are_800_pixels_wide(artefact: Artefact) -> None:
    written = write_plots(artefact, logs=True)
    assert [path.stem for path in written[::2]] == [
        "outcomes", "cells", "durations", "events", "lag", "timeline", "rebinding",
    ]  # fmt: skip
    for path in written[::2]:
        assert struct.unpack(">II", path.read_bytes()[16:24])[0] == 800


def test_without_logs_there_are_four(tmp_path: Path) -> None:
    assert [one.name for one in pictures(load_artefact(build(tmp_path)))] == [
        "outcomes",
        "cells",
        "durations",
        "events",
    ]


def test_each_says_in_words_what_it_shows(tmp_path: Path) -> None:
    said = {one.name: one.text for one in pictures(load_artefact(build(tmp_path)))}
    assert said["cells"].startswith("step-storm, main + nets: 1 completed, corrupted 6/8 (75 %, 41 to 93), 1 stuck")
    assert re.match(r"completed: 19 attempts, p50 15\.\d s", said["durations"])
    assert "infra: 1 attempt, " in said["durations"]
    assert re.search(r"stuck: 2 runs of \d+ to \d+ events", said["events"])


def test_the_telling_run_is_a_failed_one_that_went_on_from_holes(artefact: Artefact) -> None:
    found = telling(artefact)
    assert found is not None
    capture, line = found
    assert capture.log.run_id == RUNS[0]  # the only one with recorded reads
    assert line.backwards > 0
    assert line.passes


def test_it_is_replayed_by_the_generation_of_its_cell(artefact: Artefact) -> None:
    assert engine_of(artefact, RUNS[0]) == "nets"
    found = telling(artefact)
    assert found is not None
    bound = bindings(artefact, found[0])
    assert bound is not None
    assert bound.engine == "nets"


def test_without_a_failed_run_there_is_nothing_to_tell(artefact: Artefact, tmp_path: Path, root: Path) -> None:
    folder = build_with_logs(tmp_path / "storm", root)
    text = (folder / "attempts.ndjson").read_text()
    (folder / "attempts.ndjson").write_text(re.sub(r'"outcome": "[a-z]+"', '"outcome": "completed"', text))
    assert telling(load_artefact(folder)) is None


def test_the_example_in_the_docs_draws_a_timeline(
    artefact: Artefact, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (root / "docs" / "pictures.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    log = str(artefact.folder / "logs" / f"{RUNS[0]}.ndjson")
    exec(compile(example.replace("logs/wrun_01....ndjson", log), "pictures.md", "exec"), {})
    assert (tmp_path / "timeline.png").stat().st_size > 10_000


def test_the_pictures_of_the_docs_are_small(root: Path) -> None:
    for path in (root / "docs").glob("picture-*.png"):
        assert path.stat().st_size < 60_000
        assert path.name in (root / "docs" / "pictures.md").read_text()
