"""Credit: no decision was admitted that another writer's decision had made out of date.

A decision is derived from a prefix of the log. Where a store fences decisions, one is refused when somebody else has
decided since its writer read; one that was admitted all the same went through a hole in the credit that a writer has
for its own. Only the append audit of our worlds tells who wrote and what it had read. Stores without a fence admit such
decisions by design.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.history import Capture, Facet, kinds
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item

KINDS = ("stale-decision",)


@sweep("credit", needs={Facet.AUDIT, Facet.POSITIONS}, kinds=KINDS, optional=True)
def credit(capture: Capture) -> Iterator[Item]:
    """Had the writer of every decision read what other writers had decided before it?"""
    records = {record.position: record for record in capture.audit or () if record.admitted and record.position}
    # the latest decision, and the latest of another writer than that one's
    last: tuple[str, int, int] | None = None
    other: tuple[str, int, int] | None = None
    stale: list[int] = []
    worst: tuple[int, int, int] | None = None
    for index, event in enumerate(capture.log.events):
        record = None if event.position is None else records.get(event.position)
        if record is None or event.position is None or not kinds.is_decision(event.type):
            continue
        if record.snapshot is not None:
            before = last if last is not None and last[0] != record.writer else other
            if before is not None and record.snapshot < before[1]:
                stale.append(index)
                missed = before[1] - record.snapshot
                if worst is None or missed > worst[0]:
                    worst = (missed, before[2], index)
        if last is not None and last[0] != record.writer:
            other = last
        last = (record.writer, event.position, index)
    if worst is not None:
        missed, decided, late = worst
        text = (
            f"{len(stale)} decisions were admitted from writers that had not read the latest of another, "
            f"by up to {missed} positions"
        )
        yield Fault("stale-decision", text, tuple(stale), capture.log.run_id, witness=(decided, late))
