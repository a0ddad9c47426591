"""Replays that were made before: found again, bounded, and never believed when they are damaged."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from stormctl.history import Capture
from stormctl.readers import write_capture
from stormctl.sweeps import SweepPlan, sweep_log
from stormctl.sweeps.bindings import BindingMap, Span
from stormctl.sweeps.memory import Kept
from stormctl.sweeps.rebinding import Answer, FirstDivergence, Flip, Rebinding, Swap
from stormctl.targets.sdk.replay import kept, pools
from stormctl.targets.sdk.replay.engine import SdkEngine
from stormctl.targets.sdk.replay.kept import KeptReplays, kept_replays
from stormctl.targets.sdk.replay.pool import Pool
from tests.targets.sdk.replay.tiny import bundle, capture, tiny_events

LOST = FirstDivergence(9, 8, 3, "step:a", "step:b", "text", 7, "evnt_8")
FOUND = Kept(
    Rebinding(
        "sdk:own",
        "storm",
        40,
        8,
        (Flip(5, 6, 2, "step:a", "step:b", input_changed=True),),
        LOST,
        failure=(7, "it threw"),
        answer=Answer("abc"),
        swaps=(Swap(4, 2, "step:a", "x", "y"),),
        whole=True,
        lost=LOST,
    ),
    BindingMap("sdk:own", "storm", (1, 2), {2: (Span(0, 1, "step:a"),)}, 1, 2, "step:a", ("step:a",)),
)
#: creates one step for each event that has come, under the ids that the log has
BODY = """
  const next_id = 'step_' + events.filter((event) => event.eventType === 'step_completed').length;
  await next('step_created', next_id, { stepName: 'step//./tiny//add', input: bytes([]) });
"""


@pytest.fixture
def replays(tmp_path: Path) -> KeptReplays:
    return KeptReplays(tmp_path / "replays")


def test_what_was_kept_is_found_as_it_was(replays: KeptReplays) -> None:
    replays.keep("key", FOUND)
    assert replays.recall("key") == FOUND
    assert replays.recall("other") is None
    assert pickle.loads(pickle.dumps(replays)).recall("key") == FOUND


def test_nobody_else_may_read_it_and_no_part_is_left(replays: KeptReplays) -> None:
    replays.keep("key", FOUND)
    (file,) = replays.folder.iterdir()
    assert file.suffix == ".json"
    assert (file.stat().st_mode & 0o77, replays.folder.stat().st_mode & 0o77) == (0, 0)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-40],
        lambda text: text.replace("step:a", "step:c"),
        lambda text: text.replace("stormctl.replay/1", "stormctl.replay/2"),
        lambda _text: "",
        lambda _text: "[]",
        lambda _text: "\0\0",
        lambda _text: "[" * 100_000,
        lambda text: json.dumps({**json.loads(text), "body": {}}),
    ],
)
def test_a_damaged_one_is_not_there_and_is_written_anew(replays: KeptReplays, damage: Any) -> None:
    replays.keep("key", FOUND)
    (file,) = replays.folder.iterdir()
    file.write_text(damage(file.read_text()))
    assert replays.recall("key") is None
    replays.keep("key", FOUND)
    assert replays.recall("key") == FOUND


def test_one_of_another_stormctl_is_not_found(replays: KeptReplays, monkeypatch: pytest.MonkeyPatch) -> None:
    replays.keep("key", FOUND)
    monkeypatch.setattr(kept, "_made_by", lambda: "another")
    assert replays.recall("key") is None


def test_those_that_were_not_asked_for_the_longest_go_when_there_are_too_many(tmp_path: Path) -> None:
    replays = KeptReplays(tmp_path, most=5, left=3)
    for number in range(5):
        replays.keep(f"key {number}", FOUND)
        for file in tmp_path.iterdir():
            os.utime(file, (file.stat().st_mtime - 100, file.stat().st_mtime - 100))
    assert replays.recall("key 0") is not None  # now it was asked for
    replays.keep("key 5", FOUND)
    there = [number for number in range(6) if replays.recall(f"key {number}") is not None]
    assert there == [0, 4, 5]


def test_what_a_killed_writer_left_is_removed_in_time(replays: KeptReplays) -> None:
    replays.keep("key", FOUND)
    old, new = replays.folder / "x.part", replays.folder / "y.part"
    for file in (old, new):
        file.touch()
    os.utime(old, (1, 1))
    replays.keep("other", FOUND)
    assert not old.exists()
    assert new.exists()


def test_a_folder_that_cannot_be_written_keeps_nothing_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    replays = KeptReplays(tmp_path / "file" / "replays")
    replays.keep("key", FOUND)
    assert replays.recall("key") is None


def test_it_lies_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORMCTL_CACHE", str(tmp_path))
    assert kept_replays() == KeptReplays(tmp_path / "replays")


class TestASecondSweep:
    """Of logs that have not changed, it starts no worker."""

    @pytest.fixture
    def starts(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        started: list[str] = []
        start = Pool._start

        def counted(pool: Pool) -> Any:
            started.append(pool.bundle.label)
            return start(pool)

        monkeypatch.setattr(Pool, "_start", counted)
        return started

    def sweep(self, capture: Capture, folder: Path, memory: KeptReplays | None, **environment: str) -> Any:
        made = bundle(folder, BODY)

        def opened(*_: Any) -> SdkEngine:
            return SdkEngine(made, capture, name="sdk:tiny", environment=environment)

        pools.close()
        report = sweep_log(capture, SweepPlan(engines=("sdk:tiny",), memory=memory, open=opened, maps=True))
        pools.close()
        return report

    def test_starts_no_worker(self, node: str, starts: list[str], tmp_path: Path, replays: KeptReplays) -> None:
        log = capture(tiny_events(3))
        first = self.sweep(log, tmp_path / "app", replays)
        assert len(starts) == 1, first.reasons
        assert self.sweep(log, tmp_path / "app", replays) == first
        assert len(starts) == 1

    def test_starts_one_for_another_log_bundle_or_switch_and_without_a_cache(
        self, node: str, starts: list[str], tmp_path: Path, replays: KeptReplays
    ) -> None:
        log = capture(tiny_events(3))
        self.sweep(log, tmp_path / "app", replays)
        self.sweep(capture(tiny_events(4)), tmp_path / "app", replays)
        assert len(starts) == 2
        self.sweep(log, tmp_path / "app", replays, WORKFLOW_LOG_ORDER_DRAWS="0")
        assert len(starts) == 3
        self.sweep(log, tmp_path / "app", None)
        assert len(starts) == 4
        (tmp_path / "app" / "flow.js").write_text((tmp_path / "app" / "flow.js").read_text() + "\n// built anew\n")
        other = SdkEngine(bundle(tmp_path / "new", BODY, top="// built anew"), log)
        assert other.hangs_on(log.log) != SdkEngine(bundle(tmp_path / "app", BODY), log).hangs_on(log.log)

    def test_a_folder_of_logs_that_is_swept_by_the_command(
        self, node: str, starts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
    ) -> None:
        from stormctl.cli import main

        monkeypatch.setenv("STORMCTL_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(os, "cpu_count", lambda: 1)  # in this process, where starts are counted
        bundle(tmp_path / "app", BODY)
        for number in (2, 3):
            log = capture(tiny_events(number))
            (tmp_path / str(number)).mkdir()
            write_capture(log, tmp_path / str(number), with_payloads=True)
        arguments = [
            str(tmp_path / "2"),
            str(tmp_path / "3"),
            "--engine",
            f"sdk:{tmp_path / 'app'}",
            "--format",
            "json",
        ]
        told = []
        for more in ([], [], ["--no-cache"]):
            main(["sweep", *arguments, *more])
            told.append(json.loads(capsys.readouterr().out))
            pools.close()
            starts.append("--")
        assert told[0] == told[1] == told[2]
        assert all(log["rebinding"] for log in told[0]["logs"]), told[0]
        assert [one == "--" for one in starts] == [False, True, True, False, True]
