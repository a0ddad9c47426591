"""Making one project: its files, its packages, its built workflows, and the proof that they load."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from stormctl.errors import StormctlError
from stormctl.targets.sdk import npm
from stormctl.targets.sdk.cache import Tell
from stormctl.targets.sdk.node import Said, Tools, call, last_line
from stormctl.targets.sdk.pins import Pins
from stormctl.targets.sdk.workflows import TWINS

#: the record of a project, which its host reads too
RECORD = "stormctl.json"
LOCK_FILE = "package-lock.json"
BUILD_SECONDS = 300.0
CHECK_SECONDS = 120.0

#: What a version brings for frameworks and its command line. A storm needs none of it, and it is half of the packages.
NEEDLESS = tuple(
    f"@workflow/{name}"
    for name in ("astro", "cli", "nest", "next", "nitro", "nuxt", "rollup", "sveltekit", "typescript-plugin")
)
_NOTHING = "stormctl-nothing"
_MARK = "STORMCTL "

#: how a version names the function that writes attributes, and the module that our steps import it from
_WRITER = """\
// Written by stormctl for this version of the SDK.
export {{ {export} as setAttributes }} from 'workflow';
"""
_NO_WRITER = """\
// Written by stormctl for this version of the SDK, which has no attributes: `attrWrites` is 0.
export async function setAttributes(_changes: Record<string, string>): Promise<void> {
  throw new Error('this version of the SDK cannot write attributes: give attrWrites 0');
}
"""


class SetupFailure(StormctlError):
    """A version whose packages came, and that cannot be built or loaded."""


class WorldMisfit(SetupFailure):
    """A world that the runtime of the version refuses."""


@dataclass(frozen=True, slots=True)
class Made:
    """What was found out about a project while it was made."""

    pins: Pins
    light: bool
    spec_version: int | None
    attributes: bool


def make(tools: Tools, pins: Pins, folder: Path, lock_file: bytes | None, tell: Tell) -> Made:
    """Make a project in an empty folder: the light set of packages, and all of them where that does not do.

    ``lock_file`` is that of the same project made before, to get the same packages again. NotPublished for a hole in
    the registry, WorldMisfit when the runtime refuses the world; RegistryUnreachable and DiskFull as they come.
    """
    try:
        return _make(tools, pins, folder, lock_file, tell, light=True)
    except (WorldMisfit, npm.NotPublished, npm.RegistryUnreachable, npm.DiskFull):
        raise
    except (npm.NpmFailure, SetupFailure) as error:
        tell(f"the light set of packages does not do ({error}): installing all of them")
        for left in folder.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        return _make(tools, pins, folder, None, tell, light=False)


def _make(tools: Tools, pins: Pins, folder: Path, lock_file: bytes | None, tell: Tell, *, light: bool) -> Made:
    _write_files(pins, folder, light=light)
    if lock_file is not None:
        (folder / LOCK_FILE).write_bytes(lock_file)
    tell(f"installing workflow {pins.version} with {pins.world_package} {pins.world_version}")
    npm.install(tools, folder)
    found = _check(tools, pins, folder, "world")
    writer = found.get("attributeWriter")
    (folder / "workflows/attributes.ts").write_text(_WRITER.format(export=writer) if writer else _NO_WRITER)
    tell("building the workflows")
    _build(tools, pins, folder)
    built = _check(tools, pins, folder, "built")
    missing = [twin.workflow_name for twin in TWINS.values() if twin.workflow_name not in built["workflows"]]
    if missing:
        raise SetupFailure(
            f"workflow {pins.version} built {len(built['workflows'])} workflows and not {missing[0]}",
            remedy="Report it with this version.",
        )
    spec = found.get("specVersion")
    return Made(pins, light, spec if isinstance(spec, int) else None, attributes=bool(writer))


def record(made: Made, tools: Tools, when: str) -> dict[str, Any]:
    """What is kept about a project, and read again by ``projects``."""
    return {
        **_facts(made.pins),
        "schema": "stormctl.sdk/1",
        "builders": made.pins.builders,
        "exact": made.pins.exact,
        "light": made.light,
        "specVersion": made.spec_version,
        "attributes": made.attributes,
        "node": tools.node_version,
        "npm": tools.npm_version,
        "templates": templates_digest(),
        "made": when,
    }


def check(tools: Tools, folder: Path) -> Mapping[str, Any]:
    """Load an installed project, built workflows and all: what it says of itself. SetupFailure when it does not."""
    return _answer(_run_check(tools, folder, "built"), folder.name)


@lru_cache(maxsize=1)
def templates_digest() -> str:
    """The digest of everything that a project is made from: another one asks for the project to be made again."""
    digest = hashlib.sha256(repr((NEEDLESS, _WRITER, _NO_WRITER)).encode())
    for name, file in sorted(_templates()):
        digest.update(name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _templates() -> list[tuple[str, Traversable]]:
    """Every file of the templates, by its path in a project."""
    root = files("stormctl.targets.sdk") / "templates"
    found = [(file.name, file) for file in root.iterdir() if file.name.endswith(".mjs")]
    found += [(f"workflows/{file.name}", file) for file in (root / "workflows").iterdir() if file.name.endswith(".ts")]
    return found


def _facts(pins: Pins) -> dict[str, str]:
    return {
        "version": pins.version,
        "world": pins.world,
        "worldPackage": pins.world_package,
        "worldVersion": pins.world_version,
    }


def _write_files(pins: Pins, folder: Path, *, light: bool) -> None:
    (folder / "workflows").mkdir(parents=True)
    for name, file in _templates():
        (folder / name).write_bytes(file.read_bytes())
    (folder / RECORD).write_text(json.dumps(_facts(pins), indent=2) + "\n")
    package: dict[str, Any] = {
        "name": "stormctl-sdk-target",
        "version": "0.0.0",
        "private": True,
        # 4.x builds CommonJS into files that end in .js
        "type": "commonjs" if pins.version.startswith("4.") else "module",
        "dependencies": {
            "workflow": pins.version,
            "@workflow/builders": pins.builders,
            pins.world_package: pins.world_version,
        },
    }
    if light:
        _write_nothing(folder)
        package["dependencies"][_NOTHING] = f"file:./{_NOTHING}"
        package["overrides"] = dict.fromkeys(NEEDLESS, f"${_NOTHING}")
    (folder / "package.json").write_text(json.dumps(package, indent=2) + "\n")


def _write_nothing(folder: Path) -> None:
    """The empty package that stands in for the needless ones: ours, so that no stranger's is trusted."""
    (folder / _NOTHING).mkdir()
    empty = {"name": _NOTHING, "version": "1.0.0", "description": "stands in for packages that a storm does not need"}
    (folder / _NOTHING / "package.json").write_text(json.dumps(empty, indent=2) + "\n")


def _build(tools: Tools, pins: Pins, folder: Path) -> None:
    extension = "js" if pins.version.startswith("4.") else "mjs"
    said = call(
        [tools.node, "build.mjs", extension],
        cwd=folder,
        timeout_s=BUILD_SECONDS,
        environment={"WORKFLOW_TARGET_WORLD": "", "NODE_ENV": "production"},
    )
    if said.code:
        raise SetupFailure(
            f"the workflows cannot be built for workflow {pins.version}: {last_line(said.all)}",
            remedy="Give another version, or report it with this one.",
        )
    for left in (folder / ".well-known/workflow/v1").glob("*.debug.json"):
        left.unlink()  # they name the folder that the project was made in


def _check(tools: Tools, pins: Pins, folder: Path, stage: str) -> Mapping[str, Any]:
    return _answer(_run_check(tools, folder, stage), f"workflow {pins.version}")


def _run_check(tools: Tools, folder: Path, stage: str) -> Said:
    return call(
        [tools.node, "check.mjs", stage],
        cwd=folder,
        timeout_s=CHECK_SECONDS,
        environment={"WORKFLOW_TARGET_WORLD": "", "NODE_ENV": "production"},
    )


def _answer(said: Said, what: str) -> Mapping[str, Any]:
    line = next((line for line in said.out.splitlines() if line.startswith(_MARK)), None)
    if line is None:
        raise SetupFailure(
            f"{what} cannot be loaded: {last_line(said.all) or f'exit code {said.code}'}",
            remedy="Remove it with `stormctl sdk remove` and install it again.",
        )
    found: dict[str, Any] = json.loads(line.removeprefix(_MARK))
    if found["ok"]:
        return found
    if "spec version" in found["error"]:
        raise WorldMisfit(found["error"], remedy="Use --world local, or another version.")
    raise SetupFailure(
        f"{what} cannot be loaded: {found['error'].splitlines()[0][:300]}",
        remedy="Remove it with `stormctl sdk remove` and install it again.",
    )
