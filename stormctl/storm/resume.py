"""Going on with a storm that ended early: what landed is kept, the rest is run with the same plan and seeds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stormctl.errors import StoreBusy, StoreFailure, UnreadableInput, UsageError
from stormctl.storm.attempt import SCHEMA, Attempt, Cell
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import Plan, load_plan
from stormctl.worlds.owner import driver_of


@dataclass(frozen=True, slots=True)
class Lost:
    """An attempt whose driver died: its run may still be in the store."""

    cell: Cell
    number: int
    run_id: str


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an earlier life of the storm left."""

    landed: tuple[Attempt, ...] = ()
    lost: tuple[Lost, ...] = ()

    def note(self, cell: Cell, number: int) -> str | None:
        """What an attempt that is made again says of its earlier tries."""
        runs = [one.run_id for one in self.lost if (one.cell, one.number) == (cell, number)]
        return f"tried again: the driver ended during {', '.join(runs)}" if runs else None


@dataclass(frozen=True, slots=True)
class Resumable:
    """A storm that can go on."""

    folder: StormFolder
    plan: Plan
    earlier: Earlier = field(default_factory=Earlier)


def resumable(path: Path) -> Resumable:
    """The storm in an artefact folder (or in ``latest`` of a plan's folder), ready to go on.

    UsageError when it is done, StoreBusy when its driver lives, PlanError when its plan cannot be read here,
    UnreadableInput when this is no artefact folder. A torn last line of ``attempts.ndjson`` is taken away.
    """
    folder = storm_folder(path)
    alive = driver_of(folder.path)
    if alive is not None:
        raise StoreBusy(
            f"the storm in {folder.path} is running: pid {alive.get('pid')} on {alive.get('host')}",
            remedy="Wait until it ends, or stop it.",
        )
    if _reason(folder) in ("done", "resolved"):
        raise UsageError(f"the storm in {folder.path} is done: there is nothing to resume", remedy="Start a new one.")
    plan = load_plan(folder.path / "plan.yaml")
    landed = tuple(Attempt.from_row(row) for row in _rows(folder.attempts_file, mend=True) if _known(row))
    made = {(one.cell, one.number) for one in landed}
    lost = tuple(one for row in _rows(folder.started_file) if ((one := _lost(row)).cell, one.number) not in made)
    return Resumable(folder, plan, Earlier(landed, lost))


def storm_folder(path: Path) -> StormFolder:
    """The artefact folder that a person means: itself, or a plan's folder, which holds ``latest``."""
    if not (path / "attempts.ndjson").exists() and (path / "latest" / "attempts.ndjson").exists():
        path = path / "latest"
    if not (path / "attempts.ndjson").is_file():
        raise UnreadableInput(
            f"{path} is not an artefact folder: it has no attempts.ndjson",
            remedy="Name the folder that `stormctl run` printed, such as .stormctl/storm/latest.",
        )
    return StormFolder(path.resolve())


def _reason(folder: StormFolder) -> str | None:
    try:
        found = json.loads((folder.path / "storm.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found.get("reason") if isinstance(found, dict) else None


def _known(row: Mapping[str, Any]) -> bool:
    if row.get("schema", SCHEMA) != SCHEMA:
        raise UnreadableInput(f"an attempt has the schema {row['schema']!r}", remedy="Upgrade stormctl.")
    return True


def _lost(row: Mapping[str, Any]) -> Lost:
    cell = Cell(row["scenario"], row["world"], row["condition"], row["generation"])
    return Lost(cell, row["number"], row["run_id"])


def _rows(path: Path, *, mend: bool = False) -> list[dict[str, Any]]:
    """The rows of a file, without a torn last line; ``mend`` takes that away from the file, too."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as bad:
        raise UnreadableInput(f"{path} cannot be read: {bad.strerror}", remedy="Check its permissions.") from None
    whole = raw[: raw.rfind(b"\n") + 1]
    rows = []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            row = json.loads(line)
            _lost(row)
        except (ValueError, TypeError, KeyError):
            raise UnreadableInput(
                f"line {number} of {path} is damaged", remedy="Remove that line: its attempt is made again."
            ) from None
        rows.append(row)
    if mend and len(whole) < len(raw):
        try:
            with path.open("r+b") as file:
                file.truncate(len(whole))
        except OSError as bad:
            raise StoreFailure(f"{path} cannot be mended: {bad.strerror}", remedy="Check its permissions.") from None
    return rows
