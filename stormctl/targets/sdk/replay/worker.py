"""One worker: a Node process that holds a bundle, spoken to in lines of JSON, and ended by its process id.

It works in a throw-away folder, the only place that it may write to. Node's permission flag sees to that where this
node has it; the scripts replace the functions besides, so that an attempt can be named. The process ends when its input
closes, and when its parent is gone, even out of an endless loop.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import IO, Any

from stormctl.errors import StormctlError
from stormctl.storm.real_name import SET_BY_REPLAY
from stormctl.targets.sdk.node import last_line, surroundings
from stormctl.targets.sdk.replay.bundle import GIVE_A_BUNDLE, Bundle, BundleFault

MAX_LINE = 64 << 20
#: how long a process that was killed may take to be gone
_GONE_S = 5.0
_READ = 1 << 18
_TAIL = 16_384
_OUT_OF_MEMORY = re.compile(r"heap out of memory|Reached heap limit|Allocation failed", re.IGNORECASE)
#: what would change Node itself
_NOT_OURS = ("NODE_OPTIONS", "NODE_PATH", "NODE_V8_COVERAGE", "NODE_DEBUG", "NODE_EXTRA_CA_CERTS")
#: The engine's own switches. A body must not begin before its claim is answered, and what spares a replay some work by
#: remembering an earlier one is off.
_SWITCHES = {
    **SET_BY_REPLAY,
    "NODE_ENV": "production",
    "PORT": "4799",  # only shapes the address that a workflow can ask for
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a worker may take.

    ``pass_s`` and ``event_s`` are seconds: a pass may take the first, and the second for each event of the log.
    ``load_s`` is for loading the bundle. ``creates`` bounds the events that one pass may ask for, ``memory_mb`` the
    engine's heap. ``kills`` is how many passes in a row may have to be stopped before the bundle is given up.
    """

    pass_s: float = 6.0
    event_s: float = 0.005
    load_s: float = 15.0
    creates: int = 10_000
    memory_mb: int = 1024
    kills: int = 2

    def for_pass(self, events: int) -> float:
        """How many seconds a pass over a log of that many events may take."""
        return self.pass_s + self.event_s * events


LIMITS = Limits()


class WorkerDied(StormctlError):
    """The process ended by itself. ``str()`` says how."""


class Worker:
    """One process. It is loading until :attr:`ready`; what it was given meanwhile waits in its pipe.

    Nothing here blocks but :meth:`end`: the pool asks which of its workers can be read from or written to.
    """

    def __init__(self, node: tuple[str, str], bundle: Bundle, limits: Limits, environment: Mapping[str, str]) -> None:
        """``node`` is its path and its version."""
        self._bundle = bundle
        self.folder = Path(tempfile.mkdtemp(prefix="stormctl-replay-")).resolve()
        self.ready = False
        self.closed = False
        #: the records that it holds, oldest first, by their digests
        self.records: deque[str] = deque()
        self._out = bytearray()
        self._in = bytearray()
        try:
            self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
            self._process = self._start(*node, limits, environment)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.stdin, self.stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self.stdin.fileno(), False)
        os.set_blocking(self.stdout.fileno(), False)
        #: how many seconds it was waited for, in what it is doing now
        self.waited_s = 0.0

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process.pid

    # -- talking ------------------------------------------------------------------------------------------------------

    @property
    def has_more_to_write(self) -> bool:
        """Whether something waits for room in its pipe."""
        return bool(self._out)

    def send(self, *lines: bytes) -> None:
        """Give it lines, as far as its pipe takes them now."""
        for line in lines:
            self._out += line + b"\n"
        self.write()

    def write(self) -> None:
        """Write on what waits. One that is gone shows when it is read from."""
        while self._out:
            try:
                del self._out[: os.write(self.stdin.fileno(), self._out[:_READ])]
            except BlockingIOError:
                return
            except OSError:
                self._out.clear()

    def read(self) -> list[dict[str, Any]]:
        """The lines that have come. WorkerDied when there will be no more, and BundleFault when it cannot load."""
        ended = False
        while True:
            try:
                chunk = os.read(self.stdout.fileno(), _READ)
            except BlockingIOError:
                break
            if not chunk:
                ended = True
                break
            self._in += chunk
            if len(self._in) > MAX_LINE:
                raise WorkerDied(f"gave an answer of more than {MAX_LINE >> 20} MiB", remedy=GIVE_A_BUNDLE)
        *whole, rest = bytes(self._in).split(b"\n")
        self._in = bytearray(rest)
        try:
            found = [json.loads(line) for line in whole]
        except ValueError:
            raise WorkerDied("wrote what is no answer where its answers go", remedy=GIVE_A_BUNDLE) from None
        if found and not self.ready:
            first = found.pop(0)
            if "fault" in first:
                raise fault_of(self._bundle, first)
            self.ready = True
        if found and "fault" in found[-1]:
            raise fault_of(self._bundle, found[-1])
        if ended and not found:
            raise self._died()
        return found

    # -- beginning and end --------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Kill it by its process id, wait until it is gone, and remove its folder. Does nothing the second time."""
        if self.closed:
            return
        self.closed = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # it has a group of its own, with all that it may have started
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GONE_S)
        for pipe in (self.stdin, self.stdout, self._stderr):
            with contextlib.suppress(OSError):
                pipe.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(
        self, node: str, version: str, limits: Limits, environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        with as_file(files("stormctl.targets.sdk.replay") / "scripts") as scripts:
            told = {
                "bundle": str(self._bundle.flow),
                "folder": str(self.folder),
                "parent": os.getpid(),
                "limits": {"creates": limits.creates},
            }
            command = [
                node,
                f"--max-old-space-size={limits.memory_mb}",
                "--no-warnings",
                *permission_flags(version, self.folder),
                str(scripts / "worker.mjs"),
                json.dumps(told),
            ]
            try:
                return subprocess.Popen(
                    command,
                    cwd=self.folder,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._stderr,
                    env=_environment(self.folder, environment),
                    bufsize=0,
                    start_new_session=True,  # Ctrl-C is ours, and we end it
                )
            except OSError as error:
                raise WorkerDied(
                    f"cannot be started: {error.strerror or error}", remedy="See that node works."
                ) from None

    def _died(self) -> WorkerDied:
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(_GONE_S)
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - _TAIL))
        said = self._stderr.read().decode("utf-8", "replace")
        if _OUT_OF_MEMORY.search(said):
            return WorkerDied("ran out of memory", remedy="Allow it more memory, if the log is very long.")
        how = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        words = last_line(said)
        return WorkerDied(f"{how}{f': {words}' if words else ''}", remedy="Report it with the version of the bundle.")


def permission_flags(version: str, folder: Path) -> list[str]:
    """The flags by which a node of that version lets a process write to one folder only, and start none; none for a
    node that has no such flags. The thread that watches our parent is allowed."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers >= (23, 5) or (22, 13) <= numbers < (23,):
        flag = "--permission"
    elif numbers >= (20, 0):
        flag = "--experimental-permission"
    else:
        return []
    # one pattern for the folder and all below it: with two, node 20 runs into an assertion of its own
    return [flag, "--allow-fs-read=*", f"--allow-fs-write={folder}*", "--allow-worker"]


def _environment(folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    ours = {name: value for name, value in surroundings().items() if name not in _NOT_OURS}
    places = {"TMPDIR": str(folder), "WORKFLOW_LOCAL_DATA_DIR": str(folder / "data")}
    return {**ours, **_SWITCHES, **more, **places}


# -- why a bundle is none --------------------------------------------------------------------------------------------

_GUARDED = {
    "network": "tried to reach the network while it was being loaded: {}",
    "write": "tried to write outside of its folder while it was being loaded: {}",
    "process": "tried to start or end a process while it was being loaded: {}",
    "world": "called its world while it was being loaded: {}",
    "syntax": "cannot be loaded, for it is no JavaScript that this node reads: {}",
    "threw": "threw while it was being loaded: {}",
    "no-post": "is no flow bundle: it does not export POST ({})",
}
_GUARD_REMEDY = "Move what it does out of the modules' top level, or build the workflows without that module."


def fault_of(bundle: Bundle, line: Mapping[str, Any]) -> BundleFault:
    """The sentence for what a worker says of a bundle that it cannot load."""
    kind, text = str(line["fault"].get("kind")), str(line["fault"].get("text") or "")
    if kind == "no-queue":
        why = f" ({text})" if text else ""
        words = f"is no flow bundle: its POST asked no world for a queue{why}"
    elif kind == "no-post":
        words = _GUARDED[kind].format(f"it exports {text}" if text else "it exports nothing")
    else:
        words = _GUARDED.get(kind, "cannot be loaded: {}").format(text)
    remedy = _GUARD_REMEDY if kind in ("network", "write", "process", "world") else GIVE_A_BUNDLE
    return BundleFault(f"{bundle.flow} {words}", remedy=remedy)
