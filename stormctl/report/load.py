"""Opening an artefact folder, whole or cut short by Ctrl-C.

What is absent or half written is left out and named in ``notes``; only a folder without any attempts file is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from stormctl.errors import PlanError, UnreadableInput
from stormctl.report.controls import arm_key, suspect_arms
from stormctl.report.harmless import plain
from stormctl.report.redacted import redacted
from stormctl.storm.attempt import SCHEMA as ATTEMPT_SCHEMA
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.faults.fired import FaultFired, read_fired
from stormctl.storm.names import Names
from stormctl.storm.outcome import Outcome
from stormctl.storm.plan import Plan, load_plan

if TYPE_CHECKING:
    from pandas import DataFrame

_ANY = Outcome.COMPLETED
_T = TypeVar("_T")
SWEEP_SCHEMA = "stormctl.sweep/1"
FATAL = "fatal"


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What one sweep said of one log: its verdict, its findings by severity, and the evidence that it missed."""

    sweep: str
    verdict: str
    findings: Mapping[str, int]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SweptLog:
    """What all sweeps said of one log. ``flips`` and ``divergences`` are the rebinding's, over all its ``engines``."""

    run_id: str
    verdict: str
    events: int
    reasons: tuple[str, ...]
    sweeps: tuple[SweepResult, ...]
    flips: int = 0
    divergences: int = 0
    replayed: bool = False
    engines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Artefact:
    """A storm as its folder tells it.

    ``plan`` is None when plan.yaml is absent or of another version; ``reason`` is why the storm ended (``done``,
    ``budget``, ``interrupted``), or None when nobody wrote it down. ``fired`` is every fault that fired.
    ``called``, ``expected`` attempts and ``config`` stand for the plan of a storm that was not ours.
    """

    folder: Path
    attempts: tuple[Attempt, ...]
    plan: Plan | None = None
    logs: tuple[SweptLog, ...] = ()
    unreadable: tuple[str, ...] = ()
    env: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    notes: tuple[str, ...] = ()
    fired: tuple[FaultFired, ...] = ()
    called: str = ""
    expected: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The plan's name, or the folder's."""
        return self.plan.name if self.plan else self.called or self.folder.name

    @property
    def planned(self) -> int | None:
        """How many attempts were planned, if that is known."""
        return self.plan.total if self.plan else self.expected

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells in plan order, then any that only the attempts know."""
        planned = self.plan.cells if self.plan else ()
        return tuple(dict.fromkeys((*planned, *(attempt.cell for attempt in self.attempts))))

    @property
    def arms(self) -> tuple[str, ...]:
        """What is compared, in plan order: the first is old, the last is new."""
        return tuple(dict.fromkeys(self.arm(cell) for cell in self.cells))

    def suspect(self, cell: Cell) -> bool:
        """Whether a control of the cell's arm failed, so that its environment is suspect and nothing there gates."""
        return arm_key(cell) in suspect_arms(self.attempts)

    def arm(self, cell: Cell) -> str:
        """A cell without its scenario, and without its world when the storm has only one."""
        several = len({one.world for one in self.cells}) > 1
        return cell.arm if several else f"{cell.condition} + {cell.generation}"


def load_artefact(folder: Path) -> Artefact:
    """The artefact in a folder; ``latest`` and a plan's folder (which holds ``latest``) will do as well."""
    if not (folder / "attempts.ndjson").exists() and (folder / "latest").exists():
        folder = folder / "latest"
    folder = folder.resolve()
    notes: list[str] = []
    attempts = tuple(_attempts(folder / "attempts.ndjson", notes))
    logs, unreadable = _swept(_json(folder / "sweeps.json", notes), notes)
    return Artefact(
        folder=folder,
        attempts=attempts,
        plan=_plan(folder, notes),
        logs=logs,
        unreadable=unreadable,
        env=_json(folder / "env.json", notes),
        reason=_json(folder / "storm.json", notes).get("reason"),
        notes=tuple(notes),
        fired=tuple(read_fired(folder)),
    )


def newest(root: Path = Path(".stormctl")) -> Path:
    """The folder of the newest storm under ``.stormctl``."""
    found = [link.resolve() for link in root.glob("*/latest") if (link / "attempts.ndjson").exists()]
    if not found:
        raise UnreadableInput(f"there is no storm under {root}", remedy="Run one: make storm.")
    return max(found, key=lambda folder: folder.name)


def frame(artefact: Artefact) -> DataFrame:
    """One row per attempt: the columns of attempts.ndjson, ``arm``, ``shown`` (the outcome's group) and ``seconds``."""
    import pandas as pd

    from stormctl.report.style import look

    rows = [
        {
            **attempt.row(),
            "arm": artefact.arm(attempt.cell),
            "shown": look(attempt.outcome).word,
            "seconds": attempt.duration_ms / 1000,
        }
        for attempt in artefact.attempts
    ]
    columns = [*Attempt(Cell("", "", "", ""), 0, None, _ANY).row(), "arm", "shown", "seconds"]
    return pd.DataFrame(rows, columns=columns)


def _attempts(path: Path, notes: list[str]) -> Iterator[Attempt]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        raise UnreadableInput(
            f"{path.parent} is not an artefact folder: it has no attempts.ndjson",
            remedy="Name the folder that `stormctl run` printed at its end, such as .stormctl/storm/latest.",
        ) from None
    except OSError as bad:
        raise UnreadableInput(
            f"{path} cannot be read: {bad.strerror}", remedy="Check the folder's permissions."
        ) from None
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            if row.get("schema", ATTEMPT_SCHEMA) != ATTEMPT_SCHEMA:
                raise UnreadableInput(
                    f"{path.name} line {number} has the schema {row['schema']!r}", remedy="Upgrade stormctl to read it."
                )
            yield redacted(_harmless(Attempt.from_row(row)), path.parent)
        except (ValueError, KeyError, TypeError, AttributeError):
            what = "the last line was cut off" if number == len(lines) else f"line {number} is not an attempt"
            notes.append(f"attempts.ndjson: {what}; it is left out")


def _harmless(one: Attempt) -> Attempt:
    """Its names as tables may print them. A run's id stays as it is, because files go by it, but for what no encoding
    can hold. TypeError when a column is of another kind than a storm writes."""
    for value, kind in (
        (one.number, int),
        (one.run_id or "", str),
        (one.error_code or "", str),
        (one.error_message or "", str),
        (one.started_at, str),
        (one.duration_ms, int | float),
        (one.events, int),
        (one.pressure, dict),
        (one.work, dict),
        (one.progress, dict),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{value!r} is no {kind}")
    if not all(isinstance(count, int) for count in one.work.values()):
        raise TypeError("work is counted in whole numbers")
    axes = (one.cell.scenario, one.cell.world, one.cell.condition, one.cell.generation)
    return replace(
        one,
        cell=Cell(*(plain(str(axis)) for axis in axes)),
        run_id=_encodable(one.run_id),
        error_code=_encodable(one.error_code),
        error_message=_encodable(one.error_message),
        note=_encodable(one.note),
        progress={key: _encodable(value) for key, value in one.progress.items()},
        flags=tuple(plain(str(flag)) for flag in one.flags),
    )


def _encodable(value: _T) -> _T | str:
    """A text without halves of characters, which JSON can hold and nothing else; any other value as it is."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _plan(folder: Path, notes: list[str]) -> Plan | None:
    path = folder / "plan.yaml"
    if not path.exists():
        notes.append("plan.yaml is absent: cells are in the order in which they landed")
        return None
    try:
        return load_plan(path, names=Names.unchecked())
    except PlanError as bad:
        notes.append(f"plan.yaml is not used: {bad}")
        return None


def _json(path: Path, notes: list[str]) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        notes.append(f"{path.name} is absent")
        return {}
    except (OSError, ValueError) as bad:
        notes.append(f"{path.name} cannot be read ({type(bad).__name__})")
        return {}
    return value if isinstance(value, dict) else {}


def _swept(document: Mapping[str, Any], notes: list[str]) -> tuple[tuple[SweptLog, ...], tuple[str, ...]]:
    if not document:
        return (), ()
    if document.get("schema") != SWEEP_SCHEMA:
        notes.append(f"sweeps.json has the schema {document.get('schema')!r}, not {SWEEP_SCHEMA}")
        return (), ()
    logs = []
    for row in document.get("logs", ()):
        rebinding = row.get("rebinding", ())
        logs.append(
            SweptLog(
                run_id=row.get("run_id") or "",
                verdict=row.get("verdict", "unknown"),
                events=row.get("events") or 0,
                reasons=tuple(row.get("reasons", ())),
                sweeps=tuple(_sweep(one) for one in row.get("sweeps", ())),
                flips=sum(len(one.get("flips", ())) for one in rebinding),
                divergences=sum(one.get("divergence") is not None for one in rebinding),
                replayed=bool(rebinding),
                engines=tuple(dict.fromkeys(plain(str(one.get("engine", ""))) for one in rebinding)),
            )
        )
    return tuple(logs), tuple(
        plain(f"{one.get('source')}: {one.get('error')}") for one in document.get("unreadable", ())
    )


def _sweep(row: Mapping[str, Any]) -> SweepResult:
    counts: dict[str, int] = {}
    for finding in row.get("findings", ()):
        severity = finding.get("severity", FATAL)
        counts[severity] = counts.get(severity, 0) + 1
    return SweepResult(
        plain(str(row["sweep"])), row.get("verdict", "unknown"), counts, tuple(map(str, row.get("missing", ())))
    )
