"""What an explanation says, as values and as JSON of the schema ``stormctl.explain/1``. The keys are a contract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stormctl.readers.open import Unreadable
from stormctl.sweeps.report import unreadable_rows

SCHEMA = "stormctl.explain/1"


class Answer(StrEnum):
    """What could be said of a log.

    ``EXPLAINED``: it is corrupted, and a class fits. ``UNCLASSIFIED``: it is corrupted, and none does. ``OPEN``:
    nothing is proved; evidence is missing. ``NEEDS_WORKLOAD``: the same, and a workload would tell more. ``CLEAN``:
    nothing wrong was found.
    """

    EXPLAINED = "explained"
    UNCLASSIFIED = "unclassified"
    OPEN = "open"
    NEEDS_WORKLOAD = "needs a workload"
    CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class Named:
    """A class that holds. ``closed_by`` are upstream's pull requests; ``weight`` is ``shown`` or ``fits``."""

    name: str
    title: str
    group: str
    weight: str
    mechanism: str
    evidence: tuple[str, ...]
    positions: tuple[int, ...]
    closed_by: tuple[int, ...]
    closed: str
    question: str


@dataclass(frozen=True, slots=True)
class Beat:
    """One sentence of the story. ``word`` is ``first``, ``then``, ``however`` or ``so``."""

    word: str
    text: str


@dataclass(frozen=True, slots=True)
class WriterView:
    """What a writer had read: prefixes by name, as ranges, without the hidden positions.

    ``name`` is the reconstruction's; ``audit`` the writer's own name where the audit tells it, and ``snapshot`` how
    many events it said that it had read.
    """

    name: str
    prefixes: tuple[tuple[int, int], ...]
    hidden: tuple[int, ...] = ()
    audit: str | None = None
    snapshot: int | None = None


@dataclass(frozen=True, slots=True)
class GuiltyWrite:
    """The write that is to blame. ``staleness`` is how far behind its own position its writer's view ended."""

    position: int
    rank: int | None
    label: str
    written_as: str
    staleness: int | None
    writer: WriterView | None
    found_by: str


@dataclass(frozen=True, slots=True)
class Binding:
    """What one writer bound a rank to, and the position of what it wrote of it, if anything."""

    writer: WriterView
    rank: int
    label: str
    position: int | None


@dataclass(frozen=True, slots=True)
class BindingPair:
    """Two bindings that cannot both hold, side by side."""

    clash: str
    one: Binding
    other: Binding


@dataclass(frozen=True, slots=True)
class GenerationRow:
    """What one generation makes of the log's step and wait creates.

    ``unexplained`` are positions, ``clean_through`` and ``diverges_at`` names of prefixes. ``replayed`` counts
    prefixes, and ``cut`` says why it was not all of them.
    """

    engine: str
    creates: int
    explained: int
    unexplained: tuple[int, ...]
    flips: int
    clean_through: int | None
    diverges_at: int | None
    replayed: int
    cut: str | None = None


@dataclass(frozen=True, slots=True)
class Today:
    """Whether the newest generation would still do it: ``yes``, ``no`` or ``unknown``, and why."""

    engine: str
    would: str
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that is said of one log."""

    source: str
    run_id: str
    events: int
    profile: str
    answer: Answer
    headline: str
    workload: str | None = None
    named: Named | None = None
    also: tuple[Named, ...] = ()
    story: tuple[Beat, ...] = ()
    witness: tuple[str, ...] = ()
    guilty: GuiltyWrite | None = None
    bindings: tuple[BindingPair, ...] = ()
    #: the generation that the log is judged by, whether it is the only one that can have written it, and why
    written_by: str | None = None
    written_by_sure: bool = False
    written_by_why: str = ""
    generations: tuple[GenerationRow, ...] = ()
    today: Today | None = None
    #: what the sweeps that need no replay found fatal, as sentences
    findings: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The log's entry in the report."""
        return {
            "source": self.source,
            "run_id": self.run_id,
            "events": self.events,
            "profile": self.profile,
            "answer": str(self.answer),
            "headline": self.headline,
            "workload": self.workload,
            "class": None if self.named is None else _named(self.named),
            "also": [_named(one) for one in self.also],
            "story": [{"word": beat.word, "text": beat.text} for beat in self.story],
            "witness": list(self.witness),
            "guilty": None if self.guilty is None else _guilty(self.guilty),
            "bindings": [
                {"clash": pair.clash, "one": _binding(pair.one), "other": _binding(pair.other)}
                for pair in self.bindings
            ],
            "written_by": None
            if self.written_by is None
            else {"engine": self.written_by, "sure": self.written_by_sure, "why": self.written_by_why},
            "generations": [_row(row) for row in self.generations],
            "today": None
            if self.today is None
            else {"engine": self.today.engine, "would": self.today.would, "text": self.today.text},
            "findings": list(self.findings),
            "open": list(self.open),
            "left_out": list(self.left_out),
        }


def explain_report(logs: Sequence[Explanation], unreadable: Sequence[Unreadable] = ()) -> dict[str, Any]:
    """The whole report."""
    return {
        "schema": SCHEMA,
        "logs": [log.to_json() for log in logs],
        "unreadable": unreadable_rows(unreadable),
    }


def _named(one: Named) -> dict[str, Any]:
    return {
        "name": one.name,
        "title": one.title,
        "group": one.group,
        "weight": one.weight,
        "mechanism": one.mechanism,
        "evidence": list(one.evidence),
        "positions": list(one.positions),
        "closed_by": list(one.closed_by),
        "closed": one.closed,
        "question": one.question,
    }


def _writer(view: WriterView) -> dict[str, Any]:
    return {
        "name": view.name,
        "prefixes": [list(ends) for ends in view.prefixes],
        "hidden": list(view.hidden),
        "audit": view.audit,
        "snapshot": view.snapshot,
    }


def _guilty(write: GuiltyWrite) -> dict[str, Any]:
    return {
        "position": write.position,
        "rank": write.rank,
        "label": write.label,
        "written_as": write.written_as,
        "staleness": write.staleness,
        "writer": None if write.writer is None else _writer(write.writer),
        "found_by": write.found_by,
    }


def _binding(one: Binding) -> dict[str, Any]:
    return {"writer": _writer(one.writer), "rank": one.rank, "label": one.label, "position": one.position}


def _row(row: GenerationRow) -> dict[str, Any]:
    return {
        "engine": row.engine,
        "creates": row.creates,
        "explained": row.explained,
        "unexplained": list(row.unexplained),
        "flips": row.flips,
        "clean_through": row.clean_through,
        "diverges_at": row.diverges_at,
        "replayed": row.replayed,
        "cut": row.cut,
    }
