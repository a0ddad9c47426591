"""After a storm on the SDK: whose divergences a generation of ours predicts, and which completed runs are silently
wrong.

For every corrupted log the divergence that the SDK printed is compared with that of the generation which stands for its
version, on the same log: event, what stands there, what the workflow did instead. What is not predicted is listed with
why. Kept as ``predictions.json``, schema ``stormctl.predictions/1``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stormctl.errors import StormctlError
from stormctl.history import Capture
from stormctl.readers import open_captures
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.storm.sdk_plan import environment_of, version_of
from stormctl.targets.sdk.generations import generation_of
from stormctl.targets.sdk.printed import EngineFor, Prediction, predictions

SCHEMA = "stormctl.predictions/1"
FILE = "predictions.json"
#: how many logs that were not predicted a person is told of; the file has all
MOST_TOLD = 10


@dataclass(frozen=True, slots=True)
class Judged:
    """One corrupted log of a cell. ``why`` is empty where the generation predicts what the SDK printed."""

    cell: Cell
    generation: str
    run_id: str
    predicted: bool
    printed: dict[str, str] | None
    why: str


def judge(folder: StormFolder, attempts: Sequence[Attempt]) -> Iterator[Judged]:
    """Every corrupted attempt whose log was kept."""
    for attempt in attempts:
        path = folder.path / "logs" / f"{attempt.run_id}.ndjson"
        if attempt.outcome is not Outcome.CORRUPTED or not path.exists():
            continue
        cell = attempt.cell
        name = generation_of(version_of(cell), environment_of(cell))
        captures = [one for one in open_captures([path]) if isinstance(one, Capture)]
        try:
            for found in predictions(captures, [(name, EngineFor(name))]):
                yield _judged(cell, name, found)
        except StormctlError as bad:
            yield Judged(cell, name, str(attempt.run_id), predicted=False, printed=None, why=str(bad))


def account(folder: StormFolder, attempts: Sequence[Attempt]) -> Iterator[str]:
    """Write the file, and say it in sentences: the share per version, then what was not predicted."""
    found = list(judge(folder, attempts))
    if not found:
        return
    rows: list[dict[str, Any]] = [{**asdict(one.cell), **_row(one)} for one in found]
    folder.write_json(FILE, {"schema": SCHEMA, "logs": rows})
    for version in dict.fromkeys(one.cell.condition for one in found):
        own = [one for one in found if one.cell.condition == version]
        hits = sum(one.predicted for one in own)
        names = ", ".join(dict.fromkeys(one.generation for one in own))
        yield (
            f"{version}: the generation {names} predicts the divergence that the SDK printed in {hits} of {len(own)} "
            f"corrupted logs ({hits / len(own):.0%})"
        )
    missed = [one for one in found if not one.predicted]
    for one in missed[:MOST_TOLD]:
        yield f"not predicted: {one.run_id} ({one.cell.label}): {one.why}"
    if len(missed) > MOST_TOLD:
        yield f"not predicted: {len(missed) - MOST_TOLD} more, in {FILE}"


def _judged(cell: Cell, name: str, found: Prediction) -> Judged:
    predicted = name in found.by
    why = ""
    if not predicted:
        ours = next((text for said, text in found.said if said == name), "nothing")
        why = "the SDK printed no divergence that can be read" if found.printed is None else f"{name} has: {ours}"
    shown = None if found.printed is None else asdict(found.printed)
    return Judged(cell, name, found.run_id, predicted, shown, why)


def _row(one: Judged) -> dict[str, Any]:
    return {
        "run_id": one.run_id,
        "engine": one.generation,
        "predicted": one.predicted,
        "printed": one.printed,
        "why": one.why,
    }
