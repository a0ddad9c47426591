"""What ``stormctl sdk`` says."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from stormctl.cli.output import emit
from stormctl.errors import EXIT_CLEAN, EXIT_USAGE

if TYPE_CHECKING:
    from stormctl.targets.sdk.doctor import Check
    from stormctl.targets.sdk.projects import Project


def tell_progress(text: str) -> None:
    """A line of progress, on standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def tell_installed(project: Project) -> None:
    """What is there now."""
    fit = "" if project.exact else ", made for an older version of the runtime"
    emit(
        f"workflow {project.version} with {project.world_package} {project.world_version}{fit}\n"
        f"  {project.folder} ({_megabytes(project.size)})"
    )


def tell_list(projects: Sequence[Project], *, as_json: bool) -> None:
    """A table of what is installed, or the same as JSON."""
    if as_json:
        emit(json.dumps([_row(project) for project in projects], indent=2))
        return
    if not projects:
        emit("no version of the Workflow SDK is installed; `stormctl sdk install 4.8.9` does that")
        return
    head = ("version", "world", "world's version", "spec", "size", "made with")
    rows = [
        (
            project.version,
            project.world,
            project.world_version + ("" if project.exact else " (older)"),
            "-" if project.spec_version is None else str(project.spec_version),
            _megabytes(project.size),
            f"node {project.node}" + ("" if project.current else ", another stormctl"),
        )
        for project in projects
    ]
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(wide) for cell, wide in zip(row, widths, strict=True)) for row in [head, *rows]]
    emit("\n".join(line.rstrip() for line in lines))


def tell_checks(checks: Iterable[Check]) -> int:
    """Each check as it comes; the exit code."""
    code = EXIT_CLEAN
    for check in checks:
        remedy = f". {check.remedy}" if check.remedy else ""
        emit(f"{'ok' if check.ok else 'bad':4}{check.name}: {check.text}{remedy}")
        code = code if check.ok else EXIT_USAGE
    return code


def tell_removed(projects: Sequence[Project]) -> None:
    """What is gone."""
    for project in projects:
        emit(f"removed workflow {project.version} with world {project.world} from {project.folder}")


def _row(project: Project) -> dict[str, object]:
    return {
        "version": project.version,
        "world": project.world,
        "world_package": project.world_package,
        "world_version": project.world_version,
        "exact": project.exact,
        "spec_version": project.spec_version,
        "attributes": project.attributes,
        "light": project.light,
        "bytes": project.size,
        "folder": str(project.folder),
        "made": project.made,
        "node": project.node,
        "current": project.current,
    }


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
