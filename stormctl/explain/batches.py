"""Batches: the creates that one writer can have written from one prefix, and which prefix that was.

Deliveries of one run overlap, so their creates lie interleaved in the log. A create joins the batch that wrote last
among those whose prefixes it shares; the rest of the evidence is what a prefix asks for and the log does not show: a
delivery writes its eager creates all at once, so a prefix that asks for one which was never written at that time is
less likely to be the writer's. Several writers that ask alike cannot be told apart and count as one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stormctl.engine.door import Create, Pending
from stormctl.explain.creates import Created
from stormctl.explain.ranges import Ranges
from stormctl.explain.writers import Origin, Reconstruction
from stormctl.history import EventLog

#: how many of the batches written to last a create may join: deliveries of one run that are under way at once
MAX_OPEN = 64
#: how many prefixes of a batch are weighed against each other
MAX_WEIGHED = 64


@dataclass(frozen=True, slots=True)
class Batch:
    """Creates that one prefix explains all of. ``prefixes`` are the lengths that fit, ``writer`` a name for a report.

    ``also`` are creates of other batches that this writer asked for as well: either can have written them.
    """

    writer: str
    creates: tuple[Created, ...]
    prefixes: Ranges
    also: tuple[Created, ...] = ()

    @property
    def length(self) -> int:
        """The longest prefix that fits."""
        assert self.prefixes.last is not None
        return self.prefixes.last

    def staleness(self, log: EventLog) -> int:
        """How far behind its first create the writer's view ended at least."""
        return self.creates[0].place - log.name_of_prefix(self.length)

    def wrote(self, index: int) -> bool:
        """Whether the create at that index of the log is one of the batch's."""
        return any(create.index == index for create in self.creates)


def batches_of(log: EventLog, found: Reconstruction) -> tuple[Batch, ...]:
    """The explained creates of a reconstruction, grouped by writer, in the order of their first creates."""
    groups = _group([origin for origin in found.origins if origin.explained])
    created = {create.correlation_id: create.index for create in reversed(list(_creates(found.origins)))}
    made: list[Batch] = []
    for number, (creates, prefixes) in enumerate(groups, start=1):
        fits = _likeliest(log, found, creates, prefixes, created)
        made.append(Batch(f"writer {number}", tuple(creates), fits))
    return tuple(replace(batch, also=_also(batch, made, found)) for batch in made)


def _creates(origins: Sequence[Origin]) -> Sequence[Created]:
    return [origin.create for origin in origins]


def _group(origins: Sequence[Origin]) -> list[tuple[list[Created], Ranges]]:
    groups: list[tuple[list[Created], Ranges]] = []
    open_: list[int] = []  # the one written to last is last
    for origin in origins:
        for place in range(len(open_) - 1, -1, -1):
            number = open_[place]
            creates, prefixes = groups[number]
            shared = prefixes & origin.prefixes
            if shared and all(one.correlation_id != origin.create.correlation_id for one in creates):
                creates.append(origin.create)
                groups[number] = creates, shared
                open_.append(open_.pop(place))
                break
        else:
            groups.append(([origin.create], origin.prefixes))
            open_.append(len(groups) - 1)
            del open_[:-MAX_OPEN]
    return groups


def _likeliest(
    log: EventLog, found: Reconstruction, creates: Sequence[Created], prefixes: Ranges, created: dict[str, int]
) -> Ranges:
    """Of the prefixes that explain a batch those that leave least of what they ask for unwritten.

    A prefix that ends between a create and the start written with it is nobody's, where another fits as well.
    """
    last = creates[-1].index
    own = {create.correlation_id for create in creates}
    by_loss: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for length in prefixes.newest(MAX_WEIGHED):
        wants = found.asked(length) or ()
        lost = sum(
            1 for item in wants if _at_once(item) and item.correlation_id not in own and _later(item, created, last)
        )
        by_loss[lost, int(_splits_pair(log, length))].append(length)
    return Ranges.of(by_loss[min(by_loss)])


def _at_once(item: Pending) -> bool:
    """Whether a delivery writes it in one go with its other creates."""
    return item.create in (Create.EAGER, Create.WAIT)


def _later(item: Pending, created: dict[str, int], last: int) -> bool:
    """Whether nobody had created it when the batch had been written."""
    index = created.get(item.correlation_id)
    return index is None or index > last


def _splits_pair(log: EventLog, length: int) -> bool:
    if not 0 < length < len(log):
        return False
    before, after = log[length - 1], log[length]
    return (before.type, after.type) == ("step_created", "step_started") and (
        before.correlation_id == after.correlation_id
    )


def _also(batch: Batch, batches: Sequence[Batch], found: Reconstruction) -> tuple[Created, ...]:
    asked = {item.correlation_id: item.create for item in found.asked(batch.length) or ()}
    near = range(batch.creates[0].index, batch.creates[-1].index + 16)
    return tuple(
        create
        for other in batches
        if other is not batch and other.creates[-1].index >= near.start and other.creates[0].index < near.stop
        for create in other.creates
        if create.index in near
        and asked.get(create.correlation_id) is create.footprint
        and any(batch.length in origin.prefixes for origin in found.origins if origin.create is create)
    )
