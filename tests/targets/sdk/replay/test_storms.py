"""Storms whose logs are replayed by the real engine too: which engines, what they made of the runs, and the tables."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from stormctl.errors import PlanError
from stormctl.history import Capture, RunRow, digest_value
from stormctl.readers import write_capture
from stormctl.report.load import load_artefact
from stormctl.report.replayed import replayed
from stormctl.report.storm import render_storm
from stormctl.report.summary import summary_text
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.storm.plan import parse_plan
from stormctl.sweeps import SweepPlan
from stormctl.targets.sdk.replay.opener import open_engine
from stormctl.targets.sdk.replay.storms import account_of_replays, checked, judges, replayed_too
from stormctl.targets.sdk.target import SdkTarget
from stormctl.targets.url.target import UrlTarget
from tests.storm.test_url_plan import BASE as URL_PLAN
from tests.targets.sdk.replay.tiny import bundle, capture, tiny_events

CELL = Cell("hook-storm", "local", "workflow 5.0.0-beta.55", "as published")
CHANGED = replace(CELL, generation="NODE_ENV=test WORKFLOW_LOG_ORDER_DRAWS=0")
PLAN = {
    "schema": "stormctl.plan/1",
    "name": "small",
    "target": "sdk",
    "scenario": "hook-storm",
    "version": "5.0.0-beta.55",
    "environment": [{}, {"NODE_ENV": "test", "WORKFLOW_LOG_ORDER_DRAWS": "0"}],
    "sweeps": ["all", "sdk:own"],
    "attempts": 4,
}
ENGINE = "sdk:5.0.0-beta.55"
TEXT = 'step event step_created for step_X belongs to "a", but the current step consumer is "b"'
PRINTED = (
    "Workflow replay diverged 4 times after 3 recovery replays; latest divergent event was evnt_7. Last divergence: "
    f"Replay divergence: {TEXT}\n\nLearn more: https://example.test"
)


class TestWhichEngines:
    def test_a_cells_own_is_its_version_under_its_switches(self) -> None:
        target = SdkTarget(replays=("sdk:own",))
        assert target.sweeps(CELL).engines == ("rearm", ENGINE)
        changed = target.sweeps(CHANGED)
        assert changed.engines == ("dispenser", f"{ENGINE}[WORKFLOW_LOG_ORDER_DRAWS=0]")
        assert changed.open is open_engine
        assert changed.memory is not None

    def test_a_version_that_is_named_is_a_judge_without_the_cells_switches(self) -> None:
        assert SdkTarget(replays=(ENGINE,)).sweeps(CHANGED).engines == ("dispenser", ENGINE)
        assert judges(("sdk:own", ENGINE, "sdk:/app", "sdk:4.8.9")) == ("5.0.0-beta.55", "4.8.9")

    def test_a_folder_is_replayed_under_them(self, tmp_path: Path) -> None:
        target = SdkTarget(replays=(f"sdk:{tmp_path}",))
        assert target.sweeps(CHANGED).engines[1] == f"sdk:{tmp_path}[WORKFLOW_LOG_ORDER_DRAWS=0]"

    def test_it_replays_what_is_decided_and_the_others_every_prefix(self) -> None:
        log = capture(tiny_events(6, ends=[15])).log
        plan = SdkTarget(replays=("sdk:own",)).sweeps(CELL)
        assert len(plan.lengths("rearm", log)) == len(log)
        assert len(log) > len(plan.lengths(ENGINE, log))
        assert plan.lengths(ENGINE, log)[-1] == len(log)

    def test_without_one_nothing_changes(self) -> None:
        plan = SweepPlan(workload="hook-storm", engines=("nets",))
        assert replayed_too(plan, ()) is plan
        assert SdkTarget().sweeps(CELL).memory is None

    def test_an_app_of_somebody_else_is_replayed_by_its_own_bundle(self, tmp_path: Path) -> None:
        with pytest.raises(PlanError, match="nobody told where the bundle of the app is"):
            parse_plan({**URL_PLAN, "sweeps": ["all", "sdk:own"]}, "plans/url.yaml")
        plan = parse_plan({**URL_PLAN, "sweeps": ["all", f"sdk:{tmp_path}"]}, "plans/url.yaml")
        target = UrlTarget(plan.apps, replays=plan.real_engines)
        assert target.sweeps(plan.cells[0]).engines == (f"sdk:{tmp_path}",)
        assert UrlTarget(plan.apps).sweeps(plan.cells[0]).engines == ()

    def test_one_that_is_not_there_is_told_before_the_storm(self, tmp_path: Path) -> None:
        with pytest.raises(PlanError, match=r"sweeps asks for a real engine that is not there: there is no bundle"):
            checked(["all", f"sdk:{tmp_path}/app"])
        (tmp_path / "app").mkdir()
        with pytest.raises(PlanError, match="holds no flow bundle"):
            checked([f"sdk:{tmp_path}/app"])
        bundle(tmp_path / "app")
        assert checked(["all", "nets", f"sdk:{tmp_path}/app", "sdk:own"]) == (f"sdk:{tmp_path}/app", "sdk:own")


def swept(run_id: str, flips: int | None, log_order: int | None, **whole: Any) -> dict[str, Any]:
    """A log's row in sweeps.json."""
    verdict = "unknown" if log_order is None else "violated" if log_order else "clean"
    finding = {"severity": "fatal", "positions": [], "message": "", "witness": [], "key": ""}
    found: dict[str, Any] = {
        "run_id": run_id,
        "events": 9,
        "verdict": verdict,
        "sweeps": [
            {"sweep": "log-order", "verdict": verdict, "findings": [finding] * (log_order or 0), "missing": []},
            {"sweep": "rebinding", "verdict": "unknown", "findings": [], "missing": []},
        ],
        "rebinding": [{"engine": "rearm", "flips": [], "divergence": None, "whole": None}],
    }
    if flips is None:
        found["sweeps"][1]["missing"] = [f"a replay by {ENGINE}: the capture lacks its payloads"]
    else:
        end = {"output": None, "event_id": None, "divergence": None, **whole}
        found["rebinding"].append({"engine": ENGINE, "flips": [{}] * flips, "divergence": None, "whole": end})
    return found


@pytest.fixture
def folder(tmp_path: Path) -> StormFolder:
    return StormFolder.create(parse_plan(PLAN, "small.yaml"), tmp_path)


def keep(folder: StormFolder, number: int, outcome: Outcome, row: RunRow, cell: Cell = CELL) -> Attempt:
    found = capture(tiny_events(1))
    run_id = f"wrun_{number}"
    log = type(found.log)([replace(event, run_id=run_id) for event in found.log], run_id)
    write_capture(Capture("", log, found.evidence, row), folder.path)
    attempt = Attempt(cell, number, run_id, outcome)
    folder.record(attempt)
    return attempt


OUTPUT = {"ledger": [1, 2]}
DONE = RunRow("completed", output=OUTPUT)
GIVEN_UP = RunRow("failed", error_code="CORRUPTED_EVENT_LOG", error_message=PRINTED)


def account(folder: StormFolder) -> list[str]:
    """A storm of six runs, of which the real engine says what there is to say."""
    attempts = [
        keep(folder, 1, Outcome.COMPLETED, DONE),
        keep(folder, 2, Outcome.COMPLETED, DONE),
        keep(folder, 3, Outcome.COMPLETED, DONE),
        keep(folder, 4, Outcome.CORRUPTED, GIVEN_UP),
        keep(folder, 5, Outcome.CORRUPTED, GIVEN_UP),
        keep(folder, 6, Outcome.COMPLETED, DONE),
        Attempt(CELL, 7, None, Outcome.INFRA),
    ]
    same, other = digest_value(OUTPUT), digest_value("other")
    logs = [
        swept("wrun_1", 0, 0, output=same),
        swept("wrun_2", 3, 2, output=same),
        swept("wrun_3", 1, 0, output=other),
        swept("wrun_4", 0, 1, event_id="evnt_7", divergence=TEXT),
        swept("wrun_5", 0, 1, event_id="evnt_6", divergence=TEXT),
        swept("wrun_6", None, None),
    ]
    folder.write_json("sweeps.json", {"schema": "stormctl.sweep/1", "logs": logs, "unreadable": []})
    return list(account_of_replays(folder, attempts, lambda _cell: ("rearm", ENGINE)))


class TestWhatItMadeOfTheRuns:
    def test_is_counted_by_cell_and_engine(self, folder: StormFolder) -> None:
        account(folder)
        document = json.loads((folder.path / "replays.json").read_text())
        assert document["schema"] == "stormctl.replays/1"
        (row,) = document["cells"]
        assert {key: row[key] for key in ("condition", "engine")} == {"condition": CELL.condition, "engine": ENGINE}
        counts = {key: value for key, value in row.items() if key not in asdict(CELL) and key != "engine"}
        assert counts == {
            "completed": 4, "replayed": 3, "flips": 2, "judged": 3, "log_order": 1, "apart": 1,
            "outputs": 3, "output": 2, "corrupted": 2, "texts": 2, "text": 1,
        }  # fmt: skip
        assert [one["as_recorded"] for one in document["logs"]] == [True, True, False, True, False, None]

    def test_what_ends_otherwise_is_told_with_why(self, folder: StormFolder) -> None:
        told = account(folder)
        assert [text.partition(" (")[0] for text in told] == [f"{ENGINE} on wrun_{number}" for number in (3, 5, 6)]
        assert told[0].endswith("the run completed, and its replay gives another output")
        assert "the SDK printed" in told[1]  # another event, although the text is the same
        assert told[2].endswith("not replayed: the capture lacks its payloads")

    def test_without_a_real_engine_there_is_no_account(self, folder: StormFolder) -> None:
        attempts = [keep(folder, 1, Outcome.COMPLETED, DONE)]
        folder.write_json("sweeps.json", {"schema": "stormctl.sweep/1", "logs": [swept("wrun_1", 0, 0)]})
        assert list(account_of_replays(folder, attempts, lambda _cell: ("rearm",))) == []
        assert not (folder.path / "replays.json").exists()
        assert replayed(folder.path) == ()

    def test_the_storms_table_shows_it_in_80_columns(self, folder: StormFolder) -> None:
        account(folder)
        console = Console(file=io.StringIO(), width=80, force_terminal=False)
        render_storm(load_artefact(folder.path), console)
        lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
        head = next(line for line in lines if line.startswith("replayed by"))
        row = next(line for line in lines if line.strip().startswith(ENGINE))
        assert head.split() == "replayed by flips log-order same text same output".split()
        assert row.split() == f"{ENGINE} 2/3 of 4, 1 apart 1/3 of 4 1/2 2/3 of 4".split()
        assert max(map(len, (head, row))) <= 80

    def test_the_summary_has_it_too(self, folder: StormFolder) -> None:
        account(folder)
        text = summary_text(load_artefact(folder.path))
        assert f"{ENGINE} | 2/3 of 4, 1 apart | 1/3 of 4 | 1/2 | 2/3 of 4 |" in text

    @pytest.mark.parametrize("damage", ["", "[]", '{"cells": [{}]}', '{"cells": 3}'])
    def test_a_damaged_account_has_no_table(self, folder: StormFolder, damage: str) -> None:
        (folder.path / "replays.json").write_text(damage)
        assert replayed(folder.path) == ()
