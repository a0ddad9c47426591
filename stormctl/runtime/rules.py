"""The numbers that a delivery goes by. Times are milliseconds, already scaled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from stormctl.engine.door import Engine
from stormctl.engine.engines import engine_for
from stormctl.engine.generations import NETS
from stormctl.engine.strategies import Generation

#: from a generation's name, a workload and its input to the engine that replays it
Engines = Callable[[str, Any, Any], Engine]


class OnConflict(StrEnum):
    """What a delivery makes of a create that exists already (409). Each counts a lost inline claim as a create.

    ``SWALLOW``: somebody else wrote the same, which nobody checks (what upstream does). ``COMPARE``: read the log and
    compare the two creates by type, name, token and input; a difference is a divergence. ``DIVERGE``: any such create
    is a divergence, so that a fresh delivery derives everything anew.
    """

    SWALLOW = "swallow"
    COMPARE = "compare-name-and-input"
    DIVERGE = "diverge"


@dataclass(frozen=True, slots=True)
class Rules:
    """Upstream's budgets and switches.

    ``recovery_replays``: so many fresh deliveries try again after a divergence; the next divergence is final.
    ``pass_scale`` multiplies the virtual duration of a pass to the time that a delivery spends between reading the log
    and its first write. ``looks``: so often a step message comes back for a step that the store does not know yet.

    Of the precondition protocol (vercel/workflow #2266, #3145, #3267): ``send_snapshot`` says whether replay-derived
    writes tell what was read (``WORKFLOW_PRECONDITION_GUARD``); ``restarts`` are the in-process restarts of one
    delivery after refused preconditions, after which the run is invoked again in ``reinvoke_delay_ms``, at most
    ``reinvocations`` times.

    Of slot logs: ``slot_gap_check`` (``WORKFLOW_SLOT_GAP_CHECK``) reads a log with a gap again before a replay, up to
    ``slot_gap_reads`` times, first after ``slot_gap_ms`` and then twice as long each time.

    ``on_conflict`` is what becomes of a 409 on a create; ``batch_atomic`` sends the creates of one phase of a
    suspension, and its inline claims, as one append (the cure that #3201 asks for). ``engines`` is where a delivery
    gets what replays for it: whoever runs the same prefix again and again may keep the passes.
    """

    generation: Generation = NETS
    recovery_replays: int = 3
    restarts: int = 3
    reinvocations: int = 5
    reinvoke_delay_ms: float = 2_000.0
    step_attempts: int = 3
    step_retry_ms: float = 1_000.0
    lease_ms: float = 860_000.0
    looks: int = 20
    look_again_ms: float = 50.0
    max_loops: int = 1_000
    max_events: int = 25_000
    pass_scale: float = 1.0
    send_snapshot: bool = True
    slot_gap_check: bool = True
    slot_gap_reads: int = 3
    slot_gap_ms: float = 25.0
    on_conflict: OnConflict = OnConflict.SWALLOW
    batch_atomic: bool = False
    engines: Engines = engine_for

    def scaled(self, factor: float) -> Rules:
        """The same rules in a world whose time runs ``1 / factor`` times as fast."""
        return replace(
            self,
            reinvoke_delay_ms=self.reinvoke_delay_ms * factor,
            step_retry_ms=self.step_retry_ms * factor,
            lease_ms=self.lease_ms * factor,
            look_again_ms=self.look_again_ms * factor,
            pass_scale=self.pass_scale * factor,
            slot_gap_ms=self.slot_gap_ms * factor,
        )
