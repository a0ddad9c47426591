"""A log of one version judged by the engine of another: the same events under the ids that the other would have drawn.

Versions differ in the protocol that their worlds speak: how events are named (ULIDs, later dense numbers) and how the
ids of a run are seeded. Ranks are the same in both, so each id is moved by the distance between the two sequences,
which one pass over the beginning of the run shows. Measured with 5.0.0-beta.55 over logs of beta.35: it rejects a
completed run at exactly the first event that contradicts the order of its log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stormctl.history import ids, kinds
from stormctl.targets.sdk.replay.answer import Answer, Asked
from stormctl.targets.sdk.replay.bundle import Bundle
from stormctl.targets.sdk.replay.record import SLOT, RunRecord
from stormctl.targets.sdk.versions import parse

#: from which version on worlds speak which protocol, as far as it was measured
SPOKEN = ((parse("5.0.0-beta.44"), 7), (parse("5.0.0-beta.0"), 5), (parse("4.0.0"), 3))
#: the first protocol whose events are named by dense numbers
SLOT_SPEC = 6
_IDS = re.compile(rf"\b({kinds.STEP}|{kinds.WAIT}|{kinds.HOOK}|{kinds.ATTR})_([0-9A-HJKMNP-TV-Z]{{26}})\b")


def spoken_by(bundle: Bundle) -> int | None:
    """The version of the protocol that a bundle's engine takes logs in; None where its own version is not known."""
    if bundle.version is None:
        return None
    version = parse(bundle.version)
    return next((spec for since, spec in SPOKEN if version >= since), None)


@dataclass(frozen=True, slots=True)
class Transplant:
    """How the ids of a log are called by another engine. ``shift`` is added to the ordinal of every drawn id."""

    spec: int
    shift: int = 0

    def record(self, record: RunRecord) -> RunRecord:
        """The run as the other engine would have written it."""
        slots = self.spec >= SLOT_SPEC
        events = tuple(self._event(event, index + 1, slots=slots) for index, event in enumerate(record.events))
        run = {**record.run, "specVersion": self.spec}
        return replace(record, spec=self.spec, era=SLOT if slots else record.era, run=run, events=events)

    def event_id(self, position: int, event_id: str) -> str:
        """The name of the event at a position (from 1)."""
        return ids.slot_id(position) if self.spec >= SLOT_SPEC else event_id

    def back(self, answer: Answer) -> Answer:
        """The answer with the ids of the log."""
        asked = tuple(self._asked(one) for one in answer.asked)
        return replace(answer, asked=asked)

    def back_in(self, text: str) -> str:
        """A sentence of the engine with the ids of the log."""
        return _IDS.sub(lambda found: self._moved(found[0], -self.shift), text)

    def _asked(self, one: Asked) -> Asked:
        if one.correlation_id is None:
            return one
        return replace(one, correlation_id=self._moved(one.correlation_id, -self.shift))

    def _event(self, event: Mapping[str, Any], position: int, *, slots: bool) -> dict[str, Any]:
        moved = {**event, "specVersion": self.spec}
        if slots:
            moved["eventId"] = ids.slot_id(position)
        if isinstance(event.get("correlationId"), str):
            moved["correlationId"] = self._moved(event["correlationId"], self.shift)
        return moved

    def _moved(self, correlation_id: str, by: int) -> str:
        kind, body = ids.split(correlation_id)
        if not ids.is_body(body) or ids.is_count(body):
            return correlation_id
        value = ids.ordinal(body) + by
        return f"{kind}_{ids.body_of(value)}" if 0 <= value < 1 << 130 else correlation_id


__all__ = ["Transplant", "spoken_by"]
