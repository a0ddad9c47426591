"""Archives (tar, zip) that hold logs: unpacked into a private temporary folder, read there, and removed again.

Only plain files and folders are taken out, each below the temporary folder; links, devices and names that lead
elsewhere are not, and are told of. How many files, how many bytes, and how far the packing may go are bounded.
"""

from __future__ import annotations

import os
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO, Any

from stormctl.errors import StoreFailure, UnreadableInput
from stormctl.history import COMMIT_CLOCK, COMMIT_TIMES, Capture, Facet
from stormctl.readers.sdk_capture import CTIME
from stormctl.readers.text import damaged, unreadable
from stormctl.readers.unpack import FREE_BYTES, MOST_RATIO, open_plain
from stormctl.readers.unreadable import Unreadable

#: The most that is taken out of one archive.
MAX_FILES, MAX_BYTES = 200_000, 4 << 30
#: How deep archives may lie in archives.
MAX_DEPTH = 2
MAX_NAME = 1_000
_ZIP = b"PK\x03\x04"
_TAR, _TAR_AT = b"ustar", 257
_MAX_HEADER = 1 << 20
_CHUNK = 1 << 16


class ArchiveReader:
    """Reads what lies in an archive, as if the archive were a folder."""

    name = "archive"
    summary = "a tar (also .tgz, .tar.zst) or zip of any of these"
    sign = "the first bytes of a tar or a zip"

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether the file begins as an archive."""
        return head.startswith(_ZIP) or head[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR

    def read(self, path: Path) -> Iterator[Capture | Unreadable]:
        """Everything that the archive holds; sources are named ``archive:file``."""
        yield from _read(path, 1)


def _read(path: Path, depth: int) -> Iterator[Capture | Unreadable]:
    from stormctl.readers.places import files_at

    with tempfile.TemporaryDirectory(prefix="stormctl-") as private:
        folder = Path(private).resolve()
        taker = _Taker(folder, path)
        taker.take()
        for place in files_at(folder):
            if isinstance(place, Unreadable):
                yield _renamed(place, folder, path)
                continue
            for item in _inner(Path(str(place)), depth):
                yield _renamed(item, folder, path)
        if taker.refused:
            first, count = taker.refused[0], taker.count_refused
            text = f"{path.name} holds {count} entries that were left in it, the first {ascii(first)[:80]}"
            remedy = "Links, devices and names that lead outside the archive are not followed."
            yield Unreadable(str(path), text, remedy)


def _inner(place: Path, depth: int) -> Iterator[Capture | Unreadable]:
    from stormctl.readers.open import open_file
    from stormctl.readers.text import head_of

    if place.is_dir() or not READER.recognises(_head(place, head_of), place):
        yield from open_file(place)
    elif depth < MAX_DEPTH:
        try:
            yield from _read(place, depth + 1)
        except UnreadableInput as error:
            yield Unreadable.of(place, error)
    else:
        remedy = "Unpack it first."
        yield Unreadable(str(place), f"{place.name} is an archive inside {depth} others", remedy)


def _head(place: Path, head_of: Any) -> bytes:
    try:
        return bytes(head_of(place))
    except UnreadableInput:
        return b""


def _renamed(item: Capture | Unreadable, folder: Path, path: Path) -> Capture | Unreadable:
    """An item whose names lead into the archive and not into a folder that will be gone."""
    inside, outside = f"{folder}{os.sep}", f"{path}:"
    source = item.source.replace(inside, outside).replace(str(folder), str(path))
    if isinstance(item, Unreadable):
        text = item.error.replace(inside, outside).replace(str(folder), str(path))
        return replace(item, source=source, error=text)
    data, evidence = item.data, item.evidence
    if data.get(COMMIT_CLOCK) == CTIME:  # those are the times of the unpacking
        data = {key: value for key, value in data.items() if key not in (COMMIT_CLOCK, COMMIT_TIMES)}
        evidence = replace(evidence, missing=evidence.missing | {Facet.COMMIT_STAMPS})
    return replace(item, source=source, data=data, evidence=evidence)


class _Taker:
    """Takes the files out of an archive."""

    def __init__(self, folder: Path, path: Path) -> None:
        self.refused: list[str] = []
        self.count_refused = 0
        self._folder = folder
        self._path = path
        self._files = 0
        self._bytes = 0

    def take(self) -> None:
        """All of them; UnreadableInput when the archive is damaged or too large, StoreFailure when the disk is full."""
        try:
            with open_plain(self._path) as file:
                zipped = file.read(len(_ZIP)) == _ZIP
            if zipped:
                self._take_zip()
            else:
                self._take_tar()
        except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise damaged(self._path.name, f"is no whole archive ({type(error).__name__})") from None
        except OSError as error:
            if error.errno is not None and self._bytes:
                raise StoreFailure(
                    f"{self._path.name} cannot be unpacked: {error.strerror or error}",
                    remedy="Free some space, or name a folder that has some with TMPDIR.",
                ) from None
            raise unreadable(self._path, error) from None

    def _take_tar(self) -> None:
        with open_plain(self._path) as file, tarfile.open(fileobj=file, mode="r|", tarinfo=_Member) as archive:
            for member in archive:
                archive.members = []  # type: ignore[attr-defined]
                if member.isdir():
                    self._make_folder(member.name)
                elif member.isreg() and not member.issparse():
                    content = archive.extractfile(member)
                    if content is not None:
                        self._write(member.name, content)
                else:
                    self._refuse(member.name)

    def _take_zip(self) -> None:
        if self._path.stat().st_size > MAX_BYTES:
            raise self._too_large()
        with zipfile.ZipFile(self._path) as archive:
            for entry in archive.infolist():
                kind = entry.external_attr >> 16
                if entry.is_dir():
                    self._make_folder(entry.filename)
                elif (kind and stat.S_IFMT(kind) not in (0, stat.S_IFREG)) or entry.flag_bits & 1:
                    self._refuse(entry.filename)
                else:
                    with archive.open(entry) as content:
                        self._write(entry.filename, content, packed=entry.compress_size)

    def _write(self, name: str, content: IO[bytes], packed: int | None = None) -> None:
        target = self._target(name)
        if target is None or target.exists():
            self._refuse(name)
            return
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            file = target.open("xb")
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            self._refuse(name)
            return
        size = 0
        with file:
            while chunk := content.read(_CHUNK):
                size += len(chunk)
                self._bytes += len(chunk)
                if self._bytes > MAX_BYTES:
                    raise self._too_large()
                if packed is not None and size > FREE_BYTES + MOST_RATIO * packed:
                    what = f"unpacks to more than {MOST_RATIO} times its size, which no log does"
                    raise damaged(self._path.name, what, remedy="Unpack it yourself if it is a log after all.")
                file.write(chunk)
            os.utime(file.fileno(), (0, 0))  # nobody is writing it any more
        self._count()

    def _make_folder(self, name: str) -> None:
        target = self._target(name)
        if target is None:
            self._refuse(name)
        else:
            try:
                target.mkdir(parents=True, exist_ok=True)
            except (FileExistsError, NotADirectoryError):
                self._refuse(name)
            self._count()

    def _target(self, name: str) -> Path | None:
        """Where an entry goes; None for one that has no place below the folder."""
        parts = [part for part in PurePosixPath(name).parts if part != "."]
        bad = not parts or len(name) > MAX_NAME or any("\0" in part or len(os.fsencode(part)) > 255 for part in parts)
        if bad or name.startswith("/") or ".." in parts or "\\" in name:
            return None
        return self._folder.joinpath(*parts)

    def _refuse(self, name: str) -> None:
        if PurePosixPath(name).parts:
            self.count_refused += 1
            self.refused = self.refused or [name]
        self._count()

    def _count(self) -> None:
        self._files += 1
        if self._files > MAX_FILES:
            raise damaged(self._path.name, f"holds more than {MAX_FILES} files", remedy="Unpack what you need of it.")

    def _too_large(self) -> UnreadableInput:
        what = f"unpacks to more than {MAX_BYTES >> 30} GiB"
        return damaged(self._path.name, what, remedy="Unpack what you need of it.")


class _Member(tarfile.TarInfo):
    """An entry whose extended header may not fill the memory."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        long = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE)
        if self.type in (*long, tarfile.SOLARIS_XHDTYPE) and self.size > _MAX_HEADER:
            raise tarfile.ReadError("an extended header is too large")
        found: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return found


READER = ArchiveReader()

__all__ = ["READER", "ArchiveReader"]
