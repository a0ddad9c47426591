"""Removing old storms: the oldest artefact folders of each plan beyond a number, and never anything else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stormctl.errors import StormctlError, UnreadableInput, UsageError
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import SCHEMA
from stormctl.worlds.owner import driver_of

LINK = "latest"
_ID_LENGTH = 26


@dataclass(frozen=True, slots=True)
class Removal:
    """One folder beyond those that are kept. ``problem`` says why it stays."""

    folder: Path
    size: int
    problem: str | None = None
    running: bool = False


def storm_id(folder: Path) -> str:
    """The id of the storm whose artefact folder this was."""
    return StormFolder(folder).id


def plans_under(root: Path, plan: str | None = None) -> list[Path]:
    """The folders of plans under an artefact root; UsageError for a plan that has none there."""
    if not root.is_dir():
        raise UnreadableInput(f"{root} is not a folder", remedy="Name the one that --out named, or run a storm first.")
    found = sorted(place for place in root.iterdir() if place.is_dir() and not place.is_symlink())
    if plan is None:
        return found
    named = [place for place in found if place.name == plan]
    if not named:
        known = ", ".join(place.name for place in found) or "none"
        raise UsageError(f"there is no storm of plan {plan!r} under {root}", remedy=f"Plans there: {known}.")
    return named


def storms_of(place: Path) -> list[StormFolder]:
    """The artefact folders of one plan, the newest first. What is not one of ours is not among them."""
    return sorted((StormFolder(one) for one in place.iterdir() if _is_ours(one)), key=lambda one: one.id, reverse=True)


def remove(place: Path, keep: int, *, dry: bool) -> Iterator[Removal]:
    """Remove all but the newest ``keep`` storms of one plan, and mend ``latest``.

    A storm whose driver lives stays, whatever its age. With ``dry`` nothing is touched.
    """
    for folder in storms_of(place)[keep:]:
        size = _size(folder.path)
        alive = driver_of(folder.path)
        if alive is not None:
            who = f"pid {alive.get('pid')} on {alive.get('host')}"
            yield Removal(folder.path, size, f"it is running: {who}", running=True)
        elif dry:
            yield Removal(folder.path, size)
        else:
            yield _removed(folder.path, size)
    if not dry:
        _mend_latest(place)


def _removed(path: Path, size: int) -> Removal:
    """Moved aside first, so that nobody meets half a storm under its name."""
    aside = path.with_name(f".removed-{path.name}")
    try:
        path.rename(aside)
        shutil.rmtree(aside)
    except OSError as bad:
        return Removal(path, size, f"it cannot be removed: {bad.strerror}")
    return Removal(path, size)


def _is_ours(path: Path) -> bool:
    """Whether stormctl made the folder: its name ends in the storm's id, and its plan is one of ours."""
    stamp, dash, storm = path.name.rpartition("-")
    if path.is_symlink() or not path.is_dir() or not dash or not stamp or len(storm) != _ID_LENGTH:
        return False
    try:
        with (path / "plan.yaml").open("rb") as file:
            head = file.readline(200)
    except OSError:
        return False
    return head.startswith(f"schema: {SCHEMA.partition('/')[0]}/".encode()) and (path / "attempts.ndjson").is_file()


def _mend_latest(place: Path) -> None:
    """Point ``latest`` at the newest storm that is left; take it away when there is none."""
    link = place / LINK
    left = storms_of(place)
    try:
        if not left:
            if link.is_symlink():
                link.unlink()
            if not any(place.iterdir()):
                place.rmdir()
        elif not link.exists():
            fresh = place / f".{LINK}-{os.getpid()}"
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(left[0].path.name)
            fresh.replace(link)
    except OSError as bad:
        raise _unmended(link, bad) from None


def _unmended(link: Path, bad: OSError) -> StormctlError:
    return UnreadableInput(f"{link} cannot be mended: {bad.strerror}", remedy="Check the folder's permissions.")


def _size(path: Path) -> int:
    """Bytes on the disk, as far as they can be seen."""
    total = 0
    for place, _, names in os.walk(path):
        for name in names:
            try:
                stat = os.lstat(os.path.join(place, name))
            except OSError:
                continue
            total += stat.st_blocks * 512
    return total
