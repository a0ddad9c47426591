"""Who a process is, as far as another one on the same machine can tell."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

#: The environment variable that tells a worker's process its storm's id: a server shows its connections by it.
STORM_VARIABLE = "STORMCTL_STORM"
#: How a task is cancelled that stands for a killed process: nothing that it was doing cleans up after itself.
KILLED = "killed"


def is_kill(error: BaseException) -> bool:
    """Whether a task was cancelled to stand for a killed process."""
    return isinstance(error, asyncio.CancelledError) and error.args == (KILLED,)


@lru_cache(maxsize=1)
def host() -> str:
    """The machine's name."""
    return socket.gethostname()


@lru_cache(maxsize=1)
def space() -> str:
    """The space in which process ids are unique: a pid of another container says nothing here."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            return f"{boot.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return host()


def whoami() -> dict[str, Any]:
    """What a process writes into its locks."""
    return {"pid": os.getpid(), "host": host(), "space": space()}


def is_dead(owner: Mapping[str, Any]) -> bool:
    """Whether the process that wrote this is surely gone. False also when that cannot be known from here."""
    pid = owner.get("pid")
    if owner.get("host") != host() or owner.get("space") != space() or not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Whether it has ended and waits only for its parent to notice."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[:1] == [b"Z"]
    except OSError:
        return False
