"""The numbers that a delivery goes by. Times are milliseconds, already scaled."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stormctl.engine.generations import NETS, Generation


@dataclass(frozen=True, slots=True)
class Rules:
    """Upstream's budgets.

    ``recovery_replays``: so many fresh deliveries try again after a divergence; the next divergence is final.
    ``restarts``: in-process restarts of one delivery after refused preconditions; then the run is invoked again
    after ``reinvoke_delay_ms``, at most ``reinvocations`` times. ``pass_scale`` multiplies the virtual duration of a
    pass to the time that a delivery spends between reading the log and its first write. ``looks``: so often a step
    message comes back for a step that the store does not know yet.
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

    def scaled(self, factor: float) -> Rules:
        """The same rules in a world whose time runs ``1 / factor`` times as fast."""
        return replace(
            self,
            reinvoke_delay_ms=self.reinvoke_delay_ms * factor,
            step_retry_ms=self.step_retry_ms * factor,
            lease_ms=self.lease_ms * factor,
            look_again_ms=self.look_again_ms * factor,
            pass_scale=self.pass_scale * factor,
        )
