"""Where ``--picture`` writes to: one file per log and engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from stormctl.errors import UsageError
from stormctl.sweeps import LogReport

_UNFIT = re.compile(r"[^A-Za-z0-9._=-]+")


def check_picture(path: Path | None, engines: Sequence[str]) -> None:
    """Refuse a picture that could not be made before anything is replayed for it."""
    if path is None:
        return
    from stormctl.report.style import SUFFIXES

    if not engines:
        raise UsageError("there is nothing to draw without a replay", remedy="Name an engine with --engine.")
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path} names no kind of picture", remedy=f"End it with {' or '.join(SUFFIXES)}.")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}", remedy="Make it, or name another file.")


def write_pictures(logs: Sequence[LogReport], path: Path) -> list[Path]:
    """The pictures of all logs and engines. One alone gets the path as it is; of several each adds to its name what
    tells it from the others. What lies there already is written over."""
    from stormctl.report.binding_map import write_picture

    drawn = [(log, found) for log in logs for found in log.maps]
    stems = [Path(log.source).stem for log in logs]
    written = []
    for log, found in drawn:
        parts = [path.stem]
        if len(logs) > 1:
            parts.append(Path(log.source).stem if len(set(stems)) == len(stems) else f"{log.run_id}")
        if len(log.maps) > 1:
            parts.append(found.engine)
        name = "-".join(_UNFIT.sub("-", part).strip("-") for part in parts)
        target = path if len(parts) == 1 else path.with_name(name + path.suffix)
        written.append(write_picture(found, target, Path(log.source).name))
    return written
