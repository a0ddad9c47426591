from __future__ import annotations

import json
from pathlib import Path

import pytest

from stormctl.errors import UnreadableInput
from stormctl.report.load import frame, load_artefact, newest
from tests.report.synthetic import attempts, build


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return build(tmp_path / "made-up" / "20260102T030405Z-01TEST")


def test_a_whole_folder_is_read_back(folder: Path) -> None:
    artefact = load_artefact(folder)
    assert artefact.attempts == tuple(attempts())
    assert artefact.plan is not None
    assert artefact.planned == 32
    assert artefact.arms == ("main + nets", "seq-final + dispenser")
    assert len(artefact.logs) == 31
    assert artefact.reason == "done"
    assert artefact.notes == ()


def test_the_order_of_the_plan_rules_whatever_landed_first(folder: Path) -> None:
    path = folder / "attempts.ndjson"
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    assert load_artefact(folder).arms == ("main + nets", "seq-final + dispenser")


def test_a_folder_cut_short_is_still_read(folder: Path) -> None:
    for name in ("sweeps.json", "env.json", "plan.yaml", "storm.json"):
        (folder / name).unlink()
    path = folder / "attempts.ndjson"
    path.write_bytes(path.read_bytes()[:-40])
    artefact = load_artefact(folder)
    assert len(artefact.attempts) == 31
    assert artefact.plan is None
    assert artefact.arms == ("main + nets", "seq-final + dispenser")
    assert any("the last line was cut off" in note for note in artefact.notes)
    assert any("plan.yaml is absent" in note for note in artefact.notes)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": "stormctl.sweep/9", "logs": []}'])
def test_unreadable_sweeps_are_left_out_and_said(folder: Path, content: str) -> None:
    (folder / "sweeps.json").write_text(content)
    artefact = load_artefact(folder)
    assert artefact.logs == ()
    assert len(artefact.attempts) == 32


def test_a_plan_of_another_version_is_left_out_and_said(folder: Path) -> None:
    (folder / "plan.yaml").write_text("schema: stormctl.plan/9\n")
    artefact = load_artefact(folder)
    assert artefact.plan is None
    assert any("newer stormctl" in note for note in artefact.notes)


def test_a_line_that_is_no_attempt_hides_no_other(folder: Path) -> None:
    path = folder / "attempts.ndjson"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], '{"scenario": "x"}', "7", *lines[3:]]) + "\n")
    artefact = load_artefact(folder)
    assert artefact.attempts == tuple(attempts())
    assert len(artefact.notes) == 2


def test_attempts_of_a_newer_version_are_refused(folder: Path) -> None:
    row = {**attempts()[0].row(), "schema": "stormctl.attempt/2"}
    (folder / "attempts.ndjson").write_text(json.dumps(row) + "\n")
    with pytest.raises(UnreadableInput) as caught:
        load_artefact(folder)
    assert "Upgrade" in caught.value.remedy


def test_a_foreign_folder_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput) as caught:
        load_artefact(tmp_path)
    assert "stormctl run" in caught.value.remedy


def test_latest_is_found_from_the_plans_folder_and_from_the_root(folder: Path, tmp_path: Path) -> None:
    (folder.parent / "latest").symlink_to(folder.name)
    assert load_artefact(folder.parent).folder == folder.resolve()
    assert newest(tmp_path) == folder.resolve()
    with pytest.raises(UnreadableInput, match="no storm"):
        newest(tmp_path / "elsewhere")


def test_the_frame_has_a_row_per_attempt(folder: Path) -> None:
    table = frame(load_artefact(folder))
    assert len(table) == 32
    counted = table.groupby(["arm", "shown"]).size()
    assert counted["main + nets", "corrupted"] == 10
    assert counted["seq-final + dispenser", "stuck"] == 1
    assert table["seconds"].max() == pytest.approx(table["duration_ms"].max() / 1000)


def test_the_frame_of_an_empty_storm_has_the_same_columns(folder: Path) -> None:
    whole = frame(load_artefact(folder))
    (folder / "attempts.ndjson").write_text("")
    empty = frame(load_artefact(folder))
    assert list(empty.columns) == list(whole.columns)
    assert empty.empty


def test_a_text_that_no_encoding_can_hold_becomes_one_that_can(folder: Path) -> None:
    path = folder / "attempts.ndjson"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0].update(run_id="a\ud800b", error_message="c\udfffd", error_code="\ud800", progress={"last_event": "\ud800"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    artefact = load_artefact(folder)
    first = artefact.attempts[0]
    assert (first.run_id, first.error_message, first.error_code) == ("a\\ud800b", "c\\udfffd", "\\ud800")
    assert first.progress == {"last_event": "\\ud800"}
    assert frame(artefact).run_id[0] == "a\\ud800b"
