"""The artefact folder of a storm: where everything lies, and how it is written so that a kill leaves it readable."""

from __future__ import annotations

import errno
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stormctl import __version__
from stormctl.errors import StoreFailure
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.plan import Plan, resolved_yaml
from stormctl.worlds.files import Files
from stormctl.worlds.mint import Minter
from stormctl.worlds.owner import DriverLock

DEFAULT_ROOT = Path(".stormctl")
_ROOM = "Make room on the disk."


class StormFolder:
    """One storm's folder. Nothing in it is readable by other users: logs hold hook tokens, which are bearer secrets."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: dict[Path, int] = {}
        self._work: dict[str, list[Mapping[str, Any]]] = {}

    @classmethod
    def create(cls, plan: Plan, root: Path = DEFAULT_ROOT, server: str | None = None) -> StormFolder:
        """A fresh folder for the plan under ``root``, holding the resolved plan and the environment.

        ``server`` is the database as it may be shown. ``latest`` points at it. StoreFailure when the disk refuses.
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
            _write(folder.path / "env.json", json.dumps(environment(server), indent=2) + "\n")
            folder.attempts_file.touch(mode=0o600)
            folder._point_latest()
        except OSError as bad:
            raise StoreFailure(
                f"the storm's folder {path} cannot be written: {bad.strerror}",
                remedy="Name a folder on a disk with room with --out.",
            ) from None
        return folder

    @property
    def id(self) -> str:
        """The storm's id, a ULID: what its stores in a database go by."""
        return self.path.name.rpartition("-")[2]

    @property
    def attempts_file(self) -> Path:
        """Where landed attempts are."""
        return self.path / "attempts.ndjson"

    @property
    def started_file(self) -> Path:
        """Where attempts are announced before their runs exist."""
        return self.path / "started.ndjson"

    def store(self, cell: Cell) -> Path:
        """Where a cell's event-log store lives."""
        return self.path / "stores" / cell.label.replace("/", "--")

    def record(self, attempt: Attempt) -> None:
        """Append one landed attempt, on disk before the next one is counted."""
        line = json.dumps(attempt.row(), ensure_ascii=False) + "\n"
        try:
            _append_line(self.attempts_file, line.encode())
        except OSError as bad:
            raise StoreFailure(
                f"an attempt could not be recorded in {self.attempts_file}: {bad.strerror}",
                remedy="Make room on the disk; the attempts that landed before are kept.",
            ) from None

    @contextmanager
    def owned(self) -> Iterator[str | None]:
        """Own the folder while a storm runs: others see by its heartbeat that it is alive, and whose it is.

        Gives a note when it was taken over from a dead driver. StoreBusy, naming host and pid, when one lives.
        """
        lock = DriverLock(self.path, Files(), Minter().nonce)
        note = lock.take()
        try:
            yield None if note is None else note.replace("the store in", "the storm in")
        finally:
            lock.release()

    def announce(self, cell: Cell, number: int, run_id: str) -> None:
        """Write down that an attempt starts, so that a resumed storm knows which runs its driver left."""
        row = {**asdict(cell), "number": number, "run_id": run_id}
        try:
            _append_line(self.started_file, json.dumps(row).encode() + b"\n", sync=False)
        except OSError as bad:
            raise _unwritten(self.started_file, bad) from None

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file whole or not at all."""
        try:
            _write(self.path / name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")
        except OSError as bad:
            raise _unwritten(self.path / name, bad) from None

    def journal_file(self, name: str) -> Path:
        """Where a worker's journal is."""
        return self.path / "workers" / f"{name}.ndjson"

    @contextmanager
    def journal(self, name: str) -> Iterator[Callable[[Mapping[str, Any]], None]]:
        """What a worker writes down about its deliveries: one row each, in one write. StoreFailure as above.

        The file appears when the worker begins to serve.
        """
        path = self.journal_file(name)

        def write(row: Mapping[str, Any]) -> None:
            try:
                file.write(json.dumps(row).encode() + b"\n")
            except OSError as bad:
                raise _unwritten(path, bad) from None

        try:
            file = path.open("ab", buffering=0)
        except OSError as bad:
            raise _unwritten(path, bad) from None
        with file:
            yield write

    def work_rows(self, run_id: str) -> Iterator[Mapping[str, Any]]:
        """What the workers wrote down about a run's deliveries, one row each; a half-written last line is for later."""
        for path in sorted((self.path / "workers").glob("*.ndjson")):
            self._read_on(path)
        yield from self._work.get(run_id, ())

    def _read_on(self, path: Path) -> None:
        """Take in what a worker has written since the last look."""
        with path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            fresh = file.read()
        whole = fresh[: fresh.rfind(b"\n") + 1]
        self._read[path] = self._read.get(path, 0) + len(whole)
        for line in whole.splitlines():
            try:
                row = json.loads(line)
                self._work.setdefault(row["run"], []).append(row)
            except (ValueError, KeyError, TypeError):
                continue  # torn by a kill, with the next worker's line behind it

    def _point_latest(self) -> None:
        link = self.path.parent / "latest"
        fresh = self.path.parent / f".latest-{os.getpid()}"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(self.path.name)
        fresh.replace(link)


def _append_line(path: Path, line: bytes, *, sync: bool = True) -> None:
    """Append a line and, with ``sync``, see it to the disk. What a full disk took of it is taken back:
    it would spoil the next one."""
    with path.open("ab", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        try:
            if file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            if sync:
                os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                file.truncate(end)
            raise


def _unwritten(path: Path, bad: OSError) -> StoreFailure:
    return StoreFailure(f"{path.name} could not be written to {path.parent}: {bad.strerror}", remedy=_ROOM)


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.tmp")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(0o600)
    fresh.replace(path)


def environment(server: str | None = None) -> dict[str, Any]:
    """What a reader must know of the machine to judge the rates: versions, cores, its load at the start, and the
    database (without password) where one is used."""
    return {
        "stormctl": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "load": [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "argv": [Path(sys.argv[0]).name, *without_dsn(sys.argv[1:])],
        **({"server": server} if server is not None else {}),
        "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }


def without_dsn(arguments: Sequence[str]) -> list[str]:
    """A command line whose database is left out: it may hold a password."""
    kept = list(arguments)
    for index, argument in enumerate(kept):
        if argument == "--dsn" and index + 1 < len(kept):
            kept[index + 1] = "..."
        elif argument.startswith("--dsn="):
            kept[index] = "--dsn=..."
    return kept
