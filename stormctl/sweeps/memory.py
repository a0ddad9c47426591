"""What a sweep may remember of a replay, so that a log that was replayed before need not be again.

A replay of a log hangs on nothing but what the engine can name (:class:`Telling`), the prefixes and what counts as a
flip. An engine that names nothing is never remembered: our own generations are quicker than a file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from stormctl.engine.door import Engine
from stormctl.history import EventLog
from stormctl.sweeps.bindings import BindingMap, Span
from stormctl.sweeps.rebinding import Answer, FirstDivergence, Flip, Rebinding, Swap

_Row = TypeVar("_Row", Flip, Swap, FirstDivergence)


@runtime_checkable
class Telling(Protocol):
    """An engine that can say what its passes over a log hang on."""

    def hangs_on(self, log: EventLog) -> str:
        """One line that is the same where all passes are. StormctlError when the log cannot be replayed."""
        ...


@dataclass(frozen=True, slots=True)
class Kept:
    """What is remembered of one engine on one log: the replay, and what each rank was bound to."""

    replay: Rebinding
    map: BindingMap

    def as_(self, name: str, workload: str) -> Kept:
        """The same for an engine that is called otherwise."""
        return Kept(
            replace(self.replay, engine=name, workload=workload), replace(self.map, engine=name, workload=workload)
        )

    def row(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"replay": asdict(self.replay), "map": asdict(self.map)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Kept:
        """The inverse of :meth:`row`. KeyError, TypeError or ValueError for a row that is none."""
        found, drawn = row["replay"], row["map"]
        lost, whole, answer, failure = (found[key] for key in ("divergence", "lost", "answer", "failure"))
        return cls(
            Rebinding(
                **{
                    **found,
                    "flips": tuple(_of(Flip, one) for one in found["flips"]),
                    "swaps": tuple(_of(Swap, one) for one in found["swaps"]),
                    "divergence": None if lost is None else _of(FirstDivergence, lost),
                    "lost": None if whole is None else _of(FirstDivergence, whole),
                    "answer": None if answer is None else Answer(answer["digest"]),
                    "failure": None if failure is None else (int(failure[0]), str(failure[1])),
                }
            ),
            BindingMap(
                **{
                    **drawn,
                    "prefixes": tuple(drawn["prefixes"]),
                    "rows": {int(rank): tuple(Span(**span) for span in spans) for rank, spans in drawn["rows"].items()},
                    "steps": tuple(drawn["steps"]),
                }
            ),
        )


class Memory(Protocol):
    """Where replays are kept. It never fails: what cannot be read is not there, what cannot be written is not kept. It
    goes to other processes with the plan that it is in."""

    def recall(self, key: str) -> Kept | None:
        """What was kept under a key."""
        ...

    def keep(self, key: str, kept: Kept) -> None:
        """Keep it under a key."""
        ...


def key_of(engine: Engine, log: EventLog, lengths: Sequence[int], *, include_input_only: bool) -> str | None:
    """The key of a replay; None for an engine that does not say what its passes hang on."""
    if not isinstance(engine, Telling):
        return None
    hangs_on = [
        engine.hangs_on(log),
        [log.place(index) for index in range(len(log))],  # a report names prefixes by them
        list(lengths),
        include_input_only,
    ]
    return hashlib.sha256(json.dumps(hangs_on, separators=(",", ":")).encode()).hexdigest()[:40]


def _of(kind: type[_Row], row: Mapping[str, Any]) -> _Row:
    return kind(**{one.name: row[one.name] for one in fields(kind)})
