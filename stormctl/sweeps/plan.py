"""What to sweep a log with: profile, workload, engines, prefixes. Only names, so that a plan fits another process."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

from stormctl.engine.door import Engine
from stormctl.errors import StormctlError, UsageError
from stormctl.history import Capture, EventLog, kinds
from stormctl.readers.reading import BY_CONTENT, Reading
from stormctl.sweeps.base import NO_WORKLOAD, Scenario
from stormctl.sweeps.memory import Memory
from stormctl.sweeps.profiles import STRICT
from stormctl.workloads.base import Workload

_RANGE = re.compile(r"([0-9]{1,9})?:([0-9]{1,9})?\Z")


@dataclass(frozen=True, slots=True)
class PrefixRange:
    """Which prefixes to replay, by name, both ends included; None is open."""

    first: int | None = None
    last: int | None = None
    #: only those at which a binding can change
    decisive: bool = False
    #: only the whole log
    whole: bool = False

    @classmethod
    def parse(cls, text: str) -> PrefixRange:
        """``all``, ``decisions``, ``last``, ``605:654``, ``605:`` or ``:654``; UsageError for anything else."""
        if text in ("all", "decisions", "last"):
            return cls(decisive=text == "decisions", whole=text == "last")
        found = _RANGE.match(text)
        if found is None or found[0] == ":":
            raise UsageError(
                f"{text!r} names no prefixes", remedy="Give all, decisions, last, or two ends such as 605:654."
            )
        first, last = (None if end is None else int(end) for end in found.groups())
        if first is not None and last is not None and first > last:
            raise UsageError(f"the prefixes {text} run backwards", remedy=f"Give {last}:{first}.")
        return cls(first, last)

    def lengths(self, log: EventLog) -> Sequence[int]:
        """The prefix lengths that the range stands for in a log, rising. The empty prefix is not one of them."""
        if self.whole:
            return [len(log)] if len(log) else []
        if self.decisive:
            return decisions(log)
        first = 1 if self.first is None else max(1, log.length_of_prefix(self.first - 1) + 1)
        last = len(log) if self.last is None else log.length_of_prefix(self.last)
        return range(first, last + 1)


def decisions(log: EventLog) -> list[int]:
    """The prefixes that are enough to find every change of a binding: those that end just before and just behind an
    event that gives the workflow something to go on with, and the whole log.

    In 106 changes that were measured on real logs a binding changed only behind a ``step_completed``, or at a create
    whose input was another than the replay's; that input is compared with what the last of these prefixes before it
    asks for. What is left out ends within a stretch of creates and starts: there a replay asks for what it asked for
    before, or for more.
    """
    found = {len(log)}
    for index, (event, after) in enumerate(pairwise(log)):
        if event.type in kinds.GIVES or after.type in kinds.GIVES:
            found.add(index + 1)
    return sorted(found - {0})


def known_workload(name: str) -> Workload | None:
    """The workload of that name, if this stormctl has it."""
    from stormctl.workloads.registry import WORKLOADS

    return WORKLOADS.get(name)


def own_engine(name: str, workload: Workload, input: Any) -> Engine:
    """One of our own generations, by name."""
    if workload.source is not None:
        from stormctl.workloads.user_engine import user_engine

        return user_engine(name, workload, input)
    from stormctl.engine.engines import engine_for

    return engine_for(name, workload, input)


class NeedsWorkload(StormctlError):
    """An engine that replays a workload of ours was asked for a log whose workload is not known."""


def open_own(name: str, _capture: Capture, scenario: Scenario | None) -> Engine:
    """One of our own generations for a log. NeedsWorkload without a scenario: it has no body to replay."""
    if scenario is None:
        raise NeedsWorkload(f"{name} replays a workload, and the log names none", remedy=f"Give it {NO_WORKLOAD}.")
    return own_engine(name, scenario.workload, scenario.input)


#: How the name of an engine becomes an engine for one log. The scenario is None where it is not known.
Opener = Callable[[str, Capture, Scenario | None], Engine]


@runtime_checkable
class Parallel(Protocol):
    """An engine that can spread the passes over one log over processes."""

    jobs: int


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """How to sweep logs.

    ``workload`` is used for every log, and may be a user's own (``/path/to/file.py:name``, which is executed); None
    takes the one that each capture names, and never executes a file. ``engines`` are names that ``open`` turns into
    engines for one log; with none, no prefix is replayed. ``include_input_only``: see ``rebinding``. Prefixes are
    replayed in ``perturb`` further ways, drawn from ``perturb_seed``; 0 leaves that sweep out. ``maps`` keeps what each
    rank was bound to, for a picture. ``jobs`` is how many processes an engine may use that can use several.
    ``profile`` is the name of one, or ``auto`` for that which each log asks for. ``earlier`` is where captures of the
    same runs lie that were made before. ``read_as`` is how files are read, where a person says so. ``show_payloads``
    puts the payloads of the events that findings name into the report. ``prefixes_of`` names engines that replay other
    prefixes than the rest. ``memory`` is where replays are kept, and found again; None does without.
    ``only`` are the names of the sweeps to make, none for all; one that is named answers also where the report would
    leave it out.
    """

    profile: str = STRICT.name
    earlier: str | None = None
    workload: str | None = None
    engines: tuple[str, ...] = ()
    prefixes: PrefixRange = PrefixRange()
    include_input_only: bool = False
    perturb: int = 0
    perturb_seed: int = 0
    maps: bool = False
    jobs: int = 1
    read_as: Reading = BY_CONTENT
    show_payloads: bool = False
    find: Callable[[str], Workload | None] = known_workload
    open: Opener = open_own
    prefixes_of: Mapping[str, PrefixRange] = field(default_factory=dict)
    memory: Memory | None = None
    only: tuple[str, ...] = ()

    def lengths(self, engine: str, log: EventLog) -> Sequence[int]:
        """The prefix lengths that an engine is to replay of a log."""
        return self.prefixes_of.get(engine, self.prefixes).lengths(log)
