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
from stormctl.workloads.races import Races

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
class StepAttempt:
    """Replies which attempt of its step a step body is, from 1."""


@dataclass(frozen=True, slots=True)
class KillWorker:
    """A step body kills the process that runs it, with everything else that this process has in hand. A storm really
    sends SIGKILL: the act has no reply, the step no outcome, and its queue message is never acknowledged."""

    reason: str


@dataclass(frozen=True, slots=True)
class Together:
    """Drive several drivers at once. Replies when all have returned."""

    drivers: tuple[Generator[Any, Any, None], ...]


Act = (
    Sleep
    | SetAttributes
    | Now
    | Uniform
    | WaitForHook
    | Resume
    | RunEnded
    | LastWait
    | StepAttempt
    | KillWorker
    | Together
)
StepBody = Callable[..., Generator[Act, Any, Any]]
Driver = Generator[Act, Any, None]


@dataclass(slots=True)
class Pressure:
    """What a driver managed to do to its run; an idle driver means that a clean run proves nothing.

    ``details`` counts what only one scenario knows (``fresh``, ``bursts``, ...).
    """

    resumes_sent: int = 0
    resumes_failed: int = 0
    hook_missing: bool = False
    details: dict[str, int] = field(default_factory=dict)

    def count(self, what: str, by: int = 1) -> None:
        """Count ``by`` more of a detail."""
        self.details[what] = self.details.get(what, 0) + by


#: why a clean run proves nothing, from its value, its input, its log where it was kept, and the pressure; or None
Vacuous = Callable[[Any, Any, EventLog | None, Pressure], str | None]


#: The most that an input may count, and the most branches that a run may have: as many events an engine replays. An
#: input may come from a stranger's log, and whoever judges the log goes through all branches.
MOST_CALLS = 25_000
#: The largest payload that an input may ask for.
MOST_BYTES = 64 << 20
#: a storm without a round or a branch proves nothing, and no driver finds its hook
_AT_LEAST_ONE = frozenset({"rounds", "width", "wakes", "max_cycles", "burst_size", "tasks", "iterations", "nodes"})


@dataclass(frozen=True)
class Workload:
    """One scenario. ``input_type`` is a frozen dataclass whose defaults are the published ones.

    ``check`` returns the first disagreement of a completed run's value with the input, or None; ``ledger_code`` is the
    error code of a run with one. ``stragglers`` is how many of a completed run's races the timer won. ``counts`` gives,
    for a completed run with so many stragglers, the exact number of creates that each step name or event type must
    have; ``roles`` the most that any prefix may hold. ``warnings`` says of an input what would make it prove nothing.

    The rest is for whoever runs attempts:

    * ``at_start(input, now_ms)`` is called once per attempt with the scaled input, just before the run is created, and
      returns the input that the run gets: the place for an absolute time (epoch ms; such a field's name does not end
      in ``_ms``). By default it returns the input as it is.
    * ``in_log(input, log)`` counts the pressure that only the log shows (kills). It belongs into ``Pressure.details``.
    * ``infra(value, input)`` is an error code when a completed run that passed ``check`` says that its environment, not
      the software, failed; else None. The attempt is then ``infra`` with that code.
    * ``vacuous(value, input, log, pressure)`` is why a completed run that passed both proves nothing, or None. ``log``
      is None where it was not kept.
    * ``reads`` are the types of the events whose payloads decide which way the body goes. A log that was kept without
      them cannot be replayed: the body raises ValueError where it needs one. All other bodies go by order alone.
    * ``races`` tells, from a log alone, which draws race and which way the run went (``workloads.races``); None where
      nobody has declared it.
    * ``control`` marks a scenario that is not meant to fail: when it does, its cell's environment is suspect.
    * ``source`` is the file that a user's own workload was loaded from, None for ours. ``bare`` says that there is a
      body and nothing else: it can be replayed, and no result or count can be judged by it.
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
    ledger_code: str = "BAD_LEDGER"
    at_start: Callable[[Any, int], Any] = field(default=lambda input, _now_ms: input)
    in_log: Callable[[Any, EventLog], Mapping[str, int]] = field(default=lambda _input, _log: {})
    infra: Callable[[Any, Any], str | None] = field(default=lambda _value, _input: None)
    vacuous: Vacuous = field(default=lambda _value, _input, _log, _pressure: None)
    reads: frozenset[str] = frozenset()
    races: Races | None = None
    control: bool = False
    source: str | None = None
    bare: bool = False

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
            most = MOST_BYTES if key.endswith("bytes") else MOST_CALLS
            counts = self.source is None and isinstance(default, int) and not key.endswith("_ms")  # time costs nothing
            if counts and value > most:
                raise PlanError(f"input {key!r} of {self.name} is {value}", remedy=f"Give it {most} or less.")
        found = self.input_type(**given)
        calls = math.prod(getattr(found, key, 1) for key in ("rounds", "width")) if self.source is None else 0
        if calls > MOST_CALLS:
            text = f"inputs 'rounds' and 'width' of {self.name} make {calls} branches"
            raise PlanError(text, remedy=f"Let their product be {MOST_CALLS} or less.")
        return found


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
