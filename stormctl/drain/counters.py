"""The counters of a loop, each raised at the one place that gives it its meaning."""

from __future__ import annotations

from dataclasses import dataclass, fields

#: names as the real server reports them
NAMES = {
    "visibility_barriers": "visibilityBarriers",
    "visibility_recoveries": "visibilityRecoveries",
    "visibility_deferrals": "visibilityDeferrals",
    "deferred_rescans_armed": "deferredRescansArmed",
    "deferred_rescans_fired": "deferredRescansFired",
    "pre_queue_deferral_stuck": "preQueueDeferralStuck",
    "watermark_clamped": "watermarkClamped",
    "skipped_idempotent": "skippedIdempotent",
    "drain_in_flight_skips": "drainInFlightSkips",
    "appended": "appended",
    "processed": "processed",
    "waves": "waves",
    "exhausted": "exhausted",
    "queue_calls": "queueCalls",
    "responses": "responses",
}


@dataclass(slots=True)
class Counters:
    """How often, over all tenures of a run. ``queue_calls`` and ``responses`` are the fixture's, not the server's."""

    visibility_barriers: int = 0
    visibility_recoveries: int = 0
    visibility_deferrals: int = 0
    deferred_rescans_armed: int = 0
    deferred_rescans_fired: int = 0
    pre_queue_deferral_stuck: int = 0
    watermark_clamped: int = 0
    skipped_idempotent: int = 0
    drain_in_flight_skips: int = 0
    appended: int = 0
    processed: int = 0
    waves: int = 0
    exhausted: int = 0
    queue_calls: int = 0
    responses: int = 0

    def reported(self) -> tuple[tuple[str, int], ...]:
        """Names and values as they are reported."""
        return tuple((NAMES[field.name], getattr(self, field.name)) for field in fields(self))
