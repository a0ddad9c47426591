"""Versions of the real SDK as projects: installed once, cached, each whole or not there at all.

Everything here blocks, for up to some minutes where packages are installed: call it from a thread where a loop runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stormctl.errors import StoreFailure, UsageError, suggest
from stormctl.targets.sdk import cache, npm, setup
from stormctl.targets.sdk.cache import Tell, cache_folder
from stormctl.targets.sdk.dsn import node_url
from stormctl.targets.sdk.node import Tools, call, find_tools, last_line
from stormctl.targets.sdk.pins import LOCAL, PACKAGES, POSTGRES, Pins, candidates, check_world
from stormctl.targets.sdk.versions import Version, parse, supported

MIGRATE_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Project:
    """One installed version with one world.

    ``world_version`` is that of the world's package, ``spec_version`` what the world declares. ``exact``: the world was
    made for this very version of the runtime, not for an older one. ``light``: without the packages for frameworks.
    ``attributes``: whether a step can write attributes (no 4.x can). ``templates`` is the digest of what it was made
    from.
    """

    version: str
    world: str
    folder: Path
    world_version: str
    spec_version: int | None
    exact: bool
    light: bool
    attributes: bool
    node: str
    templates: str
    made: str

    @property
    def name(self) -> str:
        """What it is called in the cache: ``4.8.9-local``."""
        return _name(self.version, self.world)

    @property
    def major(self) -> int:
        """4 or 5."""
        return parse(self.version).major

    @property
    def world_package(self) -> str:
        """The package of its world."""
        return PACKAGES[self.world]

    @property
    def current(self) -> bool:
        """Whether it was made from the templates of this stormctl."""
        return self.templates == setup.templates_digest()

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        return cache.size_of(self.folder)

    def migrate(self, dsn: str) -> None:
        """Make the tables of world-postgres in a database, or bring them up to date.

        UsageError for a project of another world, StoreFailure with the last line of what the migration said.
        """
        if self.world != POSTGRES:
            raise UsageError(f"{self.name} has no database to migrate", remedy="Install it with --world postgres.")
        said = call(
            [find_tools().node, f"node_modules/{self.world_package}/bin/setup.js"],
            cwd=self.folder,
            timeout_s=MIGRATE_SECONDS,
            environment={"WORKFLOW_POSTGRES_URL": node_url(dsn), "DATABASE_URL": node_url(dsn)},
        )
        if said.code:
            raise StoreFailure(
                f"the tables of {self.world_package} {self.world_version} cannot be made: {last_line(said.all)}",
                remedy="See that the database can be reached and that its user may create schemas.",
            )


def ensure(version: str, world: str = LOCAL, *, tell: Tell = lambda _text: None) -> Project:
    """The project of a version with a world, installed first if it is not there yet or was made by another stormctl.

    ``tell`` is given a line of progress now and then. Two at once install one: the second waits for the first. Raises
    StormctlErrors, each with its remedy: no or too old a node, a version or world that was not published, a world that
    the runtime refuses, a registry that does not answer, a full disk.
    """
    wanted, world = supported(version), check_world(world)
    ready = find(version, world)
    if ready is not None and ready.current:
        return ready
    tools = find_tools()
    name = _name(str(wanted), world)
    with cache.locked(name, tell):
        ready = find(version, world)
        if ready is not None and ready.current:
            return ready  # somebody else was faster
        if ready is not None:
            tell(f"{name} was made by another stormctl: making it again")
        return _install(tools, wanted, world, ready, tell)


def find(version: str, world: str = LOCAL) -> Project | None:
    """An installed project; None when it is not there."""
    return _read(cache_folder() / _name(str(supported(version)), check_world(world)))


def installed() -> list[Project]:
    """All installed projects, oldest version first."""
    try:
        folders = [entry for entry in cache_folder().iterdir() if not entry.name.startswith(".") and entry.is_dir()]
    except OSError:
        return []
    found = [project for folder in folders if (project := _read(folder)) is not None]
    return sorted(found, key=lambda project: (parse(project.version), project.world))


def remove(version: str, world: str | None = None, *, tell: Tell = lambda _text: None) -> list[Project]:
    """Remove a version, with one world or with all that it was installed with: what was removed.

    UsageError when none of them is there.
    """
    wanted = str(supported(version))
    worlds = [check_world(world)] if world is not None else list(PACKAGES)
    there = [project for one in worlds if (project := find(wanted, one)) is not None]
    if not there:
        known = [project.version for project in installed()]
        with_world = f" with world {world}" if world is not None else ""
        raise UsageError(
            f"workflow {wanted}{with_world} is not installed",
            remedy=suggest(wanted, known) if known else "Nothing is: `stormctl sdk install` does that.",
        )
    for project in there:
        with cache.locked(project.name, tell):
            if project.folder.exists():
                cache.take_away(project.folder)
    return there


def _install(tools: Tools, version: Version, world: str, before: Project | None, tell: Tell) -> Project:
    tell(f"looking up workflow {version} in the npm registry")
    refused: list[tuple[Pins, Exception]] = []
    for pins in candidates(tools, version, world):
        lock_file = _lock_file(before, pins)
        place = cache_folder() / _name(str(version), world)
        with cache.made_aside(place.name) as folder:
            try:
                made = setup.make(tools, pins, folder, lock_file, tell)
            except npm.NotPublished as error:  # a hole: what this one depends on was never published
                if world == LOCAL:
                    raise
                tell(
                    f"{pins.world_package} {pins.world_version} cannot be installed ({error.code}): trying an older one"
                )
                refused.append((pins, error))
                continue
            except setup.WorldMisfit as error:  # older ones speak older protocols still
                refused.append((pins, error))
                break
            _write_record(folder, made, tools)
            cache.put_in_place(folder, place)
        project = _read(place)
        assert project is not None
        tell(f"workflow {version} with world {world} is installed in {place}")
        return project
    raise _no_world(version, world, refused)


def _no_world(version: Version, world: str, refused: Sequence[tuple[Pins, Exception]]) -> setup.WorldMisfit:
    """Why no world fits, by the last that was tried."""
    pins, error = refused[-1]
    holes = [before.world_version for before, _why in refused[:-1]]
    besides = f" ({', '.join(holes)} cannot be installed at all)" if holes else ""
    if isinstance(error, setup.WorldMisfit):
        why = f"the runtime refuses {pins.world_version}, the latest that can be installed{besides}: {error}"
    else:
        why = f"none can be installed: {error}"
    return setup.WorldMisfit(
        f"no {pins.world_package} fits workflow {version}; {why.rstrip('.')}",
        remedy=f"Use --world local, or a version that a published {pins.world_package} was made for, such as 4.8.9.",
    )


def _lock_file(before: Project | None, pins: Pins) -> bytes | None:
    """The lock file of the project made before, if it had the same packages."""
    if before is None or before.world_version != pins.world_version or not before.light:
        return None
    try:
        return (before.folder / setup.LOCK_FILE).read_bytes()
    except OSError:
        return None


def _write_record(folder: Path, made: setup.Made, tools: Tools) -> None:
    when = datetime.now(UTC).isoformat(timespec="seconds")
    (folder / setup.RECORD).write_text(json.dumps(setup.record(made, tools, when), indent=2) + "\n")


def _read(folder: Path) -> Project | None:
    """A project from its record; None for what is not whole."""
    try:
        found: dict[str, Any] = json.loads((folder / setup.RECORD).read_bytes())
        return Project(
            version=str(found["version"]),
            world=str(found["world"]),
            folder=folder,
            world_version=str(found["worldVersion"]),
            spec_version=found["specVersion"],
            exact=bool(found["exact"]),
            light=bool(found["light"]),
            attributes=bool(found["attributes"]),
            node=str(found["node"]),
            templates=str(found["templates"]),
            made=str(found["made"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _name(version: str, world: str) -> str:
    return f"{version}-{world}"
