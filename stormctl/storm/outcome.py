"""How an attempt came out, and which outcomes gate."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of one attempt.

    ``SLOW`` and ``DORMANT`` are both shown as stuck: the first was still making progress when its cap ran out, the
    second was not. ``OTHER`` is any other gating failure (a ledger that contradicts itself among them), ``INFRA`` a
    fault of the harness or its machine, which says nothing about the run.
    """

    COMPLETED = "completed"
    CORRUPTED = "corrupted"
    USER_ERROR = "user-error"
    RUNTIME_ERROR = "runtime-error"
    CONTRACT_ERROR = "contract-error"
    SLOW = "slow"
    DORMANT = "dormant"
    OTHER = "other"
    INFRA = "infra"

    @property
    def stuck(self) -> bool:
        """Whether people read it as stuck."""
        return self in (Outcome.SLOW, Outcome.DORMANT)

    @property
    def gates(self) -> bool:
        """Whether it counts against the condition under test."""
        return self not in (Outcome.COMPLETED, Outcome.INFRA)


#: The plaintext code that a failed run carries -> its outcome; any other code, or none, is ``OTHER``.
BY_ERROR_CODE = {
    "CORRUPTED_EVENT_LOG": Outcome.CORRUPTED,
    "USER_ERROR": Outcome.USER_ERROR,
    "RUNTIME_ERROR": Outcome.RUNTIME_ERROR,
    "WORLD_CONTRACT_ERROR": Outcome.CONTRACT_ERROR,
}


class Counted(StrEnum):
    """What two arms are compared by, as far as an attempt itself tells it."""

    CORRUPTED = "corrupted"
    STUCK = "stuck"
    COMPLETED = "completed"
    ANY_FAILURE = "any-failure"

    def hit(self, outcome: Outcome) -> bool:
        """Whether an attempt with this outcome is counted."""
        if self is Counted.ANY_FAILURE:
            return outcome.gates
        if self is Counted.STUCK:
            return outcome.stuck
        return outcome is (Outcome.COMPLETED if self is Counted.COMPLETED else Outcome.CORRUPTED)
