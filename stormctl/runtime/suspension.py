"""Writing what a suspended pass asks for, in upstream's order, and sending what it needs next.

First the hooks: tokens in parallel, within a token in code order, a create before a dispose. Then eager steps, waits
and attributes, all in parallel. Every write of a phase settles before a refusal is looked at, and a refused
precondition counts for more than any other refusal.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from stormctl.engine.door import Create, Pass, Pending
from stormctl.history import kinds
from stormctl.runtime import ops
from stormctl.runtime.ops import Op
from stormctl.runtime.rules import Rules
from stormctl.runtime.steps import message_for
from stormctl.worlds.base import Appended, AppendRequest, Message, Refusal, Refused, Snapshot


@dataclass(frozen=True, slots=True)
class Written:
    """What came of the writes: ``stale`` when a precondition was refused, ``conflict`` when a hook's token was taken,
    ``attributes`` when the workflow wrote some (it goes on at once)."""

    stale: bool = False
    conflict: bool = False
    attributes: bool = False


def write(
    replay: Pass, run_id: str, writer: str, snapshot: Snapshot, *, lazy_too: bool = False
) -> Generator[Op, Any, Written]:
    """Write the creates of a pass. Lazy steps are left to their start, unless ``lazy_too`` (a run that has finished
    leaves nothing to start)."""
    by_token: dict[str, list[Pending]] = {}
    for item in replay.pending:
        if item.kind == kinds.HOOK and (item.create is Create.HOOK or item.disposed):
            by_token.setdefault(item.token or "", []).append(item)
    replies: list[Appended | Refused] = []
    if by_token:
        groups = yield ops.Together(tuple(_hooks(items, run_id, writer, snapshot) for items in by_token.values()))
        replies = [reply for group in groups for reply in group]
        written = _judge(replies)
        if written.stale or written.conflict:
            return written
    creates = (Create.EAGER, Create.WAIT, Create.ATTRIBUTE, *((Create.LAZY,) if lazy_too else ()))
    rest = [item for item in replay.pending if item.create in creates]
    if rest:
        replies = yield ops.Together(tuple(_create(item, run_id, writer, snapshot) for item in rest))
        if _judge(replies).stale:
            return Written(stale=True)
    return Written(attributes=any(item.create is Create.ATTRIBUTE for item in rest))


def _judge(replies: Sequence[Appended | Refused]) -> Written:
    """A 409 means that another delivery wrote the same, and is passed over without comparing (as upstream does)."""
    stale = any(isinstance(reply, Refused) and reply.refusal is Refusal.PRECONDITION for reply in replies)
    conflict = any(
        isinstance(reply, Appended) and any(event.type == kinds.HOOK_CONFLICT for event in reply.events)
        for reply in replies
    )
    return Written(stale=stale, conflict=conflict)


def _hooks(items: list[Pending], run_id: str, writer: str, snapshot: Snapshot) -> Generator[Op, Any, list[Any]]:
    replies = []
    for item in items:
        if item.create is Create.HOOK:
            replies.append((yield ops.Append(_request(item, kinds.HOOK_CREATED, run_id, writer, snapshot))))
        if item.disposed:
            replies.append((yield ops.Append(_request(item, kinds.HOOK_DISPOSED, run_id, writer, None))))
    return replies


def _create(item: Pending, run_id: str, writer: str, snapshot: Snapshot) -> Generator[Op, Any, Any]:
    type = {kinds.STEP: kinds.STEP_CREATED, kinds.WAIT: kinds.WAIT_CREATED, kinds.ATTR: kinds.ATTR_SET}[item.kind]
    return (yield ops.Append(_request(item, type, run_id, writer, snapshot)))


def _request(item: Pending, type: str, run_id: str, writer: str, snapshot: Snapshot | None) -> AppendRequest:
    extra: dict[str, Any] = {}
    if item.kind == kinds.STEP:
        extra["payload"] = list(item.arguments)
    if item.kind == kinds.ATTR:
        extra["data"] = {
            "changes": [{"key": key, "value": value} for key, value in item.arguments.items()],
            "writer": {"type": "workflow"},
        }
    return AppendRequest(
        run_id=run_id,
        type=type,
        writer=writer,
        correlation_id=item.correlation_id,
        name=item.name,
        token=item.token,
        resume_at=item.resume_at,
        snapshot=snapshot,
        **extra,
    )


def dispatch(replay: Pass, run_id: str, message_id: str, rules: Rules) -> Generator[Op, Any, None]:
    """Send the messages that will bring the run on: background steps, a backstop per step that another delivery runs
    inline, and one wake for the soonest wait."""
    now = yield ops.Now()
    soonest: Pending | None = None
    for item in replay.pending:
        if item.kind == kinds.STEP and item.create is not Create.LAZY and item.owner != message_id:
            message = message_for(run_id, item.correlation_id, item.name, item.arguments)
            if item.owner is not None:
                yield ops.Enqueue(
                    Message(run_id), rules.lease_ms, key=f"backstop:{item.correlation_id}:{item.attempts}"
                )
            elif item.retry_at is None:
                yield ops.Enqueue(message, key=item.correlation_id)
        elif (
            item.kind == kinds.WAIT
            and item.resume_at is not None
            and (soonest is None or item.resume_at < (soonest.resume_at or 0))
        ):
            soonest = item
    if soonest is None or soonest.resume_at is None:
        return
    if soonest.resume_at > now:
        key = f"wake:{soonest.correlation_id}:{soonest.resume_at}"
        yield ops.Enqueue(Message(run_id), soonest.resume_at - now, key=key)
    else:
        # It fell due meanwhile. Its own wake may have come and gone before the create was in the log, so this delivery
        # sends one more.
        yield ops.Enqueue(Message(run_id), rules.look_again_ms, key=f"late:{soonest.correlation_id}:{message_id}")
