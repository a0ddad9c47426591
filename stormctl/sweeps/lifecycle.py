"""Lifecycle: each entity is created, used and ended in that order, once, and nothing happens after its end.

Most of these rules are kept by a store's conditional writes; a log that breaks one shows two writers that both believed
they were the first. Which of them harm a run depends on the release that reads the log, so every rule has a kind of its
own for the profiles. The rules of a single entity are in ``entities``; here are those of the run.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.history import Capture, Event, Facet, kinds
from stormctl.sweeps import entities
from stormctl.sweeps.base import sweep
from stormctl.sweeps.finding import Fault, Item, Noted

RUN_KINDS = (
    "run-created-absent",
    "run-created-late",
    "run-created-behind",
    "run-created-repeat",
    "run-started-repeat",
    "second-run-end",
    "run-end-repeat",
    "run-cancelled-repeat",
    "start-after-end",
    "receive-after-end",
    "event-after-end",
)

#: What a store takes for a run that has ended, in every release: the ends of work that was still going.
_ALWAYS_AFTER_END = frozenset({*kinds.STEP_TERMINAL, kinds.STEP_RETRYING, kinds.HOOK_DISPOSED, kinds.NOOP})


@sweep("lifecycle", needs={Facet.CORRELATION_IDS}, kinds=(*RUN_KINDS, *entities.KINDS))
def lifecycle(capture: Capture) -> Iterator[Item]:
    """Is every entity created, used and ended once, in that order?"""
    if Facet.RUN_BOUNDS in capture.evidence.missing:
        yield Noted(str(Facet.RUN_BOUNDS))
    else:
        yield from _opening(capture)
    if Facet.STARTS in capture.evidence.missing:
        yield Noted(str(Facet.STARTS))
    yield from _ending(capture)
    yield from entities.faults(capture)


def _opening(capture: Capture) -> Iterator[Fault]:
    run = capture.log.run_id
    created = _indices(capture, kinds.RUN_CREATED)
    started = _indices(capture, kinds.RUN_STARTED)
    if not created:
        if not capture.evidence.truncated:
            yield Fault("run-created-absent", "the run was never created", (0,) if len(capture.log) else (), run)
    elif created[0] > 0:
        # a resilient start writes run_started first; nothing else may
        before = [index for index in range(created[0]) if not kinds.is_foreign(capture.log[index].type)]
        odd = next((index for index in before if capture.log[index].type != kinds.RUN_STARTED), None)
        kind = "run-created-late" if odd is None else "run-created-behind"
        if before:
            at = before[0] if odd is None else odd
            yield Fault(kind, "events precede the run's creation", (created[0],), run, (at, created[0]))
    if len(created) > 1:
        yield Fault("run-created-repeat", f"the run was created {len(created)} times", created, run)
    if len(started) > 1:
        yield Fault("run-started-repeat", f"the run was started {len(started)} times", started, run)


def _ending(capture: Capture) -> Iterator[Fault]:
    run = capture.log.run_id
    ends = capture.log.ends
    if not ends:
        return
    first = capture.log[ends[0]]
    again: dict[str, list[int]] = {}
    for index in ends[1:]:
        event = capture.log[index]
        kind = "second-run-end"
        if event.type == first.type:
            kind = "run-cancelled-repeat" if event.type == kinds.RUN_CANCELLED else "run-end-repeat"
        again.setdefault(kind, []).append(index)
    for kind, at in again.items():
        types = " and ".join(dict.fromkeys(capture.log[index].type for index in at))
        times = "" if len(at) == 1 else f", {len(at)} times"
        yield Fault(kind, f"the run ended as {first.type} and again as {types}{times}", tuple(at), run, (ends[0], *at))
    if ends[0] == len(capture.log) - 1:
        return
    retained = _retained_hooks(capture)
    for index in range(ends[0] + 1, len(capture.log)):
        event = capture.log[index]
        if event.is_terminal or event.type in _ALWAYS_AFTER_END or event.correlation_id in retained:
            continue
        if kinds.is_foreign(event.type):
            continue
        text = f"{event.type} follows the end of the run"
        yield Fault(_after_end(event), text, (index,), event.correlation_id or event.type, (ends[0], index))


def _after_end(event: Event) -> str:
    if event.type == kinds.STEP_STARTED:
        return "start-after-end"
    return "receive-after-end" if event.type == kinds.HOOK_RECEIVED else "event-after-end"


def _retained_hooks(capture: Capture) -> frozenset[str | None]:
    """Hooks whose token outlives the run: they may still receive."""
    return frozenset(
        event.correlation_id
        for event in capture.log
        if event.type == kinds.HOOK_CREATED and event.data.get("tokenRetentionUntil") is not None
    )


def _indices(capture: Capture, event_type: str) -> tuple[int, ...]:
    return tuple([index for index, event in enumerate(capture.log.events) if event.type == event_type])
