"""Names that a person types, checked: what is unknown is answered with what is known."""

from __future__ import annotations

from collections.abc import Iterable

from stormctl.errors import UsageError, suggest

ALL = "all"


def workload_name(name: str | None) -> str | None:
    """The name, if a workload has it; None stays None."""
    from stormctl.workloads.registry import WORKLOADS

    return None if name is None else _known("workload", name, WORKLOADS)


def engine_names(names: Iterable[str] | None) -> tuple[str, ...]:
    """The names of engines, each once and in the order given; ``all`` stands for every generation."""
    from stormctl.engine.generations import GENERATIONS, generation

    found: list[str] = []
    for name in names or ():
        found += GENERATIONS if name == ALL else (generation(name).name,)
    return tuple(dict.fromkeys(found))


def profile_name(name: str) -> str:
    """The name, if a profile has it."""
    from stormctl.sweeps.profiles import PROFILES

    return _known("profile", name, PROFILES)


def _known(noun: str, name: str, known: Iterable[str]) -> str:
    names = tuple(known)
    if name not in names:
        raise UsageError(f"there is no {noun} {name!r}", remedy=suggest(name, names))
    return name
