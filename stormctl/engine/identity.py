"""Correlation ids: from the draws of a run to ids, and back to ranks.

A rank is the ordinal of a draw, whatever its id looks like. With the scheme ``ordinal`` id and rank are one thing; with
``per-kind`` (vercel/workflow #3301) and ``call-site`` (#3179) an id says less about what was drawn before it, which is
their point: one draw more does not rename the rest.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from functools import lru_cache
from typing import Any, Protocol

from stormctl.engine.strategies import Ids
from stormctl.history import digest_value, ids
from stormctl.history.kinds import STEP, WAIT

#: ranks are encoded this many at a time
_PAGE = 64
#: past the largest body a sequence begins again at 0, as its 130 bits do
_LARGEST = (1 << 130) - 1


@lru_cache(maxsize=1024)
def _page(base: int, page: int) -> tuple[str, ...]:
    """The bodies of one page of ranks. Every delivery of a run asks for the same ones again."""
    return tuple(ids.body_of((base + rank) & _LARGEST) for rank in range(page * _PAGE, (page + 1) * _PAGE))


class Bodies:
    """The id bodies of one run's sequence by ordinal."""

    __slots__ = ("_known", "base")

    def __init__(self, base: int) -> None:
        self.base = base
        self._known: list[str] = []

    def __getitem__(self, ordinal: int) -> str:
        known = self._known
        while ordinal >= len(known):
            known.extend(_page(self.base, len(known) // _PAGE))
        return known[ordinal]


class Identity(Protocol):
    """Names what a replay draws."""

    def draw(self, kind: str, name: str | None, arguments: Any) -> str:
        """The correlation id of the next draw."""
        ...

    def rank(self, correlation_id: str) -> int | None:
        """The rank of an id, which need not have been drawn where the scheme tells it all the same."""
        ...


class Ordinal:
    """One sequence per run: the N-th draw has the N-th id. A rank is negative for an id that lies before the first."""

    __slots__ = ("_bodies", "_drawn")

    def __init__(self, bodies: Bodies, run_id: str) -> None:
        self._bodies = bodies
        self._drawn = 0

    def draw(self, kind: str, name: str | None, arguments: Any) -> str:
        """The next body of the sequence."""
        body = self._bodies[self._drawn]
        self._drawn += 1
        return f"{kind}_{body}"

    def rank(self, correlation_id: str) -> int | None:
        """The distance from the first body."""
        body = ids.split(correlation_id)[1]
        return ids.ordinal(body) - self._bodies.base if ids.is_body(body) else None


class _Remembering:
    """Ids that do not tell their rank: it is remembered as they are drawn."""

    __slots__ = ("_bodies", "_counts", "_ranks", "_run_id")

    def __init__(self, bodies: Bodies, run_id: str) -> None:
        self._bodies = bodies
        self._run_id = run_id
        self._ranks: dict[str, int] = {}
        self._counts: Counter[str] = Counter()

    def draw(self, kind: str, name: str | None, arguments: Any) -> str:
        """The next id of the scheme."""
        made = f"{kind}_{self._body(kind, name, arguments)}"
        self._ranks[made] = len(self._ranks)
        return made

    def rank(self, correlation_id: str) -> int | None:
        """The rank, if this replay has drawn the id."""
        return self._ranks.get(correlation_id)

    def _body(self, kind: str, name: str | None, arguments: Any) -> str:
        raise NotImplementedError


class PerKind(_Remembering):
    """Steps and waits are counted from 1 each; everything else draws from the run's sequence."""

    __slots__ = ()

    def _body(self, kind: str, name: str | None, arguments: Any) -> str:
        counted = kind if kind in (STEP, WAIT) else ""
        self._counts[counted] += 1
        count = self._counts[counted]
        return f"{count:0{ids.BODY_LENGTH}d}" if counted else self._bodies[count - 1]


class CallSite(_Remembering):
    """What is called, with what, and how often that was called before. The time part is the run's."""

    __slots__ = ()

    def _body(self, kind: str, name: str | None, arguments: Any) -> str:
        scope = f"{kind} {name or ''} {digest_value(arguments)}"
        occurrence = self._counts[scope]
        self._counts[scope] += 1
        mixed = hashlib.sha256(f"{self._run_id} {scope} {occurrence}".encode()).digest()
        return ids.compose(self._bodies.base >> ids.RANDOM_BITS, int.from_bytes(mixed[:10], "big"))


IDENTITIES: dict[Ids, type[Ordinal] | type[PerKind] | type[CallSite]] = {
    Ids.ORDINAL: Ordinal,
    Ids.PER_KIND: PerKind,
    Ids.CALL_SITE: CallSite,
}
