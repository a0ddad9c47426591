"""From what a bundle's engine asked its world for to a pass.

The engine tells what it asks for and nothing else: what the log holds already it takes in silence. So the table of
draws of a pass is what the prefix holds, by the log, and what the pass asked for beyond it; and ``pending`` lists only
what is still to be created. What a cold replay parked, or how far its walk came, it does not tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stormctl.engine.door import Create, Divergence, Draw, Outcome, Pass, Pending
from stormctl.errors import StormctlError
from stormctl.history import Event, EventLog, kinds
from stormctl.readers.payloads import Encoded, payload_of, readable
from stormctl.sweeps.witness import clean
from stormctl.targets.sdk.printed import NAME, RESUME_AT, UNCONSUMED, Printed, printed
from stormctl.targets.sdk.replay.answer import Answer, Asked
from stormctl.targets.sdk.replay.transplant import Transplant

OTHER = "other"
_EVENT = re.compile(r"latest divergent event was (\w+)")
_PREFIX = "Replay divergence: "
#: what begins an entity, and in which class it is asked for
_CREATES = {
    kinds.STEP_CREATED: Create.EAGER,
    kinds.STEP_STARTED: Create.LAZY,
    kinds.WAIT_CREATED: Create.WAIT,
    kinds.HOOK_CREATED: Create.HOOK,
    kinds.ATTR_SET: Create.ATTRIBUTE,
}


class RefusedPass(StormctlError):
    """A pass that was ended because of what the bundle did."""


@dataclass(frozen=True, slots=True)
class _Begun:
    """An entity of the log and where it begins there."""

    index: int
    correlation_id: str
    draw: Draw


class Translator:
    """Makes passes over one log from the answers of a worker, which may have been given it under other ids."""

    def __init__(self, log: EventLog, transplant: Transplant | None = None) -> None:
        self._log = log
        self._transplant = transplant
        self._begun = list(_begun(log))
        self._index = {
            event.event_id if transplant is None else transplant.event_id(index + 1, event.event_id): index
            for index, event in enumerate(log)
            if event.event_id is not None
        }
        self._draws: dict[tuple[Any, ...], Draw] = {}

    def blank(self, prefix: int) -> Pass:
        """The pass over a prefix in which the run has not begun: it asks for nothing."""
        return Pass(prefix=prefix, outcome=Outcome.SUSPENDED, draws=())

    def pass_of(self, answer: Answer) -> Pass:
        """The pass that an answer tells of. RefusedPass when the bundle did what no replay may do, or did not end."""
        if answer.guard is not None:
            raise RefusedPass(
                f"the bundle's replay of prefix {self._log.name_of_prefix(answer.prefix)} was ended: "
                f"{clean(answer.error or answer.guard)}",
                remedy="A workflow may do such things in steps only; see whether this is the right bundle.",
            )
        if self._transplant is not None:
            answer = self._transplant.back(answer)
        outcome, value, error, divergence = self._ending(answer)
        end = answer.prefix if divergence is None else divergence.index  # it took in what comes before
        held = {
            begun.correlation_id: begun.draw
            for begun in self._begun
            if begun.index < end and begun.index not in answer.hidden
        }
        asked = list(self._asked(answer, held)) if divergence is None else []
        draws = sorted({**held, **{item.correlation_id: self._drawn(item) for item in asked}}.values(), key=_rank)
        return Pass(
            prefix=answer.prefix,
            outcome=outcome,
            draws=tuple(draws),
            pending=tuple(sorted(asked, key=_rank)),
            divergence=divergence,
            value=value,
            error=error,
        )

    def _asked(self, answer: Answer, held: dict[str, Draw]) -> Iterator[Pending]:
        """What the pass asked for that the prefix does not hold, each entity once: a second create says nothing new."""
        seen = set(held)
        for one in answer.asked:
            create = _CREATES.get(one.type)
            if create is None or one.correlation_id is None or one.correlation_id in seen:
                continue
            rank = _rank_of(self._log, one.correlation_id)
            if rank is None:
                continue  # not of the run's sequence
            seen.add(one.correlation_id)
            kind = kinds.kind_of_type(one.type)
            yield Pending(
                rank=rank,
                kind=kind,
                correlation_id=one.correlation_id,
                name=_short(one.name) if kind == kinds.STEP else None,
                arguments=_arguments(one, kind),
                created=False,
                create=create,
                resume_at=one.resume_at if kind == kinds.WAIT else None,
                token=one.token if kind == kinds.HOOK else None,
            )

    def _drawn(self, item: Pending) -> Draw:
        """One object for one draw, in every pass that has it: tables are then compared quickly."""
        made = Draw(item.rank, item.kind, item.name, item.arguments, item.correlation_id)
        return self._draws.setdefault((made.rank, made.kind, made.name, made.digest), made)

    def _ending(self, answer: Answer) -> tuple[Outcome, Any, str | None, Divergence | None]:
        failure = answer.failure
        if failure is not None:
            found = _found(failure.message) if failure.divergence is not None else None
            if found is not None and found.event_id in self._index:
                return (
                    Outcome.DIVERGED,
                    None,
                    None,
                    self._divergence(found, (failure.divergence or "").removeprefix(_PREFIX)),
                )
            told = f"{failure.code}: {failure.message}" if failure.code else failure.message
            return Outcome.FAILED, None, told, None
        if any(one.type == kinds.RUN_COMPLETED for one in answer.asked):
            return Outcome.COMPLETED, readable(payload_of(answer.output)), None, None
        if answer.ended == "threw":
            return Outcome.FAILED, None, answer.error or "it threw", None
        return Outcome.SUSPENDED, None, None, None

    def _divergence(self, found: Printed, text: str) -> Divergence:
        index = self._index[found.event_id]
        event = self._log[index]
        expected, actual = _sides(found, event)
        return Divergence(
            reason=found.kind,
            index=index,
            position=event.position,
            event_id=event.event_id,
            event_type=event.type,
            rank=self._log.rank(event),
            expected=expected,
            actual=actual,
            text=text if self._transplant is None else self._transplant.back_in(text),
        )


def _found(message: str) -> Printed | None:
    """The divergence in the text. One of a form that nobody has met still names its event."""
    event = _EVENT.search(message)
    return printed(message) or (None if event is None else Printed(event[1], OTHER))


def _begun(log: EventLog) -> Iterator[_Begun]:
    """Every entity of the log whose id is of the run's sequence, where it first shows.

    A step that its delivery runs itself can be started before it is created; its input stands in the create.
    """
    inputs: dict[str, Any] = {}
    for event in log:
        if event.type in (kinds.STEP_CREATED, kinds.STEP_STARTED) and event.payload is not None:
            inputs.setdefault(event.correlation_id or "", readable(event.payload))
    seen: set[str] = set()
    for index, event in enumerate(log):
        found = event.correlation_id
        if found is None or found in seen or event.type not in _CREATES:
            continue
        rank = log.rank(event)
        if rank is None:
            continue
        seen.add(found)
        kind = event.kind
        arguments = inputs.get(found) if kind == kinds.STEP else event.token if kind == kinds.HOOK else None
        yield _Begun(index, found, Draw(rank, kind, event.short_name if kind == kinds.STEP else None, arguments, found))


def _arguments(asked: Asked, kind: str) -> Any:
    """A step's arguments, a hook's token. How long a wait was to be the log does not tell, so no wait's is compared."""
    if kind == kinds.STEP and asked.payload is not None:
        return readable(Encoded(asked.payload, arguments=True))
    return asked.token if kind == kinds.HOOK else None


def _sides(found: Printed, event: Event) -> tuple[str, str]:
    """What the event belongs to and what the workflow did instead, as a report has them."""
    if found.kind == NAME:
        return f"{event.kind}:{_short(found.expected)}", f"{event.kind}:{_short(found.actual)}"
    if found.kind == RESUME_AT:
        return f"wait until {found.expected}", f"wait until {found.actual}"
    name = event.short_name if event.kind == kinds.STEP else None
    return f"{event.kind}:{name}" if name else event.kind, "nothing" if found.kind == UNCONSUMED else "something else"


def _rank_of(log: EventLog, correlation_id: str) -> int | None:
    return log.rank(Event(type=kinds.NOOP, correlation_id=correlation_id))


def _rank(item: Draw | Pending) -> int:
    return item.rank


def _short(name: str | None) -> str | None:
    return None if name is None else name.rpartition("//")[2]


__all__ = ["RefusedPass", "Translator"]
