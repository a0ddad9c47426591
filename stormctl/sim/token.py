"""A schedule as one word that can be pasted: ``sw1-...``.

It holds the name of the model, the beginning of the model's digest, and the choices; a checksum says when a character
was lost on the way. It is for the very model that it was made with: the semantic form (:mod:`stormctl.sim.tape`) is the
one that survives a change of the code.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stormctl.errors import UsageError

PREFIX = "sw1-"
#: characters of a token that are read, and choices that it may stand for: both beyond anything that is ever printed
MOST_CHARACTERS = 100_000
MOST_CHOICES = 1_000_000
_DIGEST, _CHECK = 4, 3
_PLAIN, _PACKED = 0, 1
PASTE_AGAIN = "Paste the whole word, from sw1- to its end."


@dataclass(frozen=True, slots=True)
class Token:
    """A schedule: of which model, as it was when its digest began with ``digest`` (8 hexadecimal digits), and how."""

    model: str
    digest: str
    tape: tuple[int, ...]

    @classmethod
    def of(cls, model: str, digest: str, tape: Sequence[int]) -> Token:
        """The token of a tape; choices of 0 at its end say nothing and are left out."""
        kept = list(tape)
        while kept and not kept[-1]:
            kept.pop()
        return cls(model, digest[: 2 * _DIGEST], tuple(kept))

    def __str__(self) -> str:
        name = self.model.encode()
        body = bytes([len(name)]) + name + bytes.fromhex(self.digest) + _choices(self.tape)
        packed = zlib.compress(body, 9)
        body = bytes([_PACKED]) + packed if len(packed) < len(body) else bytes([_PLAIN]) + body
        return PREFIX + base64.urlsafe_b64encode(_check(body) + body).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Token:
        """Read a token. UsageError for anything that is none, was damaged, or is beyond all measure."""
        text = text.strip()
        if not text.startswith(PREFIX) or len(text) > MOST_CHARACTERS:
            raise UsageError(f"{text[:20]!r} is no token of a schedule", remedy=PASTE_AGAIN)
        word = text.removeprefix(PREFIX)
        try:
            raw = base64.b64decode(word + "=" * (-len(word) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise UsageError("the token has a character that no token has", remedy=PASTE_AGAIN) from None
        check, body = raw[:_CHECK], raw[_CHECK:]
        if len(body) < 2 or check != _check(body):
            raise UsageError("the token was damaged: its checksum does not agree", remedy=PASTE_AGAIN)
        try:
            return _token(_unpacked(body))
        except (IndexError, ValueError, zlib.error):
            raise UsageError("the token holds no schedule", remedy="Make it anew with `stormctl sim run`.") from None


def _token(body: bytes) -> Token:
    end = 1 + body[0]
    name, digest, rest = body[1:end].decode(), body[end : end + _DIGEST], body[end + _DIGEST :]
    if len(digest) != _DIGEST:
        raise ValueError
    return Token(name, digest.hex(), tuple(_read(rest)))


def _unpacked(body: bytes) -> bytes:
    kind, rest = body[0], body[1:]
    if kind == _PLAIN:
        return rest
    if kind != _PACKED:
        raise ValueError
    found = zlib.decompressobj()
    plain = found.decompress(rest, MOST_CHARACTERS * 10)
    if not found.eof:
        raise ValueError
    return plain


def _check(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECK).digest()


def _choices(tape: Sequence[int]) -> bytes:
    """Pairs of numbers: how many zeros, and the choice behind them. Most choices are zero."""
    found = bytearray()
    zeros = 0
    for choice in tape:
        if choice:
            found += _number(zeros) + _number(choice)
            zeros = 0
        else:
            zeros += 1
    return bytes(found)


def _read(body: bytes) -> Iterator[int]:
    numbers = list(_numbers(body))
    if len(numbers) % 2 or sum(numbers[::2]) + len(numbers) // 2 > MOST_CHOICES:
        raise ValueError
    for zeros, choice in zip(numbers[::2], numbers[1::2], strict=True):
        yield from (0,) * zeros
        yield choice


def _number(value: int) -> bytes:
    """Seven bits a byte, the low ones first; the high bit says that there are more."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _numbers(body: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in body:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield value
            value = shift = 0
        elif shift > 63:
            raise ValueError
    if shift:
        raise ValueError
