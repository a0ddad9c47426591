"""What a delivery asks of the world around it.

``deliver`` yields these and is sent the replies. A storm answers with a real store and real time, the simulator with a
scheduler that owns both. Every yield is a place where the world may change; there is no other.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stormctl.worlds.base import AppendRequest, Message


@dataclass(frozen=True, slots=True)
class Load:
    """Replies a Page: the events after the cursor, or the whole log without one."""

    run_id: str
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Append:
    """Replies Appended or Refused."""

    request: AppendRequest


@dataclass(frozen=True, slots=True)
class AppendBatch:
    """Append the writes of one phase of a suspension as one. Replies a tuple of Appended or Refused, in order.

    A refused precondition refuses all of them.
    """

    requests: tuple[AppendRequest, ...]


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Send a queue message, ``delay_ms`` from now. A message whose ``key`` was sent before is dropped. Replies None."""

    message: Message
    delay_ms: float = 0
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Now:
    """Replies the time in epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """Let ``ms`` pass. ``reason`` is for the reader of a trace. Replies None."""

    ms: float
    reason: str


@dataclass(frozen=True, slots=True)
class Draw:
    """Replies what must not be decided here: ``writer`` (a random id of this delivery) or ``perturbation``."""

    what: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth counting or tracing happened. Replies None."""

    what: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kill:
    """End this process at once, as SIGKILL does: nothing is written, acknowledged or given back. ``reason`` is for the
    reader of a trace. There is no reply, because nobody is left to hear it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Together:
    """Run several request generators at once. Replies the list of what they returned, in order, when all have."""

    parts: tuple[Requests, ...]


Op = Load | Append | AppendBatch | Enqueue | Now | Sleep | Draw | Note | Kill | Together
Requests = Generator[Op, Any, Any]
