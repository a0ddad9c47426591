"""Writing what a suspended pass asks for, in upstream's order, and sending what it needs next.

First the hooks: tokens in parallel, within a token in code order, a create before a dispose. Then eager steps, waits
and attributes, all in parallel. Every write of a phase settles before a refusal is looked at. A 409 means that another
delivery wrote the same; whether that is checked is ``runtime.conflict``'s business.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from stormctl.engine.door import Create, Pass, Pending
from stormctl.history import kinds
from stormctl.runtime import ops
from stormctl.runtime.flush import Flush
from stormctl.runtime.ops import Op
from stormctl.runtime.rules import Rules
from stormctl.runtime.steps import message_for
from stormctl.worlds.base import AppendRequest, Message


def write(replay: Pass, flush: Flush, *, lazy_too: bool = False) -> Generator[Op, Any, bool]:
    """Write the creates of a pass; ``flush`` tells what came of them. Lazy steps are left to their start, unless
    ``lazy_too`` (a run that has finished leaves nothing to start).

    Replies whether the run goes on at once: the workflow wrote attributes, or learned that a hook's token is taken.
    """
    by_token: dict[str, list[AppendRequest]] = {}
    for item in replay.pending:
        if item.kind == kinds.HOOK and (item.create is Create.HOOK or item.disposed):
            by_token.setdefault(item.token or "", []).extend(_hook(item, flush))
    yield from flush.append_groups(list(by_token.values()))
    if flush.is_stale or flush.token_taken:
        return flush.token_taken
    creates = (Create.EAGER, Create.WAIT, Create.ATTRIBUTE, *((Create.LAZY,) if lazy_too else ()))
    rest = [item for item in replay.pending if item.create in creates]
    yield from flush.append_groups([[_request(item, _TYPES[item.kind], flush)] for item in rest])
    return any(item.create is Create.ATTRIBUTE for item in rest)


_TYPES = {kinds.STEP: kinds.STEP_CREATED, kinds.WAIT: kinds.WAIT_CREATED, kinds.ATTR: kinds.ATTR_SET}


def _hook(item: Pending, flush: Flush) -> list[AppendRequest]:
    """A create before a dispose."""
    types = [kinds.HOOK_CREATED] if item.create is Create.HOOK else []
    if item.disposed:
        types.append(kinds.HOOK_DISPOSED)
    return [_request(item, type, flush) for type in types]


def _request(item: Pending, type: str, flush: Flush) -> AppendRequest:
    extra: dict[str, Any] = {}
    if item.kind == kinds.STEP:
        extra["payload"] = list(item.arguments)
    if item.kind == kinds.ATTR:
        extra["data"] = {
            "changes": [{"key": key, "value": value} for key, value in item.arguments.items()],
            "writer": {"type": "workflow"},
        }
    return AppendRequest(
        run_id=flush.run_id,
        type=type,
        writer=flush.writer,
        correlation_id=item.correlation_id,
        name=item.name,
        token=item.token,
        resume_at=item.resume_at,
        **extra,
    )


def dispatch(replay: Pass, run_id: str, message_id: str, rules: Rules) -> Generator[Op, Any, None]:
    """Send the messages that will bring the run on: background steps, a backstop per step that another delivery runs
    inline, one wake for the soonest wait, and one for a hook whose registration the workflow waits for.

    An inline owner has its step for a lease. Had it lived it would have finished by then, so whoever comes later sends
    the step to the queue.
    """
    now = yield ops.Now()
    soonest: Pending | None = None
    if any(item.awaited for item in replay.pending):
        # a run waits for its hook: a fresh delivery goes on over the committed create (or looks again for it)
        yield ops.Enqueue(Message(run_id), key=f"registered:{message_id}:{len(replay.draws)}")
    for item in replay.pending:
        if item.kind == kinds.STEP and item.create is not Create.LAZY and item.owner != message_id:
            message = message_for(run_id, item.correlation_id, item.name, item.arguments)
            expired = item.started_at is not None and now >= item.started_at + rules.lease_ms
            if item.owner is not None and expired:
                yield ops.Enqueue(message, key=f"reclaim:{item.correlation_id}:{item.attempts}")
            elif item.owner is not None:
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
