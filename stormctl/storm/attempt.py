"""One landed attempt, as it is kept in ``attempts.ndjson``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from stormctl.storm.outcome import Outcome

SCHEMA = "stormctl.attempt/1"


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One combination of the matrix: what is varied between two rates that are compared."""

    scenario: str
    world: str
    condition: str
    generation: str

    @property
    def label(self) -> str:
        """The cell in one word: ``step-storm/local/main/nets``."""
        return f"{self.scenario}/{self.world}/{self.condition}/{self.generation}"

    @property
    def arm(self) -> str:
        """The cell without its scenario: ``local/main + nets``."""
        return f"{self.world}/{self.condition} + {self.generation}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """How one run of a storm came out.

    ``number`` counts from 1 within the cell. Times are wall milliseconds. ``pressure`` holds ``resumes_sent``,
    ``resumes_failed``, ``hook_missing``, ``stragglers`` (completed runs only), ``details`` (what only the scenario
    counts) and ``vacuous`` (why the run proves nothing). ``work`` counts what the runtime did: ``deliveries``,
    ``passes``, ``restarts``, ``divergences``, ``refused`` preconditions and the ``useless`` ones of them, and whatever
    else it noted. ``progress`` (stuck runs) holds ``last_event`` and ``quiet_ms``. ``flags`` are words such as
    ``pressure-lost`` and ``vacuous``. ``note`` tells of an earlier try under this number that came to nothing.
    """

    cell: Cell
    number: int
    run_id: str | None
    outcome: Outcome
    status: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    started_at: str = ""
    duration_ms: float = 0.0
    events: int = 0
    pressure: Mapping[str, Any] = field(default_factory=dict)
    work: Mapping[str, int] = field(default_factory=dict)
    progress: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    note: str | None = None

    def row(self) -> dict[str, Any]:
        """The JSON row: flat cell columns first, so that pandas reads it in one line."""
        body = asdict(self)
        cell = body.pop("cell")
        if body["note"] is None:
            del body["note"]
        return {"schema": SCHEMA, **cell, **body, "outcome": str(self.outcome), "flags": list(self.flags)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Attempt:
        """The inverse of :meth:`row`."""
        known = {name: row[name] for name in cls.__dataclass_fields__ if name in row and name != "cell"}
        cell = Cell(row["scenario"], row["world"], row["condition"], row["generation"])
        known["outcome"] = Outcome(row["outcome"])
        known["flags"] = tuple(row.get("flags", ()))
        return cls(cell=cell, **known)
