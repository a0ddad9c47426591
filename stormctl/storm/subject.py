"""The run of one attempt, as a storm deals with it, whatever software it runs on.

A storm creates runs, presses on their hooks, watches them end and keeps their logs. What runs them is a target: our own
runtime on one of our worlds, the real Workflow SDK, anybody's app. A target gives a :class:`Stage`, the stage gives
one :class:`Subject` per attempt, and nothing else of a storm knows which it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from stormctl.history import Capture, EventLog, RunRow
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.events import StormEvent
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import Plan
from stormctl.storm.resume import Lost
from stormctl.sweeps import SweepPlan

#: puts an event of the storm into its stream
Tell = Callable[[StormEvent], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Remains:
    """What an attempt left behind besides its result.

    ``capture`` is its log with whatever evidence the target has; its run row and data are filled in by the storm.
    ``work`` counts what the runtime did for the run, by the names that :class:`~stormctl.storm.attempt.Attempt` has.
    ``payloads`` says that the log is to be kept with what its events carry: whatever replays it later needs that.
    """

    capture: Capture
    work: Mapping[str, int] = field(default_factory=dict)
    payloads: bool = False


class Subject(Protocol):
    """One run under test. A target whose store fails raises StoreFailure from any method, which ends the storm."""

    @property
    def run_id(self) -> str | None:
        """The run's id, so that it can be announced; None as long as the target has not chosen one."""
        ...

    async def begin(self, input: Any) -> None:
        """Create the run with this input and let it go. RuntimeError when the target refuses it."""
        ...

    async def row(self) -> RunRow | None:
        """The run's row; None while it cannot be had."""
        ...

    async def hook(self, token: str) -> str | None:
        """The correlation id of the run's live hook with that token."""
        ...

    async def resume(self, token: str, payload: Any) -> bool:
        """Send a payload to a hook. False when it is gone."""
        ...

    async def last_wait(self) -> int | None:
        """The latest time (epoch ms) that a wait of the run is still to end at."""
        ...

    async def log(self) -> EventLog:
        """The run's log as it is stored now."""
        ...

    async def remains(self, log: EventLog, *, ended: bool, live: bool) -> Remains:
        """What is to be kept of the run whose log was read last. ``live`` says that it was left before its end."""
        ...

    async def cancel(self, reason: str) -> None:
        """End a run that nobody waits for any more, as far as the target can. One that has ended stays as it is."""
        ...


class Stage(Protocol):
    """A target that is ready: its stores are open and its servers answer."""

    @property
    def notes(self) -> Iterable[str]:
        """What a person should know before the first attempt."""
        ...

    async def open(self, cell: Cell) -> None:
        """Get a cell ready, before its first attempt. An error ends the storm."""
        ...

    async def close(self, cell: Cell) -> None:
        """Let go of a cell: no attempt of it will be made any more. May be called for one that was never opened."""
        ...

    def fitted(self, cell: Cell, input: Any) -> Any:
        """The input of a scenario as the cell can play it. Only of an open cell."""
        ...

    def subject(self, cell: Cell, number: int) -> Subject:
        """The run of a new attempt."""
        ...

    def watches(self) -> Iterable[Coroutine[Any, Any, None]]:
        """What must be awaited as long as the storm runs."""
        ...


class Target(Protocol):
    """What a storm drives. ``apart``: its cells are run one after the other, because they would disturb each other."""

    @property
    def apart(self) -> bool: ...

    def sweeps(self, cell: Cell) -> SweepPlan:
        """How the logs of a cell are swept: by which profile, and replayed by which engines."""
        ...

    def account(self, folder: StormFolder, attempts: Sequence[Attempt]) -> Iterable[str]:
        """What else there is to say of a storm when its logs were swept, in sentences."""
        ...

    def stage(
        self, plan: Plan, folder: StormFolder, tell: Tell, lost: Sequence[Lost] = ()
    ) -> AbstractAsyncContextManager[Stage]:
        """Get everything ready for the plan's cells; leaving the context ends it all.

        ``lost`` are attempts of an earlier driver that died: their runs may still be there and are to be ended first.
        """
        ...
