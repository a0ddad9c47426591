"""What one pass of the real engine over a prefix asked of its world."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from stormctl.errors import StoreFailure, UnreadableInput
from stormctl.history import kinds
from stormctl.readers import devalue

_NOTHING: Mapping[str, Any] = MappingProxyType({})

Ended = Literal["returned", "stopped", "threw"]
#: what stopped a pass that is not to be believed: see :attr:`Answer.guard`
Guard = Literal["time", "creates", "world", "network", "write", "process", "died"]

_LATEST = re.compile(r"latest divergent event was (\w+)")
_LAST = "Last divergence: "


@dataclass(frozen=True, slots=True)
class Asked:
    """One event that the engine wanted to create.

    ``name`` is the step's full name (``step//./workflows/storms//settle``), ``resume_at`` is in epoch milliseconds.
    ``payload`` are the raw bytes of what the event carries, where it carries bytes: a step's input, the run's output,
    or (5.x) its error. ``data`` is the rest of its data as JSON, under the SDK's names.
    """

    type: str
    correlation_id: str | None = None
    name: str | None = None
    token: str | None = None
    resume_at: int | None = None
    payload: bytes | None = None
    data: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class Queued:
    """One message that the engine sent to a queue. ``delay_s`` is how long it is to wait there, ``divergence`` what
    the message says of a divergence (``{"eventId", "count"}``) when it asks for a recovery replay."""

    queue: str
    step_id: str | None = None
    delay_s: float | None = None
    divergence: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The ``run_failed`` of a pass.

    ``message`` is the engine's own text in full. Of a divergence, ``divergent_event`` is the id of the latest divergent
    event and ``divergence`` the text behind "Last divergence: ", as the engine has it.
    """

    code: str | None
    message: str
    divergent_event: str | None = None
    divergence: str | None = None


@dataclass(frozen=True)
class Answer:
    """One pass over the first ``prefix`` events of the log, less the ``hidden`` ones (0-based indices).

    ``asked`` is in the order of the calls, the events that end a run among them. ``ended``: the handler ``returned``,
    the pass was ``stopped`` where a step's body would have run, or it ``threw``; then ``error`` says what. ``calls``
    counts every call of the world by its name (``events.create:step_created``). ``ms`` is the wall time of the pass.

    ``guard`` is None for a pass to be believed. Else the bundle did what no replay may do, or did not end, and
    ``error`` is a sentence that names it: ``time`` and ``creates`` (limits), ``world`` (a call that the world does not
    have), ``network``, ``write``, ``process`` (starting or ending one), ``died`` (the worker ended in that pass).
    ``said`` is what the bundle printed meanwhile, its last lines.
    """

    prefix: int
    hidden: frozenset[int]
    asked: tuple[Asked, ...]
    queued: tuple[Queued, ...]
    ended: Ended
    error: str | None
    calls: Mapping[str, int]
    ms: float
    guard: Guard | None = None
    said: tuple[str, ...] = ()

    @cached_property
    def failure(self) -> Failure | None:
        """How the run would fail at this prefix; None when it would not."""
        for asked in self.asked:
            if asked.type == kinds.RUN_FAILED:
                return failure_of(asked)
        return None

    @property
    def output(self) -> bytes | None:
        """The bytes that the run would return at this prefix; None when it would not."""
        return next((asked.payload for asked in self.asked if asked.type == kinds.RUN_COMPLETED), None)


def answer_of(line: Mapping[str, Any], prefix: int, hidden: frozenset[int]) -> Answer:
    """The answer in a line of a worker's. StoreFailure when it is none."""
    try:
        return Answer(
            prefix=prefix,
            hidden=hidden,
            asked=tuple(_asked(one) for one in line["asked"]),
            queued=tuple(_queued(one) for one in line["queued"]),
            ended=line["ended"],
            error=line["error"],
            calls=dict(line["calls"]),
            ms=float(line["ms"]),
            guard=line["guard"],
            said=tuple(line["said"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreFailure(
            f"a worker of the real engine answered what cannot be read ({type(error).__name__})",
            remedy="Report it with the version of the bundle.",
        ) from None


def _asked(one: Mapping[str, Any]) -> Asked:
    payload = one.get("payload")
    return Asked(
        type=one["type"],
        correlation_id=one.get("id"),
        name=one.get("name"),
        token=one.get("token"),
        resume_at=one.get("resumeAt"),
        payload=None if payload is None else base64.b64decode(payload),
        data=one.get("data") or _NOTHING,
    )


def _queued(one: Mapping[str, Any]) -> Queued:
    return Queued(one["queue"], one.get("stepId"), one.get("delay"), one.get("divergence"))


def failure_of(asked: Asked) -> Failure:
    """What a ``run_failed`` says."""
    code = asked.data.get("errorCode")
    value: Any = asked.data.get("error")
    if asked.payload is not None:
        try:
            value = devalue.decode(asked.payload)
        except UnreadableInput as error:
            value = str(error)
    message = _message(value)
    if code is None and isinstance(value, Mapping) and isinstance(value.get("code"), str):
        code = value["code"]
    event, text = divergence_in(message)
    return Failure(code, message, event, text)


def _message(value: Any) -> str:
    """The message of an error as a version of the SDK writes it down: an object, or a text alone."""
    if isinstance(value, Mapping):
        for key in ("message", "value"):
            if key in value:
                return _message(value[key])
    return value if isinstance(value, str) else str(value)


def divergence_in(message: str) -> tuple[str | None, str | None]:
    """The id of the latest divergent event and the text of the last divergence, out of the message of a corrupted run;
    both None where it tells of none."""
    latest = _LATEST.search(message)
    _before, found, text = message.partition(_LAST)
    if not found:
        return (None if latest is None else latest[1]), None
    return (None if latest is None else latest[1]), text.partition("\n")[0]  # hints and links follow
