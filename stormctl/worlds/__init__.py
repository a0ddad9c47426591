"""Event-log stores: the append pipeline, the conditions, and the stores that interpret them."""

from stormctl.worlds.audit import read_audit
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
from stormctl.worlds.condition import CONDITIONS, MAIN, SEQ_FINAL, Condition, Point
from stormctl.worlds.conditions import condition_named
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
