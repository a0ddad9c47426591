"""Names that a person types, checked: what is unknown is answered with what is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stormctl.errors import UsageError, suggest

if TYPE_CHECKING:
    from stormctl.readers import Reading
    from stormctl.sweeps.memory import Memory
    from stormctl.sweeps.plan import Opener

ALL = "all"
REAL = "sdk:"


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
    """The names of engines, each once and in the order given; ``all`` stands for every generation.

    ``sdk:`` before a version or a folder names the real engine in its bundle, which must be there to be named.
    """
    from stormctl.engine.generations import GENERATIONS, generation

    found: list[str] = []
    for name in names or ():
        if name.startswith(REAL):
            from stormctl.targets.sdk.replay.opener import real_name

            found.append(real_name(name))
            continue
        found += GENERATIONS if name == ALL else (generation(name).name,)
    return tuple(dict.fromkeys(found))


def sweep_names(text: str | None) -> tuple[str, ...]:
    """The names of sweeps in a list with commas, each once; None stands for all."""
    from stormctl.sweeps.registered import in_order

    known = [one.name for one in in_order()]
    names = [name.strip() for name in (text or "").split(",")]
    found = dict.fromkeys(_known("sweep", name, known) for name in names if name)
    if text is not None and not found:
        raise UsageError("--only names no sweep", remedy="Name some of those that `stormctl sweeps` lists.")
    return tuple(found)


def opener(engines: Iterable[str]) -> Opener:
    """What turns the names into engines: our own generations, and the real engine where one of them asks for it."""
    from stormctl.sweeps.plan import open_own

    if not any(name.startswith(REAL) for name in engines):
        return open_own
    from stormctl.targets.sdk.replay.opener import open_engine

    return open_engine


def memory(engines: Iterable[str]) -> Memory | None:
    """Where replays by the real engine are kept, where one of the names asks for it."""
    if not any(name.startswith(REAL) for name in engines):
        return None
    from stormctl.targets.sdk.replay.kept import kept_replays

    return kept_replays()


def reading(name: str | None, table_map: str | None = None) -> Reading:
    """How files are to be read, if a reader has the name; None lets each file tell. A map says that they are tables."""
    from stormctl.readers import BY_CONTENT, Reading, reader_named
    from stormctl.readers.tables.detect import MAP, READER

    if table_map is not None:
        if name not in (None, READER.name):
            raise UsageError(f"a map is for tables, not for {name}", remedy="Give --map or --from.")
        name = f"{MAP}{table_map}"
    return BY_CONTENT if name is None else Reading(reader_named(name).name)


def profile_name(name: str) -> str:
    """The name, if a profile has it, or ``auto``."""
    from stormctl.sweeps.profiles import AUTO, PROFILES

    return name if name == AUTO else _known("profile", name, PROFILES)


def _known(noun: str, name: str, known: Iterable[str]) -> str:
    names = tuple(known)
    if name not in names:
        raise UsageError(f"there is no {noun} {name!r}", remedy=suggest(name, names))
    return name
