"""The file layer: every call with which a store changes or reads its folder.

One small class, so that a test can put a failing disk in its place and so that the cost of a store can be read off
it. Publication and locks rest on two calls that are atomic on every POSIX file system: ``link`` (fails when the name
exists) and ``rename`` (replaces). Nothing is flushed to the platter: what is under study is order, not power failure.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stormctl.errors import StoreFailure

_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY
_APPEND = os.O_CREAT | os.O_APPEND | os.O_WRONLY
_UPDATE = os.O_CREAT | os.O_WRONLY
_MODE = 0o600


class Files:
    """The real file system. Every method raises OSError as the system gives it."""

    # -- writes: each is one point at which a disk may fail

    def write_new(self, path: str, data: bytes) -> None:
        """Create a file that must not exist yet (FileExistsError when it does)."""
        fd = os.open(path, _NEW, _MODE)
        try:
            _write_all(fd, data)
        finally:
            os.close(fd)

    def create(self, path: str) -> int:
        """Create an empty file that must not exist yet, and reply its descriptor, still open."""
        return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _MODE)

    def write_in_place(self, path: str, data: bytes) -> None:
        """Overwrite the beginning of a file, without truncating it (a truncation costs ext4 a block flush)."""
        fd = os.open(path, _UPDATE, _MODE)
        try:
            if os.pwrite(fd, data, 0) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        finally:
            os.close(fd)

    def rewrite(self, fd: int, data: bytes) -> None:
        """Overwrite the beginning of an open file."""
        if os.pwrite(fd, data, 0) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def append(self, path: str, data: bytes) -> None:
        """Add to the end of a file, in one write."""
        fd = os.open(path, _APPEND, _MODE)
        try:
            _write_all(fd, data)
        finally:
            os.close(fd)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name; FileExistsError when the name is taken."""
        os.link(source, target)

    def rename(self, source: str, target: str) -> None:
        """Move a file to a name, replacing what was there."""
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        """Remove a name; FileNotFoundError when there is none."""
        os.unlink(path)

    def age(self, fd: int, seconds: float) -> None:
        """Set the modification time of an open file (epoch seconds)."""
        os.utime(fd, (seconds, seconds))

    # -- reads

    def read(self, path: str) -> bytes:
        """The whole file."""
        fd = os.open(path, os.O_RDONLY)
        try:
            return _read_all(fd)
        finally:
            os.close(fd)

    def read_from(self, path: str, offset: int) -> bytes:
        """What lies behind an offset."""
        fd = os.open(path, os.O_RDONLY)
        try:
            if offset:
                os.lseek(fd, offset, os.SEEK_SET)
            return _read_all(fd)
        finally:
            os.close(fd)

    def exists(self, path: str) -> bool:
        """Whether the name exists; an unreadable disk raises."""
        try:
            os.stat(path)
        except FileNotFoundError:
            return False
        return True

    def same(self, fd: int, path: str) -> bool:
        """Whether the name stands for the very file that is open."""
        try:
            there = os.stat(path)
        except FileNotFoundError:
            return False
        here = os.fstat(fd)
        return (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev)

    def names_of(self, path: str) -> int:
        """How many names a file has (its link count)."""
        return os.stat(path).st_nlink

    def look(self, path: str) -> tuple[bytes, float] | None:
        """The content and modification time (epoch seconds) of one and the same file; None when there is none."""
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            return _read_all(fd), os.fstat(fd).st_mtime
        finally:
            os.close(fd)

    def names(self, folder: str) -> list[str]:
        """The names in a folder, in no order."""
        return os.listdir(folder)

    # -- built of the above

    def publish(self, path: str, data: bytes, nonce: str) -> bool:
        """Make a complete file appear under a name at once; False when the name is taken."""
        temp = f"{path}.tmp.{nonce}"
        self.write_new(temp, data)
        try:
            self.link(temp, path)
        except FileExistsError:
            return False
        finally:
            self.discard(temp)
        return True

    def replace(self, path: str, data: bytes, nonce: str) -> None:
        """Replace a file; readers see the old or the new one, complete."""
        temp = f"{path}.tmp.{nonce}"
        try:
            self.write_new(temp, data)
            self.rename(temp, path)
        except OSError:
            self.discard(temp)
            raise

    def discard(self, path: str) -> None:
        """Remove a file that nobody needs; a leftover does no harm, so nothing is raised."""
        with suppress(OSError):
            self.unlink(path)

    def remove(self, path: str) -> None:
        """Remove a file, whether it is there or not."""
        with suppress(FileNotFoundError):
            self.unlink(path)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _read_all(fd: int) -> bytes:
    chunk = os.read(fd, 65536)
    if len(chunk) < 65536:
        return chunk
    chunks = [chunk]
    while chunk := os.read(fd, 1 << 20):
        chunks.append(chunk)
    return b"".join(chunks)


@contextmanager
def told_as_failure(folder: Path | str) -> Iterator[None]:
    """Turn an OSError of a file call into a :class:`StoreFailure` that says what to do."""
    try:
        yield
    except OSError as error:
        raise failure(folder, error) from error


def failure(folder: Path | str, error: OSError) -> StoreFailure:
    """The failure that an OSError means for the store in that folder."""
    what = os.path.basename(str(error.filename)) if error.filename else "a file"
    why = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        remedy = f"Free space on the disk that holds {folder}, or give the store another folder, then run again."
    elif error.errno in (errno.EMFILE, errno.ENFILE):
        remedy = "Raise the limit of open files (ulimit -n), or lower concurrency or processes."
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        remedy = f"Make {folder} writable for this user, or give the store another folder."
    else:
        remedy = f"Check the disk that holds {folder}, then run again."
    return StoreFailure(f"the store in {folder} failed at {what}: {why}", remedy=remedy)
