"""Removing old storms: the oldest beyond a number, never a running one, never what is not ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stormctl.errors import UnreadableInput, UsageError
from stormctl.storm.clean import plans_under, remove, storms_of
from stormctl.storm.folder import StormFolder
from tests.storm.making import plan


@pytest.fixture
def storms(tmp_path: Path) -> list[StormFolder]:
    """Four storms of one plan, the oldest first."""
    made = []
    for number in range(4):
        folder = StormFolder.create(plan(), tmp_path)
        aged = folder.path.with_name(f"20260101T00000{number}Z-01KE000000000000000000000{number}")
        folder.path.rename(aged)
        made.append(StormFolder(aged))
    link = tmp_path / "small" / "latest"
    link.unlink()
    link.symlink_to(made[-1].path.name)
    return made


def names(place: Path) -> list[str]:
    return sorted(os.listdir(place))


class TestRemoving:
    def test_leaves_the_newest(self, tmp_path: Path, storms: list[StormFolder]) -> None:
        gone = list(remove(tmp_path / "small", 2, dry=False))
        assert [one.folder for one in gone] == [storms[1].path, storms[0].path]
        assert all(one.size > 0 and one.problem is None for one in gone)
        assert names(tmp_path / "small") == sorted([storms[2].path.name, storms[3].path.name, "latest"])

    def test_touches_nothing_when_it_is_only_asked(self, tmp_path: Path, storms: list[StormFolder]) -> None:
        before = names(tmp_path / "small")
        assert len(list(remove(tmp_path / "small", 1, dry=True))) == 3
        assert names(tmp_path / "small") == before

    def test_spares_a_storm_that_runs_whatever_its_age(self, tmp_path: Path, storms: list[StormFolder]) -> None:
        with storms[0].owned():
            found = {one.folder: one for one in remove(tmp_path / "small", 1, dry=False)}
        assert found[storms[0].path].running
        assert f"pid {os.getpid()}" in (found[storms[0].path].problem or "")
        assert storms[0].path.exists()
        assert not storms[1].path.exists()

    def test_spares_what_is_not_ours(self, tmp_path: Path, storms: list[StormFolder]) -> None:
        place = tmp_path / "small"
        (place / "notes").mkdir()
        (place / "thesis.txt").write_text("mine")
        stranger = place / "20250101T000000Z-01KE0000000000000000000009"
        stranger.mkdir()
        (stranger / "plan.yaml").write_text("schema: someone.else/1\n")
        (stranger / "attempts.ndjson").touch()
        elsewhere = tmp_path / "elsewhere"
        storms[0].path.rename(elsewhere)
        storms[0].path.symlink_to(elsewhere)
        list(remove(place, 0, dry=False))
        assert names(place) == sorted(["notes", "thesis.txt", stranger.name, storms[0].path.name])
        assert (elsewhere / "plan.yaml").exists()

    def test_mends_latest(self, tmp_path: Path, storms: list[StormFolder]) -> None:
        link = tmp_path / "small" / "latest"
        link.unlink()
        link.symlink_to("gone")
        list(remove(tmp_path / "small", 3, dry=False))
        assert link.resolve() == storms[3].path
        list(remove(tmp_path / "small", 0, dry=False))
        assert not (tmp_path / "small").exists()


def test_plans_are_found_by_name_or_all(tmp_path: Path, storms: list[StormFolder]) -> None:
    (tmp_path / "other").mkdir()
    assert plans_under(tmp_path) == [tmp_path / "other", tmp_path / "small"]
    assert plans_under(tmp_path, "small") == [tmp_path / "small"]
    assert len(storms_of(tmp_path / "small")) == 4
    with pytest.raises(UsageError, match="no storm of plan 'smal'"):
        plans_under(tmp_path, "smal")
    with pytest.raises(UnreadableInput, match="is not a folder"):
        plans_under(tmp_path / "nowhere")
