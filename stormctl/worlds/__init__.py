"""Event-log stores: the append pipeline, the conditions, and the stores that interpret them.

What opens a store is imported when it is first asked for, so that naming a condition costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stormctl.worlds.base import (
    NO_PAYLOAD,
    Appended,
    AppendRequest,
    Claimed,
    HookRow,
    Message,
    Page,
    Queue,
    Refusal,
    Refused,
    Snapshot,
    World,
)
from stormctl.worlds.condition import Condition, Point
from stormctl.worlds.conditions import condition_named
from stormctl.worlds.presets import CONDITIONS, MAIN, SEQ_FINAL

if TYPE_CHECKING:
    from stormctl.worlds.audit import read_audit
    from stormctl.worlds.open import WORLDS, open_world

__all__ = [
    "CONDITIONS",
    "MAIN",
    "NO_PAYLOAD",
    "SEQ_FINAL",
    "WORLDS",
    "AppendRequest",
    "Appended",
    "Claimed",
    "Condition",
    "HookRow",
    "Message",
    "Page",
    "Point",
    "Queue",
    "Refusal",
    "Refused",
    "Snapshot",
    "World",
    "condition_named",
    "open_world",
    "read_audit",
]


def __getattr__(name: str) -> Any:
    if name in ("WORLDS", "open_world"):
        from stormctl.worlds import open as opening

        return getattr(opening, name)
    if name == "read_audit":
        from stormctl.worlds.audit import read_audit

        return read_audit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
