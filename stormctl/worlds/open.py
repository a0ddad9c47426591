"""Opening a world by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from stormctl.errors import UsageError
from stormctl.worlds.base import World
from stormctl.worlds.condition import Condition
from stormctl.worlds.conditions import condition_named
from stormctl.worlds.delay import PublishDelay
from stormctl.worlds.local import LocalOptions, LocalWorld
from stormctl.worlds.memory import MemoryWorld

Role = Literal["driver", "worker"]


@dataclass(frozen=True, slots=True)
class Opening:
    """What a world is opened with, whatever kind of world it is."""

    folder: Path | None
    condition: Condition
    role: Role
    worker: str | None
    storage_scale: float
    seed: int | str
    options: LocalOptions | None


def _local(opening: Opening) -> World:
    if opening.folder is None:
        raise UsageError("the local world needs a folder", remedy="Name one, or use the memory world.")
    options = replace(
        opening.options or LocalOptions(),
        worker=opening.worker,
        storage_scale=opening.storage_scale,
        seed=opening.seed,
    )
    if opening.role == "worker":
        return LocalWorld.join(opening.folder, opening.condition, options)
    return LocalWorld.create(opening.folder, opening.condition, options)


def _memory(opening: Opening) -> World:
    delay = PublishDelay(seed=opening.seed, scale=opening.storage_scale)
    return MemoryWorld(opening.condition, delay=delay)


#: Every kind of world by name. One that needs more than the standard library imports it inside its opener.
WORLDS: dict[str, Callable[[Opening], World]] = {"local": _local, "memory": _memory}


def open_world(
    name: str,
    folder: Path | str | None,
    condition: str | Condition,
    *,
    role: Role = "driver",
    worker: str | None = None,
    storage_scale: float = 1.0,
    seed: int | str = 0,
    options: LocalOptions | None = None,
) -> World:
    """A world by its name, ready for use.

    ``role`` is ``driver`` (makes the store and owns it) or ``worker`` (joins it). ``storage_scale`` and ``seed`` are
    the plan's; ``options`` what else the local world can be told. UsageError for an unknown world or condition;
    StoreForeign and StoreBusy as the world says.
    """
    if name not in WORLDS:
        raise UsageError(f"there is no world {name!r}", remedy=f"Use one of: {', '.join(sorted(WORLDS))}.")
    found = condition_named(condition) if isinstance(condition, str) else condition
    where = None if folder is None else Path(folder)
    return WORLDS[name](Opening(where, found, role, worker, storage_scale, seed, options))
