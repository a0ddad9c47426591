"""The process between a storm's driver and its private server: it makes the server, and ends it with the driver.

    python -c ... <folder of stormctl>      one line of JSON in, one line of JSON out, then silence

A server that nobody wants any more must not stay. The driver can be killed at any moment and then does nothing, so
this process watches it: when its standard input ends or its parent changes, it stops the server, removes the folder and
ends. When this process itself is killed, Linux tells the server. In between it adopts whatever of the server is left
over, so that nothing slips away under init.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormctl.errors import StormctlError, UsageError
from stormctl.worlds.postgres import cluster
from stormctl.worlds.postgres.account import server_account
from stormctl.worlds.postgres.binaries import find_binaries
from stormctl.worlds.process import is_dead, whoami

#: how long the server may take to end by itself before all of its processes are killed
GRACE_SECONDS = 2.0
_LOOK_SECONDS = 0.25
_PR_SET_CHILD_SUBREAPER = 36


def command() -> list[str]:
    """The command line that starts this process with this very stormctl, installed or not."""
    code = "import sys; sys.path.append(sys.argv[1]); from stormctl.worlds.postgres.supervisor import main; main()"
    return [sys.executable, "-P", "-c", code, str(Path(__file__).resolve().parents[3])]


class Driver:
    """The process that wants the server, as seen from here."""

    def __init__(self) -> None:
        self.pid = os.getppid()
        self._gone = False
        self._buffer = b""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._told)

    def read_line(self) -> str:
        """The one line that it says; empty when it is gone before."""
        while b"\n" not in self._buffer and self.is_here(_LOOK_SECONDS):
            continue
        return self._buffer.partition(b"\n")[0].decode()

    def is_here(self, seconds: float = 0.0) -> bool:
        """Whether it still is there. Waits for its end up to so many seconds."""
        if not self._gone and select.select([0], [], [], seconds)[0]:
            read = os.read(0, 65536)
            self._buffer += read
            self._gone = not read
        # A copy of the pipe may live on in another child of the driver's, so that it never ends.
        return not self._gone and os.getppid() == self.pid

    def _told(self, *_: object) -> None:
        self._gone = True


def main() -> None:
    """The whole life of this process."""
    driver = Driver()
    _adopt_orphans()
    line = driver.read_line()
    if not line:
        return
    made: list[Path] = []
    try:
        _serve(driver, json.loads(line), made)
    except StormctlError as error:
        _say({"error": str(error), "remedy": error.remedy, "usage": isinstance(error, UsageError)})
    finally:
        _end_children()
        for folder in made:
            cluster.remove(folder)


def _serve(driver: Driver, asked: dict[str, Any], made: list[Path]) -> None:
    """Have the server live as long as the driver does. The folder is told in ``made`` as soon as it exists."""
    account = server_account()
    cluster.sweep(_is_left)
    parent = asked.get("parent")
    facts = {"for": whoami() | {"pid": driver.pid}, "by": whoami()}
    folder = cluster.make_folder(account, facts, None if parent is None else Path(parent))
    made.append(folder)
    binaries = cluster.initialise(
        find_binaries(account),
        account,
        folder,
        settings=asked.get("settings"),
        options=["--no-sync", *(asked.get("options") or ())],  # nothing of it outlives a crash of the machine
        alive=driver.is_here,
    )
    server = cluster.start(binaries, account, folder, bound=True, alive=driver.is_here)
    _say({"folder": str(folder), "pid": server.pid, "version": binaries.shown, "programs": str(binaries.folder)})
    while driver.is_here(_LOOK_SECONDS):
        server.poll()  # a dead one leaves no zombie; its folder stays, so that the driver can read the log
    if server.poll() is None:
        server.send_signal(signal.SIGQUIT)


def _is_left(facts: Mapping[str, Any], _folder: Path) -> bool:
    """Whether a folder was made for a driver that is gone, by a process like this one that is gone too."""
    return "for" in facts and is_dead(facts["for"]) and is_dead(facts.get("by") or {})


def _say(what: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(what).encode() + b"\n")


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _end_children() -> None:
    """Wait until every process of the server is gone; those that take longer than the grace are killed.

    A process of the server becomes a child of this one when the server dies before it.
    """
    kill_at = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < kill_at + GRACE_SECONDS:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        if time.monotonic() > kill_at:
            for pid in children(os.getpid()):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def children(parent: int) -> list[int]:
    """The process ids of the children of a process (Linux; elsewhere through ``ps``)."""
    found = []
    if os.path.exists("/proc/self/stat"):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
                    if int(stat.read().rpartition(b")")[2].split()[1]) == parent:
                        found.append(int(name))
        return found
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    return [int(pid) for pid, of in (line.split() for line in listed.splitlines()) if int(of) == parent]
