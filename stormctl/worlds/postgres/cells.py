"""Values as PostgreSQL's binary format has them, for the statements of an append.

``None`` is SQL's null, in both directions. Times are epoch milliseconds here and ``timestamp`` columns in UTC there.
"""

from __future__ import annotations

from struct import Struct

_EPOCH_MS = 946_684_800_000
"""2000-01-01, where PostgreSQL's times begin."""

_INT8 = Struct("!q")
_INT4 = Struct("!i")

Cell = bytes | None
"""One value on its way."""


def text(value: str | None) -> Cell:
    """Also the name of an enum's value. What is no valid Unicode is the server's to refuse."""
    return None if value is None else value.encode("utf-8", "surrogatepass")


def int8(value: int | None) -> Cell:
    """A bigint."""
    return None if value is None else _INT8.pack(value)


def int4(value: int | None) -> Cell:
    """An int."""
    return None if value is None else _INT4.pack(value)


def flag(value: bool | None) -> Cell:  # noqa: FBT001
    """A boolean."""
    return None if value is None else (b"\x01" if value else b"\x00")


def stamp(ms: int | None) -> Cell:
    """A timestamp."""
    return None if ms is None else _INT8.pack((ms - _EPOCH_MS) * 1000)


def jsonb(raw: bytes) -> bytes:
    """A jsonb from JSON text: a version byte comes first."""
    return b"\x01" + raw


def texts(values: list[str]) -> bytes:
    """An array of varchar."""
    parts = [_HEAD.pack(1, 0, _VARCHAR, len(values), 1)]
    for value in values:
        raw = value.encode("utf-8", "surrogatepass")
        parts += (_INT4.pack(len(raw)), raw)
    return b"".join(parts)


_VARCHAR = 1043
_HEAD = Struct("!iiiii")


def as_text(cell: Cell) -> str | None:
    """Of a text, varchar or enum."""
    return None if cell is None else cell.decode()


def as_int(cell: Cell) -> int | None:
    """Of a bigint or int."""
    if cell is None:
        return None
    return int((_INT8 if len(cell) == 8 else _INT4).unpack(cell)[0])


def as_ms(cell: Cell) -> int | None:
    """Of a timestamp; microseconds are cut off."""
    return None if cell is None else int(_INT8.unpack(cell)[0]) // 1000 + _EPOCH_MS


def as_flag(cell: Cell) -> bool | None:
    """Of a boolean."""
    return None if cell is None else cell == b"\x01"


def as_json(cell: Cell) -> bytes | None:
    """The JSON text of a jsonb."""
    return None if cell is None else cell[1:]


def need(cell: Cell) -> str:
    """A text that is never null."""
    return "" if cell is None else cell.decode()
