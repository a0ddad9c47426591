"""The state of one replay: what was drawn, what is pending, what is being read, and how the pass ended."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from stormctl.engine.barriers import Barriers
from stormctl.engine.door import WARM_HOPS, Divergence, Perturbation
from stormctl.engine.identity import IDENTITIES, Bodies, Identity
from stormctl.engine.loop import Loop
from stormctl.engine.prepared import Prepared
from stormctl.engine.promise import FULFILLED, REJECTED, Promise, Task, start
from stormctl.engine.retirement import RETIRING, when_idle
from stormctl.engine.strategies import Capture, Claim, Clock, Generation, Idle, Yields
from stormctl.history.kinds import STEP_TERMINAL


class Consumer(Protocol):
    """Claims the events of one entity. ``suspends`` says whether user code waits for it when the log has ended."""

    item: Item
    suspends: bool

    def offer(self, event: Prepared, index: int) -> bool:
        """Whether the event is its to consume."""
        ...


class Item:
    """Something drawn that has not settled: an entry of the invocations queue, in draw order."""

    __slots__ = (
        "arguments",
        "attempts",
        "awaited",
        "correlation_id",
        "created",
        "disposed",
        "kind",
        "name",
        "owner",
        "rank",
        "resume_at",
        "retry_at",
        "started_at",
        "token",
    )

    def __init__(self, rank: int, kind: str, correlation_id: str, name: str | None, arguments: Any) -> None:
        self.rank = rank
        self.kind = kind
        self.correlation_id = correlation_id
        self.name = name
        self.arguments = arguments
        self.created = False
        self.disposed = False
        self.token: str | None = None
        self.resume_at: int | None = None
        self.owner: str | None = None
        self.attempts = 0
        self.retry_at: int | None = None
        self.started_at: int | None = None
        #: a hook whose registration the workflow waits for
        self.awaited = False


class Unreadable(Exception):
    """A payload that cannot be read; the message says why."""


class _Reading:
    """One payload being read: some hops, perhaps some time, and then its turn of the promise queue is over."""

    __slots__ = ("_context", "_delay", "_hops", "_then", "_turn")

    def __init__(self, context: Context, turn: Promise, then: Callable[[], object], hops: int, delay: float) -> None:
        self._context = context
        self._turn = turn
        self._then = then
        self._hops = hops
        self._delay = delay

    def begin(self, state: int, value: object) -> None:
        """The turn has come; the turns behind a rejected one never do."""
        if state == REJECTED:
            self._turn.settle(state, value)
        else:
            self._go_on(state, value)

    def _go_on(self, _state: object, _value: object) -> None:
        if self._hops > 0:
            self._hops -= 1
            self._context.loop.micros.append((self._go_on, None, None))
        elif self._delay > 0:
            self._context.loop.timer(self._delay, self._read)
        else:
            self._read()

    def _read(self) -> None:
        error = self._then()
        # the slot is an async function: its promise settles, and the queue's follows one hop later
        state, value = (REJECTED, error) if isinstance(error, Exception) else (FULFILLED, None)
        self._context.loop.micros.append((self._turn.settle, state, value))


class Context:
    """One replay in progress."""

    def __init__(
        self, generation: Generation, run_id: str, bodies: Bodies, started_at: int, perturbation: Perturbation
    ) -> None:
        from stormctl.engine.walk import Walk  # the walk and its context know each other

        self.loop = Loop(perturbation.timer_ms)
        self.generation = generation
        self.run_id = run_id
        self.identity: Identity = IDENTITIES[generation.ids](bodies, run_id)
        self.clock = started_at
        #: whether the workflow asked for the time
        self.clock_read = False
        self.perturbation = perturbation
        #: how many payloads are being read (upstream's pendingDeliveries)
        self.reading = 0
        self.queue = Promise(self.loop)
        self.queue.settle(FULFILLED, None)
        self.items: dict[str, Item] = {}
        self.draws: list[tuple[str, str | None, Any, str]] = []
        self.consumers: dict[str, Consumer] = {}
        self.tasks: set[Task] = set()
        # what every delivery asks of the generation, looked up once
        self.captures_early = generation.capture is Capture.CONSUMED
        self.rearms = generation.claim is Claim.REARM
        self.until_quiet = generation.yields is Yields.QUIET
        self.clock_by_delivery = generation.clock is Clock.DELIVERED
        self.barriers = Barriers(self, RETIRING[generation.retires])
        self.walk = Walk(self)
        #: what the body returns or raises, once it has been called
        self.main: Promise | None = None
        self.suspended = False
        self.divergence: Divergence | None = None
        self._suspensions = 0
        self._idle = generation.idle
        self._noise = perturbation.seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019
        self._varies = bool(perturbation.jitter_ms or perturbation.jitter_hops or perturbation.warm)

    # -- draws ---------------------------------------------------------------------------------------------------

    def draw(self, kind: str, name: str | None, arguments: Any) -> Item:
        """Take the next id of the run for something that the workflow asks for."""
        rank = len(self.draws)
        drawn = self.identity.draw(kind, name, arguments)
        self.draws.append((kind, name, arguments, drawn))
        item = Item(rank, kind, drawn, name, arguments)
        self.items[drawn] = item
        return item

    def subscribe(self, consumer: Consumer) -> None:
        """Offer the log to a new consumer at the next tick, after every branch woken together has subscribed too."""
        self.consumers[consumer.item.correlation_id] = consumer
        self.walk.subscribed()

    # -- reading -------------------------------------------------------------------------------------------------

    def hydrate(self, index: int, event: Prepared | None, then: Callable[[], object]) -> None:
        """Read a payload in its turn of the promise queue, and call ``then`` as it has been read.

        What ``then`` returns is ignored, unless it is an exception: that rejects the promise queue.
        """
        turn = Promise(self.loop)
        before = self.queue
        self.queue = turn
        perturbation = self.perturbation
        hops, delay = perturbation.hydration_hops, perturbation.hydration_ms
        if self._varies:
            hops, delay = self._cost(index, event)
        before.react(_Reading(self, turn, then, hops, delay).begin)

    def _cost(self, index: int, event: Prepared | None) -> tuple[int, float]:
        """What reading the payload of the event at ``index`` costs: hops, and ms of virtual time."""
        perturbation = self.perturbation
        if event is not None and index < perturbation.warm and event.type in STEP_TERMINAL:
            return WARM_HOPS, 0.0
        mixed = (self._noise ^ (index + 1) * 0xBF58476D1CE4E5B9) * 0x94D049BB133111EB & (1 << 64) - 1
        hops = perturbation.hydration_hops + (mixed >> 7 & 0xFFFF) % (perturbation.jitter_hops + 1)
        return hops, perturbation.hydration_ms + (mixed >> 33) % (perturbation.jitter_ms + 1)

    def idle(self) -> bool:
        """Whether nothing is on its way to user code, by this generation's idea of it."""
        if self.reading:
            return False
        if self._idle is Idle.REGISTRY:
            return not self.barriers.live
        if self._idle is Idle.PARKED:
            return not self.barriers.lingering and not self.barriers.any_resolves_on_its_own()
        return True

    # -- endings -------------------------------------------------------------------------------------------------

    def begin(self, body: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Call the body; the pass ends when it does."""
        try:
            self.main = start(self.loop, body(), self.tasks)
        except Exception as error:  # what cannot be called, or is no async function, has failed like one that raises
            self.main = Promise(self.loop)
            self.main.reject(error)
        self.main.react(self._returned)

    def resume(self) -> None:
        """Take up a suspended pass again. Suspensions that were wanted before do not count any more."""
        if self.suspended:
            self.suspended = False
            self.loop.stopped = False
            self._suspensions += 1

    def suspend_when_idle(self) -> None:
        """The log has ended and user code waits: suspend at the first idle turn."""
        wanted = self._suspensions
        when_idle(self, self._suspend, lambda: wanted == self._suspensions and self._undecided())

    def diverge(self, divergence: Divergence) -> None:
        """End the pass with a divergence, unless it has ended."""
        if self._undecided():
            self.divergence = divergence
            self.loop.stop()

    def _returned(self, _state: int, _value: object) -> None:
        self.loop.stop()

    def _suspend(self) -> None:
        self.suspended = True
        self.loop.stop()

    def _undecided(self) -> bool:
        return not self.loop.stopped and (self.main is None or not self.main.state)

    def diverge_in_turn(self, divergence: Divergence) -> None:
        """The same, in its turn of the promise queue: results read before it are delivered first."""
        self.queue.react(lambda _state, _value: self.diverge(divergence))
