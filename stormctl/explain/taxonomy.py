"""The classes of corruption as rows: what happened, how a log shows it, what closed it, what would settle the rest.

Adding a class is one entry in one of the tables (``storage``, ``concurrency``, ``determinism``). The first row whose
signature holds names the corruption; later ones that hold are told as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stormctl.explain.facts import Facts


class Group(StrEnum):
    """Where a class of corruption comes from."""

    STORAGE = "storage order"
    WRITERS = "concurrent writers"
    ENGINE = "engine determinism"


class Weight(StrEnum):
    """How far a signature reaches. ``SHOWN``: the evidence leaves no other class that is known. ``FITS``: the log looks
    like the class, and others would look the same."""

    SHOWN = "shown"
    FITS = "fits"


@dataclass(frozen=True, slots=True)
class Match:
    """A signature that holds: the events it is about (0-based indices), and why, in sentences."""

    at: tuple[int, ...]
    because: tuple[str, ...]
    weight: Weight = Weight.SHOWN


Signature = Callable[["Facts"], Match | None]


@dataclass(frozen=True, slots=True)
class CorruptionClass:
    """One class. ``closed_by`` are upstream's pull requests, ``closed`` says what they did; ``question`` is what would
    settle what a log alone leaves open."""

    name: str
    title: str
    group: Group
    mechanism: str
    signature: Signature
    closed_by: tuple[int, ...]
    closed: str
    question: str


def classes() -> tuple[CorruptionClass, ...]:
    """Every class that is known, in the order in which they are tried."""
    from stormctl.explain.concurrency import CLASSES as WRITERS
    from stormctl.explain.determinism import CLASSES as ENGINE
    from stormctl.explain.storage import CLASSES as STORAGE
    from stormctl.explain.storage import LAST

    return (*STORAGE, *ENGINE, *WRITERS, *LAST)
