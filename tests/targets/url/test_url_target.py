"""Storms on an app that somebody else runs: what lands, what is kept, and how soon a wrong word in its file is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from stormctl.history import LOG_READ_AT, Capture
from stormctl.readers import open_captures
from stormctl.storm.after import sweep_storm
from stormctl.storm.attempt import Attempt
from stormctl.storm.driver import run_storm
from stormctl.storm.events import AttemptLanded, LogSwept, StormEvent, StormNoted
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.storm.plan import Plan, parse_plan
from stormctl.targets.url.target import UrlTarget
from tests.targets.url.shop import HTML, SCALE, SECRET, Odd, Shop

SMALL: dict[str, Any] = {
    "schema": "stormctl.plan/1",
    "name": "small",
    "seed": 3,
    "target": "url",
    "scenario": "hook-storm",
    "attempts": 2,
    "concurrency": 2,
    "time_scale": SCALE,
    "cap": "2000s",  # 40 s in the plan's time: whatever is told at once is told long before
    "input": {"rounds": 1, "width": 3},
}
AT_ONCE_S = 20.0

EVENTS = {"events": {"path": "/events/{run}?cursor={cursor}", "cursor": "cursor"}}
HOOK = {"path": "/hook?token={token}", "run": "runId"}


def plan(app: Any, **changes: Any) -> Plan:
    return parse_plan({**SMALL, "app": app, **changes}, "small.yaml")


class Storm:
    def __init__(self, tmp_path: Path, plan: Plan, environment: dict[str, str] | None = None) -> None:
        self.plan = plan
        self.folder = StormFolder.create(plan, tmp_path / "out")
        self.target = UrlTarget(plan.apps, environment)
        self.events: list[StormEvent] = []

    async def run(self) -> Storm:
        async with aclosing(run_storm(self.plan, self.folder, target=self.target)) as events:
            async for event in events:
                self.events.append(event)
        return self

    @property
    def attempts(self) -> list[Attempt]:
        return [event.attempt for event in self.events if isinstance(event, AttemptLanded)]

    @property
    def notes(self) -> str:
        return "\n".join(event.text for event in self.events if isinstance(event, StormNoted))

    def captures(self) -> list[Capture]:
        paths = [self.folder.path / "logs" / f"{one.run_id}.ndjson" for one in self.attempts]
        return [one for one in open_captures(paths) if isinstance(one, Capture)]


class TestAWholeStorm:
    @pytest.mark.parametrize("log", [None, EVENTS], ids=["folder", "events"])
    @pytest.mark.parametrize("hook", [None, HOOK], ids=["hooks-by-log", "hooks-by-route"])
    async def test_lands_every_attempt_with_its_log(self, shop: Shop, tmp_path: Path, log: Any, hook: Any) -> None:
        document = shop.document(hook=hook, **({} if log is None else {"log": log}))
        storm = await Storm(tmp_path, plan(document)).run()
        assert [one.outcome for one in storm.attempts] == [Outcome.COMPLETED] * 2, storm.notes
        assert all(one.pressure["resumes_sent"] for one in storm.attempts)
        assert any(one.startswith("GET /hook") for one in shop.asked) == (hook is not None)
        for capture, attempt in zip(storm.captures(), storm.attempts, strict=True):
            assert len(capture.log) == attempt.events
            assert capture.log.ended
            assert capture.run is not None
            assert capture.run.status == "completed"
            assert capture.data["app"] == "shop"
            assert capture.data["generation"] is None
            assert isinstance(capture.data[LOG_READ_AT], int)
        swept = [
            one
            for one in sweep_storm(storm.plan, storm.folder, storm.attempts, storm.target)
            if isinstance(one, LogSwept)
        ]
        assert len(swept) == 2
        judged = {"dense", "id-order", "lifecycle", "roles", "log-order", "ledger"}
        assert not any(judged & set(one.findings) for one in swept)

    async def test_a_status_route_is_asked_where_the_log_has_no_row(self, shop: Shop, tmp_path: Path) -> None:
        document = shop.document(log=EVENTS, status={"path": "/runs/{run}"})
        storm = await Storm(tmp_path, plan(document, attempts=1)).run()
        assert [one.outcome for one in storm.attempts] == [Outcome.COMPLETED]
        assert any(one.startswith("GET /runs/") for one in shop.asked)

    async def test_the_workflow_is_called_what_the_app_calls_it(self, shop: Shop, tmp_path: Path) -> None:
        document = shop.document(workflows={"hook-storm": "checkout"})
        await Storm(tmp_path, plan(document, attempts=1)).run()
        ((name, given),) = shop.inputs
        assert name == "checkout"
        assert given["rounds"] == 1
        assert given["token"].startswith("storm-hook-storm-")

    async def test_with_a_version_its_logs_are_replayed_by_the_generation_that_stands_for_it(
        self, shop: Shop, tmp_path: Path
    ) -> None:
        storm = await Storm(tmp_path, plan(shop.document(version="5.0.0-beta.55"), attempts=1)).run()
        (cell,) = storm.plan.cells
        assert cell.label == "hook-storm/url/shop (workflow 5.0.0-beta.55)/as it runs"
        assert storm.target.sweeps(cell).engines == ("rearm",)
        assert storm.captures()[0].data["generation"] == "rearm"
        told = [one.text for one in sweep_storm(storm.plan, storm.folder, storm.attempts, storm.target)
                if isinstance(one, StormNoted)]  # fmt: skip
        assert told == ["shop (workflow 5.0.0-beta.55): 0 of 1 attempts corrupted, nothing to predict"]

    async def test_a_secret_comes_from_the_environment_and_is_kept_nowhere(self, shop: Shop, tmp_path: Path) -> None:
        document = shop.document(headers={"authorization": "Bearer ${SHOP_TOKEN}"})
        storm = await Storm(tmp_path, plan(document, attempts=1), {"SHOP_TOKEN": SECRET}).run()
        assert [one.outcome for one in storm.attempts] == [Outcome.COMPLETED]
        kept = [file for file in storm.folder.path.rglob("*") if file.is_file()]
        assert kept
        assert not [file for file in kept if SECRET.encode() in file.read_bytes()]
        assert "${SHOP_TOKEN}" in (storm.folder.path / "plan.yaml").read_text()

    async def test_a_run_that_outlives_its_cap_is_stuck_and_cancelled_by_the_apps_route(
        self, shop: Shop, tmp_path: Path
    ) -> None:
        document = shop.document(hook={"path": "/hook?token=nobody{token}"})  # no hook is ever found
        slow = {"rounds": 1, "width": 2, "watchdog_ms": 500_000}
        storm = await Storm(tmp_path, plan(document, attempts=1, cap="100s", input=slow)).run()
        assert storm.attempts[0].outcome.stuck
        assert f"POST /cancel/{storm.attempts[0].run_id}" in shop.asked
        assert storm.captures()[0].evidence.live

    async def test_a_store_that_has_had_no_run_yet_is_one(self, shop: Shop, tmp_path: Path) -> None:
        from stormctl.targets.url.client import AppClient
        from stormctl.targets.url.stores import open_store

        for number, names in enumerate([(), ("version.txt",), ("events", ".locks")]):
            folder = tmp_path / f"young-{number}"
            folder.mkdir()
            for name in names:
                (folder / name).touch() if "." in name[1:] else (folder / name).mkdir()
            app = plan(shop.document(log={"folder": str(folder)})).apps[0]
            assert open_store(app, AppClient(app)).row("wrun_1") is None

    async def test_two_apps_are_two_cells_and_a_sick_one_does_not_hurt_the_other(
        self, shop: Shop, tmp_path: Path
    ) -> None:
        gone = {**shop.document(name="old"), "url": "http://127.0.0.1:1"}
        storm = await Storm(tmp_path, plan([gone, shop.document()], attempts=1)).run()
        assert [one.outcome for one in storm.attempts] == [Outcome.INFRA, Outcome.COMPLETED]


#: what is wrong, what is said of it, and what helps
WRONG: list[tuple[str, Callable[[Shop, Path], dict[str, Any]], str]] = [
    ("not listening", lambda shop, _: shop.document(url="http://127.0.0.1:1"),
     "app shop cannot be reached at http://127.0.0.1:1"),
    ("start is 500", lambda shop, _: _sick(shop, "start", Odd(500, b'{"error": "no stock"}', "application/json")),
     "answered start (POST /storms) with 500: no stock"),
    ("start is an HTML page", lambda shop, _: _sick(shop, "start", HTML),
     "answered start (POST /storms) with 404 and an HTML page"),
    ("start is not JSON", lambda shop, _: _sick(shop, "start", Odd(200, b"started!")),
     "answered start (POST /storms) with 200 and text/plain instead of JSON"),
    ("start redirects", lambda shop, _: _sick(shop, "start", Odd(302)),
     "answered start (POST /storms) with 302"),
    ("no run id", lambda shop, _: _sick(shop, "start", Odd(200, b'{"ok": true}', "application/json")),
     "holds no run_id at 'data.run' but an object with ok"),
    ("not allowed", lambda shop, _: shop.document(headers={"authorization": "Bearer ${WRONG}"}),
     "answered start (POST /storms) with 401: who are you?"),
    ("a variable is not set", lambda shop, _: shop.document(headers={"x-api-key": "${NOT_SET}"}),
     "needs the environment variable NOT_SET, which is not set"),
    ("no store", lambda shop, tmp: shop.document(log={"folder": str(tmp)}),
     "which is no store of a local world"),
    ("a file", lambda shop, tmp: shop.document(log={"folder": __file__}), "which is a file"),
    ("no such database", lambda shop, _: shop.document(log={"postgres": "postgresql://127.0.0.1:1/none"}),
     "no PostgreSQL server listens at postgresql://127.0.0.1:1/none"),
    ("resume is no route", lambda shop, _: shop.document(resume={"path": "/no-such", "body": "{token}", "gone": []}),
     "answered resume (POST /no-such) with 404: no route /no-such"),
    ("resume is an HTML page", lambda shop, _: _sick(shop, "resume", HTML),
     "answered resume (POST /resume) with 404 and an HTML page"),
    ("resume is slow", lambda shop, _: _slow(shop), "did not answer resume (POST /resume) within 0.05 s"),
    ("events are none", lambda shop, _: shop.document(log={"events": "/hook?token={run}"}),
     "answered events (GET /hook?token={run}) with 404"),
    ("events are no list", lambda shop, _: shop.document(log={"events": {"path": "/events/{run}", "list": "rows"}}),
     "returns no list of events"),
    ("events have more", lambda shop, _: shop.document(log={"events": "/events/{run}"}),
     "says that it has more pages"),
]  # fmt: skip


def _sick(shop: Shop, route: str, odd: Odd) -> dict[str, Any]:
    shop.answers[route] = odd
    return shop.document()


def _slow(shop: Shop) -> dict[str, Any]:
    shop.slow_s = 0.5
    return shop.document(resume={**shop.document()["resume"], "timeout": "50ms"})


@pytest.mark.parametrize(("make", "said"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
async def test_what_is_wrong_is_told_in_one_sentence_and_at_once(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any, said: str
) -> None:
    monkeypatch.setattr("stormctl.targets.url.run.MISSING_SECONDS", 1.0)
    began = time.monotonic()
    storm = await Storm(tmp_path, plan(make(shop, tmp_path), input={"rounds": 3, "width": 3}), {"WRONG": "x"}).run()
    assert time.monotonic() - began < AT_ONCE_S
    assert [one.outcome for one in storm.attempts] == [Outcome.INFRA] * 2
    messages = {one.error_message or "" for one in storm.attempts}
    assert any(said in message for message in messages), messages
    assert said in storm.notes
    assert not any("Traceback" in message or "\n" in message for message in messages)


class TestAnAppThatGoesAway:
    async def test_costs_the_rest_of_its_cell_and_is_told_once(self, shop: Shop, tmp_path: Path) -> None:
        slow = {"rounds": 1, "width": 2, "watchdog_ms": 500_000}
        storm = Storm(tmp_path, plan(shop.document(), input=slow, attempts=3))
        running = asyncio.create_task(storm.run())
        while len(shop.inputs) < 2:
            await asyncio.sleep(0.02)
        await asyncio.to_thread(shop.leave)
        await asyncio.wait_for(running, AT_ONCE_S)
        assert [one.outcome for one in storm.attempts] == [Outcome.INFRA] * 3
        assert storm.notes.count("cannot be reached") == 1
        assert "Nothing more is measured in this cell." in storm.notes

    async def test_a_route_that_fails_now_and_then_costs_nothing(self, shop: Shop, tmp_path: Path) -> None:
        shop.answers["resume"] = Odd(503, b"{}", "application/json", times=2)
        storm = await Storm(tmp_path, plan(shop.document(), attempts=1)).run()
        assert storm.attempts[0].outcome is Outcome.COMPLETED
        assert storm.attempts[0].pressure["resumes_failed"] == 2
