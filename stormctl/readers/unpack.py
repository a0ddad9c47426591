"""Files as plain UTF-8 bytes: gzip and zstd are unpacked as they are read, a byte order mark is dropped, UTF-16 is
turned into UTF-8.

Nothing is unpacked further than a reader asks for, so that a large file needs little memory. A file that unpacks to far
more than any log does (a bomb) is refused while it is read: what it unpacks to may not be :data:`MOST_RATIO` times what
was read of it, beyond the first :data:`FREE_BYTES`.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from stormctl.errors import UnreadableInput

if TYPE_CHECKING:
    from typing_extensions import Buffer

GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: A log of one row over and over packs a hundredfold; a bomb packs a thousandfold.
MOST_RATIO = 200
FREE_BYTES = 64 << 20
#: The largest window that a zstd file may ask for: what ``zstd --long=27`` writes.
MAX_WINDOW_BYTES = 128 << 20
SUFFIXES = (".gz", ".zst")
_CHUNK = 1 << 16
#: Most logs, and all that lies beside them, are whole in this much.
_FIRST_BYTES = 1 << 18
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def open_plain(path: Path) -> BinaryIO:
    """The file's content as UTF-8 bytes, unpacked while it is read. OSError when the system does not give it.

    Reading raises UnreadableInput where the packing is damaged, or unpacks to more than a log can be.
    """
    return plain(path.open("rb"), path.name)


def plain(file: BinaryIO, name: str) -> BinaryIO:
    """The same for a file that is open; it is closed with what is returned."""
    try:
        unpacked = _unpacked(file, name)
        start = _peek(unpacked)
        if start.startswith(codecs.BOM_UTF8):
            unpacked.read(len(codecs.BOM_UTF8))
        for mark, encoding in _UTF_16.items():
            if start.startswith(mark) and not start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
                unpacked.read(len(mark))
                return cast("BinaryIO", io.BufferedReader(_Recoded(unpacked, encoding, name), _CHUNK))
    except BaseException:
        file.close()
        raise
    return cast("BinaryIO", unpacked)


def read_up_to(file: BinaryIO, most: int) -> bytes:
    """All of a file, and of a large one the first ``most`` bytes.

    Room for the largest file, made and given back for every small one, costs more than reading it.
    """
    first = min(most, _FIRST_BYTES)
    content = file.read(first)
    return content if len(content) < first else content + file.read(most - first)


def bare_name(path: Path) -> str:
    """The file's name without the ending that says how it is packed: ``events.csv.gz`` -> ``events.csv``."""
    return path.stem if path.suffix in SUFFIXES else path.name


def _peek(file: io.BufferedReader) -> bytes:
    return file.peek(4)[:4]


def _unpacked(file: BinaryIO, name: str) -> io.BufferedReader:
    buffered = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", file), _CHUNK)
    magic = _peek(buffered)
    if magic.startswith(GZIP_MAGIC):
        unpacker = cast("IO[bytes]", gzip.GzipFile(fileobj=buffered))
    elif magic.startswith(ZSTD_MAGIC):
        unpacker = cast("IO[bytes]", _Zstd(buffered))
    else:
        return buffered
    return io.BufferedReader(_Unpacking(unpacker, buffered, name), _CHUNK)


class _Zstd:
    """Frames of zstd, unpacked as they are read. The library's reader takes a frame that is cut off for a whole one."""

    #: A piece of this size cannot unpack to more than 32 MiB.
    PIECE = 1 << 10

    def __init__(self, packed: io.BufferedReader) -> None:
        import zstandard

        self._frames = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        self._packed = packed
        self._frame = self._frames.decompressobj()
        self._inside = False
        self._rest = self._ready = b""

    def read(self, size: int) -> bytes:
        while not self._ready:
            piece = self._rest or self._packed.read(self.PIECE)
            self._rest = b""
            if not piece:
                if self._inside:
                    raise EOFError
                return b""
            self._ready = self._frame.decompress(piece)
            self._inside = not self._frame.eof
            if self._frame.eof:
                self._rest = self._frame.unused_data
                self._frame = self._frames.decompressobj()
        given, self._ready = self._ready[:size], self._ready[size:]
        return given


class _Unpacking(io.RawIOBase):
    """A packed file, unpacked piece by piece, with an eye on how much comes out of how little."""

    def __init__(self, unpacker: IO[bytes], packed: io.BufferedReader, name: str) -> None:
        self._unpacker = unpacker
        self._packed = packed
        self._name = name
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        try:
            data = self._unpacker.read(len(view))
        except EOFError:
            raise _fault(self._name, "is cut off inside its packing") from None
        except (OSError, zlib.error, ValueError) as error:
            raise _fault(self._name, f"is not whole: {_reason(error)}") from None
        except MemoryError:
            raise _fault(self._name, "asks for too much memory to be unpacked") from None
        except Exception as error:  # zstandard's own error, which is imported only where it is used
            raise _fault(self._name, f"is not whole: {_reason(error)}") from None
        self._given += len(data)
        if self._given > FREE_BYTES + MOST_RATIO * self._packed.tell():
            what = f"unpacks to more than {MOST_RATIO} times its size, which no log does"
            raise _fault(self._name, what, remedy="Unpack it yourself if it is a log after all.")
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._packed.close()
        super().close()


class _Recoded(io.RawIOBase):
    """UTF-16 text as UTF-8 bytes."""

    def __init__(self, file: io.BufferedReader, encoding: str, name: str) -> None:
        self._file = file
        self._name = name
        self._ready = b""
        self._pieces = self._recode(codecs.getincrementaldecoder(encoding)())

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        while not self._ready:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._ready = piece
        count = min(len(view), len(self._ready))
        view[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _recode(self, decoder: codecs.IncrementalDecoder) -> Iterator[bytes]:
        try:
            while chunk := self._file.read(_CHUNK):
                yield decoder.decode(chunk).encode()
            yield decoder.decode(b"", final=True).encode()
        except UnicodeError:
            raise _fault(self._name, "is not whole UTF-16 text") from None

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _reason(error: Exception) -> str:
    text = str(error)
    return text.lower() if text.isascii() and text.isprintable() and 0 < len(text) < 60 else type(error).__name__


def _fault(name: str, what: str, *, remedy: str = "Capture or copy the file again.") -> UnreadableInput:
    return UnreadableInput(f"{name} {what}", remedy=remedy)
