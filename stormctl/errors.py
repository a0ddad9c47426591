"""The errors that stormctl raises on purpose: one base, each with its remedy.

The command line shows ``message`` and ``remedy`` as one sentence each and exits with ``exit_code``; a traceback
is shown only for a fault of ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

EXIT_CLEAN = 0
EXIT_VIOLATIONS = 1
EXIT_USAGE = 2
EXIT_UNKNOWN = 3
EXIT_INTERNAL = 4
EXIT_INTERRUPTED = 130


class StormctlError(Exception):
    """Something the user can mend: ``str(error)`` says what is wrong, ``remedy`` what to do about it."""

    exit_code = EXIT_INTERNAL

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), remedy=self.remedy), self.args  # it crosses from worker processes, remedy and all


class UsageError(StormctlError):
    """A command, plan or name that cannot mean anything: exit code 2."""

    exit_code = EXIT_USAGE


class PlanError(UsageError):
    """A plan file with an unknown key, name or value."""


class StoreBusy(UsageError):
    """A store folder that another storm is using."""


class StoreForeign(UsageError):
    """A folder that holds something stormctl did not write."""


class UnreadableInput(StormctlError):
    """A capture that cannot be read: exit code 4, after every readable one was reported."""


class StoreFailure(StormctlError):
    """The store could not be read or written (a full or failing disk, a lost server)."""


def suggest(word: str, known: Iterable[str]) -> str:
    """The remedy for an unknown word: the likeliest one that was meant, else all that are known."""
    from difflib import get_close_matches  # only who mistypes pays for it

    names = sorted(known)
    close = get_close_matches(word, names, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Known are {', '.join(names)}."
