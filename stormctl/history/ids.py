"""Event ids, correlation ids and ranks.

All correlation ids of a run come from one seeded monotonic ULID sequence, one draw per step, wait or hook in program
order. The first 10 characters (48-bit time) are constant within a run and each draw adds one to the 80 random bits, so

    rank(id) = int(body, crockford32) - int(first drawn body)

is exact and shows holes. Bodies are big integers here and nothing else: production ids whose time part is not a
plausible date exist, and are not refused.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUE = {char: value for value, char in enumerate(ALPHABET)}
#: Python's own digits of base 32, so that a body is read by one call.
_DIGITS = str.maketrans(ALPHABET, "0123456789abcdefghijklmnopqrstuv")
_BODY = re.compile(rf"[{ALPHABET}]{{26}}\Z")
_SLOT = re.compile(r"0{10}[0-9]{16}\Z")
#: A body that is no slot and no count: its first ten characters are a time.
_DRAWN = re.compile(rf"(?!0{{10}}[0-9]{{16}}\Z)[{ALPHABET}]{{26}}\Z")
_PAIRS = [a + b for a in ALPHABET for b in ALPHABET]

BODY_LENGTH = 26
TIME_LENGTH = 10
RANDOM_BITS = 80


def is_body(text: str) -> bool:
    """Whether the text is a 26-character Crockford base-32 body."""
    return _BODY.match(text) is not None


def is_count(body: str) -> bool:
    """Whether a body is a zero-padded decimal count, as the per-kind scheme (vercel/workflow #3301) has them."""
    return _SLOT.match(body) is not None


def ordinal(body: str) -> int:
    """The integer that a 26-character body stands for; ValueError when it is not one."""
    if len(body) != BODY_LENGTH:
        raise ValueError(f"a body has {BODY_LENGTH} characters, this one has {len(body)}")
    if _BODY.match(body) is None:
        odd = next(char for char in body if char not in _VALUE)
        raise ValueError(f"{odd!r} is not a Crockford base-32 digit")
    return int(body.translate(_DIGITS), 32)


def body_of(value: int) -> str:
    """The 26-character body of an integer below 2**130: the inverse of :func:`ordinal`."""
    if not 0 <= value < 1 << 130:
        raise ValueError("a body stands for an integer from 0 to 2**130 - 1")
    return "".join(_PAIRS[value >> shift & 1023] for shift in range(120, -1, -10))


def is_drawn(body: str) -> bool:
    """Whether the text is a body that was drawn, and no count."""
    return _DRAWN.match(body) is not None


def drawn(body: str) -> int | None:
    """The integer that a drawn body stands for; None for a count, and for what is no body."""
    return int(body.translate(_DIGITS), 32) if _DRAWN.match(body) else None


def split(correlation_id: str) -> tuple[str, str]:
    """``step_01K...`` -> ``("step", "01K...")``; the kind is empty where there is no underscore."""
    kind, _, body = correlation_id.rpartition("_")
    return kind, body


def slot_of(event_id: str) -> int | None:
    """The position that a slot id carries (``evnt_`` + 26 decimal digits, dense per run), or None for any other id."""
    body = split(event_id)[1]
    return int(body) if _SLOT.match(body) else None


ULID, SLOT = "ulid", "slot"


def scheme(event_id: str) -> str | None:
    """By which scheme an event id was made: ``ulid``, ``slot``, or None for one that is unknown."""
    body = event_id.rpartition("_")[2]
    if _DRAWN.match(body):
        return ULID
    return SLOT if _SLOT.match(body) else None


def slot_id(position: int, prefix: str = "evnt") -> str:
    """The slot id of a position: ``evnt_00000000000000000000000003``."""
    return f"{prefix}_{position:026d}"


def ulid_ms(event_id: str) -> int | None:
    """The mint time in epoch milliseconds that a ULID id carries; None for a slot id or anything else.

    A slot id is never decoded as a time (as a ULID it would read as the year 1970).
    """
    body = event_id.rpartition("_")[2]
    return int(body[:TIME_LENGTH].translate(_DIGITS), 32) if _DRAWN.match(body) else None


def compose(ms: int, random_bits: int) -> str:
    """The ULID body of a time and 80 random bits."""
    return body_of((ms & (1 << 48) - 1) << RANDOM_BITS | random_bits & (1 << RANDOM_BITS) - 1)


@lru_cache(maxsize=512)
def seeded_base(run_id: str) -> int:
    """The ordinal of a run's first draw, for runs that stormctl's own engine wrote.

    The time part is the run id's (as the SDK's fixed timestamp is); the random part is seeded by the run id, with its
    top bit clear so that no run can overflow the 80 bits.
    """
    body = split(run_id)[1]
    time_part = ordinal(body) >> RANDOM_BITS if is_body(body) else 0
    seed = hashlib.sha256(b"stormctl draws " + run_id.encode()).digest()
    return time_part << RANDOM_BITS | int.from_bytes(seed[:10], "big") >> 1
