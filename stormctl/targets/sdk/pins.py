"""Which packages make a version of the SDK complete, by what the registry says that it depends on.

The world-local that a version brings fits by nature. A world-postgres has its own numbers: it fits when it is pinned to
the same ``@workflow/world`` as the version's core. Where none is, the nearest older one is tried, and the runtime
itself says whether it accepts its spec version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stormctl.errors import PlanError, suggest
from stormctl.targets.sdk import npm
from stormctl.targets.sdk.node import Tools
from stormctl.targets.sdk.versions import Version, nearest, parse

LOCAL, POSTGRES = "local", "postgres"
PACKAGES = {LOCAL: "@workflow/world-local", POSTGRES: "@workflow/world-postgres"}

#: how many world-postgres versions are looked at
MOST_CANDIDATES = 12

_CORE, _CLI, _BUILDERS, _WORLD = "@workflow/core", "@workflow/cli", "@workflow/builders", "@workflow/world"


@dataclass(frozen=True, slots=True)
class Pins:
    """The exact versions of one project's packages. ``exact``: the world was made for this very version."""

    version: str
    world: str
    world_version: str
    builders: str
    exact: bool

    @property
    def world_package(self) -> str:
        """The package of the world."""
        return PACKAGES[self.world]


def check_world(world: str) -> str:
    """A world's name. PlanError for one that the SDK has not."""
    if world not in PACKAGES:
        raise PlanError(f"the target sdk has no world {world!r}", remedy=suggest(world, PACKAGES))
    return world


def candidates(tools: Tools, version: Version, world: str) -> Iterator[Pins]:
    """The projects to try, best first; NotPublished when the version or a world for it does not exist."""
    needs = _dependencies_of(tools, version)
    core = npm.dependencies(tools, f"{_CORE}@{needs[_CORE]}")
    builders = npm.dependencies(tools, f"{_CLI}@{needs[_CLI]}").get(_BUILDERS)
    if builders is None or PACKAGES[LOCAL] not in core:
        raise npm.NpmFailure(
            f"workflow {version} is put together in a way that stormctl does not know",
            remedy="Give another version, such as 4.8.9 or 5.0.0-beta.55.",
        )
    if world == LOCAL:
        yield Pins(str(version), world, core[PACKAGES[LOCAL]], builders, exact=True)
        return
    wanted = parse(core[_WORLD])
    for found, pin in _of_postgres(tools, version, wanted):
        yield Pins(str(version), world, str(found), builders, exact=pin == wanted)


def _dependencies_of(tools: Tools, version: Version) -> dict[str, str]:
    try:
        needs = npm.dependencies(tools, f"workflow@{version}")
    except npm.NotPublished as error:
        close = nearest(version, npm.published(tools, "workflow"))
        names = " or ".join(map(str, close))
        raise npm.NotPublished(
            f"workflow {version} was never published",
            remedy=f"Did you mean {names}?" if close else "See `npm view workflow versions`.",
            code=error.code,
        ) from None
    if _CORE not in needs or _CLI not in needs:
        raise npm.NpmFailure(
            f"workflow {version} has no {_CORE} or no {_CLI}, so that stormctl cannot build for it",
            remedy="Give a version from 4.2.0 on.",
        )
    return needs


def _of_postgres(tools: Tools, version: Version, wanted: Version) -> Iterator[tuple[Version, Version]]:
    """The world-postgres versions that may fit, with the ``@workflow/world`` that each is pinned to."""
    package = PACKAGES[POSTGRES]
    known = sorted(map(parse, npm.published(tools, package)), reverse=True)
    same = [one for one in known if one.major == version.major and bool(one.pre) == bool(version.pre)]
    older: list[tuple[Version, Version]] = []
    some = False
    for one in same[:MOST_CANDIDATES]:
        pin = parse(npm.dependencies(tools, f"{package}@{one}").get(_WORLD, "0.0.0"))
        if pin == wanted:
            some = True
            yield one, pin
        elif pin < wanted:
            older.append((one, pin))
            if some:
                return  # from here on they are older than one that fits
    yield from older
    if not some and not older:
        raise npm.NotPublished(
            f"no {package} was published that is as old as workflow {version}",
            remedy="Use --world local, or a later version.",
        )
