"""What ``stormctl clean`` says, and what it exits with."""

from __future__ import annotations

from pathlib import Path

from stormctl.cli.output import emit
from stormctl.errors import EXIT_CLEAN, EXIT_INTERNAL


def clean(root: Path, keep: int, plan: str | None, dsn: str | None, *, dry: bool) -> int:
    """Remove old storms, and what they left in a database when one is named; internal when one could not be removed."""
    from stormctl.storm.clean import plans_under, remove, storm_id
    from stormctl.storm.clean_database import clean_database

    freed, gone, failed = 0, [], False
    for place in plans_under(root, plan):
        for one in remove(place, keep, dry=dry):
            if one.problem is not None:
                emit(f"kept {one.folder}: {one.problem}")
                failed = failed or not one.running
                continue
            freed += one.size
            gone.append(storm_id(one.folder))
            emit(f"{'would remove' if dry else 'removed'} {one.folder} ({_size(one.size)})")
    emit(f"{'would free' if dry else 'freed'} {_size(freed)} of {len(gone)} storms")
    spaces = clean_database(dsn, gone, dry=dry)
    if spaces is not None:
        emit(f"{'would delete' if dry else 'deleted'} {spaces} stores of them from the database")
    return EXIT_INTERNAL if failed else EXIT_CLEAN


def _size(count: int) -> str:
    """``1.5 MB``."""
    value = float(count)
    for unit in ("bytes", "KB", "MB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GB"
