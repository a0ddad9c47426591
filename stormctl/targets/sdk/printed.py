"""What the SDK says of a log that it gave up, and whether an engine of ours says the same.

A run that ends with CORRUPTED_EVENT_LOG carries a text such as

    Workflow replay diverged 4 times after 3 recovery replays; latest divergent event was <event>. Last divergence:
    Replay divergence: step event step_created for <step> belongs to "<name>", but the current step consumer is "<name>"

It names an event, what stands there, and what the workflow did instead. An engine that predicts all three on the log
as it is knows why the run ended; one that only diverges somewhere does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stormctl.engine.door import Divergence, Engine
from stormctl.errors import StormctlError
from stormctl.history import Capture, Event, EventLog
from stormctl.targets.sdk.generations import generation_of
from stormctl.times import ms_of

NAME, RESUME_AT, UNCONSUMED = "name", "resume-at", "unconsumed"

_EVENT = re.compile(r"latest divergent event was (\w+)")
_NAME = re.compile(r'(\w+) for \w+ belongs to "([^"]*)", but the current step consumer is "([^"]*)"')
_RESUME = re.compile(r'(\w+) event for \w+ has resumeAt "([^"]*)", but the current wait consumer expects "([^"]*)"')
_UNCONSUMED = re.compile(r"could not consume|was not consumed|[Uu]nconsumed event", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Printed:
    """A divergence as the SDK printed it. ``expected`` is what the event holds, ``actual`` what the workflow did: names
    of steps, or times in epoch milliseconds; empty where the text says neither."""

    event_id: str
    kind: str
    expected: str = ""
    actual: str = ""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One corrupted log beside the engines. ``by`` are those that predict it; ``said`` is what each said instead."""

    run_id: str
    version: str | None
    printed: Printed | None
    by: tuple[str, ...]
    said: tuple[tuple[str, str], ...]


def printed(message: str | None) -> Printed | None:
    """The divergence in an error's text; None for a text that names none, or one that stormctl cannot read."""
    event = _EVENT.search(message or "")
    if event is None or message is None:
        return None
    if (name := _NAME.search(message)) is not None:
        return Printed(event[1], NAME, name[2], name[3])
    if (times := _RESUME.search(message)) is not None:
        return Printed(event[1], RESUME_AT, _ms(times[2]), _ms(times[3]))
    return Printed(event[1], UNCONSUMED) if _UNCONSUMED.search(message) else None


def same(found: Divergence | None, wanted: Printed) -> bool:
    """Whether a divergence of ours is the printed one: its event, what stands there, what the workflow did."""
    if found is None or found.event_id != wanted.event_id:
        return False
    if wanted.kind == UNCONSUMED:
        return found.reason in ("unconsumed", "item", "stranded")
    return _last(found.expected) == _last(wanted.expected) and _last(found.actual) == _last(wanted.actual)


def judged(log: EventLog) -> EventLog:
    """The log as the replay saw it that gave the run up: without the events that ended it."""
    return EventLog([event for event in log if not event.is_terminal], log.run_id)


def predictions(captures: Iterable[Capture], engines: Iterable[tuple[str, EngineFor]]) -> Iterator[Prediction]:
    """Every corrupted capture beside all engines. An engine that cannot replay a log says why not."""
    named = list(engines)
    for capture in captures:
        if capture.run is None or capture.run.status != "failed":
            continue
        wanted = printed(capture.run.error_message)
        by, said = [], []
        log = judged(capture.log)
        for name, make in named:
            try:
                (one,) = make(capture).passes(log, [len(log)])
            except StormctlError as bad:
                said.append((name, str(bad)))
                continue
            if wanted is not None and same(one.divergence, wanted):
                by.append(name)
            else:
                said.append((name, "no divergence" if one.divergence is None else one.divergence.text))
        yield Prediction(log.run_id, core_version(capture.log), wanted, tuple(by), tuple(said))


class EngineFor:
    """A generation of ours, for the workload and input of a capture."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, capture: Capture) -> Engine:
        from stormctl.engine.engines import engine_for
        from stormctl.workloads.registry import workload

        assert capture.run is not None
        code = workload(capture.run.workload or "")
        return engine_for(self.name, code, code.parse_input(dict(capture.run.input)))


def core_version(events: Iterable[Event]) -> str | None:
    """The version of the SDK that began a run, as its first event says."""
    for event in events:
        context = event.data.get("executionContext")
        if isinstance(context, dict) and isinstance(context.get("workflowCoreVersion"), str):
            return str(context["workflowCoreVersion"])
    return None


def own(version: str) -> tuple[str, EngineFor]:
    """The generation that stands for a version."""
    name = generation_of(version)
    return name, EngineFor(name)


def _last(label: str) -> str:
    """``step:release`` and ``step//./workflows/storms//release`` -> ``release``; ``wait until 17`` -> ``17``."""
    return label.rpartition("//")[2].rpartition(":")[2].rpartition(" ")[2]


def _ms(text: str) -> str:
    try:
        return str(ms_of(text))
    except ValueError:
        return text
