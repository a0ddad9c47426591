"""Processes as the kernel shows them: children, whether one lives, and waiting for something to be seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def stat_of(pid: int) -> list[str]:
    """The fields of ``/proc/<pid>/stat`` behind the name (state first, then the parent); none when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ProcessLookupError):
        return []


def alive(pid: int) -> bool:
    """Whether the process runs or is stopped. One that waits only for its parent to notice is not alive."""
    return stat_of(pid)[:1] not in ([], ["Z"], ["X"])


def children_of(pid: int) -> list[int]:
    """The living children of a process."""
    found = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return sorted(child for child in found if stat_of(child)[1:2] == [str(pid)] and alive(child))


def command_of(pid: int) -> list[str]:
    """The arguments with which a process was started."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    except OSError:
        return []


def until(look: Callable[[], T], seconds: float = 60.0) -> T:
    """What is seen as soon as there is something to see; AssertionError when there never is."""
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < deadline, f"nothing to see in {seconds} s"
        time.sleep(0.02)


def gone(pids: list[int], seconds: float) -> None:
    """Wait until none of the processes lives; AssertionError naming those that still do."""
    deadline = time.monotonic() + seconds
    while left := [(pid, command_of(pid)) for pid in pids if alive(pid)]:
        assert time.monotonic() < deadline, f"still there after {seconds} s: {left}"
        time.sleep(0.02)
