"""What a fault can do to a worker: to a process of its own, or to the deliveries that a driver makes in its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

#: Wakes its parent, again and again until the parent ends it. It ends with its parent, so that a killed worker leaves
#: nothing behind.
_WAKE = """
import ctypes, os, signal, sys, time
parent, seconds = int(sys.argv[1]), float(sys.argv[2])
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == parent:
    time.sleep(seconds)
    while True:  # the first may have come before the stop
        os.kill(parent, signal.SIGCONT)
        time.sleep(0.05)
"""


class ProcessHands:
    """The worker is this process."""

    async def kill(self, reason: str) -> None:
        """SIGKILL: nothing is flushed, and nobody is left to hear of it."""
        os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.Future()

    async def stop(self, ms: float) -> None:
        """SIGSTOP. A stopped process cannot wake itself, so a child does; should that fail, the driver does at the end
        of the storm."""
        waker = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WAKE, str(os.getpid()), str(ms / 1000)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=True,
        )
        os.kill(os.getpid(), signal.SIGSTOP)
        waker.kill()
        waker.wait()
