"""What a reported case is made of: a log, the sound twin that must not be taken for it, and what sweeps must say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stormctl.history import Capture, EventLog
from stormctl.testing import LogBuilder

Rows = Sequence[Mapping[str, Any]]
Made = Capture | Rows


@dataclass(frozen=True, slots=True)
class Judged:
    """One reading of a log: profile, verdict, and ``sweep/kind`` of every fatal finding.

    ``milder`` must be among the findings that are not fatal, ``never`` may not be among any, ``unknown`` are sweeps
    that cannot judge, ``reason`` is part of one of the reasons for what stayed open.
    """

    verdict: str
    fatal: tuple[str, ...] = ()
    profile: str = "strict"
    milder: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    reason: str | None = None

    def to_yaml(self) -> dict[str, Any]:
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in self._items()}
        return {name: value for name, value in given.items() if value or name in ("profile", "verdict", "fatal")}

    def _items(self) -> list[tuple[str, Any]]:
        names = ("profile", "verdict", "fatal", "milder", "never", "unknown", "reason")
        return [(name, getattr(self, name)) for name in names]


@dataclass(frozen=True, slots=True)
class Case:
    """One log of a report. ``log`` is made here, or None where the small fixtures of the command line have it.

    ``engine`` replays every prefix, of ``workload`` where the log names none. ``earlier`` is a capture of the same run
    that was made before.
    """

    name: str
    source: str
    symptom: str
    twin: str
    judged: tuple[Judged, ...]
    log: Callable[[], Made] | None = None
    earlier: Callable[[], Capture] | None = None
    engine: str | None = None
    workload: str | None = None

    def expectation(self) -> dict[str, Any]:
        """What the file beside the log says."""
        given: dict[str, Any] = {
            "source": self.source,
            "symptom": self.symptom,
            "twin": self.twin,
        }
        for key in ("engine", "workload"):
            if getattr(self, key) is not None:
                given[key] = getattr(self, key)
        if self.earlier is not None:
            given["earlier"] = f"earlier/{self.name}.ndjson"
        return {**given, "readings": [one.to_yaml() for one in self.judged]}


@dataclass(slots=True)
class Register:
    """The cases by name, in order."""

    cases: dict[str, Case] = field(default_factory=dict)

    def pair(self, source: str, bad: Case | Mapping[str, Any], sound: Case | Mapping[str, Any], **shared: Any) -> None:
        """A log and its twin."""
        one = bad if isinstance(bad, Case) else _case(source, bad, shared)
        other = sound if isinstance(sound, Case) else _case(source, sound, shared)
        for case, twin in ((one, other), (other, one)):
            assert case.name not in self.cases, case.name
            self.cases[case.name] = replace(case, twin=twin.name)


def _case(source: str, given: Mapping[str, Any], shared: Mapping[str, Any]) -> Case:
    values = {**shared, **given}
    judged = values.pop("judged")
    return Case(source=source, twin="", judged=judged if isinstance(judged, tuple) else (judged,), **values)


def under(made: Capture, name: str) -> Capture:
    """A capture whose log bears the name of its fixture."""
    return replace(made, log=EventLog(made.log.events, made.log.run_id))


def run(**options: Any) -> LogBuilder:
    """The beginning of a run."""
    return LogBuilder(**options).run_created().run_started()


CLEAN = Judged("unknown", reason="a workload")
