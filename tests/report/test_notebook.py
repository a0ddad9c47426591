from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stormctl
from tests.report.synthetic import build
from tests.report.with_logs import build_with_logs

nbformat = pytest.importorskip("nbformat", reason="the extra `notebook` is not installed")
nbclient = pytest.importorskip("nbclient", reason="the extra `notebook` is not installed")


def executed(root: Path, where: Path) -> Any:
    notebook = nbformat.read(root / "notebooks" / "storm_review.ipynb", as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=90, resources={"metadata": {"path": str(where)}})
    client.execute()
    return notebook


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


@pytest.mark.filterwarnings("ignore")  # the kernel's own
def test_the_notebook_shows_a_storm_in_five_cells(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORMCTL_ARTEFACT", str(build_with_logs(tmp_path / "storm", root)))
    monkeypatch.setenv("PYTHONPATH", str(Path(stormctl.__file__).parents[1]))  # the kernel is another process
    notebook = executed(root, root / "notebooks")
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outcomes, histogram, signatures, timeline, rebinding = ("".join(map(shown, cell.outputs)) for cell in cells)
    assert "old: main + nets corrupted 10/15" in outcomes
    assert "+75 points (31 to 93), old corrupts more" in outcomes
    assert "6/8 (75 %, 41 to 93)" in outcomes
    assert histogram.count("[picture]") == 2
    assert "releaseStep" in signatures
    assert timeline.startswith("[picture]")
    assert "overtaken" in timeline
    assert "[picture]" in rebinding
    assert "flips over" in rebinding


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs_on_an_artefact_without_logs(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORMCTL_ARTEFACT", str(build(tmp_path / "storm")))
    monkeypatch.setenv("PYTHONPATH", str(Path(stormctl.__file__).parents[1]))
    text = "".join(map(shown, outputs(executed(root, root / "notebooks"))))
    assert "no failed run has its log in this artefact" in text
    assert "there is no run to replay" in text


def shown(output: Any) -> str:
    """What an output says, a picture as a word."""
    data = output.get("data", {})
    return "[picture]" if "image/png" in data else output.get("text", "") or data.get("text/plain", "")


def test_the_notebook_is_kept_without_outputs(root: Path) -> None:
    assert outputs(nbformat.read(root / "notebooks" / "storm_review.ipynb", as_version=4)) == []


def test_the_made_up_artefact_is_what_its_script_writes(root: Path, tmp_path: Path) -> None:
    fresh = build(tmp_path / "artefact")
    kept = root / "fixtures" / "artefact"
    assert {path.name for path in kept.iterdir()} == {path.name for path in fresh.iterdir()}
    for path in fresh.iterdir():
        assert (kept / path.name).read_text() == path.read_text()
