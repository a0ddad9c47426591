"""After a storm on the SDK: whose divergences a generation of ours predicts, and which completed runs are silently
wrong.

For every corrupted log the divergence that the SDK printed is compared with that of the generation which stands for its
version, on the same log: event, what stands there, what the workflow did instead. The share is told for every version,
also for one that corrupted nothing; what is not predicted is listed with why. Kept as ``predictions.json``, schema
``stormctl.predictions/1``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stormctl.errors import StormctlError
from stormctl.history import Capture
from stormctl.readers import open_captures
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.targets.sdk.printed import EngineFor, Prediction, predictions

SCHEMA = "stormctl.predictions/1"
FILE = "predictions.json"
#: how many logs that were not predicted a person is told of; the file has all
MOST_TOLD = 10

#: the generation of ours that stands for what a cell ran; None where that is not known
StandsFor = Callable[[Cell], str | None]


@dataclass(frozen=True, slots=True)
class Judged:
    """One corrupted log of a cell. ``why`` is empty where the generation predicts what the SDK printed."""

    cell: Cell
    generation: str
    run_id: str
    predicted: bool
    printed: dict[str, str] | None
    why: str


@dataclass(frozen=True, slots=True)
class Share:
    """Of one version: its attempts that say something (all but infra), how many of them corrupted, of how many of those
    the log was ``judged``, and how many of these are predicted by ``generations``, those of ours that stand for it.
    """

    version: str
    generations: tuple[str, ...]
    attempts: int
    corrupted: int
    judged: int
    predicted: int

    @property
    def text(self) -> str:
        """The share in a sentence."""
        names = ", ".join(self.generations)
        if not self.corrupted:
            return f"{self.version}: {self.corrupted} of {self.attempts} attempts corrupted, nothing to predict"
        if not names:
            return f"{self.version}: {self.corrupted} corrupted, and no generation of ours is known to stand for it"
        if not self.judged:
            return f"{self.version}: {self.corrupted} corrupted, and the log of none was kept, so nothing was predicted"
        lost = self.corrupted - self.judged
        return (
            f"{self.version}: the generation {names} predicts the divergence that the SDK printed in {self.predicted} "
            f"of {self.judged} corrupted logs ({self.predicted / self.judged:.0%})"
            + (f"; {lost} more left no log" if lost else "")
        )


def judge(folder: StormFolder, attempts: Sequence[Attempt], stands_for: StandsFor) -> Iterator[Judged]:
    """Every corrupted attempt whose log was kept and whose version some generation stands for."""
    for attempt in attempts:
        path = folder.path / "logs" / f"{attempt.run_id}.ndjson"
        if attempt.outcome is not Outcome.CORRUPTED or not path.exists():
            continue
        cell = attempt.cell
        name = stands_for(cell)
        if name is None:
            continue
        captures = [one for one in open_captures([path]) if isinstance(one, Capture)]
        try:
            for found in predictions(captures, [(name, EngineFor(name))]):
                yield _judged(cell, name, found)
        except StormctlError as bad:
            yield Judged(cell, name, str(attempt.run_id), predicted=False, printed=None, why=str(bad))


def shares(attempts: Sequence[Attempt], found: Sequence[Judged], stands_for: StandsFor) -> Iterator[Share]:
    """The share of every version that was run, in the order in which they were."""
    for version in dict.fromkeys(one.cell.condition for one in attempts):
        ran = [one for one in attempts if one.cell.condition == version and one.outcome is not Outcome.INFRA]
        own = [one for one in found if one.cell.condition == version]
        names = dict.fromkeys(name for one in ran if (name := stands_for(one.cell)) is not None)
        yield Share(
            version=version,
            generations=tuple(names),
            attempts=len(ran),
            corrupted=sum(one.outcome is Outcome.CORRUPTED for one in ran),
            judged=len(own),
            predicted=sum(one.predicted for one in own),
        )


def account(folder: StormFolder, attempts: Sequence[Attempt], stands_for: StandsFor) -> Iterator[str]:
    """Write the file, and say it in sentences: the share per version, then what was not predicted."""
    found = list(judge(folder, attempts, stands_for))
    counted = list(shares(attempts, found, stands_for))
    if not counted:
        return
    rows: list[dict[str, Any]] = [{**asdict(one.cell), **_row(one)} for one in found]
    folder.write_json(FILE, {"schema": SCHEMA, "versions": [asdict(one) for one in counted], "logs": rows})
    yield from (one.text for one in counted)
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
