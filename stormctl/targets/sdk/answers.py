"""What a host answers, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Health:
    """What a host says of itself. ``peak_in_flight`` is the most invocations of one run that overlapped."""

    pid: int
    port: int
    version: str
    world_package: str
    world_version: str
    spec_version: int | None
    attributes: bool
    workflows: tuple[str, ...]
    deliveries: int
    duplicates: int
    in_flight: int
    peak_in_flight: int
    held: int

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Health:
        """From the answer of ``/healthz``."""
        return cls(
            said["pid"],
            said["port"],
            said["version"],
            said["worldPackage"],
            said["worldVersion"],
            said["specVersion"],
            said["attributes"],
            tuple(said["workflows"]),
            said["deliveries"],
            said["duplicates"],
            said["inFlight"],
            said["peakInFlight"],
            said["held"],
        )


@dataclass(frozen=True, slots=True)
class HookFound:
    """A live hook: its correlation id and its run's id."""

    hook_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class RunState:
    """A run as its server reports it. ``error`` may be long; ``error_code`` as the SDK classified it."""

    status: str
    error_code: str | None
    error: str | None

    @property
    def ended(self) -> bool:
        """Whether nothing more can become of it."""
        return self.status in ("completed", "failed", "cancelled")
