"""Whether this machine can run storms on the real SDK, and what is installed still works."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stormctl.errors import StormctlError
from stormctl.targets.sdk import npm, setup
from stormctl.targets.sdk.cache import VARIABLE, cache_folder
from stormctl.targets.sdk.node import Tools, find_tools
from stormctl.targets.sdk.projects import Project, installed
from stormctl.targets.sdk.versions import supported

#: what the largest version takes while it is being installed
ROOM = 700_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: whether it is ``ok``, what was found, and what to do where it is not."""

    name: str
    ok: bool
    text: str
    remedy: str = ""


def doctor(version: str | None = None) -> Iterator[Check]:
    """Look at everything that a storm on the SDK needs, and load every installed project (or those of one version).

    Each check comes as soon as it is known; none raises. UsageError only for a version that is none.
    """
    wanted = None if version is None else str(supported(version))
    try:
        tools = find_tools()
    except StormctlError as error:
        yield Check("node and npm", ok=False, text=str(error), remedy=error.remedy)
        return
    yield Check("node and npm", ok=True, text=f"node {tools.node_version}, npm {tools.npm_version}")
    yield _registry(tools)
    yield _cache()
    projects = [project for project in installed() if wanted in (None, project.version)]
    for project in projects:
        yield _project(tools, project)
    if not projects:
        which = wanted or "any version"
        install = f"`stormctl sdk install {wanted or '4.8.9'}` does that."
        yield Check(
            which, ok=wanted is None, text="is not installed" if wanted else "none is installed yet", remedy=install
        )


def _registry(tools: Tools) -> Check:
    try:
        latest = npm.view(tools, "workflow", "version")
    except StormctlError as error:
        return Check("registry", ok=False, text=str(error), remedy=error.remedy)
    return Check("registry", ok=True, text=f"answers: the latest release of workflow is {latest}")


def _cache() -> Check:
    folder = cache_folder()
    there = next((one for one in (folder, *folder.parents) if one.exists()), Path("/"))
    if not os.access(there, os.W_OK):
        return Check(
            "cache", ok=False, text=f"{folder} cannot be written", remedy=f"Name another folder by {VARIABLE}."
        )
    free = shutil.disk_usage(there).free
    if free < ROOM:
        remedy = f"Make room, or name another folder by {VARIABLE}."
        return Check("cache", ok=False, text=f"{folder} has only {free / 1e6:.0f} MB left", remedy=remedy)
    return Check("cache", ok=True, text=f"{folder}, {free / 1e9:.1f} GB free")


def _project(tools: Tools, project: Project) -> Check:
    try:
        setup.check(tools, project.folder)
    except StormctlError as error:
        remedy = f"`stormctl sdk remove {project.version}`, then install it again."
        return Check(project.name, ok=False, text=str(error), remedy=remedy)
    if not project.current:
        remedy = f"`stormctl sdk install {project.version} --world {project.world}` makes it anew; a storm does too."
        return Check(project.name, ok=True, text="loads, and was made by another stormctl", remedy=remedy)
    return Check(project.name, ok=True, text=f"loads ({project.world_package} {project.world_version})")
