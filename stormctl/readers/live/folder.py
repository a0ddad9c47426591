"""The folder of a capture: what was asked for, a line for each run that is captured, and the logs themselves.

A log's files are whole or absent, and its line is written after them; so a capture that was killed goes on where it
stopped, and at worst reads one run again. The folder is its owner's only.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stormctl import __version__
from stormctl.errors import StoreBusy, StoreFailure, StoreForeign, UnreadableInput, UsageError
from stormctl.history import Capture
from stormctl.readers.live.naming import stem_of
from stormctl.readers.live.seal import sealed
from stormctl.readers.ndjson import EARLIER, LOGS, META_SUFFIX, SUFFIX, write_capture
from stormctl.readers.unreadable import Unreadable

SCHEMA_NAME, SCHEMA_VERSION = "stormctl.capture", 1
SCHEMA = f"{SCHEMA_NAME}/{SCHEMA_VERSION}"
ABOUT, LANDED, LOCK = "capture.json", "captured.ndjson", "capture.lock"
#: The first capture of a run, and the one that is made of it again.
FIRST, AGAIN = 1, 2
#: How many problems of a run its line keeps.
MOST_PROBLEMS = 5
_ROOM = "Free some space and give the same --out again, or name another folder with --out."


@dataclass(frozen=True, slots=True)
class Asked:
    """What a capture was asked for. ``since`` in epoch milliseconds, worked out when it began."""

    source: str
    with_payloads: bool = False
    twice: bool = False
    since: int | None = None


@dataclass(frozen=True, slots=True)
class Landed:
    """One run that was captured: by which pass, into which log, and what of it was broken."""

    run_id: str
    number: int
    log: str
    events: int
    broken: tuple[Unreadable, ...] = ()


class CaptureFolder:
    """One capture's folder. Made by :func:`opened`, which owns it while it is open."""

    def __init__(self, path: Path, asked: Asked) -> None:
        self.path = path
        self.asked = asked
        self._landed = {(one.run_id, one.number): one for one in _landed(path / LANDED)}

    def landed(self, run_id: str, number: int) -> Landed | None:
        """What is there of a run."""
        found = self._landed.get((run_id, number))
        return found if found is not None and (self.path / LOGS / found.log).is_file() else None

    def pairs(self) -> list[str]:
        """The runs that were captured twice, in the order in which the second captures landed."""
        return [run_id for run_id, number in self._landed if number == AGAIN and self.landed(run_id, AGAIN) is not None]

    def logs(self) -> list[Path]:
        """The logs that are there, each run's newest capture, in the order in which runs first landed."""
        return [self.log(run_id) for run_id in dict.fromkeys(run_id for run_id, _ in self._landed)]

    def log(self, run_id: str) -> Path:
        """Where a run's log is or would be."""
        return self.path / LOGS / f"{stem_of(run_id)}{SUFFIX}"

    def keep(self, capture: Capture, broken: tuple[Unreadable, ...], number: int) -> Landed:
        """Write a run's log and then its line. Before it is written again the first one is kept in ``earlier/``.

        StoreFailure when the disk refuses.
        """
        run_id = capture.log.run_id
        if number == AGAIN:
            self._set_aside(self.log(run_id))
        kept = capture if self.asked.with_payloads else sealed(capture)
        log = write_capture(kept, self.path, with_payloads=self.asked.with_payloads, stem=stem_of(run_id))
        landed = Landed(run_id, number, log.name, len(capture.log), broken[:MOST_PROBLEMS])
        row = {**asdict(landed), "at": _now()}
        with _guarded(self.path):
            _append(self.path / LANDED, json.dumps(row).encode("ascii") + b"\n")
        self._landed[(run_id, number)] = landed
        return landed

    def _set_aside(self, log: Path) -> None:
        """Keep a copy of a log and its meta file in ``earlier/``, the log last. One that is there is the first."""
        kept = self.path / EARLIER / LOGS / log.name
        if kept.is_file():
            return
        with _guarded(self.path):
            for folder in (kept.parent.parent, kept.parent):
                folder.mkdir(mode=0o700, exist_ok=True)
            for name in (f"{log.name.removesuffix(SUFFIX)}{META_SUFFIX}", log.name):
                part = kept.parent / f".{name}.part"
                shutil.copyfile(log.with_name(name), part)
                part.replace(kept.parent / name)


@contextmanager
def opened(path: Path, asked: Asked) -> Iterator[CaptureFolder]:
    """The folder, made, or gone on with where it is the same capture's; nobody else writes to it meanwhile.

    StoreForeign for a folder that holds something else, UsageError for a capture of something else, StoreBusy while
    another process is at it.
    """
    with _guarded(path):
        if path.exists() and not (path / ABOUT).is_file() and (not path.is_dir() or any(_foreign(path))):
            raise StoreForeign(f"{path} holds something that is no capture", remedy="Name a new folder with --out.")
        path.mkdir(parents=True, mode=0o700, exist_ok=True)
        path.chmod(0o700)
    with _locked(path):
        found = _asked(path / ABOUT)
        if found is None:
            with _guarded(path):
                (path / LOGS).mkdir(mode=0o700, exist_ok=True)
                _write(path / ABOUT, {"schema": SCHEMA, **asdict(asked), "stormctl": __version__, "started_at": _now()})
        else:
            _same(path, found, asked)
        yield CaptureFolder(path, found or asked)


def fresh(root: Path) -> Path:
    """A new folder's path under ``root``, named by the time and an id of its own. Nothing is made."""
    from ulid import ULID

    return root / "captures" / f"{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}-{ULID()}"


def _same(path: Path, found: Asked, asked: Asked) -> None:
    for name, option in (("source", "another store"), ("with_payloads", "--with-payloads"), ("twice", "--twice")):
        before, now = getattr(found, name), getattr(asked, name)
        if before == now:
            continue
        how = f"of {before}" if name == "source" else f"{'with' if before else 'without'} {option}"
        raise UsageError(
            f"{path} is a capture {how}",
            remedy="Ask for the same again to go on with it, or name another folder with --out.",
        )


def _asked(path: Path) -> Asked | None:
    """What the capture was asked for when it began; None where there is none yet."""
    try:
        row = json.loads(path.read_bytes()[: 1 << 20])
        name, _, version = row["schema"].partition("/")
        if name == SCHEMA_NAME and version.isdigit() and int(version) > SCHEMA_VERSION:
            raise UnreadableInput(f"a newer stormctl made {path}", remedy="Upgrade stormctl to go on with it.")
        since = row["since"]
        if name != SCHEMA_NAME or not (since is None or isinstance(since, int)):
            raise ValueError
        return Asked(str(row["source"]), row["with_payloads"] is True, row["twice"] is True, since)
    except FileNotFoundError:
        return None
    except OSError as bad:
        raise _unwritten(path.parent, bad) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UnreadableInput(f"{path} is damaged", remedy="Name a new folder with --out.") from None


def _landed(path: Path) -> Iterator[Landed]:
    """The lines of the journal. One that a kill has torn counts as absent."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        for line in file:
            try:
                row = json.loads(line)
                broken = tuple(Unreadable(one["source"], one["error"], one["remedy"]) for one in row["broken"])
                log = f"{stem_of(row['run_id'])}{SUFFIX}"
                yield Landed(row["run_id"], row["number"], log, row["events"], broken)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Own the folder until the end of this process at the latest."""
    import fcntl

    with _guarded(path):
        descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as bad:
            if bad.errno not in (errno.EAGAIN, errno.EACCES):
                raise _unwritten(path, bad) from None
            raise StoreBusy(
                f"another stormctl is capturing into {path}", remedy="Wait for it, or name another folder with --out."
            ) from None
        yield
    finally:
        os.close(descriptor)


def _foreign(path: Path) -> Iterator[Path]:
    """What in a folder is not left by a capture that was killed before it had begun."""
    return (one for one in path.iterdir() if one.name not in (LOCK, LOGS, f".{ABOUT}.tmp"))


def _append(path: Path, line: bytes) -> None:
    """Append a line, on the disk when this returns, and behind whatever half a line a kill has left."""
    with path.open("ab+", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            if file.read(1) != b"\n":
                line = b"\n" + line
        try:
            if file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                file.truncate(end)
            raise


def _write(path: Path, value: Any) -> None:
    part = path.with_name(f".{path.name}.tmp")
    part.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    part.replace(path)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _unwritten(path: Path, bad: OSError) -> StoreFailure:
    return StoreFailure(f"the capture cannot be written to {path}: {bad.strerror or bad}", remedy=_ROOM)


@contextmanager
def _guarded(path: Path) -> Iterator[None]:
    """The disk's errors as ours."""
    try:
        yield
    except OSError as bad:
        raise _unwritten(path, bad) from None
