"""Versions of the SDK: reading them, ordering them, and the nearest that exist."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import total_ordering

from stormctl.errors import UsageError

#: what the host and the templates are written for
MAJORS = (4, 5)

_FORM = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:-([0-9A-Za-z]+(?:[.-][0-9A-Za-z]+)*))?")


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A published version, ordered as semver does: a prerelease comes before its release, its numbers by value."""

    major: int
    minor: int
    patch: int
    pre: tuple[int | str, ...] = ()

    def __str__(self) -> str:
        core = f"{self.major}.{self.minor}.{self.patch}"
        return f"{core}-{'.'.join(map(str, self.pre))}" if self.pre else core

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()

    def _key(self) -> tuple[object, ...]:
        # numbers sort below words, and no prerelease above every one
        parts = tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in self.pre)
        return (self.major, self.minor, self.patch, not self.pre, parts)


def parse(text: str) -> Version:
    """A version from its text, ``workflow@`` or ``v`` before it allowed. UsageError when it is none."""
    found = _FORM.fullmatch(text.strip().removeprefix("workflow@").removeprefix("v"))
    if found is None:
        raise UsageError(
            f"{text!r} is no version of the Workflow SDK",
            remedy="Give one as it was published, such as 4.8.9 or 5.0.0-beta.55.",
        )
    pre = tuple(int(part) if part.isdigit() else part for part in (found[4] or "").split(".") if part)
    return Version(int(found[1]), int(found[2]), int(found[3]), pre)


def supported(text: str) -> Version:
    """A version that the host can serve: 4.x or 5.x. UsageError for another."""
    version = parse(text)
    if version.major not in MAJORS:
        raise UsageError(
            f"workflow {version} is neither 4.x nor 5.x, which is what stormctl can serve",
            remedy="Give a version such as 4.8.9 or 5.0.0-beta.55.",
        )
    return version


def nearest(wanted: Version, published: Iterable[str]) -> list[Version]:
    """The published versions just below and just above, at most two."""
    known = sorted(_readable(published))
    place = bisect_left(known, wanted)
    return known[max(0, place - 1) : place + 1]


def _readable(published: Iterable[str]) -> list[Version]:
    found = []
    for text in published:
        if (match := _FORM.fullmatch(text)) is not None and int(match[1]) in MAJORS:
            found.append(parse(text))
    return found
