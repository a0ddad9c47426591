"""The times of one append, and the audit records that it leaves."""

from __future__ import annotations

from stormctl.history import AuditRecord, Event
from stormctl.outside import outside
from stormctl.worlds.base import Appended, AppendRequest, Refused
from stormctl.worlds.condition import Point
from stormctl.worlds.store_ops import Mint, Publish, StoreOp


class Trace:
    """Stamps the points of one append with the machine's monotonic clock (nanoseconds)."""

    __slots__ = ("entered", "minted", "published")

    def __init__(self) -> None:
        self.entered = 0
        self.minted = 0
        self.published = 0

    def at(self, point: Point) -> None:
        """The append has reached a point."""
        if point is Point.ENTER:
            self.entered = outside().running_ns()

    def did(self, op: StoreOp) -> None:
        """The store has performed an operation."""
        if type(op) is Mint:
            self.minted = outside().running_ns()
        elif type(op) is Publish:
            self.published = outside().running_ns()

    def records(self, request: AppendRequest, answer: Appended | Refused | BaseException) -> tuple[AuditRecord, ...]:
        """One record per event that landed, or one that says why none did."""
        returned = outside().running_ns()
        snapshot = None if request.snapshot is None else request.snapshot.count

        def record(kind: str, reason: str, event: Event | None = None, *, admitted: bool) -> AuditRecord:
            return AuditRecord(
                run_id=request.run_id,
                writer=request.writer,
                type=kind,
                correlation_id=request.correlation_id,
                admitted=admitted,
                reason=reason,
                position=None if event is None else event.position,
                event_id=None if event is None else event.event_id,
                snapshot=snapshot,
                entered=self.entered,
                minted=self.minted,
                published=self.published if admitted else 0,
                returned=returned,
            )

        if isinstance(answer, Appended):
            if not answer.events:
                return (record(request.type, "no event was needed", admitted=True),)
            return tuple(record(event.type, "", event, admitted=True) for event in answer.events)
        if isinstance(answer, Refused):
            return (record(request.type, f"{answer.refusal}: {answer.reason}", admitted=False),)
        return (record(request.type, f"failed: {str(answer) or type(answer).__name__}", admitted=False),)
