from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stormctl
from tests.report.synthetic import build

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
def test_the_notebook_shows_outcomes_and_the_histogram(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORMCTL_ARTEFACT", str(build(tmp_path / "storm")))
    monkeypatch.setenv("PYTHONPATH", str(Path(stormctl.__file__).parents[1]))  # the kernel is another process
    found = outputs(executed(root, root / "notebooks"))
    text = "\n".join(output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in found)
    assert "old: main + nets corrupted 10/15" in text
    assert "+75 points (31 to 93)" in text
    assert sum("image/png" in output.get("data", {}) for output in found) == 2


def test_the_notebook_is_kept_without_outputs(root: Path) -> None:
    assert outputs(nbformat.read(root / "notebooks" / "storm_review.ipynb", as_version=4)) == []


def test_the_made_up_artefact_is_what_its_script_writes(root: Path, tmp_path: Path) -> None:
    fresh = build(tmp_path / "artefact")
    kept = root / "fixtures" / "artefact"
    assert {path.name for path in kept.iterdir()} == {path.name for path in fresh.iterdir()}
    for path in fresh.iterdir():
        assert (kept / path.name).read_text() == path.read_text()
