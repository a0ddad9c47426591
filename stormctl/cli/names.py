"""Names that a person types, checked: what is unknown is answered with what is known."""

from __future__ import annotations

from collections.abc import Iterable

from stormctl.errors import UsageError, suggest

ALL = "all"


def workload_name(name: str | None) -> str | None:
    """The name, if a workload has it, or ``path.py:name`` with its path made absolute; None stays None.

    A user's file is executed here, so that what is wrong with it is said before any log is read.
    """
    from stormctl.workloads.registry import WORKLOADS
    from stormctl.workloads.user import absolute, load_workload, names_a_file

    if name is None or not names_a_file(name):
        return None if name is None else _known("workload", name, WORKLOADS)
    load_workload(name)
    return absolute(name)


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
