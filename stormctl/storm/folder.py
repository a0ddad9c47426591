"""The artefact folder of a storm: where everything lies, and how it is written so that a kill leaves it readable."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stormctl import __version__
from stormctl.errors import StoreFailure
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.plan import Plan, resolved_yaml

DEFAULT_ROOT = Path(".stormctl")


class StormFolder:
    """One storm's folder. Nothing in it is readable by other users: logs hold hook tokens, which are bearer secrets."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, plan: Plan, root: Path = DEFAULT_ROOT) -> StormFolder:
        """A fresh folder for the plan under ``root``, holding the resolved plan and the environment.

        ``latest`` points at it. StoreFailure when the disk refuses.
        """
        from ulid import ULID

        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        path = root / plan.name / f"{stamp}-{ULID()}"
        try:
            path.mkdir(parents=True, mode=0o700)
            folder = cls(path.resolve())
            for name in ("logs", "audit", "stores", "workers"):
                (folder.path / name).mkdir(mode=0o700)
            _write(folder.path / "plan.yaml", resolved_yaml(plan))
            _write(folder.path / "env.json", json.dumps(environment(), indent=2) + "\n")
            folder.attempts_file.touch(mode=0o600)
            folder._point_latest()
        except OSError as bad:
            raise StoreFailure(
                f"the storm's folder {path} cannot be written: {bad.strerror}",
                remedy="Name a folder on a disk with room with --out.",
            ) from None
        return folder

    @property
    def attempts_file(self) -> Path:
        return self.path / "attempts.ndjson"

    def store(self, cell: Cell) -> Path:
        """Where a cell's event-log store lives."""
        return self.path / "stores" / cell.label.replace("/", "--")

    def record(self, attempt: Attempt) -> None:
        """Append one landed attempt, on disk before the next one is counted."""
        line = json.dumps(attempt.row(), ensure_ascii=False) + "\n"
        try:
            with self.attempts_file.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as bad:
            raise StoreFailure(
                f"an attempt could not be recorded in {self.attempts_file}: {bad.strerror}",
                remedy="Make room on the disk; the attempts that landed before are kept.",
            ) from None

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file whole or not at all."""
        try:
            _write(self.path / name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")
        except OSError as bad:
            raise StoreFailure(
                f"{name} could not be written to {self.path}: {bad.strerror}", remedy="Make room on the disk."
            ) from None

    @contextmanager
    def journal(self, index: int) -> Iterator[Callable[[Mapping[str, Any]], None]]:
        """What a worker writes down about its deliveries: one row each, whole lines only."""
        with (self.path / "workers" / f"{index}.ndjson").open("a", encoding="utf-8") as file:

            def write(row: Mapping[str, Any]) -> None:
                file.write(json.dumps(row) + "\n")
                file.flush()

            yield write

    def work_rows(self) -> Iterator[Mapping[str, Any]]:
        """What the workers wrote down about their deliveries, one row each; a half-written last line is skipped."""
        for path in sorted((self.path / "workers").glob("*.ndjson")):
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    yield json.loads(line)
                except ValueError:
                    continue

    def _point_latest(self) -> None:
        link = self.path.parent / "latest"
        fresh = self.path.parent / f".latest-{os.getpid()}"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(self.path.name)
        fresh.replace(link)


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.tmp")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(0o600)
    fresh.replace(path)


def environment() -> dict[str, Any]:
    """What a reader must know of the machine to judge the rates: versions, cores, and its load at the start."""
    return {
        "stormctl": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "load": [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "argv": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }
