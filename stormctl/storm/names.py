"""What a plan may name: the scenarios, worlds, conditions and generations that are built."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from stormctl.engine.generations import GENERATIONS, generation
from stormctl.engine.strategies import Generation
from stormctl.errors import PlanError, UsageError, suggest
from stormctl.workloads.base import Workload
from stormctl.worlds.condition import Condition
from stormctl.worlds.conditions import condition_named
from stormctl.worlds.open import WORLDS
from stormctl.worlds.presets import CONDITIONS

TOKEN = "token"
#: The targets that a storm can drive today.
TARGETS = ("embedded", "sdk", "url")


@dataclass(frozen=True)
class Names:
    """The known names of each kind. None means that any name goes, which is for reading a plan of another version."""

    workloads: Mapping[str, Workload] | None = None
    generations: Collection[str] | None = None
    conditions: Mapping[str, Condition] | None = None
    worlds: Collection[str] | None = None
    targets: Collection[str] | None = None
    sweeps: Collection[str] | None = None

    @classmethod
    def built(cls) -> Names:
        """The names of everything that this version has."""
        from stormctl.sweeps.registered import ORDER
        from stormctl.workloads.registry import WORKLOADS

        return cls(WORKLOADS, tuple(GENERATIONS), CONDITIONS, tuple(WORLDS), TARGETS, ("all", *ORDER, "rebinding"))

    @classmethod
    def unchecked(cls) -> Names:
        """Any name goes."""
        return cls()

    def of_others(self) -> Names:
        """The same for a plan whose worlds and versions are not ours: those were checked as they were read."""
        return replace(self, generations=None, conditions=None, worlds=None)

    def known(self, kind: str, name: str) -> str:
        """The name, if it is one of its kind (``scenario``, ``world``, ...); else PlanError with the likeliest one."""
        known: Collection[str] | None = {
            "scenario": self.workloads,
            "world": self.worlds,
            "condition": self.conditions,
            "generation": self.generations,
            "target": self.targets,
            "sweep": self.sweeps,
        }[kind]
        if known is not None and kind in _WITH_KNOBS:
            return _with_knobs(kind, name)
        if known is not None and kind == "sweep" and name not in known:
            return _replaying(name, known)
        if known is not None and name not in known:
            raise PlanError(f"there is no {kind} {name!r}", remedy=suggest(name, known))
        return name

    def inputs(
        self,
        scenarios: Sequence[str],
        written_for: Sequence[str],
        common: Mapping[str, Any],
        own: Mapping[str, Mapping[str, Any]],
    ) -> dict[str, dict[str, Any]]:
        """The whole input of every scenario: its defaults, then the ``common`` keys that it has, then its ``own``.

        A common key must belong to one of the scenarios that are run or that the plan was ``written_for`` (the command
        line may have narrowed it).
        """
        if self.workloads is None:
            return {scenario: {**common, **own.get(scenario, {})} for scenario in scenarios}
        for scenario in own:
            self.known("scenario", scenario)
        readers = [self.workloads[name] for name in dict.fromkeys((*scenarios, *written_for)) if name in self.workloads]
        fields = {key for workload in readers for key in workload.input_type.__dataclass_fields__} - {TOKEN}
        for key in (*common, *(key for values in own.values() for key in values)):
            if key == TOKEN:
                raise PlanError("the input token cannot be set", remedy="It is made anew for every attempt.")
        for key in common:
            if key not in fields:
                raise PlanError(f"no scenario of the plan has an input {key!r}", remedy=suggest(key, fields))
        resolved = {}
        for workload in readers:
            has = workload.input_type.__dataclass_fields__
            given = {key: value for key, value in common.items() if key in has} | dict(own.get(workload.name, {}))
            whole = asdict(workload.parse_input(given))
            whole.pop(TOKEN, None)
            resolved[workload.name] = whole
        for scenario in own:
            if scenario not in resolved:
                self.workloads[scenario].parse_input(own[scenario])
        return {scenario: resolved[scenario] for scenario in scenarios}


#: what a plan may name with knobs changed, as in ``seq-final[stale_ms=2000]``
_WITH_KNOBS: dict[str, Callable[[str], Condition | Generation]] = {
    "condition": condition_named,
    "generation": generation,
}


def _replaying(name: str, sweeps: Collection[str]) -> str:
    """The name, in full, of a generation that is to replay every log of a storm."""
    try:
        return generation(name).name
    except UsageError as bad:
        knobs = "[" in name or name.startswith("#")
        remedy = bad.remedy if knobs else suggest(name, (*sweeps, *GENERATIONS))
        raise PlanError(f"there is no sweep, and no generation, {name!r}", remedy=remedy) from None


def _with_knobs(kind: str, name: str) -> str:
    """The name, in full, of something whose knobs may be changed in the name."""
    try:
        return _WITH_KNOBS[kind](name).name
    except UsageError as bad:
        raise PlanError(str(bad), remedy=bad.remedy) from None
