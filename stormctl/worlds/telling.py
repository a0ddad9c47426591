"""What a store tells a writer after its append: the events that it skipped, or what a refused one should have read."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from stormctl.history import Event
from stormctl.worlds.base import Appended, Page, Refusal, Refused
from stormctl.worlds.condition import Condition, Ids, PostReads, Tells
from stormctl.worlds.planning import Work
from stormctl.worlds.store_ops import ReadAfter, ReadGuard, ReadSlots, Recorded, StoreOp
from stormctl.worlds.wire import refusal_body

DELTA_LIMIT = 100
"""How many events a refused precondition carries at most, as upstream's page does."""

Answer = Appended | Refused


def tell(works: Sequence[Work], answers: list[Answer]) -> Generator[StoreOp, Any, list[Answer]]:
    """The answers with what goes with them. Reads only, after the event is readable."""
    told: list[Answer] = []
    for work, answer in zip(works, answers, strict=True):
        if isinstance(answer, Appended):
            told.append((yield from _skipped(work, answer)))
        elif answer.refusal is Refusal.PRECONDITION and work.condition.tells:
            told.append((yield from _unread(work, answer)))
        else:
            told.append(answer)
    return told


def _skipped(work: Work, answer: Appended) -> Generator[StoreOp, Any, Appended]:
    condition, snapshot = work.condition, work.request.snapshot
    if condition.post_reads is PostReads.INSIDE and snapshot is not None:
        yield ReadAfter(work.request.run_id, snapshot.cursor, DELTA_LIMIT)
    if condition.ids is not Ids.SLOT or snapshot is None or not answer.events:
        return answer
    position = answer.events[0].position
    if position is None or position <= snapshot.count + 1:
        return answer
    missed: tuple[Event, ...] = yield ReadSlots(work.request.run_id, above=snapshot.count, below=position)
    return replace(answer, skipped=missed, more_skipped=len(missed) < position - snapshot.count - 1)


def _unread(work: Work, answer: Refused) -> Generator[StoreOp, Any, Refused]:
    snapshot = work.request.snapshot
    if snapshot is None:
        return answer
    condition: Condition = work.condition
    delta: Page | None = None
    counts: tuple[int, int] | None = None
    if Tells.DELTA in condition.tells:
        delta = yield ReadAfter(work.request.run_id, snapshot.cursor, DELTA_LIMIT)
    if Tells.COUNTS in condition.tells and snapshot.watermark is not None:
        found: Recorded = yield ReadGuard(work.request.run_id, snapshot.watermark)
        counts = found.at_or_below, snapshot.watermark
    return replace(answer, body=refusal_body(delta, counts))
