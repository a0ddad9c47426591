"""Whose a store folder is: made by stormctl, under which condition, and which driver is using it now."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from stormctl.errors import StoreBusy, StoreForeign, UsageError
from stormctl.worlds.files import Files, told_as_failure
from stormctl.worlds.layout import FOLDERS, MARKER, VERSION
from stormctl.worlds.process import is_dead, whoami

HEARTBEAT_S = 5.0
STALE_S = 60.0
"""A driver that has not been heard of for so long is taken for dead, wherever it ran."""

_FACTS = "store.json"
_SCHEMA = "stormctl.store/1"


def prepare(folder: Path, condition: str, files: Files, nonce: Callable[[], str]) -> None:
    """Make the folder a store, or make sure that it is one of ours under this condition.

    StoreForeign when it holds anything that stormctl did not write; UsageError when it was made under another
    condition.
    """
    with told_as_failure(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if is_store(folder):
            check(folder, condition)
        elif any(folder.iterdir()):
            raise _foreign(folder, "is not empty and no store of stormctl")
        if not (folder / _FACTS).exists():
            facts = json.dumps({"schema": _SCHEMA, "condition": condition})
            files.replace(str(folder / _FACTS), facts.encode(), nonce())
        for name in FOLDERS:
            (folder / name).mkdir(parents=True, exist_ok=True)
        if not (folder / "version.txt").exists():
            files.replace(str(folder / "version.txt"), f"{MARKER}{VERSION}".encode(), nonce())


def is_store(folder: Path) -> bool:
    """Whether the folder is marked as ours; StoreForeign when the mark is a later version's or another tool's."""
    try:
        text = (folder / "version.txt").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return (folder / _FACTS).exists()  # a creation that was interrupted
    except (OSError, UnicodeDecodeError):
        return False
    if not text.startswith(MARKER):
        raise _foreign(folder, f"belongs to {text or 'something'} that is not stormctl")
    if text != f"{MARKER}{VERSION}":
        raise StoreForeign(
            f"the store in {folder} was written by a newer stormctl ({text})",
            remedy="Upgrade stormctl, or give the store another folder.",
        )
    return True


def recorded_condition(folder: Path) -> str:
    """The condition under which the store was made; StoreForeign when this is not a store."""
    try:
        facts = json.loads((folder / _FACTS).read_bytes()) if is_store(folder) else None
    except (OSError, ValueError):
        facts = None
    if not isinstance(facts, dict) or not isinstance(facts.get("condition"), str):
        raise _foreign(folder, "is no store of stormctl")
    return str(facts["condition"])


def check(folder: Path, condition: str) -> None:
    """UsageError when the store was made under another condition: its log could not be read in one order."""
    recorded = recorded_condition(folder)
    if recorded != condition:
        raise UsageError(
            f"the store in {folder} was made under condition {recorded}, not {condition}",
            remedy=f"Use --condition {recorded}, or give the store another folder.",
        )


class DriverLock:
    """``storm.lock``: one driver per folder, kept fresh by a thread until :meth:`release`."""

    def __init__(self, folder: Path, files: Files, nonce: Callable[[], str]) -> None:
        self._folder = folder
        self._files = files
        self._nonce = nonce
        self._path = str(folder / "storm.lock")
        self._fd = -1
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> str | None:
        """Take the folder. Replies a note for the user when a dead driver's lock was taken over, else None.

        StoreBusy, naming host and pid, when a living driver holds it.
        """
        with told_as_failure(self._folder):
            temp = f"{self._path}.{self._nonce()}"
            self._fd = self._files.create(temp)
            note = None
            try:
                self._files.rewrite(self._fd, json.dumps(whoami() | {"startedAt": int(time.time() * 1000)}).encode())
                while True:
                    try:
                        self._files.link(temp, self._path)
                        break
                    except FileExistsError:
                        note = self._clear_stale() or note
            except BaseException:
                os.close(self._fd)
                raise
            finally:
                self._files.discard(temp)
        self._thread = threading.Thread(target=self._beat, name="store-heartbeat", daemon=True)
        self._thread.start()
        return note

    def release(self) -> None:
        """Give the folder back. Never raises."""
        if self._thread is None:
            return
        self._stop.set()
        self._thread.join()
        self._thread = None
        try:
            if self._files.same(self._fd, self._path):
                self._files.discard(self._path)
        except OSError:
            pass
        os.close(self._fd)

    def _clear_stale(self) -> str | None:
        """Move a dead driver's lock aside; StoreBusy when the driver may be alive."""
        found = self._files.look(self._path)
        if found is None:
            return None
        owner = _owner(found[0])
        age = time.time() - found[1]
        who = f"pid {owner.get('pid', 'unknown')} on {owner.get('host', 'an unknown host')}"
        if age <= STALE_S and not is_dead(owner):
            raise StoreBusy(
                f"the store in {self._folder} is in use by {who} (last sign of life {max(age, 0):.0f} s ago)",
                remedy="Wait until that storm ends, stop it, or give this one another folder.",
            )
        aside = f"{self._path}.{self._nonce()}"
        try:
            self._files.rename(self._path, aside)
        except FileNotFoundError:
            return None
        moved = self._files.look(aside)
        if moved is not None and moved[0] != found[0]:
            # Another driver had taken it over a moment ago: give it its lock back, unless it is gone for good.
            with suppress(FileExistsError):
                self._files.link(aside, self._path)
        self._files.discard(aside)
        return f"took over the store in {self._folder} from {who}, which ended without giving it back"

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_S):
            try:
                self._files.age(self._fd, time.time())
            except OSError:
                continue


def driver_of(folder: Path) -> dict[str, Any] | None:
    """What the store's living driver says of itself (pid, host, startedAt), None when there is none."""
    found = Files().look(str(folder / "storm.lock"))
    if found is None or time.time() - found[1] > STALE_S:
        return None
    owner = _owner(found[0])
    return None if is_dead(owner) else owner


def _owner(raw: bytes) -> dict[str, Any]:
    try:
        owner = json.loads(raw)
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}


def _foreign(folder: Path, what: str) -> StoreForeign:
    return StoreForeign(
        f"the folder {folder} {what}", remedy="Give the store an empty folder or one that stormctl made."
    )
