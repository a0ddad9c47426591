"""Liveness: a run that is still going has something that will wake it, and nothing that should have.

The clock is the moment of the capture where that is known, and else the time of the log's last event. A run is quiet
for a while before it is called stuck: measured too early, every busy run looks like one.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormctl.history import CAPTURED_AT, Capture, Facet, kinds
from stormctl.sweeps.base import sweep
from stormctl.sweeps.entity_rows import ENDED
from stormctl.sweeps.finding import Fault, Item, Noted
from stormctl.sweeps.witness import label, ranked

KINDS = ("overdue-wait", "unstarted-step", "stalled-step", "no-wake-source")
#: For how long a wait may be overdue, a step not started, or a run without anything to wake it, in milliseconds.
QUIET_MS = 60_000
#: How long a step may run before it is taken for lost.
STALLED_MS = 15 * 60_000


def _going(capture: Capture) -> bool:
    """Whether the run has not ended, as far as the capture tells."""
    ended = capture.log.ended or (capture.run is not None and capture.run.status in ENDED)
    return not ended and not capture.evidence.truncated


@sweep(
    "liveness",
    needs={Facet.TIMES, Facet.CORRELATION_IDS},
    kinds=KINDS,
    optional=True,
    where=_going,
    evidence="a run that is still going",
)
def liveness(capture: Capture) -> Iterator[Item]:
    """Will something wake the run, and is nothing overdue?"""
    log = capture.log
    last = max((event.created_at for event in log.events if event.created_at is not None), default=None)
    if last is None:
        return
    told = capture.data.get(CAPTURED_AT)
    now = told if isinstance(told, int) else last
    if not isinstance(told, int):
        yield Noted("the time of the capture")  # the log's last event stands for it
    waits, steps, hooks = _open(capture)
    for index in waits.values():
        due = log[index].resume_at
        if due is not None and now - due > QUIET_MS:
            text = f"{ranked(log, log[index])} was due {(now - due) // 1000} s ago and has not completed"
            yield Fault("overdue-wait", text, (index,), log[index].correlation_id or "")
    for index in steps.values():
        event = log[index]
        # an attempt that failed may be put off for a while before the next
        started = event.type != kinds.STEP_CREATED or Facet.STARTS in capture.evidence.missing
        age = now - (event.created_at if event.created_at is not None else now)
        if age > (STALLED_MS if started else QUIET_MS):
            kind = "stalled-step" if started else "unstarted-step"
            how = f"has not ended {age // 1000} s after {event.type}"
            if not started:
                how = f"was not started for {age // 1000} s"
            yield Fault(kind, f"{label(event)} ({ranked(log, event)}) {how}", (index,), event.correlation_id or "")
    begun = any(event.type == kinds.RUN_STARTED for event in log.events)
    if begun and not (waits or steps or hooks) and now - last > QUIET_MS:
        text = f"nothing has happened for {(now - last) // 1000} s, and no step, wait or hook is open"
        yield Fault("no-wake-source", text, (len(log) - 1,), log.run_id)


def _open(capture: Capture) -> tuple[dict[str, int], dict[str, int], set[str]]:
    """The waits, steps and hooks that are open at the end: a wait by its create, a step by its latest event."""
    waits: dict[str, int] = {}
    steps: dict[str, int] = {}
    hooks: set[str] = set()
    done: set[str] = set()
    for index, event in enumerate(capture.log.events):
        name, event_type = event.correlation_id, event.type
        if name is None:
            continue
        if event_type in kinds.STEP_TERMINAL:
            done.add(name)
            steps.pop(name, None)
        elif event_type in kinds.STEP_TYPES:
            if name not in done:
                steps[name] = index
        elif event_type == kinds.WAIT_CREATED:
            if name not in done:
                waits.setdefault(name, index)
        elif event_type == kinds.WAIT_COMPLETED:
            done.add(name)
            waits.pop(name, None)
        elif event_type == kinds.HOOK_CREATED:
            hooks.add(name)
        elif event_type in (kinds.HOOK_DISPOSED, kinds.HOOK_CONFLICT):
            hooks.discard(name)
    return waits, steps, hooks
