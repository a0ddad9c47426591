"""What a scenario is made of: a body, the steps it calls, a driver that presses on it, and what must hold at the end.

Everything here is a description. A body runs in an engine, a step body and a driver are generators of acts that a storm
interprets with real time and the simulator with virtual time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from stormctl.errors import PlanError
from stormctl.history import EventLog

# -- acts of step bodies and drivers ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sleep:
    """Let ``ms`` pass. A run is given scaled inputs, so these are real milliseconds. Replies None."""

    ms: float


@dataclass(frozen=True, slots=True)
class SetAttributes:
    """A step body writes run attributes: an ``attr_set`` event that no replay asked for. Replies None."""

    changes: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Now:
    """Replies the time in epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class Uniform:
    """Replies a number of the attempt's seeded random sequence, 0 <= x < 1."""


@dataclass(frozen=True, slots=True)
class WaitForHook:
    """Wait until the run holds a live hook with this token. Replies its correlation id, or None after ``timeout_ms``
    or when the run ends."""

    token: str
    timeout_ms: float = 60_000


@dataclass(frozen=True, slots=True)
class Resume:
    """Send a payload to a hook. Replies True when the store accepted it, False when the hook is gone."""

    token: str
    payload: Any


@dataclass(frozen=True, slots=True)
class RunEnded:
    """Replies whether the run has ended."""


@dataclass(frozen=True, slots=True)
class LastWait:
    """Wait until the run has a pending wait that has not ended. Replies its recorded ``resume_at`` (epoch ms, the
    latest created one), or None after ``timeout_ms`` or when the run ends."""

    timeout_ms: float


@dataclass(frozen=True, slots=True)
class Together:
    """Drive several drivers at once. Replies when all have returned."""

    drivers: tuple[Generator[Any, Any, None], ...]


Act = Sleep | SetAttributes | Now | Uniform | WaitForHook | Resume | RunEnded | LastWait | Together
StepBody = Callable[..., Generator[Act, Any, Any]]
Driver = Generator[Act, Any, None]


@dataclass(slots=True)
class Pressure:
    """What a driver managed to do to its run; an idle driver means that a clean run proves nothing."""

    resumes_sent: int = 0
    resumes_failed: int = 0
    hook_missing: bool = False


#: a storm without a round or a branch proves nothing, and no driver finds its hook
_AT_LEAST_ONE = frozenset({"rounds", "width"})


@dataclass(frozen=True)
class Workload:
    """One scenario. ``input_type`` is a frozen dataclass whose defaults are the published ones.

    ``check`` returns the first disagreement of a completed run's value with the input, or None. ``counts`` gives, for a
    completed run, the exact number of events each name or type must have; ``roles`` the most that any prefix may hold.
    """

    name: str
    summary: str
    input_type: type[Any]
    body: Callable[[Any, Any], Coroutine[Any, Any, Any]]
    steps: Mapping[str, StepBody]
    driver: Callable[[Any, Pressure], Driver]
    check: Callable[[Any, Any], str | None]
    stragglers: Callable[[Any], int]
    counts: Callable[[Any, int], Mapping[str, int]]
    roles: Callable[[Any, EventLog], RoleReport] | None = None
    warnings: Callable[[Any], list[str]] = field(default=lambda _input: [])

    def parse_input(self, given: Mapping[str, Any]) -> Any:
        """An input from a plan's mapping; PlanError names the key that is unknown or whose value cannot be meant."""
        known = {f.name: f for f in fields(self.input_type)}
        for key, value in given.items():
            if key not in known:
                raise PlanError(
                    f"{self.name} has no input {key!r}",
                    remedy=f"Its inputs are {', '.join(sorted(known))}.",
                )
            default = known[key].default
            right = isinstance(value, type(default)) or (isinstance(default, float) and isinstance(value, int))
            if not right or (isinstance(value, bool) and not isinstance(default, bool)):
                raise PlanError(
                    f"input {key!r} of {self.name} is {value!r}",
                    remedy=f"Give it a {type(default).__name__}, such as {default!r}.",
                )
            least = 1 if key in _AT_LEAST_ONE else 0
            if isinstance(value, (int, float)) and not least <= value < math.inf:
                raise PlanError(f"input {key!r} of {self.name} is {value}", remedy=f"Give it {least} or more.")
        return self.input_type(**given)


@dataclass(frozen=True, slots=True)
class RoleExcess:
    """One event with which a role is played more often than the scenario's shape allows."""

    index: int
    role: str
    limit: int
    count: int
    why: str


@dataclass(frozen=True, slots=True)
class RoleReport:
    """What counting roles over a log found. ``first`` events are those at which a limit was first passed."""

    excesses: tuple[RoleExcess, ...]


def scaled(input: Any, factor: float) -> Any:
    """The same input with every duration (each field whose name ends in ``_ms``) multiplied.

    A run is given the scaled input, so that its log says what really was waited for.
    """
    return replace(
        input,
        **{f.name: getattr(input, f.name) * factor for f in fields(input) if f.name.endswith("_ms")},
    )
