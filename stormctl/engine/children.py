"""Children of this process that work something out and send it back: forked, watched, and never left behind.

A child is a copy of its parent at the moment of the fork, so it is given nothing; it sends bytes through a pipe and
ends. It is quiet: it prints nothing, flushes nothing that the parent had buffered, runs none of its exit handlers, and
is deaf to the interrupts that a terminal sends to both. It dies with its parent (the kernel sees to that on Linux;
elsewhere a child ends by itself, for its work is short).

Forking is safe here also beside other threads, as far as it can be: a child runs Python code of the engine and of the
workflow's body, takes no lock of another thread, and one that does not answer in time is killed. Nobody depends on an
answer: ``None`` means that there is none, and the caller works it out itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

#: how long a child may take, in seconds; the tail of one pass takes milliseconds
PATIENCE_S = 60.0
#: how often a silent child is looked after, in ms
_LOOK_MS = 500
#: how many bytes in front of an answer say how long it is
_HEADER = 8
_CHUNK = 1 << 16
_PR_SET_PDEATHSIG = 1
_SET_ASIDE = (signal.SIGINT, signal.SIGTERM)


def can_fork() -> bool:
    """Whether this platform has what a child needs."""
    return hasattr(os, "fork") and hasattr(select, "poll")


@lru_cache(maxsize=1)
def _prctl() -> Callable[..., Any] | None:
    """The kernel call that ties a process to its parent; looked up before the first fork, not in every child."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            found: Callable[..., Any] = ctypes.CDLL(None).prctl
            return found
    return None


def end_with_parent() -> None:
    """Have the kernel kill this process when the one that started it ends, however that ends. Only Linux can."""
    call = _prctl()
    if call is not None:
        call(_PR_SET_PDEATHSIG, signal.SIGKILL)


class _Mute:
    """What a child has for standard output and error: the lines of a body that prints come from its parent only."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        """There is nothing to flush."""

    def isatty(self) -> bool:
        return False


class Child:
    """A forked process that owes an answer. Ask for it once, or :meth:`kill` the child."""

    __slots__ = ("_deadline", "_pid", "_pipe")

    def __init__(self, pid: int, pipe: int) -> None:
        self._pid = pid
        self._pipe = pipe
        self._deadline = time.monotonic() + PATIENCE_S

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._pid

    @property
    def pipe(self) -> int:
        """The end of its pipe that is this process's, to be closed in other children; -1 once it is closed."""
        return self._pipe

    def answer(self) -> bytes | None:
        """Wait for what it worked out. None when it ended, or was killed, without a whole answer."""
        try:
            return self._read()
        finally:
            self.kill()

    def kill(self) -> None:
        """End it if it still runs, and leave nothing of it: no zombie and no open pipe. May be called again."""
        if self._pipe < 0:
            return
        os.close(self._pipe)
        self._pipe = -1
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # where the parent ignores the end of its children
            os.waitpid(self._pid, 0)

    def _read(self) -> bytes | None:
        got = bytearray()
        want = _HEADER
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        while len(got) < want:
            if not poll.poll(_LOOK_MS):
                # a process forked by somebody else may hold the other end open, so that a death closes nothing
                if self._gone() or time.monotonic() > self._deadline:
                    return None
                continue
            chunk = os.read(self._pipe, _CHUNK)
            if not chunk:
                return None
            got += chunk
            if want == _HEADER and len(got) >= _HEADER:
                want += int.from_bytes(got[:_HEADER], "little")
        return bytes(got[_HEADER:])

    def _gone(self) -> bool:
        """Whether it has ended; it stays to be reaped."""
        try:
            return os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True


def fork(work: Callable[[], bytes], others: Iterable[Child] = ()) -> Child | None:
    """A child that does the work and sends what it returns; None when the system lets no child be made.

    ``others`` are the children that still run: the new one lets go of their pipes.
    """
    _prctl()
    parent = os.getpid()
    try:
        ours, theirs = os.pipe()
    except OSError:
        return None
    # A signal between the fork and the next line would cost the parent its child. In the child they stay blocked: an
    # interrupt is its parent's, who ends it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SET_ASIDE)
    try:
        pid = _fork()
        if pid == 0:
            _be_a_child(work, parent, theirs, (ours, *(child.pipe for child in others)))
        child = Child(pid, ours)
    except (OSError, RuntimeError):
        os.close(ours)
        return None
    finally:
        os.close(theirs)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return child


def _fork() -> int:
    if sys.version_info >= (3, 12):  # it warns beside other threads; what it warns of is dealt with above
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return os.fork()
    return os.fork()


def _be_a_child(work: Callable[[], bytes], parent: int, pipe: int, others: Iterable[int]) -> None:
    """All that a child ever does. It never returns: what its frames would do on the way out is the parent's affair."""
    status = 1
    try:
        gc.disable()  # it would write to every page of the parent's objects, and there is nothing to collect
        signal.set_wakeup_fd(-1)
        end_with_parent()
        if os.getppid() != parent:
            return
        for other in others:
            if other >= 0:
                os.close(other)
        sys.stdout = sys.stderr = _Mute()
        answer = work()
        _write(pipe, len(answer).to_bytes(_HEADER, "little") + answer)
        status = 0
    except BaseException:  # the parent finds out what is wrong when it works out the answer itself
        status = 1
    finally:
        os._exit(status)


def _write(pipe: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(pipe, left) :]
