"""Spec versions: the events of a run were written under one version of the log's format, and look like it."""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.history import Capture, ids, kinds
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item

KINDS = ("mixed-spec", "id-spec", "noop-spec", "noop-id")
#: From which version on event ids count slots, and from which a slot may be filled with a noop.
SLOTS_SINCE, NOOP_SINCE = 6, 7


@sweep("spec", kinds=KINDS)
def spec(capture: Capture) -> Iterator[Item]:
    """Were all events written under one spec version, and in its form?"""
    log = capture.log
    first: dict[int, int] = {}
    early: list[int] = []
    for index, event in enumerate(log.events):
        version = event.spec
        if event.type == kinds.NOOP:
            yield from _noop(capture, index)
        if version is None:
            continue
        if version not in first:
            first[version] = index
        if version < SLOTS_SINCE and event.event_id and ids.slot_of(event.event_id) is not None:
            early.append(index)
    if len(first) > 1:
        text = f"events of the spec versions {', '.join(map(str, sorted(first)))} in one log"
        yield Fault("mixed-spec", text, tuple(first.values()), log.run_id)
    if early:
        text = f"{len(early)} events have slot ids, which spec version {log[early[0]].spec} does not know"
        yield Fault("id-spec", text, tuple(early), log.run_id, witness=(early[0],))


def _noop(capture: Capture, index: int) -> Iterator[Fault]:
    """A noop fills a slot that nobody published, and says which."""
    event = capture.log[index]
    entity = event.event_id or str(index)
    if event.spec is not None and event.spec < NOOP_SINCE:
        yield Fault("noop-spec", f"a noop under spec version {event.spec}, which has none", (index,), entity)
    slot = ids.slot_of(event.event_id or "")
    if slot is None or event.correlation_id is None:
        return
    if ids.split(event.correlation_id) != (kinds.NOOP, ids.split(ids.slot_id(slot))[1]):
        yield Fault("noop-id", f"the noop in slot {slot} says that it fills {event.correlation_id}", (index,), entity)
