"""After a refused precondition: replay over a newer log, or give up and be invoked again later."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from stormctl.runtime import notes, ops, precondition
from stormctl.runtime.ops import Op
from stormctl.runtime.precondition import Source, Stale
from stormctl.runtime.rules import Rules
from stormctl.runtime.view import View
from stormctl.worlds import wire
from stormctl.worlds.base import Message

BUDGET = "budget"


class Restarts:
    """The restarts of one delivery. ``made`` counts them; ``why`` says, once they are over, what ended them."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.made = 0
        self.why = BUDGET

    def view_after(self, view: View, stale: Stale) -> Generator[Op, Any, View | None]:
        """The view to replay anew, or None when this delivery must give up.

        All sibling writes have settled. The delta that a refusal carries is used at most once; a store that counts
        in-band events is always read, because a delta does not tell its count.
        """
        yield notes.behind(stale)
        if self.made >= self._rules.restarts:
            return None
        self.made += 1
        counts = precondition.accepted_counts(stale.body)
        delta = precondition.accepted_delta(stale.body, view.run_id)
        allowed = precondition.may_use_delta(stale, self.made, cached=view.in_band is None)
        if delta is not None and allowed:
            source = Source.INLINE_DELTA
            newer = view.merged(*delta)
        else:
            source = Source.FULL_RELOAD
            newer = View.of(view.run_id, (yield ops.Load(view.run_id)))
        judged = precondition.judge(view.events, newer.events, source, counts)
        yield notes.restart(
            self.made, stale, source, judged, counts, _word(stale, sound=delta is not None, allowed=allowed)
        )
        if judged.stalled is not None:
            self.why = str(judged.stalled)
            return None
        return newer


def invoked_again(message: Message, rules: Rules, why: str) -> Generator[Op, Any, bool]:
    """Send the message that invokes the run again; False when that was done too often and the run must fail.

    The count of divergences goes along: else a run could alternate between the two ladders for ever.
    """
    number = message.reinvocations + 1
    if number > rules.reinvocations:
        yield notes.exhausted(number, why)
        return False
    yield notes.reinvocation(number, why)
    again = replace(message, reinvocations=number, step_id=None, step_name=None, data={})
    yield ops.Enqueue(again, rules.reinvoke_delay_ms)
    return True


def _word(stale: Stale, *, sound: bool, allowed: bool) -> str:
    """What became of the delta, for the note."""
    if wire.EVENTS not in stale.body:
        return "none"
    return "bad" if not sound else "used" if allowed else "not-allowed"
