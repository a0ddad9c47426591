"""What to sweep a log with: profile, workload, engines, prefixes. Only names, so that a plan fits another process."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from stormctl.engine.door import Engine
from stormctl.errors import UsageError
from stormctl.history import EventLog
from stormctl.sweeps.profiles import STRICT
from stormctl.workloads.base import Workload

_RANGE = re.compile(r"([0-9]{1,9})?:([0-9]{1,9})?\Z")


@dataclass(frozen=True, slots=True)
class PrefixRange:
    """Which prefixes to replay, by name, both ends included; None is open."""

    first: int | None = None
    last: int | None = None

    @classmethod
    def parse(cls, text: str) -> PrefixRange:
        """``all``, ``605:654``, ``605:`` or ``:654``; UsageError for anything else."""
        if text == "all":
            return cls()
        found = _RANGE.match(text)
        if found is None or found[0] == ":":
            raise UsageError(f"{text!r} names no prefixes", remedy="Give all, or two ends such as 605:654.")
        first, last = (None if end is None else int(end) for end in found.groups())
        if first is not None and last is not None and first > last:
            raise UsageError(f"the prefixes {text} run backwards", remedy=f"Give {last}:{first}.")
        return cls(first, last)

    def lengths(self, log: EventLog) -> range:
        """The prefix lengths that the range stands for in a log. The empty prefix is not one of them."""
        first = 1 if self.first is None else max(1, log.length_of_prefix(self.first - 1) + 1)
        last = len(log) if self.last is None else log.length_of_prefix(self.last)
        return range(first, last + 1)


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


@runtime_checkable
class Parallel(Protocol):
    """An engine that can spread the passes over one log over processes."""

    jobs: int


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """How to sweep logs.

    ``workload`` is used for every log, and may be a user's own (``/path/to/file.py:name``, which is executed); None
    takes the one that each capture names, and never executes a file. ``engines`` are names that ``open`` turns into
    engines; with none, no prefix is replayed. ``include_input_only``: see ``rebinding``. Prefixes are replayed in
    ``perturb`` further ways, drawn from ``perturb_seed``; 0 leaves that sweep out. ``maps`` keeps what each rank was
    bound to, for a picture. ``jobs`` is how many processes an engine may use that can use several.
    """

    profile: str = STRICT.name
    workload: str | None = None
    engines: tuple[str, ...] = ()
    prefixes: PrefixRange = PrefixRange()
    include_input_only: bool = False
    perturb: int = 0
    perturb_seed: int = 0
    maps: bool = False
    jobs: int = 1
    find: Callable[[str], Workload | None] = known_workload
    open: Callable[[str, Workload, Any], Engine] = own_engine
