"""An application as somebody else would run one, for the tests of the target url: plain HTTP on loopback, and below it
one of our own stores with our own runtime, in a thread of its own.

    with Shop(tmp_path / "data") as shop:
        shop.document()          # what its file would say
        shop.answers["start"] = Odd(500)
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ulid import ULID

from stormctl.engine.generations import generation
from stormctl.readers.worldlocal import read_run
from stormctl.runtime.rules import Rules
from stormctl.storm.embedded import EmbeddedRun
from stormctl.storm.worker import CellWorker, serve
from stormctl.workloads.registry import workload
from stormctl.worlds.open import open_world

SECRET = "s3cret-of-the-shop"
SCALE = 0.02


@dataclass(frozen=True)
class Odd:
    """An answer that the file does not announce."""

    status: int
    body: bytes = b""
    kind: str = "text/plain"
    times: int = 1_000_000


HTML = Odd(404, b"<!doctype html><title>Not here</title>", "text/html; charset=utf-8")


@dataclass
class Shop:
    """The app. ``asked`` is every request that came, by route; ``inputs`` what runs were begun with."""

    folder: Path
    scenario: str = "hook-storm"
    answers: dict[str, Odd] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    slow_s: float = 0.0

    def __enter__(self) -> Shop:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._do(self._open())
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"shop": self}))
        self._server.daemon_threads = False  # so that leaving waits for what is in hand
        self._serving = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._serving.start()
        self.port = self._server.server_address[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def leave(self) -> None:
        """Stop listening, as an app that ended."""
        if self._serving.is_alive():
            self._server.shutdown()
            self._serving.join(5)
            self._server.server_close()

    def document(self, **changes: Any) -> dict[str, Any]:
        """Its file."""
        found = {
            "name": "shop",
            "url": f"http://127.0.0.1:{self.port}",
            "input": "stormctl",
            "start": {
                "path": "/storms",
                "body": {"workflow": "{workflow}", "input": "{input}"},
                "run_id": "data.run",
            },
            "resume": {"path": "/resume", "body": {"token": "{token}", "payload": "{payload}"}},
            "cancel": {"path": "/cancel/{run}"},
            "patience": "400ms",
            "log": {"folder": str(self.folder)},
            **changes,
        }
        return {key: value for key, value in found.items() if value is not None}

    # -- what it answers ----------------------------------------------------------------------------------------------

    def answer(self, method: str, target: str, body: Any, headers: Any) -> tuple[int, Any]:
        url = urlsplit(target)
        where, _, rest = url.path.strip("/").partition("/")
        route = {"storms": "start", "runs": "status", "events": "events"}.get(where, where)
        self.asked.append(f"{method} {target}")
        if route in self.answers:
            odd = self.answers[route]
            if odd.times:
                self.answers[route] = Odd(odd.status, odd.body, odd.kind, odd.times - 1)
                return odd.status, odd
        if route == "start" and headers.get("authorization") not in (None, f"Bearer {SECRET}"):
            return 401, {"error": "who are you?"}
        match route:
            case "start":
                self.inputs.append((body["workflow"], body["input"]))
                run = EmbeddedRun(self._world, f"wrun_{ULID()}", self.scenario)
                self._do(run.begin(workload(self.scenario).parse_input(body["input"])))
                return 200, {"data": {"run": run.run_id}}
            case "resume":
                time.sleep(self.slow_s)
                if self.slow_s:
                    return 200, None
                done = self._do(EmbeddedRun(self._world, "").resume(body["token"], body["payload"]))
                return (200, None) if done else (404, {"error": "no such hook"})
            case "hook":
                row = self._do(self._world.hook(parse_qs(url.query)["token"][0]))
                return (404, {}) if row is None else (200, {"hookId": row.correlation_id, "runId": row.run_id})
            case "status":
                row = self._do(self._world.run(rest))
                if row is None:
                    return 404, {"error": "no such run"}
                return 200, {"status": row.status, "errorCode": row.error_code, "error": row.error_message}
            case "cancel":
                self._do(EmbeddedRun(self._world, rest).cancel("asked to"))
                return 204, None
            case "events":
                return 200, self._page(rest, parse_qs(url.query))
            case _:
                return 404, {"error": f"no route {url.path}"}

    def _page(self, run_id: str, query: dict[str, list[str]]) -> dict[str, Any]:
        """Seven events at a time, as they lie in the store's files."""
        order = [event.event_id for event in read_run(self.folder, run_id).log]
        at = int(query.get("cursor", ["0"])[0] or 0)
        files = [self.folder / "events" / f"{run_id}-{event_id}.json" for event_id in order[at : at + 7]]
        more = at + 7 < len(order)
        return {
            "data": [json.loads(file.read_bytes()) for file in files],
            "hasMore": more,
            "cursor": str(at + 7) if more else None,
        }

    # -- what it runs on ----------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        self._world = open_world("local", self.folder, "seq-final", storage_scale=0.0)
        rules = Rules(generation=generation("rearm")).scaled(SCALE)
        worker = CellWorker(self._world, rules, workload(self.scenario), lambda _row: None)
        self._working = asyncio.create_task(serve([worker]))

    async def _close(self) -> None:
        self._working.cancel()
        await asyncio.gather(self._working, return_exceptions=True)
        await self._world.close()

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)


class _Handler(BaseHTTPRequestHandler):
    shop: Shop
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        length = int(self.headers.get("content-length", 0))
        raw = self.rfile.read(length)
        status, answer = self.shop.answer(self.command, self.path, json.loads(raw) if raw else None, self.headers)
        if isinstance(answer, Odd):
            kind, body = answer.kind, answer.body
        else:
            kind, body = "application/json", b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        if status != 204:
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if status != 204:
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = _serve

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keep quiet."""
