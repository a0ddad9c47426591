"""The writes that a delivery derives from one view: how they are stamped and sent, and what came of them.

Every write goes out before any reply is judged; a refused precondition then counts for more than any other refusal.
Where the store counts in-band events the writes go one after another, each naming the count as it then is.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from stormctl.history import Event, kinds
from stormctl.runtime import notes, ops
from stormctl.runtime.ops import Op
from stormctl.runtime.precondition import Site, Stale
from stormctl.runtime.rules import Rules
from stormctl.runtime.view import View
from stormctl.worlds.base import Appended, AppendRequest, Refusal, Refused, Snapshot

Reply = Appended | Refused
#: The types that say what their writer had read. An inline claim does too; a failed run, a receipt or a step's outcome
#: does not.
_STAMPED = kinds.CREATES | {kinds.ATTR_SET, kinds.WAIT_COMPLETED, kinds.RUN_COMPLETED}


class Flush:
    """The writes of one view. It remembers the replies: what was refused, what existed, what the store skipped."""

    def __init__(self, view: View, writer: str, rules: Rules) -> None:
        self.run_id = view.run_id
        self.writer = writer
        self._view = view
        self._rules = rules
        self._landed_in_band = 0
        self._refused: list[tuple[AppendRequest, Refused]] = []
        self._claimed = False
        self._skipped: list[Event] = []
        #: the creates that existed already
        self.existed: list[AppendRequest] = []
        #: whether a hook's token was taken by another run
        self.token_taken = False

    @property
    def one_by_one(self) -> bool:
        """Whether each write must know how the one before it ended."""
        return self._rules.send_snapshot and self._view.in_band is not None

    @property
    def as_batch(self) -> bool:
        """Whether the writes of a phase go as one append."""
        return self._rules.batch_atomic

    @property
    def is_stale(self) -> bool:
        """Whether a precondition was refused."""
        return bool(self._refused)

    def stale(self, site: Site) -> Stale | None:
        """What was refused for what the view lacks, if anything was."""
        if not self._refused:
            return None
        types = tuple(request.type for request, _ in self._refused)
        return Stale(site, types, self._refused[0][1].body, sibling_claimed=self._claimed)

    def seen(self) -> View:
        """The view to go on from: the one written from, with what the store says that it skipped."""
        return self._view.merged(self._skipped) if self._skipped else self._view

    # -- sending ---------------------------------------------------------------------------------------------------

    def append(self, request: AppendRequest) -> Generator[Op, Any, Reply]:
        """Stamp one write, send it, remember the reply."""
        stamped = self._stamped(request, self._landed_in_band)
        reply: Reply = yield ops.Append(stamped)
        yield from self._remember(stamped, reply)
        return reply

    def append_groups(self, groups: Sequence[Sequence[AppendRequest]]) -> Generator[Op, Any, None]:
        """The writes of one phase: groups at once and each in its order, or as one batch, or all one after another."""
        if self.as_batch:
            yield from self.append_batch([request for group in groups for request in group])
        elif self.one_by_one:
            yield from self._in_order([request for group in groups for request in group])
        elif groups:
            yield ops.Together(tuple(self._in_order(group) for group in groups))

    def append_batch(self, requests: Sequence[AppendRequest]) -> Generator[Op, Any, list[Reply]]:
        """All of them as one append; a single one as itself."""
        if len(requests) == 1:
            return [(yield from self.append(requests[0]))]
        if not requests:
            return []
        stamped = []
        ahead = self._landed_in_band
        for request in requests:
            stamped.append(self._stamped(request, ahead))
            ahead += (2 if request.lazy else 1) if _in_band(stamped[-1]) else 0
        replies: tuple[Reply, ...] = yield ops.AppendBatch(tuple(stamped))
        for one, reply in zip(stamped, replies, strict=True):
            yield from self._remember(one, reply)
        return list(replies)

    def _in_order(self, requests: Sequence[AppendRequest]) -> Generator[Op, Any, None]:
        """One after another, up to a refused precondition: what follows was derived from as little."""
        for request in requests:
            reply = yield from self.append(request)
            if isinstance(reply, Refused) and reply.refusal is Refusal.PRECONDITION:
                return

    # -- before and after ------------------------------------------------------------------------------------------

    def _stamped(self, request: AppendRequest, landed: int) -> AppendRequest:
        if not self._rules.send_snapshot or not (request.lazy or request.type in _STAMPED):
            return request
        known = self._view.in_band
        return replace(request, snapshot=self._snapshot(None if known is None else known + landed))

    def _snapshot(self, in_band: int | None) -> Snapshot:
        return self._view.snapshot(self.writer, in_band)

    def _remember(self, request: AppendRequest, reply: Reply) -> Generator[Op, Any, None]:
        if isinstance(reply, Refused):
            if reply.refusal is Refusal.PRECONDITION:
                self._refused.append((request, reply))
            elif reply.refusal is Refusal.CONFLICT and _is_create(request):
                self.existed.append(request)
            return
        self._claimed = self._claimed or request.lazy
        self._landed_in_band += len(reply.events) if _in_band(request) else 0
        self.token_taken = self.token_taken or any(event.type == kinds.HOOK_CONFLICT for event in reply.events)
        if reply.skipped or reply.more_skipped:
            whole = not reply.more_skipped and all(event.run_id == self.run_id for event in reply.skipped)
            self._skipped += reply.skipped if whole else ()
            yield notes.report(len(reply.skipped), truncated=not whole)


def _in_band(request: AppendRequest) -> bool:
    """Whether the store counts what lands of this write. Facts move no count."""
    snapshot = request.snapshot
    decision = kinds.is_decision(request.type, lazy_start=request.lazy)
    return decision and snapshot is not None and snapshot.in_band is not None


def _is_create(request: AppendRequest) -> bool:
    written_by_replay = request.type == kinds.ATTR_SET and request.correlation_id is not None
    return request.lazy or request.type in kinds.CREATES or written_by_replay
