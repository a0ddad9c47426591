"""The plan of a storm: what is run, how often, under which pressure. Schema ``stormctl.plan/1``.

A plan names one value or a list for each axis (``scenario``, ``world``, ``condition``, ``generation``), at the top
level or under ``matrix``, where the matrix wins. The cells are the product of the axes. Axes that belong together vary
together under ``matrix.pair``, so that the old pair and the new one are two cells and not four:

    matrix:
      scenario: [step-storm, hook-storm]
      pair: [main + nets, seq-final + dispenser]

An entry of ``pair`` is ``CONDITION + GENERATION``, or a mapping of any axes (every entry the same ones). The first
entry is the old arm of every comparison and the last the new one.

``input`` is for every scenario that has the key; ``inputs`` holds a mapping per scenario, which wins. ``attempts`` is a
number for every cell, or a mapping per scenario.

``sweeps`` is ``all``, and beside it whatever shall replay every log too: a generation of ours (``nets``), or, with the
targets ``sdk`` and ``url``, the real engine (``sdk:own``, ``sdk:FOLDER``).

A plan with ``target: sdk`` varies versions of the real SDK instead (:mod:`stormctl.storm.sdk_plan`), one with ``target:
url`` apps that somebody else runs (:mod:`stormctl.storm.url_plan`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from stormctl.engine.generations import generation
from stormctl.errors import PlanError, UsageError, suggest
from stormctl.storm import planfile, sdk_plan, url_plan
from stormctl.storm.attempt import Cell
from stormctl.storm.faults.base import Fault
from stormctl.storm.faults.registry import parse_faults
from stormctl.storm.names import Names
from stormctl.storm.planfile import format_duration, parse_count, parse_duration, parse_number
from stormctl.storm.real_name import SCHEME, parse_real
from stormctl.storm.sdk_plan import NO_HOST_FAULTS, HostFaults, parse_host_faults
from stormctl.storm.url_app import App
from stormctl.worlds.conditions import condition_named
from stormctl.worlds.open import world_kind

SCHEMA = "stormctl.plan/1"
AXES = ("scenario", "world", "condition", "generation")
MAX_CELLS = 256
#: What a plan may leave out, as a plan would write it.
DEFAULTS: Mapping[str, Any] = {
    "seed": 1, "target": "embedded", "world": "local", "attempts": 8, "concurrency": 4, "processes": 2,
    "time_scale": 1.0, "storage_scale": 1.0, "hydration_jitter_ms": 1, "budget": "10m", "cap": "240s", "faults": [],
    "sweeps": ["all"],
}  # fmt: skip
KEYS = ("schema", "name", *DEFAULTS, *AXES, "input", "inputs", "matrix", *sdk_plan.OWN, *url_plan.OWN)
#: what targets that are not ours vary, have alone, and have no place for
_AXES: Mapping[str, Sequence[str]] = {sdk_plan.TARGET: sdk_plan.AXES, url_plan.TARGET: url_plan.AXES}
_OWN: Mapping[str, Sequence[str]] = {sdk_plan.TARGET: sdk_plan.OWN, url_plan.TARGET: url_plan.OWN}
_FOREIGN: Mapping[str, Mapping[str, str]] = {sdk_plan.TARGET: sdk_plan.FOREIGN, url_plan.TARGET: url_plan.FOREIGN}


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan, checked. ``attempts`` are per cell, and ``own_attempts`` by scenario win; ``budget_ms`` (for launching)
    is wall time; ``cap_ms`` (per run) is before ``time_scale``. ``axes`` and ``pairs`` are the matrix; ``inputs`` has
    every planned scenario, each with all its fields but the token, which is made anew for every attempt.
    ``host_faults`` are for the target ``sdk``, ``apps`` for the target ``url``.
    """

    name: str
    seed: int
    axes: Mapping[str, tuple[str, ...]]
    pairs: tuple[Mapping[str, str], ...] = ()
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    target: str = "embedded"
    attempts: int = 8
    concurrency: int = 4
    processes: int = 2
    time_scale: float = 1.0
    storage_scale: float = 1.0
    hydration_jitter_ms: int = 1
    budget_ms: float = 600_000.0
    cap_ms: float = 240_000.0
    faults: tuple[Fault, ...] = ()
    sweeps: tuple[str, ...] = ("all",)
    source: str = ""
    own_attempts: Mapping[str, int] = field(default_factory=dict)
    host_faults: HostFaults = NO_HOST_FAULTS
    apps: tuple[App, ...] = ()

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells in plan order: scenario by scenario, and within one the pairs as written."""
        combined = [
            {**dict(zip(self.axes, values, strict=True)), **pair}
            for values in product(*self.axes.values())
            for pair in self.pairs or ({},)
        ]
        return tuple(Cell(**{axis: one[axis] for axis in AXES}) for one in combined)

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The planned scenarios, in order."""
        return tuple(dict.fromkeys(cell.scenario for cell in self.cells))

    @property
    def generations(self) -> tuple[str, ...]:
        """Generations of ours that are to replay every log, beside the one of its cell."""
        return tuple(one for one in self.sweeps if _generation(one))

    @property
    def real_engines(self) -> tuple[str, ...]:
        """Real engines that are to replay every log."""
        return tuple(one for one in self.sweeps if one.startswith(SCHEME))

    @property
    def total(self) -> int:
        """Attempts in all cells together."""
        return sum(map(self.attempts_of, self.cells))

    def attempts_of(self, cell: Cell) -> int:
        """Attempts of one cell."""
        return self.own_attempts.get(cell.scenario, self.attempts)


def load_plan(
    path: Path, overrides: Mapping[str, list[str]] | None = None, seed: int | None = None, names: Names | None = None
) -> Plan:
    """The plan in a file, with the command line's ``-P key=a,b`` laid over it.

    ``input.rounds`` and ``inputs.step-storm.rounds`` reach into the inputs; the other override keys are the plan's
    own and ``pair``. Every error is a :class:`PlanError`. ``names`` are what may be named, else all that is built.
    """
    return parse_plan(planfile.read_yaml(path), str(path), overrides, seed, names)


def parse_plan(
    document: Any,
    source: str,
    overrides: Mapping[str, list[str]] | None = None,
    seed: int | None = None,
    names: Names | None = None,
) -> Plan:
    """As :func:`load_plan`, from the parsed document."""
    names = names if names is not None else Names.built()
    _check_head(document, source)
    given = {**DEFAULTS, **document, "matrix": dict(_mapping(document.get("matrix"), "matrix"))}
    target = (overrides or {}).get("target", [given["target"]])[-1]
    written_for = _strings(given["matrix"].get("scenario", given.get("scenario", [])), "scenario")
    given["input"] = dict(_mapping(given.get("input"), "input"))
    given["inputs"] = {k: dict(_mapping(v, f"inputs.{k}")) for k, v in _mapping(given.get("inputs"), "inputs").items()}
    for key, values in (overrides or {}).items():
        _override(given, key, values, _AXES.get(target, AXES))
    if seed is not None:
        given["seed"] = seed
    _check_keys(str(given["target"]), (*document, *given["matrix"], *(overrides or {})))
    apps: tuple[App, ...] = ()
    if target == sdk_plan.TARGET:
        if "processes" not in document:
            given["processes"] = 1  # of ours a storm has two, of the SDK one server is what people run
        given, names = sdk_plan.in_columns(given), names.of_others()
    elif target == url_plan.TARGET:
        (given, apps), names = url_plan.in_columns(given, source), names.of_others()
    axes, pairs = _in_full(*_matrix(given), names)
    plan = Plan(
        name=_name(given.get("name")),
        seed=parse_count(given["seed"], "seed", 0, 2**63 - 1),
        axes=axes,
        pairs=pairs,
        target=names.known("target", _one(given["target"], "target")),
        **_attempts(given["attempts"], axes, pairs, names),
        concurrency=parse_count(given["concurrency"], "concurrency", 1, 512),
        processes=parse_count(given["processes"], "processes", 1, 64),
        time_scale=parse_number(given["time_scale"], "time_scale", 0.001, 100),
        storage_scale=parse_number(given["storage_scale"], "storage_scale", 0, 1000),
        hydration_jitter_ms=parse_count(given["hydration_jitter_ms"], "hydration_jitter_ms", 0, 1000),
        budget_ms=parse_duration(given["budget"], "budget"),
        cap_ms=parse_duration(given["cap"], "cap"),
        faults=parse_faults(given["faults"]),
        sweeps=_sweeps(given["sweeps"], str(target), Path(source).parent, names),
        source=source,
        host_faults=parse_host_faults(given.get("host_faults")),
        apps=apps,
    )
    _check_cells(plan, names)
    inputs = names.inputs(plan.scenarios, written_for, given["input"], given["inputs"])
    return Plan(**{**{key: getattr(plan, key) for key in Plan.__dataclass_fields__}, "inputs": inputs})


def resolved_yaml(plan: Plan) -> str:
    """The plan as ``plan.yaml`` keeps it: nothing left to a default, and readable by :func:`load_plan`."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "name": plan.name,
        "seed": plan.seed,
        "inputs": {scenario: dict(values) for scenario, values in plan.inputs.items()},
        "target": plan.target,
        "attempts": dict(plan.own_attempts) or plan.attempts,
        "concurrency": plan.concurrency,
        "processes": plan.processes,
        "time_scale": plan.time_scale,
        "storage_scale": plan.storage_scale,
        "hydration_jitter_ms": plan.hydration_jitter_ms,
        "budget": format_duration(plan.budget_ms),
        "cap": format_duration(plan.cap_ms),
        "faults": [fault.row() for fault in plan.faults],
        "sweeps": list(plan.sweeps),
    }
    if plan.target == sdk_plan.TARGET:
        document = {key: value for key, value in document.items() if key not in (*sdk_plan.FOREIGN, "processes")}
        document["host_faults"] = plan.host_faults.row()
        document["matrix"] = {
            name: [sdk_plan.as_written(axis, value)[1] for value in values]
            for axis, values in plan.axes.items()
            for name in [sdk_plan.as_written(axis, values[0])[0]]
        }
        if plan.pairs:
            document["matrix"]["pair"] = [
                dict(sdk_plan.as_written(axis, value) for axis, value in pair.items()) for pair in plan.pairs
            ]
    elif plan.target == url_plan.TARGET:
        document = {key: value for key, value in document.items() if key not in url_plan.FOREIGN}
        document["app"] = [app.row() for app in plan.apps]
        document["matrix"] = {"scenario": list(plan.axes["scenario"])}
    else:
        document["matrix"] = {axis: list(values) for axis, values in plan.axes.items()}
        if plan.pairs:
            document["matrix"]["pair"] = [dict(pair) for pair in plan.pairs]
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


def _check_head(document: Any, source: str) -> None:
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise PlanError(f"{source} is not a plan", remedy=f"A plan is a mapping that starts with `schema: {SCHEMA}`.")
    schema = document.get("schema")
    if schema != SCHEMA:
        family, _, version = str(schema).partition("/")
        if family == "stormctl.plan" and version.isdigit() and int(version) > 1:
            raise PlanError(f"{source} is written for a newer stormctl ({schema})", remedy="Upgrade stormctl.")
        raise PlanError(f"{source} has the schema {schema!r}", remedy=f"Start the plan with `schema: {SCHEMA}`.")
    for key in document:
        if key not in KEYS:
            raise PlanError(f"{source} has an unknown key {key!r}", remedy=suggest(key, KEYS))


def _check_keys(target: str, written: Iterable[str]) -> None:
    """PlanError for a key that the plan's target has no place for. ``written`` are the keys that a person gave."""
    for key in written:
        if key in _FOREIGN.get(target, {}):
            raise PlanError(f"the target {target} has no {key}", remedy=_FOREIGN[target][key])
        owner = next((one for one, own in _OWN.items() if key in own), target)
        if owner != target:
            raise PlanError(f"the target {target} has no {key}", remedy=f"Leave it out, or set `target: {owner}`.")


def _matrix(given: Mapping[str, Any]) -> tuple[dict[str, tuple[str, ...]], tuple[Mapping[str, str], ...]]:
    matrix = given["matrix"]
    for key in matrix:
        if key not in (*AXES, "pair"):
            raise PlanError(f"matrix has an unknown axis {key!r}", remedy=suggest(str(key), (*AXES, "pair")))
    pairs = tuple(_pair(one) for one in _list(matrix.get("pair", []), "matrix.pair"))
    paired = set(pairs[0]) if pairs else set()
    if any(set(pair) != paired for pair in pairs):
        raise PlanError("the entries of matrix.pair do not name the same axes", remedy="Give each entry the same keys.")
    for axis in sorted(paired & set(matrix)):
        raise PlanError(f"matrix gives {axis} twice, alone and in pair", remedy=f"Remove matrix.{axis}.")
    axes = {}
    for axis in AXES:
        if axis in paired:
            continue
        values = matrix.get(axis, given.get(axis))
        if values is None:
            raise PlanError(f"the plan names no {axis}", remedy=f"Add `{axis}:` with a name or a list of names.")
        axes[axis] = _strings(values, axis)
    return axes, pairs


def _in_full(
    axes: dict[str, tuple[str, ...]], pairs: tuple[Mapping[str, str], ...], names: Names
) -> tuple[dict[str, tuple[str, ...]], tuple[Mapping[str, str], ...]]:
    """Every name as it is known: a generation may be named by its pull request, and knobs in any order."""
    known = {axis: tuple(names.known(axis, value) for value in values) for axis, values in axes.items()}
    return known, tuple({axis: names.known(axis, value) for axis, value in pair.items()} for pair in pairs)


def _attempts(
    value: Any, axes: Mapping[str, tuple[str, ...]], pairs: Sequence[Mapping[str, str]], names: Names
) -> dict[str, Any]:
    """``attempts``: a number, or one for each scenario. The largest stands for the plan."""
    if not isinstance(value, dict):
        return {"attempts": parse_count(value, "attempts", 1, 10_000)}
    own = {
        names.known("scenario", str(name)): parse_count(count, f"attempts.{name}", 1, 10_000)
        for name, count in value.items()
    }
    for scenario in (*axes.get("scenario", ()), *(pair["scenario"] for pair in pairs if "scenario" in pair)):
        if scenario not in own:
            raise PlanError(f"attempts names no number for {scenario}", remedy=f"Add `{scenario}: 8` under attempts.")
    return {"attempts": max(own.values()), "own_attempts": own}


def _pair(entry: Any) -> Mapping[str, str]:
    """``main + nets`` or ``{condition: main, generation: nets}``."""
    if isinstance(entry, str):
        condition, _, generation = entry.rpartition("+")  # a condition's knobs may hold one, too
        if condition.strip() and generation.strip():
            return {"condition": condition.strip(), "generation": generation.strip()}
    elif isinstance(entry, dict) and entry and all(key in AXES and isinstance(entry[key], str) for key in entry):
        return {axis: entry[axis] for axis in AXES if axis in entry}
    raise PlanError(
        f"{entry!r} is not an entry for matrix.pair",
        remedy="Write `main + nets`, or a mapping of axes such as {condition: main, generation: nets}.",
    )


def _sweeps(value: Any, target: str, base: Path, names: Names) -> tuple[str, ...]:
    """``sweeps``: names of sweeps, of generations that replay every log too, and of real engines (``sdk:own``), which
    lie beside the plan where they are folders."""
    found: list[str] = []
    for one in _strings(value, "sweeps"):
        if not one.startswith(SCHEME) or names.sweeps is None:
            found.append(names.known("sweep", one))
            continue
        if target not in (sdk_plan.TARGET, url_plan.TARGET):
            raise PlanError(
                f"sweeps asks for {one}, and the target {target} has no bundle of the SDK",
                remedy="Name one of our generations, such as nets, or set `target: sdk`.",
            )
        try:
            real = parse_real(one, base)
        except UsageError as bad:
            raise PlanError(f"sweeps: {bad}", remedy=bad.remedy) from None
        if real.is_own and target == url_plan.TARGET:
            raise PlanError(
                f"sweeps asks for {one}, and nobody told where the bundle of the app is",
                remedy="Name the folder of the built app: sdk:path/to/app.",
            )
        found.append(str(real))
    return tuple(dict.fromkeys(found))


def _check_cells(plan: Plan, names: Names) -> None:
    cells = plan.cells
    if len(cells) > MAX_CELLS:
        raise PlanError(f"the matrix has {len(cells)} cells", remedy=f"Keep it to {MAX_CELLS}.")
    if len(set(cells)) < len(cells):
        repeated = next(cell for cell in cells if cells.count(cell) > 1)
        raise PlanError(f"the matrix names {repeated.label} twice", remedy="Remove one.")
    if names.worlds is None or names.conditions is None:
        return
    alone = [cell.world for cell in cells if world_kind(cell.world).in_process]
    if alone and plan.processes > 1:
        raise PlanError(
            f"the {alone[0]} world lives in one process", remedy="Set `processes: 1`, or name another world."
        )
    for number, fault in enumerate(plan.faults, start=1):
        reasons = [reason for cell in cells if (reason := why_not(fault, cell)) is not None]
        if len(reasons) == len(cells):
            raise PlanError(
                f"faults[{number}] ({fault.label}) can strike in no cell: {reasons[0]}",
                remedy="Remove it, or name another world or condition.",
            )


def why_not(fault: Fault, cell: Cell) -> str | None:
    """Why a fault cannot strike in a cell, or None when it can."""
    return fault.why_not(cell.world, world_kind(cell.world), condition_named(cell.condition, cell.world))


def faults_of(plan: Plan, cell: Cell) -> tuple[tuple[int, Fault], ...]:
    """The faults that can strike in a cell, each with its number in the plan, counted from 1."""
    return tuple((number, fault) for number, fault in enumerate(plan.faults, start=1) if why_not(fault, cell) is None)


def _override(given: dict[str, Any], key: str, values: list[str], axes: Sequence[str]) -> None:
    where = f"-P {key}"
    head, _, rest = key.partition(".")
    if head in ("input", "inputs"):
        scenario, _, field_name = rest.rpartition(".") if head == "inputs" else ("", "", rest)
        if not field_name or (head == "inputs" and not scenario):
            raise PlanError(
                f"{where} names no input",
                remedy="Write input.rounds=4, or inputs.step-storm.rounds=4 for one scenario.",
            )
        target = given["inputs"].setdefault(scenario, {}) if head == "inputs" else given["input"]
        target[field_name] = _scalar(_single(values, where))
    elif key == "pair":
        given["matrix"]["pair"] = list(values)
    elif key in axes:
        if axes == AXES and any(key in _pair(pair) for pair in _list(given["matrix"].get("pair", []), "matrix.pair")):
            raise PlanError(f"{where}: the plan varies {key} in pairs", remedy='Choose pairs: -P "pair=main + nets".')
        values = url_plan.from_here(values) if key == "app" else values
        given["matrix"][key] = [_scalar(value) if key == "processes" else value for value in values]
    elif key == "sweeps":
        given[key] = [_from_here(value) for value in values]
    elif key in KEYS and key not in ("schema", "matrix", "faults"):
        given[key] = _scalar(_single(values, where))
    else:
        raise PlanError(
            f"-P has an unknown key {key!r}", remedy=suggest(key, (*DEFAULTS, *AXES, "name", "pair", "input.KEY"))
        )


def _generation(sweep: str) -> bool:
    """Whether something that ``sweeps`` names is a generation."""
    try:
        return generation(sweep).name == sweep
    except UsageError:
        return False


def _from_here(sweep: str) -> str:
    """A bundle that was named on the command line lies where that was typed."""
    return str(parse_real(sweep)) if sweep.startswith(SCHEME) else sweep


def _single(values: list[str], where: str) -> str:
    if len(values) != 1:
        raise PlanError(f"{where} takes one value, not {len(values)}", remedy=f"Only {', '.join(AXES)} and pair vary.")
    return values[0]


def _scalar(text: str) -> Any:
    value = planfile.parse_yaml(text, "-P")
    return value if isinstance(value, (str, int, float, bool)) else text


def _mapping(value: Any, key: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise PlanError(f"{key} is {value!r}, not a mapping", remedy=f"Write `{key}: {{name: value}}`.")
    return value


def _list(value: Any, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise PlanError(f"{key} is {value!r}, not a list", remedy=f"Write `{key}: [...]`.")
    return value


def _strings(value: Any, key: str) -> tuple[str, ...]:
    """One name or a list of names, as names."""
    values = value if isinstance(value, list) else [value]
    if key == "generation":  # a pull request's number may stand without quotes
        values = [str(one) if type(one) is int else one for one in values]
    if not values or not all(isinstance(one, str) and one for one in values):
        raise PlanError(f"{key} is {value!r}", remedy=f"Give `{key}` a name or a list of names.")
    return tuple(values)


def _one(value: Any, key: str) -> str:
    values = _strings(value, key)
    if len(values) > 1:
        raise PlanError(f"{key} has {len(values)} values", remedy="Name one.")
    return values[0]


def _name(value: Any) -> str:
    allowed = "abcdefghijklmnopqrstuvwxyz0123456789-_."
    if not isinstance(value, str) or not 0 < len(value) <= 64 or set(value) - set(allowed) or value[0] in "-.":
        raise PlanError(
            f"the plan's name is {value!r}", remedy="It names a folder: give it lower-case letters, digits and dashes."
        )
    return value
