"""What a failed run says of its failure, parsed into what can be counted: kind, entity, expected, actual, position.

Three tongues are read: our own engine's, the published Workflow SDK's, and whatever else, which is told apart by its
words once ids, numbers and times are taken out. The fields are those that upstream asks for in triage (vercel/workflow
#3418, #4021): a count of corrupted runs alone cannot tell a regression from a known residue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stormctl.history.kinds import kind_of_type

#: kinds of failure. The first six are divergences of a replay.
NAME, RESUME_AT, UNCONSUMED, STRANDED, TOKEN, ATTRIBUTES = (
    "name", "resume-at", "unconsumed", "stranded", "token", "attributes",
)  # fmt: skip
TYPE, DENSITY, REFUSED, LEDGER, CAP, TEXT = "type", "hole", "refused-writes", "ledger", "cap", "text"
#: Characters of an unknown text by which it is told from others.
MOST_TEXT = 90

_EVENT = r"\w+"
_DIVERGED = re.compile(r"diverged (\d+) times? after (\d+) recovery")
_AT_EVENT = re.compile(rf"(?:latest divergent event was|last divergence was at) ({_EVENT})")
_OURS = r"(?P<type>[a-z]+_[a-z]+) at position (?P<position>\d+) "
_FOREIGN_NUMBERS = re.compile(
    r"\b(?:[a-z]{2,8}_)?[0-9A-HJKMNP-TV-Z]{26}\b|\d{4}-\d\d-\d\d[T ][\d:.]+Z?|\b0x[0-9a-fA-F]+|\b[0-9a-f]{12,}\b|\d+"
)


@dataclass(frozen=True, slots=True)
class Signature:
    """A class of failures: what their texts have in common.

    ``code`` is the run's error code, ``kind`` one of this module's words, ``event_type`` and ``entity`` (step, wait,
    hook, run) what the text speaks of, ``expected`` what the log holds there and ``actual`` what the workflow did.
    Of times only the order is kept: two runs never wait until the same one. Empty where the text does not say.
    """

    code: str
    kind: str
    event_type: str = ""
    entity: str = ""
    expected: str = ""
    actual: str = ""

    @property
    def text(self) -> str:
        """``step_created: recover expected, release called``, for a person."""
        about = f"{self.event_type}: " if self.event_type else ""
        if self.expected and self.actual:
            return f"{about}log has {self.expected}, workflow {self.actual}"
        return about + (self.expected or self.actual or "no text")


@dataclass(frozen=True, slots=True)
class Said:
    """One error text, parsed. ``position`` is counted from 1 and None where the text names only the event
    (``event_id``); ``diverged`` and ``recoveries`` count replays, None where the text does not."""

    signature: Signature
    position: int | None = None
    event_id: str | None = None
    diverged: int | None = None
    recoveries: int | None = None


def parse(code: str | None, message: str | None) -> Said:
    """The parts of an error text. Any text has a signature; an empty one has that of its code."""
    text = " ".join((message or "").split())[:4_000]
    diverged = _DIVERGED.search(text)
    at = _AT_EVENT.search(text)
    signature, position = _signature(code or "", text)
    return Said(
        signature,
        position,
        at[1] if at else None,
        int(diverged[1]) if diverged else None,
        int(diverged[2]) if diverged else None,
    )


def _signature(code: str, text: str) -> tuple[Signature, int | None]:
    for pattern, kind, sides in _PATTERNS:
        found = pattern.search(text)
        if found is not None:
            groups = found.groupdict()
            event_type = groups.get("type") or ""
            expected, actual = sides(groups)
            position = groups.get("position")
            entity = kind_of_type(event_type) if event_type else ""
            where = int(position) if position is not None and len(position) < 10 else None
            return Signature(code, kind, event_type, entity, expected, actual), where
    known = _FOREIGN_NUMBERS.sub("#", text)
    return Signature(code, TEXT, expected=known[:MOST_TEXT]), None


def _short(name: str | None) -> str:
    """``step//./workflows/storms//recover`` -> ``recover``."""
    return (name or "").rpartition("//")[2][:60]


def _names(groups: dict[str, str | None]) -> tuple[str, str]:
    return _short(groups["expected"]), f"calls {_short(groups['actual'])}"


def _times(groups: dict[str, str | None]) -> tuple[str, str]:
    """Which of two times is the later one. ISO times of one form and milliseconds sort as text of one length."""
    log, body = groups["expected"] or "", groups["actual"] or ""
    return "a wait", f"waits {'longer' if (len(log), log) < (len(body), body) else 'shorter'}"


def _pending(groups: dict[str, str | None]) -> tuple[str, str]:
    actual = groups.get("actual")
    return "an event", f"asks for {_short(actual)}" if actual and actual != "nothing" else "asks for nothing"


def _words(expected: str, actual: str = "") -> Callable[[dict[str, str | None]], tuple[str, str]]:
    return lambda _groups: (expected, actual)


_PATTERNS: tuple[tuple[re.Pattern[str], str, Callable[[dict[str, str | None]], tuple[str, str]]], ...] = tuple(
    (re.compile(pattern), kind, sides)
    for pattern, kind, sides in (
        (_OURS + r"belongs to (?P<expected>.+?), but with rank \d+ the workflow calls (?P<actual>.+)", NAME, _names),
        (
            r"event (?P<position>\d+) \((?P<type>\w+)\) belongs to step (?P<expected>\S+), "
            r"the workflow called step (?P<actual>\S+)",
            NAME,
            _names,
        ),
        (
            r'(?P<type>[a-z]+_[a-z]+) for \w+ belongs to "(?P<expected>[^"]*)", '
            r'but the current \w+ consumer is "(?P<actual>[^"]*)"',
            NAME,
            _names,
        ),
        (
            _OURS + r"ends a wait until (?P<expected>\S+), but the workflow waits until (?P<actual>\S+)",
            RESUME_AT,
            _times,
        ),
        (
            r'(?P<type>[a-z]+_[a-z]+) event for \w+ has resumeAt "(?P<expected>[^"]*)", '
            r'but the current wait consumer expects "(?P<actual>[^"]*)"',
            RESUME_AT,
            _times,
        ),
        (_OURS + r"was not consumed: with its id the workflow asks for (?P<actual>\S+)", UNCONSUMED, _pending),
        (_OURS + r"was not consumed", UNCONSUMED, _pending),
        (
            _OURS + r"creates (?P<expected>\S+) too late",
            UNCONSUMED,
            lambda g: (_short(g["expected"]), "has its result"),
        ),
        (_OURS + r"was set aside", STRANDED, _words("an event", "finished without asking for it")),
        (_OURS + r"belongs to another token", TOKEN, _words("another token")),
        (_OURS + r"sets other attributes", ATTRIBUTES, _words("other attributes")),
        (_OURS + r"is no event that a (?P<actual>\w+) can have", TYPE, lambda g: ("", f"has a {g['actual']} there")),
        (r"finished without consuming", STRANDED, _words("an event", "finished without asking for it")),
        (
            r"(?:[Uu]nconsumed event|could not consume|was not consumed)"
            r"(?:.*?eventType[\"':= ]+(?P<type>[a-z]+_[a-z]+))?",
            UNCONSUMED,
            _pending,
        ),
        (r"(?:is not dense|density|hole in the (?:event )?log|missing slots?|slot gap)", DENSITY, _words("a hole")),
        (r"refused the run's writes|[Pp]recondition.*(?:exhaust|budget|re-?invo)", REFUSED, _words("refused writes")),
        (r"ledger", LEDGER, _words("a ledger that contradicts itself")),
        (r"^still running after", CAP, _words("not ended at its cap")),
    )
)


def positions_text(positions: Iterable[int | None]) -> str:
    """``69 to 375``, ``132``, or nothing where no position is known."""
    known = [position for position in positions if position is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    return str(low) if low == high else f"{low} to {high}"
