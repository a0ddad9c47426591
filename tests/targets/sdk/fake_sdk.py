"""A server of the SDK played in Python: the control routes over real HTTP, and a store of files as world-local has it.

    sdk = FakeSdk()
    SdkTarget(ensure=sdk.ensure, start=sdk.start)

Its one workflow is a hook-storm of one round and two branches. ``outcome`` says how its runs end; the rest of its
knobs make it sick.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from stormctl.targets.sdk.host import Faults, Host, HostDied
from stormctl.targets.sdk.projects import Project
from stormctl.times import iso

FIRST = "01M8PJ0FZ42CHC965XBY0K"
DIVERGED = (
    "Workflow replay diverged 4 times after 3 recovery replays; latest divergent event was {event}. Last divergence: "
    'Replay divergence: wait_completed event for wait_X has resumeAt "2026-11-30T15:35:41.877Z", but the current wait '
    'consumer expects "2026-11-30T15:35:41.882Z"'
)


def devalue(value: Any) -> dict[str, str]:
    """A JSON value as the SDK writes its bytes (strings, numbers, lists and objects)."""
    flat: list[Any] = []

    def put(one: Any) -> int:
        place = len(flat)
        flat.append(None)
        if isinstance(one, Mapping):
            flat[place] = {key: put(each) for key, each in one.items()}
        elif isinstance(one, list):
            flat[place] = [put(each) for each in one]
        else:
            flat[place] = one
        return place

    put(value)
    data = base64.b64encode(b"devl" + json.dumps(flat).encode()).decode()
    return {"__type": "Uint8Array", "data": data}


@dataclass
class FakeSdk:
    """What all its servers have in common."""

    outcome: str = "completed"
    corrupts: tuple[str, ...] = ()  # versions whose runs end corrupted, whatever the outcome says
    version: str = "4.8.9"
    attributes: bool = False
    watchdog_ms: int = 150
    started: list[dict[str, Any]] = field(default_factory=list)
    resumed: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    most_resumes: int = 0
    hosts: list[FakeHost] = field(default_factory=list)
    ensured: list[tuple[str, str]] = field(default_factory=list)
    boots_fail: bool = False
    resume_takes_s: float = 0.0

    def ensure(self, version: str, world: str, *, tell: Any) -> Project:
        self.ensured.append((version, world))
        tell(f"installing workflow {version}")
        return Project(
            version=version,
            world=world,
            folder=Path("/nowhere"),
            world_version="1",
            spec_version=3,
            exact=True,
            light=True,
            attributes=self.attributes,
            node="20",
            templates="x",
            made="now",
        )

    async def start(
        self, project: Project, folder: Path, *, dsn: str | None, environment: Mapping[str, str], faults: Faults
    ) -> Host:
        host = FakeHost(project, folder, 2.0, 5.0, dict(environment), "secret")
        host.sdk, host.faults = self, faults
        (folder / "data").mkdir(parents=True)
        await host._boot()
        self.hosts.append(host)
        return host


class FakeHost(Host):
    """A host whose server is a task of this process."""

    sdk: FakeSdk
    faults: Faults

    async def _boot(self) -> None:
        if self.sdk.boots_fail:
            raise HostDied("the server ended with exit code 1; it said last: no leg to stand on", remedy="Read it.")
        self._alive = True
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.lives += 1
        with self.log.open("a") as log:
            log.write(f"life {self.lives}\n")

    async def die(self, last: str) -> None:
        with self.log.open("a") as log:
            log.write(f"{last}\n")
        await self.kill()

    async def kill(self) -> None:
        if getattr(self, "_alive", False):
            self._alive = False
            self._server.close()

    async def stop(self) -> None:
        await self.kill()

    async def _notice_death(self) -> None:
        """It is told at once."""

    def _died(self) -> HostDied:
        return HostDied("the server ended", remedy="Read its log.")

    @property
    def pid(self) -> int:
        return 4711

    @property
    def is_alive(self) -> bool:
        return getattr(self, "_alive", False)

    # -- the server ---------------------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
        body = json.loads(await reader.readexactly(length) or b"{}")
        method, target, _ = head.split(" ", 2)
        url = urlsplit(target)
        assert "x-stormctl-token: secret" in head
        status, answer = await self._answer(f"{method} {url.path}", body, parse_qs(url.query))
        text = json.dumps(answer).encode()
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: {len(text)}\r\n\r\n".encode() + text)
        with contextlib.suppress(OSError):
            await writer.drain()
            writer.close()

    async def _answer(self, route: str, body: Any, query: dict[str, list[str]]) -> tuple[int, Any]:
        match route:
            case "POST /start":
                self.sdk.started.append(body["input"])
                run = FakeRun(self, len(self.sdk.started), body["input"])
                self._run = run
                await run.begin()
                return 200, {"runId": run.run_id}
            case "POST /resume":
                self.sdk.resumed.append(body["token"])
                self._in_hand = getattr(self, "_in_hand", 0) + 1
                self.sdk.most_resumes = max(self.sdk.most_resumes, self._in_hand)
                await asyncio.sleep(self.sdk.resume_takes_s)
                self._in_hand -= 1
                return (200, {"sent": True}) if self._run.receive(body["token"]) else (404, {"gone": True})
            case "GET /hook":
                found = self._run.hooks.get(query["token"][0])
                return (404, {"gone": True}) if found is None else (200, {"hookId": found, "runId": self._run.run_id})
            case "POST /cancel":
                self.sdk.cancelled.append(body["runId"])
                return 200, {"cancelled": True}
            case _:
                return 404, {"error": f"there is no {route}"}


class FakeRun:
    """One run: two hooks and two waits, one branch resumed and one late, then its end; written as world-local does."""

    def __init__(self, host: FakeHost, number: int, input: Mapping[str, Any]) -> None:
        self.host = host
        self.sdk = host.sdk
        self.run_id = f"wrun_01M8PJ0FYCFDAWV9MFDZEAW{number:03d}"
        self.token = input["token"]
        self.hooks: dict[str, str] = {}
        self._number = 0
        for folder in ("runs", "events"):
            (host.data / folder).mkdir(exist_ok=True)
        (host.data / "version.txt").write_text("@workflow/world-local@fake")

    async def begin(self) -> None:
        self.event("run_created", {"workflowName": self._workflow(), "input": devalue([{"token": self.token}])})
        self.event("run_started", {})
        self.row("running")
        ends = iso(round(time.time() * 1000) + self.sdk.watchdog_ms)
        for branch in range(2):
            hook = f"hook_{FIRST}{branch:04d}"
            self.hooks[f"{self.token}:0:{branch}"] = hook
            self.event("hook_created", {"token": f"{self.token}:0:{branch}"}, hook)
        for branch in range(2):
            self.event("wait_created", {"resumeAt": ends}, f"wait_{FIRST}{branch + 2:04d}")
        told = {"runId": self.run_id, "start": 1.0, "end": 2.0, "delivery": 2, "error": None}
        last = f"evnt_01M8PJ0G0H0000000000{self._number:06d}"
        self.traced({**told, "op": "events.list", "cursor": None, "order": "asc", "events": self._number, "last": last})
        self.traced({**told, "op": "delivery", "beside": 1, "result": 200})
        self.traced({**told, "op": "delivery", "beside": 2, "duplicate": True, "result": 200})
        if self.sdk.outcome != "stuck":
            self._ending = asyncio.create_task(self.end())

    async def end(self) -> None:
        await asyncio.sleep(self.sdk.watchdog_ms / 1000 + 0.15)
        if not self.host.is_alive:
            return
        if self.sdk.outcome == "corrupted" or self.host.project.version in self.sdk.corrupts:
            text = DIVERGED.format(event=self.event("wait_completed", {}, f"wait_{FIRST}0003"))
            error = {"message": text, "code": "CORRUPTED_EVENT_LOG"}
            self.event("run_failed", {"error": error, "errorCode": "CORRUPTED_EVENT_LOG"})
            self.row("failed", error=error)
        else:
            ledger = {
                "round": 0,
                "branches": [
                    {"round": 0, "index": 0, "winner": "settled"},
                    {"round": 0, "index": 1, "winner": "watchdog"},
                ],
                "stragglers": 1,
                "reconciled": 3,
            }
            output = devalue({"runId": self.run_id, "rounds": 1, "width": 2, "ledger": [ledger]})
            self.event("run_completed", {"output": output})
            self.row("completed", output=output)

    def receive(self, token: str) -> bool:
        if token not in self.hooks:
            return False
        self.event("hook_received", {"token": token}, self.hooks[token])
        return True

    def event(self, type: str, data: Mapping[str, Any], entity: str | None = None) -> str:
        self._number += 1
        now = round(time.time() * 1000)
        event_id = f"evnt_01M8PJ0G0H0000000000{self._number:06d}"
        body = {
            "eventType": type,
            "specVersion": 3,
            "runId": self.run_id,
            "eventId": event_id,
            "createdAt": iso(now),
            "eventData": dict(data),
            **({} if entity is None else {"correlationId": entity}),
        }
        self._write(self.host.data / "events" / f"{self.run_id}-{event_id}.json", body)
        call = {
            "op": "events.create",
            "runId": self.run_id,
            "type": type,
            "correlationId": entity,
            "start": now - 0.25,
            "end": now + 5.0,
            "result": event_id,
            "error": None,
            "events": None,
            "delivery": None if type in ("run_created", "hook_received") else self._number,
        }
        self.traced(call)
        return event_id

    def traced(self, call: Mapping[str, Any]) -> None:
        with self.host.trace.open("a") as trace:
            trace.write(json.dumps(call) + "\n")

    def row(self, status: str, **more: Any) -> None:
        row = {"runId": self.run_id, "status": status, "workflowName": self._workflow(), "specVersion": 3, **more}
        self._write(self.host.data / "runs" / f"{self.run_id}.json", row)

    def _workflow(self) -> str:
        return "workflow//./workflows/hook_storm//hookStormReproWorkflow"

    @staticmethod
    def _write(path: Path, body: Mapping[str, Any]) -> None:
        part = path.with_suffix(".part")
        part.write_text(json.dumps(body))
        part.rename(path)
