"""What is done to a loop from outside, in words: ``A2: fail``, ``A3: compact a``, ``250ms: release``.

======================  ============================================================================================
``admit a x``           a client appends the event x to the stream a, and the loop is told
``deliver``             everything that changed is flushed and arrives
``compact a``           consumed entries at or below the frontier are taken out of a
``consequence a x``     another writer consequences the pending x of a, with its effect
``strip a``             the consumed entries of a lose their seq: legacy entries
``unrelated``           a commit that touches no stream
``shadow a x@102``      a sealed write of the loop's hides a: it shows x@102, or nothing (``shadow a absent``)
``release``             those sealed writes are withdrawn, and what they hid can be seen
``park``                the tenure ends
``fail``                the await fails (A1 sync, A2 flush, A3 pull)
``throw``               queueing throws (at ``queue``)
``loadpark``            the load of the stream document parks the event (A4)
``cut``                 the deadline cuts the settle
======================  ============================================================================================

Before the colon stands when: ``start``, an await point ``A1`` to ``A9``, ``queue``, ``settle``, or a virtual time such
as ``250ms``. ``A2 (2)`` is the second time that the loop comes there, ``A2 (*)`` each time; ``A1 b`` only where it is
about the sidecar b.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stormctl.errors import UsageError

#: the await points of a cycle and what a turn there is called
POINTS = {
    "A1": "sync",
    "A2": "flush",
    "A3": "pull",
    "A4": "load",
    "A5": "seal",
    "A6": "notice",
    "A7": "chain",
    "A8": "commit",
    "A9": "settled",
}
#: action: how many words behind it
ACTIONS = {
    "admit": 2,
    "deliver": 0,
    "compact": 1,
    "consequence": 2,
    "strip": 1,
    "unrelated": 0,
    "shadow": 2,
    "release": 0,
    "park": 0,
    "fail": 0,
    "throw": 0,
    "loadpark": 0,
    "cut": 0,
}
#: actions that change how the loop's own step goes, and where they have a meaning
OUTCOMES = {
    "fail": frozenset({"A1", "A2", "A3"}),
    "throw": frozenset({"queue"}),
    "loadpark": frozenset({"A4"}),
    "cut": frozenset({"settle"}),
}
MOST = 200
MOST_MS = 3_600_000
_WHEN = re.compile(r"(?P<place>start|queue|settle|A[1-9])(?: (?P<doc>[a-z]))?(?: \((?P<nth>\*|[1-9][0-9]?)\))?\Z")
_TIME = re.compile(r"(?P<ms>[0-9]{1,7})ms\Z")
_WORD = re.compile(r"[A-Za-z0-9_-]{1,32}(@[0-9]{1,6})?\Z")


@dataclass(frozen=True, slots=True)
class Injection:
    """One thing that is done. ``place`` is a point, or empty for one at the virtual time ``ms``; ``nth`` 0 is each
    time; ``doc`` narrows a point to one sidecar."""

    place: str
    action: str
    words: tuple[str, ...] = ()
    nth: int = 1
    doc: str = ""
    ms: int = 0

    def __str__(self) -> str:
        when = self.place or f"{self.ms}ms"
        when += f" {self.doc}" if self.doc else ""
        when += " (*)" if not self.nth else f" ({self.nth})" if self.nth > 1 else ""
        return f"{when}: {' '.join((self.action, *self.words))}"


def parse(text: str) -> Injection:
    """An injection from its words. UsageError for anything that is none."""
    when, colon, rest = (part.strip() for part in text.partition(":"))
    action, *words = rest.split()[:4] or [""]
    if not colon or action not in ACTIONS or len(words) != ACTIONS[action] or not all(map(_WORD.match, words)):
        raise _none(text)
    if action in ("admit", "compact", "consequence", "strip", "shadow") and not re.match(r"[a-z]\Z", words[0]):
        raise UsageError(f"{words[0]!r} names no stream", remedy="Name streams by one small letter, such as a or b.")
    if timed := _TIME.match(when):
        if action in OUTCOMES or int(timed["ms"]) > MOST_MS:
            raise _none(text)
        return Injection("", action, tuple(words), ms=int(timed["ms"]))
    found = _WHEN.match(when)
    if found is None or (action in OUTCOMES and found["place"] not in OUTCOMES[action]):
        raise _none(text)
    nth = 1 if found["nth"] is None else 0 if found["nth"] == "*" else int(found["nth"])
    return Injection(found["place"], action, tuple(words), nth, found["doc"] or "")


def parse_all(*texts: str) -> tuple[Injection, ...]:
    """Several of them. UsageError beyond a limit."""
    if len(texts) > MOST:
        raise UsageError(f"{len(texts)} injections", remedy=f"Give {MOST} at most.")
    return tuple(map(parse, texts))


def _none(text: str) -> UsageError:
    return UsageError(
        f"{text[:60]!r} is no injection", remedy="Write when and what, such as `A2: fail` or `A3: compact a`."
    )
