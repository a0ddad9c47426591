"""Replays that were made before, one small file each:

    <cache>/replays/<key>.json        stormctl.replay/1, with the digest of what it holds

The key stands for the log as a worker is given it, the bundle, its switches, the prefixes and what counts as a flip
(:func:`stormctl.sweeps.memory.key_of`), and for this stormctl: another one asks and reads in other ways. A file that is
damaged is not there. When there are too many, those that were not asked for the longest go.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from stormctl import __version__
from stormctl.errors import StormctlError
from stormctl.sweeps.memory import Kept
from stormctl.targets.sdk.cache import cache_folder

SCHEMA = "stormctl.replay/1"
FOLDER = "replays"
#: replays that are kept; a log of 300 events takes some 10 KB
MOST = 4096
#: how many are left when there were too many, so that not every new one has to look for the oldest
LEFT = 3584
MAX_BYTES = 8 << 20
#: what a stopped writer may leave, and for how long it may still be at work
_UNFINISHED, _UNFINISHED_S = ".part", 3600.0


@dataclass(frozen=True, slots=True)
class KeptReplays:
    """The replays in a folder. It goes to other processes, and several may use one folder."""

    folder: Path
    most: int = MOST
    left: int = LEFT

    def recall(self, key: str) -> Kept | None:
        """What was kept under a key, and None for what is not there, damaged, or of another version."""
        file = self._file(key)
        try:
            if file.stat().st_size > MAX_BYTES:
                return None
            document = json.loads(file.read_bytes())
            body = document["body"]
            if document["schema"] != SCHEMA or document["digest"] != _digest(json.dumps(body)):
                return None
            kept = Kept.from_row(body)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        with contextlib.suppress(OSError):
            os.utime(file)
        return kept

    def keep(self, key: str, kept: Kept) -> None:
        """Keep it: the file is there whole, or not at all. A folder that cannot be written keeps nothing."""
        body = json.loads(json.dumps(kept.row()))  # as it will be read
        document = json.dumps({"schema": SCHEMA, "digest": _digest(json.dumps(body)), "body": body})
        if len(document) > MAX_BYTES:
            return
        made: Path | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(suffix=_UNFINISHED, dir=self.folder)
            made = Path(name)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(document)
            made.replace(self._file(key))
            made = None
            self._bound()
        except OSError:
            if made is not None:
                with contextlib.suppress(OSError):
                    made.unlink()

    def _file(self, key: str) -> Path:
        return self.folder / f"{_digest(f'{key} {_made_by()}')}.json"

    def _bound(self) -> None:
        """Remove those that were not asked for the longest, and what writers that were killed left."""
        found: list[tuple[float, str]] = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # another process may remove it first
                    found.append((entry.stat().st_mtime, entry.path))
        whole = sorted(one for one in found if one[1].endswith(".json"))
        gone = [path for _, path in whole[: len(whole) - self.left]] if len(whole) > self.most else []
        latest = max((at for at, _ in found), default=0.0)
        gone += [path for at, path in found if path.endswith(_UNFINISHED) and at < latest - _UNFINISHED_S]
        for path in gone:
            with contextlib.suppress(OSError):
                os.unlink(path)


def kept_replays() -> KeptReplays | None:
    """Those in the cache that STORMCTL_CACHE names, else the user's; None where this user has no place for one."""
    try:
        return KeptReplays(cache_folder().parent / FOLDER)
    except StormctlError:
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]


@lru_cache(maxsize=1)
def _made_by() -> str:
    """What of stormctl makes a replay out of a log: its version, and the text of the modules and scripts that do."""
    digest = hashlib.sha256(__version__.encode())
    for package in ("stormctl.targets.sdk.replay", "stormctl.sweeps", "stormctl.readers"):
        for name, content in sorted(_texts(files(package))):
            digest.update(name.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()


def _texts(folder: Traversable) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for one in folder.iterdir():
        if one.is_dir() and one.name == "scripts":
            found += _texts(one)
        elif one.name.endswith((".py", ".mjs")):
            found.append((one.name, one.read_bytes()))
    return found
