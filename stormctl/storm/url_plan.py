"""The part of a plan that only the target ``url`` has: the applications that somebody else runs.

    target: url
    app: shop.yaml                    # or a list of files, or the app itself, inline

In a cell an app takes the places that a world of ours has: ``condition`` is its name (with the version, where it was
told), ``world`` is ``url`` and ``generation`` is ``as it runs``. What a file may hold is in
:mod:`stormctl.storm.url_app`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stormctl.errors import PlanError, suggest
from stormctl.storm.planfile import read_yaml
from stormctl.storm.url_app import App, parse_app

TARGET = "url"
AXES = ("scenario", "app")
#: what only a plan for an app may have
OWN = ("app",)
_IN_FILE = "Leave it out: the app runs as it runs."
#: what an embedded storm or one of the SDK has, and an app that runs already has no place for
FOREIGN: Mapping[str, str] = {
    "condition": "Name apps: `app: [old.yaml, new.yaml]`.",
    "generation": _IN_FILE,
    "version": "Say it in the app's file: `version: 4.8.9`.",
    "environment": "Set the switches where the app is started.",
    "host_faults": "Leave it out: faults need a host of ours, as `target: sdk` has.",
    "faults": "Leave it out: faults need a runtime of ours, as `target: embedded` has.",
    "world": "Say in the app's file, under `log`, where its event log is read.",
    "processes": _IN_FILE,
    "storage_scale": _IN_FILE,
    "hydration_jitter_ms": _IN_FILE,
}
WORLD, AS_IT_RUNS = "url", "as it runs"
MOST_APPS = 16


def in_columns(given: Mapping[str, Any], source: str) -> tuple[dict[str, Any], tuple[App, ...]]:
    """The keys of a plan with its apps in the places of a cell's columns, and the apps.

    Files are looked for beside the plan that names them. PlanError for an app that cannot be meant.
    """
    matrix = dict(given["matrix"])
    for axis in matrix:
        if axis == "pair":
            raise PlanError("the target url has no pairs", remedy="Name the apps under `app`.")
        if axis not in AXES:
            raise PlanError(f"matrix has an unknown axis {axis!r}", remedy=suggest(str(axis), AXES))
    wanted = matrix.pop("app", given.get("app"))
    apps = tuple(_app(one, source) for one in (wanted if isinstance(wanted, list) else [wanted]))
    if not apps or len(apps) > MOST_APPS:
        raise PlanError(f"the plan names {len(apps)} apps", remedy=f"Name between 1 and {MOST_APPS}.")
    labels = [app.label for app in apps]
    for label in labels:
        if labels.count(label) > 1:
            raise PlanError(f"two apps are called {label}", remedy="Give each a `name` of its own.")
    columns = {**matrix, "condition": labels, "generation": AS_IT_RUNS, "world": WORLD}
    lowered = {key: value for key, value in given.items() if key != "app"}
    return {**lowered, "processes": 1, "matrix": columns}, apps


def from_here(values: Sequence[str]) -> list[str]:
    """Files that were named on the command line lie where that was typed."""
    return [str(Path(value).expanduser().absolute()) for value in values]


def _app(value: Any, source: str) -> App:
    base = Path(source).parent
    if value is None:
        raise PlanError("the plan names no app", remedy="Add `app: my-app.yaml`; configs/url-example.yaml shows one.")
    if isinstance(value, str):
        path = base / Path(value).expanduser()
        return parse_app(read_yaml(path), str(path), path.parent)
    return parse_app(value, f"app in {source}", base)
