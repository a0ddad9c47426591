"""Where installed versions lie, and who may change them.

    <cache>/sdk/<version>-<world>/        one project, whole or not there at all
    <cache>/sdk/.<version>-<world>.lock   held while it is being installed or removed
    <cache>/sdk/.making-.../              one that is being made; a leftover of an installation that was killed

The cache is the folder that STORMCTL_CACHE names, else ``stormctl`` in the user's cache folder: ``$XDG_CACHE_HOME``,
else ``~/Library/Caches`` on macOS and ``~/.cache`` elsewhere.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from stormctl.errors import StoreBusy, StoreFailure, StormctlError, UsageError

VARIABLE = "STORMCTL_CACHE"
#: longer than any installation may take
LOCK_SECONDS = 1800.0

_POLL_SECONDS = 0.25
_MAKING = ".making-"

Tell = Callable[[str], None]


def cache_folder() -> Path:
    """The folder of the installed versions. It need not exist yet. UsageError when no home can be found."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser().absolute() / "sdk"
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):  # a relative one is to be ignored, by the XDG rules
        return Path(base) / "stormctl" / "sdk"
    try:
        home = Path.home()
    except RuntimeError:
        raise UsageError("this user has no home folder to keep a cache in", remedy=f"Name one by {VARIABLE}.") from None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "stormctl" / "sdk"


@contextmanager
def locked(name: str, tell: Tell) -> Iterator[None]:
    """Hold the lock of one project. Waits for whoever holds it, and says so; StoreBusy after ``LOCK_SECONDS``."""
    folder = cache_folder()
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(file, name, tell)
        yield
    finally:
        os.close(file)  # which frees it


def _take(file: int, name: str, tell: Tell) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    told = False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise StoreBusy(
                    f"another process has been busy with {name} for {LOCK_SECONDS / 60:.0f} minutes",
                    remedy="See whether it hangs, and end it.",
                ) from None
            if not told:
                tell(f"another process is busy with {name}: waiting for it")
                told = True
            time.sleep(_POLL_SECONDS)


@contextmanager
def made_aside(name: str) -> Iterator[Path]:
    """A folder in the cache to make a project in. What is left of it at the end is removed."""
    parent = cache_folder()
    with disk_errors(parent):
        _sweep_leftovers(parent, name)
        folder = Path(tempfile.mkdtemp(prefix=f"{_MAKING}{name}-", dir=parent))
    try:
        with disk_errors(parent):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def put_in_place(made: Path, place: Path) -> None:
    """Make a finished folder the project, instead of one that may be there. Needs the project's lock."""
    if place.exists():
        old = Path(tempfile.mkdtemp(prefix=f"{_MAKING}{place.name}-", dir=place.parent))
        place.rename(old / "old")
        made.rename(place)
        shutil.rmtree(old, ignore_errors=True)
    else:
        made.rename(place)


def take_away(place: Path) -> None:
    """Remove a project: gone at once for everybody who looks, then deleted. Needs the project's lock."""
    with disk_errors(place.parent):
        old = Path(tempfile.mkdtemp(prefix=f"{_MAKING}{place.name}-", dir=place.parent))
        place.rename(old / "old")
        shutil.rmtree(old)


def size_of(folder: Path) -> int:
    """How many bytes the files in a folder take."""
    return sum(
        os.lstat(os.path.join(path, name)).st_size for path, _folders, names in os.walk(folder) for name in names
    )


def _sweep_leftovers(parent: Path, name: str) -> None:
    """Remove what an installation of this project left that was killed: whoever holds its lock is alone with it."""
    for left in parent.glob(f"{_MAKING}{name}-*"):
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn what the file system refuses into one sentence."""
    try:
        yield
    except StormctlError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFailure(
                f"the disk of {folder} is full",
                remedy=f"Make room (a version takes 90 to 320 MB), or name another folder by {VARIABLE}.",
            ) from None
        raise StoreFailure(
            f"{folder} cannot be written: {error.strerror or error}", remedy=f"Name another folder by {VARIABLE}."
        ) from None
