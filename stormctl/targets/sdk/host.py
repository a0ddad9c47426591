"""The process that serves a project: started, asked, stopped or killed by its id, and never left behind.

    async with await Host.start(project, folder) as host:
        run_id = await host.start_run("hook-storm", input)
        await host.resume(token, {"index": 0})

It lives in a folder of its own: ``data`` (the store of world-local), ``host.log`` (what it said, all its lives), and
``trace.ndjson`` (what its world was asked, where that is wanted). It ends when this process does, even by SIGKILL,
because its standard input closes then. A world on local files belongs to one host at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from stormctl.errors import StoreFailure, StormctlError, UsageError
from stormctl.targets.sdk import client
from stormctl.targets.sdk.answers import Health, HookFound, RunState
from stormctl.targets.sdk.dsn import node_url
from stormctl.targets.sdk.faults import Faults
from stormctl.targets.sdk.node import find_tools, surroundings
from stormctl.targets.sdk.pins import POSTGRES
from stormctl.targets.sdk.projects import Project
from stormctl.targets.sdk.workflows import sdk_input, twin

__all__ = ["Faults", "Health", "HookFound", "Host", "HostBusy", "HostDied", "HostRefused", "RunState"]

BOOT_SECONDS = 60.0
CALL_SECONDS = 10.0
#: how long a host has to close its world, and then to obey SIGTERM
STOP_SECONDS = 6.0
TERM_SECONDS = 3.0
#: how long the end of a process takes to be noticed
DEATH_SECONDS = 0.5
TAIL_LINES = 12

_POLL_SECONDS = 0.02
_TAIL_BYTES = 16_384


class HostDied(StormctlError):
    """The server process ended by itself, or was killed: what it said last is in the message."""


class HostBusy(StormctlError):
    """The server runs and did not answer in time: a run that diverges floods its own queue."""


class HostRefused(StormctlError):
    """The server answered that it cannot do what was asked. ``status`` is its HTTP status."""

    def __init__(self, message: str, *, remedy: str, status: int = 0) -> None:
        super().__init__(message, remedy=remedy)
        self.status = status


@dataclass(slots=True)
class Host:
    """One server process of a project, or the next one after a restart. Make it with :meth:`start`."""

    project: Project
    folder: Path
    call_s: float
    boot_s: float
    _environment: Mapping[str, str] = field(repr=False)
    _token: str = field(repr=False)
    port: int = 0
    lives: int = 0
    _process: asyncio.subprocess.Process | None = field(default=None, repr=False)

    # -- beginning and end ------------------------------------------------------------------------------------------

    @classmethod
    async def start(
        cls,
        project: Project,
        folder: Path,
        *,
        dsn: str | None = None,
        environment: Mapping[str, str] | None = None,
        faults: Faults | None = None,
        boot_s: float = BOOT_SECONDS,
        call_s: float = CALL_SECONDS,
    ) -> Host:
        """Start a server in a folder, which is made where it is not there, and wait until it serves.

        On world-postgres it needs the ``dsn`` of a database that :meth:`Project.migrate` has prepared. ``environment``
        are the SDK's own switches (WORKFLOW_LOG_ORDER_DRAWS=0, ...); none is taken over from this process's own.
        HostDied when it does not come up.
        """
        if (dsn is None) == (project.world == POSTGRES):
            wants = "needs the DSN of a database" if dsn is None else "is on local files and takes no DSN"
            raise UsageError(f"a host of {project.name} {wants}", remedy="Give a DSN for the world postgres only.")
        folder = folder.absolute()
        try:
            (folder / "data").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreFailure(
                f"{folder} cannot be made: {error.strerror or error}", remedy="Make room, or choose another folder."
            ) from None
        token = secrets.token_hex(16)
        told = {
            "NODE_ENV": "production",
            "WORKFLOW_TARGET_WORLD": "",
            **(environment or {}),
            **(faults or Faults()).environment(folder / "trace.ndjson"),
            "WORKFLOW_LOCAL_DATA_DIR": str(folder / "data"),
            "STORMCTL_HOST_TOKEN": token,
            "STORMCTL_HOST_READY": str(folder / "ready.json"),
        }
        if dsn is not None:
            told["WORKFLOW_POSTGRES_URL"] = node_url(dsn)
        host = cls(project, folder, call_s, boot_s, told, token)
        await host._boot()
        return host

    async def restart(self) -> None:
        """Start it again on the same store, once it was stopped or killed or has died. The port is another."""
        if self.is_alive:
            raise UsageError(f"the host of {self.project.name} is running", remedy="Stop or kill it first.")
        await self._boot()

    async def stop(self) -> None:
        """Let it close its world and end; SIGTERM, then SIGKILL for one that does not. Does nothing to a dead one."""
        if self.is_alive and not (await self._told_to_stop() and await self._ends_within(STOP_SECONDS)):
            self._send(signal.SIGTERM)
            if not await self._ends_within(TERM_SECONDS):
                self._send(signal.SIGKILL)
        await self._buried()

    async def kill(self) -> None:
        """SIGKILL, with everything that it has in hand. Does nothing to a dead one."""
        if self.is_alive:
            self._send(signal.SIGKILL)
        await self._buried()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # -- what is known of it ----------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The id of its process, the last one's if it is dead."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.returncode is None

    @property
    def data(self) -> Path:
        """The store's folder, of world-local."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """What it said, in all its lives."""
        return self.folder / "host.log"

    @property
    def trace(self) -> Path:
        """What its world was asked, as NDJSON, if a trace was wanted."""
        return self.folder / "trace.ndjson"

    def last_lines(self, count: int = TAIL_LINES) -> str:
        """The end of its log."""
        try:
            with open(self.log, "rb") as log:
                log.seek(max(0, os.path.getsize(self.log) - _TAIL_BYTES))
                text = log.read().decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join([line for line in text.splitlines() if line.strip()][-count:])

    # -- what it is asked -------------------------------------------------------------------------------------------

    async def healthz(self) -> Health:
        """What it says of itself."""
        return Health.of(await self._get("/healthz"))

    async def start_run(self, workload: str, input: Any) -> str:
        """Start a run of a scenario with our input (an instance of its input type): the run's id."""
        body = {"workflow": twin(workload).workflow_name, "input": sdk_input(workload, input)}
        return str((await self._post("/start", body))["runId"])

    async def resume(self, token: str, payload: object) -> bool:
        """Send a payload to a hook: False when it is not there, yet or any more, or its run has ended."""
        answer = await self._ask("POST", "/resume", body={"token": token, "payload": payload})
        return not _gone(answer) and bool(self._good(answer, "/resume")["sent"])

    async def hook(self, token: str) -> HookFound | None:
        """The live hook with a token."""
        answer = await self._ask("GET", "/hook", query={"token": token})
        if _gone(answer):
            return None
        found = self._good(answer, "/hook")
        return HookFound(str(found["hookId"]), str(found["runId"]))

    async def run(self, run_id: str) -> RunState | None:
        """A run's state; None where there is no such run."""
        answer = await self._ask("GET", "/run", query={"id": run_id})
        if _gone(answer):
            return None
        found = self._good(answer, "/run")
        return RunState(str(found["status"]), found["errorCode"], found["error"])

    async def cancel(self, run_id: str) -> bool:
        """End a run that nobody waits for any more: False when it is not there, or has ended."""
        answer = await self._ask("POST", "/cancel", body={"runId": run_id})
        return not _gone(answer) and bool(self._good(answer, "/cancel")["cancelled"])

    async def hold(self, op: str, ms: float, match: str = "") -> None:
        """Hold the next call of ``op`` (``events.create``, ``events.list``, ``queue``, ...) whose run, event type,
        correlation id or name contains ``match`` back for ``ms``, before it is made."""
        await self._post("/hold", {"op": op, "match": match, "ms": ms})

    # -- inside -----------------------------------------------------------------------------------------------------

    async def _boot(self) -> None:
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        self.port = 0
        node = await asyncio.to_thread(find_tools)
        try:
            with open(self.log, "ab") as log:
                self._process = await asyncio.create_subprocess_exec(
                    node.node,
                    "host.mjs",
                    cwd=self.project.folder,
                    stdin=asyncio.subprocess.PIPE,  # never written to: it closes when we are gone
                    stdout=log,
                    stderr=log,
                    env={**surroundings(), **self._environment},
                    start_new_session=True,  # Ctrl-C is the driver's, who then stops it in good order
                )
        except OSError as error:
            raise StoreFailure(
                f"the server of {self.project.name} cannot be started: {error}",
                remedy=f"See that {self.project.folder} and {self.folder} are there.",
            ) from None
        self.lives += 1
        try:
            async with asyncio.timeout(self.boot_s):
                self.port = await self._wait_until_ready(ready)
        except TimeoutError:
            await self.kill()
            raise HostBusy(
                f"the server of {self.project.name} did not come up within {self.boot_s:.0f} s;"
                f" it said last: {self._tail()}",
                remedy=f"Read {self.log}, or give the machine less to do.",
            ) from None
        except BaseException:
            await self.kill()
            raise

    async def _wait_until_ready(self, ready: Path) -> int:
        while True:
            with contextlib.suppress(OSError, ValueError):
                return int(json.loads(ready.read_bytes())["port"])
            if not self.is_alive:
                raise self._died()
            await asyncio.sleep(_POLL_SECONDS)

    async def _get(self, path: str) -> dict[str, Any]:
        return self._good(await self._ask("GET", path), path)

    async def _post(self, path: str, body: object) -> dict[str, Any]:
        return self._good(await self._ask("POST", path, body=body), path)

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: object = None,
        timeout_s: float | None = None,
    ) -> client.Answer:
        limit = self.call_s if timeout_s is None else timeout_s
        if not self.port:
            raise HostBusy(f"the server of {self.project.name} is still coming up", remedy="Wait until it has.")
        try:
            return await client.request(
                self.port, method, path, token=self._token, timeout_s=limit, query=query, body=body
            )
        except TimeoutError:
            if not self.is_alive:
                raise self._died() from None
            raise HostBusy(
                f"the server of {self.project.name} (process {self.pid}) did not answer {path} within {limit:g} s",
                remedy="It is alive and has too much in hand: read its store from outside, and press it less.",
            ) from None
        except (OSError, client.BadAnswer) as error:
            await self._notice_death()
            if not self.is_alive:
                raise self._died() from None
            raise HostBusy(
                f"the server of {self.project.name} (process {self.pid}) broke {path} off: {error}",
                remedy=f"Read {self.log}.",
            ) from None

    def _good(self, answer: client.Answer, path: str) -> dict[str, Any]:
        if answer.status == 200:
            return answer.value
        name = answer.value.get("name")
        words = f"{name}: {answer.value.get('error')}" if name else str(answer.value.get("error"))
        raise HostRefused(
            f"the server of {self.project.name} refused {path} ({answer.status}): {words[:500]}",
            remedy=f"Read {self.log}.",
            status=answer.status,
        )

    def _died(self) -> HostDied:
        code = None if self._process is None else self._process.returncode
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        return HostDied(
            f"the server of {self.project.name} (process {self.pid}) ended {how}; it said last: {self._tail()}",
            remedy=f"Read {self.log}.",
        )

    def _tail(self) -> str:
        return self.last_lines() or "nothing"

    async def _told_to_stop(self) -> bool:
        try:
            await self._ask("POST", "/stop", body={}, timeout_s=STOP_SECONDS / 2)
        except StormctlError:
            return False  # it has no time for us, or is dead
        return True

    def _send(self, what: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(what)

    async def _ends_within(self, seconds: float) -> bool:
        assert self._process is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._process.wait()), seconds)
        return not self.is_alive

    async def _notice_death(self) -> None:
        """Give the loop the moment that it takes to hear of a child's end."""
        if self._process is not None:
            await self._ends_within(DEATH_SECONDS)

    async def _buried(self) -> None:
        """Wait for the end of a process that cannot live on, and let go of it."""
        if self._process is None:
            return
        await self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
            with contextlib.suppress(OSError):
                await self._process.stdin.wait_closed()


def _gone(answer: client.Answer) -> bool:
    return answer.status == 404 and answer.value.get("gone") is True
