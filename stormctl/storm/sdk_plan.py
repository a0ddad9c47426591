"""The part of a plan that only the target ``sdk`` has: which published version runs, where, and what its environment
changes.

    target: sdk
    version: [4.8.9, 5.0.0-beta.55]
    world: local                      # local | postgres
    processes: 1                      # servers on one store; several on postgres only
    environment: {WORKFLOW_LOG_ORDER_DRAWS: "0"}
    host_faults: {duplicate: 0.5, write_delay_ms: 60}

``version``, ``world``, ``processes`` and ``environment`` may each be a list, at the top or under ``matrix``, and may
vary together under ``matrix.pair`` (``4.8.9 + postgres x2``, or a mapping). In a cell they take the places that a world
of ours has: ``condition`` is the version (``workflow 4.8.9``), ``generation`` what the environment changes (``as
published``), ``world`` the store and, where there are several, its servers (``postgres x2``). So a cell is told, kept
and compared as any other, and each part can be read back from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from stormctl.errors import PlanError, suggest
from stormctl.storm.attempt import Cell
from stormctl.storm.planfile import format_duration, parse_count, parse_duration, parse_number

TARGET = "sdk"
LOCAL, POSTGRES = "local", "postgres"
AXES = ("scenario", "world", "version", "environment", "processes")
#: what only a plan for the SDK may have, beside its axes
OWN = ("version", "environment", "host_faults")
#: what an embedded storm varies or injects, and the SDK has no place for
FOREIGN: Mapping[str, str] = {
    "condition": "Name versions: `version: [4.8.9, 5.0.0-beta.55]`.",
    "generation": "A version has its own; name versions, or switches under `environment`.",
    "faults": "The host of the SDK has its own: see `host_faults`.",
    "storage_scale": "Delay the store with `host_faults: {read_delay_ms: 60, write_delay_ms: 60}`.",
    "hydration_jitter_ms": "Leave it out: the SDK takes the time that it takes.",
    "app": "Leave it out, or set `target: url`.",
}
AS_PUBLISHED = "as published"
MOST_PROCESSES = 8

_VERSION = re.compile(r"[45]\.\d{1,6}\.\d{1,6}(?:-[0-9A-Za-z]+(?:[.-][0-9A-Za-z]+)*)?")
_PREFIX = "workflow "
_WORLD = re.compile(r"(\w+)(?: x([1-9]\d?))?")
_SWITCH = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_VALUE = re.compile(r"[A-Za-z0-9._:/@%+,-]{0,100}")
#: what the host sets itself: a plan that changed it would not test what it says
_RESERVED = frozenset({
    "PORT", "PATH", "HOME", "WORKFLOW_TARGET_WORLD", "WORKFLOW_LOCAL_DATA_DIR", "WORKFLOW_LOCAL_BASE_URL",
    "WORKFLOW_POSTGRES_URL", "DATABASE_URL",
})  # fmt: skip


# -- what a cell says ------------------------------------------------------------------------------------------------


def version_of(cell: Cell) -> str:
    """The published version that a cell runs: ``4.8.9``."""
    return cell.condition.removeprefix(_PREFIX)


def world_of(cell: Cell) -> str:
    """Where its store is: ``local`` or ``postgres``."""
    return cell.world.partition(" ")[0]


def processes_of(cell: Cell) -> int:
    """How many servers it has on its store."""
    found = _WORLD.fullmatch(cell.world)
    return int(found[2] or 1) if found is not None else 1


def environment_of(cell: Cell) -> dict[str, str]:
    """The switches that it sets."""
    if cell.generation == AS_PUBLISHED:
        return {}
    return dict(part.split("=", 1) for part in cell.generation.split())


# -- faults of the host ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HostFaults:
    """What the host does to the SDK that it serves, through public doors only.

    ``duplicate`` is the share of deliveries that are handed over a second time, up to ``duplicate_ms`` after the first.
    Each read and each write of the store is held up by up to ``read_delay_ms`` and ``write_delay_ms``.
    ``kill_after_ms`` after a cell's first run began, one of its servers is killed. ``restart``: a server that ended by
    itself is started again, once per cell; one that the plan killed always is.
    """

    duplicate: float = 0.0
    duplicate_ms: float = 150.0
    read_delay_ms: float = 0.0
    write_delay_ms: float = 0.0
    kill_after_ms: float | None = None
    restart: bool = False

    def row(self) -> dict[str, Any]:
        """As a plan has it; empty when nothing is to happen."""
        changed = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        if self.kill_after_ms is not None:
            changed["kill_after"] = format_duration(changed.pop("kill_after_ms"))
        return changed

    def lines(self) -> Iterator[str]:
        """One line for a person for each thing that happens."""
        if self.duplicate:
            yield f"{self.duplicate:.0%} of deliveries are made twice, the second up to {self.duplicate_ms:g} ms later"
        for what, most in (("read", self.read_delay_ms), ("write", self.write_delay_ms)):
            if most:
                yield f"each {what} of the store is held up by up to {most:g} ms"
        if self.kill_after_ms is not None:
            yield f"a server of each cell is killed {format_duration(self.kill_after_ms)} after its first run began"
        if self.restart:
            yield "a server that ends is started again, once per cell"


NO_HOST_FAULTS = HostFaults()


def parse_host_faults(value: Any) -> HostFaults:
    """``host_faults`` of a plan; PlanError names what cannot be meant."""
    if value is None or value == {}:
        return NO_HOST_FAULTS
    known = ["kill_after" if f.name == "kill_after_ms" else f.name for f in fields(HostFaults)]
    if not isinstance(value, dict):
        raise PlanError(f"host_faults is {value!r}", remedy="Write a mapping: {duplicate: 0.5, write_delay_ms: 60}.")
    for key in value:
        if key not in known:
            raise PlanError(f"host_faults has an unknown key {key!r}", remedy=suggest(str(key), known))
    found: dict[str, Any] = {}
    for key, given in value.items():
        where = f"host_faults.{key}"
        if key == "duplicate":
            found[key] = parse_number(given, where, 0, 1)
        elif key == "kill_after":
            found["kill_after_ms"] = parse_duration(given, where)
        elif key == "restart":
            if not isinstance(given, bool):
                raise PlanError(f"{where} is {given!r}", remedy="Make it true or false.")
            found[key] = given
        else:
            found[key] = parse_number(given, where, 0, 60_000)
    faults = HostFaults(**found)
    if faults.kill_after_ms is not None and value.get("restart") is False:
        raise PlanError(
            "host_faults kills a server and forbids to restart it, so that every run of its cell is lost",
            remedy="Leave `restart: false` out.",
        )
    return faults


# -- from the keys of a plan to the columns of its cells, and back ----------------------------------------------------


def in_columns(given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a plan with those of the SDK in the places of a cell's columns.

    The rest of the plan is read as any other. PlanError for a version, world, switch or number that cannot be meant.
    """
    matrix = dict(given["matrix"])
    pairs = [_pair(entry) for entry in _listed(matrix.pop("pair", None) or ())]
    paired = {key for pair in pairs for key in pair}
    for axis in sorted(paired & set(matrix)):
        raise PlanError(f"matrix gives {axis} twice, alone and in pair", remedy=f"Remove matrix.{axis}.")
    for axis in matrix:
        if axis not in AXES:
            raise PlanError(f"matrix has an unknown axis {axis!r}", remedy=suggest(str(axis), (*AXES, "pair")))
    values = {axis: matrix.get(axis, given.get(axis)) for axis in AXES if axis not in paired}
    columns: dict[str, Any] = {"scenario": values["scenario"]} if "scenario" in values else {}
    if "version" in values:
        if values["version"] is None:
            raise PlanError("the plan names no version", remedy="Add `version: 4.8.9`, or a list of versions.")
        columns["condition"] = [_version(one) for one in _listed(values["version"])]
    if "environment" in values:
        columns["generation"] = [_switches(one) for one in _listed(values["environment"])]
    processes = [_processes(one) for one in _listed(values.get("processes", 1))]
    if "world" in values:
        worlds = _listed(values["world"])
        columns["world"] = _stores(worlds, processes, lenient=1 in processes or any(one != LOCAL for one in worlds))
    lowered = {key: value for key, value in given.items() if key not in ("version", "environment")}
    if pairs:
        columns["pair"] = [_pair_columns(pair, processes) for pair in pairs]
    return {**lowered, "condition": None, "generation": None, "world": None, "processes": 1, "matrix": columns}


def as_written(axis: str, value: str) -> tuple[str, Any]:
    """A column of a cell as a plan has it: ``("condition", "workflow 4.8.9")`` -> ``("version", "4.8.9")``."""
    if axis == "condition":
        return "version", value.removeprefix(_PREFIX)
    if axis == "generation":
        return "environment", {} if value == AS_PUBLISHED else dict(part.split("=", 1) for part in value.split())
    return axis, value


def _pair(entry: Any) -> dict[str, Any]:
    """``4.8.9 + postgres x2``, or a mapping of axes."""
    if isinstance(entry, str):
        version, _, world = entry.partition("+")
        if version.strip() and world.strip():
            return {"version": version.strip(), "world": world.strip()}
    elif isinstance(entry, dict) and entry and all(key in AXES for key in entry):
        return dict(entry)
    raise PlanError(
        f"{entry!r} is not an entry for matrix.pair of the target sdk",
        remedy="Write `4.8.9 + postgres x2`, or a mapping of axes such as {version: 4.8.9, world: postgres}.",
    )


def _pair_columns(pair: Mapping[str, Any], processes: Sequence[int]) -> dict[str, str]:
    """An entry of ``matrix.pair`` by a cell's columns. ``processes`` are the plan's, for an entry that names none."""
    columns: dict[str, str] = {}
    for axis, value in pair.items():
        if isinstance(value, list):
            raise PlanError(f"matrix.pair gives {axis} several values", remedy="Write one entry for each.")
        if axis == "scenario":
            columns[axis] = value
        elif axis == "version":
            columns["condition"] = _version(value)
        elif axis == "environment":
            columns["generation"] = _switches(value)
    if "processes" in pair and "world" not in pair:
        raise PlanError("matrix.pair gives processes without a world", remedy="Name the world beside them.")
    if "world" in pair:
        wanted = [_processes(pair["processes"])] if "processes" in pair else list(processes)
        stores = _stores([pair["world"]], wanted, lenient="processes" not in pair)
        if len(stores) > 1:
            raise PlanError("processes varies beside matrix.pair", remedy="Name the processes in each entry.")
        columns["world"] = stores[0]
    return columns


def _version(value: Any) -> str:
    text = value.removeprefix(_PREFIX.strip() + "@").removeprefix("v") if isinstance(value, str) else ""
    if _VERSION.fullmatch(text) is None:
        raise PlanError(
            f"version is {value!r}, which is no version of the Workflow SDK that can be served",
            remedy="Give one from 4.x or 5.x as it was published, such as 4.8.9 or 5.0.0-beta.55.",
        )
    return _PREFIX + text


def _processes(value: Any) -> int:
    return parse_count(value, "processes", 1, MOST_PROCESSES)


def _stores(worlds: Sequence[Any], processes: Sequence[int], *, lenient: bool) -> list[str]:
    """The worlds with their numbers of servers. A world that says its number itself (``postgres x2``) has that one.

    A folder has one server. ``lenient``: several were meant for the others, so that this one need not be refused.
    """
    found: list[str] = []
    for world in worlds:
        match = _WORLD.fullmatch(world) if isinstance(world, str) else None
        if match is None or match[1] not in (LOCAL, POSTGRES):
            raise PlanError(
                f"the target sdk has no world {world!r}", remedy="Its worlds are local, postgres, and postgres x2."
            )
        for count in [_processes(int(match[2]))] if match[2] else processes:
            alone = match[1] == LOCAL
            if alone and count > 1 and (match[2] or not lenient):
                raise PlanError(
                    f"the world local has one server, not {count}",
                    remedy="Set `processes: 1`, or name the world postgres.",
                )
            found.append(match[1] if alone or count == 1 else f"{match[1]} x{count}")
    return list(dict.fromkeys(found))


def _switches(value: Any) -> str:
    """A mapping of switches (or ``NAME=value NAME=value``) as a column, its names in order."""
    if value is None or value == "" or value == AS_PUBLISHED:
        return AS_PUBLISHED
    pairs = [tuple(part.partition("=")[::2]) for part in value.split()] if isinstance(value, str) else value
    found = dict(pairs) if isinstance(pairs, list) else pairs
    if not isinstance(found, dict):
        raise PlanError(
            f"environment is {value!r}", remedy='Write a mapping such as {WORKFLOW_LOG_ORDER_DRAWS: "0"}, or a list.'
        )
    parts = []
    for name, given in sorted(found.items(), key=str):
        if not isinstance(name, str) or _SWITCH.fullmatch(name) is None:
            raise PlanError(f"environment sets {name!r}", remedy="Names are capitals, digits and underscores.")
        if name in _RESERVED or name.startswith("STORMCTL_"):
            raise PlanError(f"environment sets {name}, which the host sets itself", remedy="Leave it out.")
        if isinstance(given, bool) or not isinstance(given, (str, int, float)) or not _VALUE.fullmatch(str(given)):
            raise PlanError(
                f"environment sets {name} to {given!r}",
                remedy='Give it a short text without blanks, in quotes: {WORKFLOW_TURBO: "0"}.',
            )
        parts.append(f"{name}={given}")
    return " ".join(parts) if parts else AS_PUBLISHED


def _listed(value: Any) -> list[Any]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if not values and isinstance(value, list):
        raise PlanError("an axis of the plan is an empty list", remedy="Give it a value, or leave it out.")
    return values
