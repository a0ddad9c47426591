"""Writer reconstruction: which prefix of the log each create was derived from, told by replaying them all.

Upstream logs have no writer column. But a create is what a replay of *some* earlier prefix asked for, so the prefixes
that ask for exactly it are those that its writer can have read. One walk over all prefixes answers that for every
create at once. What no prefix explains was written by another engine, from a view that lacked an event, or from no
view of this log at all.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from stormctl.engine.door import Divergence, Engine, Outcome, Pass, Pending
from stormctl.errors import StormctlError
from stormctl.explain.creates import Created, creates_of
from stormctl.explain.ranges import NOTHING, Ranges, RangesBuilder
from stormctl.history import Event, EventLog, Inline, digest_value, kinds
from stormctl.history.tokens import same_token
from stormctl.sweeps.rebinding import Flip, flips
from stormctl.sweeps.witness import clean

Clock = Callable[[], float]
#: After so many prefixes in a row that diverge at one event the rest is taken to do so too: a log is only appended to.
SAME_DIVERGENCES = 24
#: the endings of a pass after which a delivery writes what was asked for
_WRITES = frozenset({Outcome.SUSPENDED, Outcome.COMPLETED, Outcome.FAILED})


class Standing(StrEnum):
    """What the prefixes say of one create.

    ``EXPLAINED``: some earlier prefix asks for exactly it. ``OTHER_CLASS``: one asks for it, and would have written it
    otherwise (alone, or with its start). ``OTHER_INPUT``: one asks for this step with another input. ``UNEXPLAINED``:
    none asks for it. ``UNJUDGED``: not every earlier prefix was replayed, and none of those that were asks for it.
    """

    EXPLAINED = "explained"
    OTHER_CLASS = "other class"
    OTHER_INPUT = "other input"
    UNEXPLAINED = "unexplained"
    UNJUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where one create can have come from. ``prefixes`` are the lengths of the prefixes that ask for it.

    ``alike`` are further ones that ask for the same call in another class: a step that is taken up the moment that it
    was created alone leaves the footprint of one that was created with its start.
    """

    create: Created
    standing: Standing
    prefixes: Ranges
    alike: Ranges = NOTHING

    @property
    def explained(self) -> bool:
        """Whether an earlier prefix asks for this call under this rank (in whatever class)."""
        return self.standing in (Standing.EXPLAINED, Standing.OTHER_CLASS)

    @property
    def freshest(self) -> int | None:
        """The longest prefix that asks for it."""
        return self.prefixes.last

    def staleness(self, log: EventLog) -> int | None:
        """How far behind its own place the writer's view ended at least; None when nothing explains the create."""
        if self.freshest is None or not self.explained:
            return None
        return self.create.place - log.name_of_prefix(self.freshest)


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """What one engine makes of every create of one log.

    ``replayed`` is how many prefixes were replayed (the empty one included) and ``cut`` why questions stayed open. The
    walk also ends, with nothing open, once many prefixes in a row diverged at the same event.
    ``compared`` are the step names whose recorded inputs and replayed arguments can be compared: an input may hang on a
    result that the log does not hold, or be encoded by another library. ``clean_through`` is the
    length of the longest prefix before the first divergence. ``wants[n]`` is what a delivery that had read ``n`` events
    would create.
    """

    engine: str
    origins: tuple[Origin, ...]
    flips: tuple[Flip, ...]
    divergence: Divergence | None
    diverges_at: int | None
    clean_through: int | None
    replayed: int
    compared: frozenset[str | None]
    undelivered: int | None = None
    cut: str | None = None
    wants: tuple[tuple[Pending, ...], ...] = field(default=(), repr=False, compare=False)

    def counted(self) -> tuple[Origin, ...]:
        """The step and wait creates."""
        return tuple(origin for origin in self.origins if origin.create.counts)

    @property
    def explained(self) -> int:
        """How many step and wait creates some prefix explains."""
        return sum(1 for origin in self.counted() if origin.explained)

    @property
    def unexplained(self) -> tuple[Origin, ...]:
        """The step and wait creates that no prefix explains, in log order."""
        wrong = (Standing.UNEXPLAINED, Standing.OTHER_INPUT)
        return tuple(origin for origin in self.counted() if origin.standing in wrong)

    def compares(self, create: Created) -> bool:
        """Whether the recorded input of a create can be compared with what a replay calls it with."""
        return create.name in self.compared

    def origin_at(self, index: int) -> Origin | None:
        """The origin of the create at a 0-based index of the log."""
        return next((origin for origin in self.origins if origin.create.index == index), None)

    def asked(self, length: int) -> tuple[Pending, ...] | None:
        """What the prefix of that length asks for; None where it was not replayed."""
        return self.wants[length] if length < len(self.wants) else None


def reconstruct(
    log: EventLog, engine: Engine, *, seconds: float | None = None, clock: Clock = time.monotonic
) -> Reconstruction:
    """Replay every prefix once and say, for each create, which of them ask for exactly it.

    After ``seconds`` of wall time the walk stops, and creates behind the last prefix stay unjudged. An engine that
    fails ends it too; ``cut`` then says why.
    """
    walk = _Walk(log)
    deadline = None if seconds is None else clock() + seconds
    try:
        for replay in engine.passes(log, range(len(log) + 1)):
            walk.take(replay)
            if walk.lost:
                break
            if deadline is not None and clock() > deadline and replay.prefix < len(log):
                walk.cut = f"the time of {seconds:g} s was up"
                break
    except StormctlError as error:
        walk.cut = f"{error}. {error.remedy}"
    except Exception as error:
        # a stranger's log may hold what the workflow cannot take; the other engines must still answer
        walk.cut = f"the replay failed: {type(error).__name__}: {clean(str(error))}"
    return walk.result(engine.name)


def reconstruct_by_generation(log: EventLog, engines: Iterable[Engine]) -> tuple[Reconstruction, ...]:
    """The reconstruction under each engine; the one that explains most creates comes first, else the order given."""
    return tuple(sorted((reconstruct(log, engine) for engine in engines), key=lambda one: -one.explained))


@dataclass(slots=True)
class _Match:
    """The prefixes that ask for one create: exactly, in another class, with another input."""

    exact: RangesBuilder = field(default_factory=RangesBuilder)
    other_class: RangesBuilder = field(default_factory=RangesBuilder)
    other_input: RangesBuilder = field(default_factory=RangesBuilder)


class _Walk:
    """One walk over the prefixes, in rising order. It keeps what each asks for, never the passes themselves."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._creates = creates_of(log)
        self._by_id: defaultdict[str, list[tuple[Created, _Match]]] = defaultdict(list)
        self._matches = [_Match() for _ in self._creates]
        for create, match in zip(self._creates, self._matches, strict=True):
            self._by_id[create.correlation_id].append((create, match))
        self._previous: Pass | None = None
        self._wants: list[tuple[Pending, ...]] = []
        self._flips: list[Flip] = []
        self._diverged: Pass | None = None
        self._clean_through: int | None = None
        self._same_input: set[str | None] = set()
        self._stopped_at: tuple[int, int] = (-1, 0)  # the event that passes diverge at, and how many in a row did
        self.cut: str | None = None

    @property
    def lost(self) -> bool:
        """Whether the longer prefixes can tell nothing more."""
        return self._stopped_at[1] >= SAME_DIVERGENCES

    def take(self, replay: Pass) -> None:
        """The next pass."""
        at = -1 if replay.divergence is None else replay.divergence.index
        self._stopped_at = (at, self._stopped_at[1] + 1 if at == self._stopped_at[0] else 1) if at >= 0 else (-1, 0)
        before, log = self._previous, self._log
        if replay.divergence is not None and self._diverged is None:
            self._diverged = replay
        if self._diverged is None:
            self._clean_through = replay.prefix
        if before is not None:
            names = log.name_of_prefix(before.prefix), log.name_of_prefix(replay.prefix)
            self._flips += flips(before, replay, names) or ()
        wants = tuple(item for item in replay.pending if item.create) if replay.outcome in _WRITES else ()
        if self._wants and self._wants[-1] == wants:
            wants = self._wants[-1]  # most events change nothing that is asked for
        self._wants.append(wants)
        for item in wants:
            for create, match in self._by_id.get(item.correlation_id, ()):
                if create.index >= replay.prefix:
                    self._compare(create, match, item, replay.prefix)
        self._previous = replay

    def _compare(self, create: Created, match: _Match, item: Pending, length: int) -> None:
        if not same_call(create, item):
            return
        if create.digest is not None:
            if create.digest != digest_value(item.arguments):
                match.other_input.add(length)
                return
            self._same_input.add(create.name)
        (match.exact if create.footprint is item.create else match.other_class).add(length)

    def result(self, engine: str) -> Reconstruction:
        """What the walk came to."""
        replayed = len(self._wants)
        compared = self._compared()
        lost = self._diverged
        return Reconstruction(
            engine=engine,
            origins=tuple(
                self._origin(create, match, replayed, compared=create.name in compared)
                for create, match in zip(self._creates, self._matches, strict=True)
            ),
            flips=tuple(self._flips),
            divergence=None if lost is None else lost.divergence,
            diverges_at=None if lost is None else lost.prefix,
            clean_through=self._clean_through,
            replayed=replayed,
            compared=compared,
            undelivered=None if self._previous is None else self._previous.undelivered,
            cut=self.cut,
            wants=tuple(self._wants),
        )

    def _compared(self) -> frozenset[str | None]:
        """The step names whose inputs can be compared: one of that name agrees somewhere, or any does and the replays
        lacked no value that an input might hang on."""
        if not self._same_input or not all(_holds_value(event) for event in self._log):
            return frozenset(self._same_input)
        return frozenset(create.name for create in self._creates if create.digest is not None)

    def _origin(self, create: Created, match: _Match, replayed: int, *, compared: bool) -> Origin:
        exact, other_class, other_input = match.exact.done(), match.other_class.done(), match.other_input.done()
        if exact:
            return Origin(create, Standing.EXPLAINED, exact, other_class)
        if other_class:
            return Origin(create, Standing.OTHER_CLASS, other_class)
        if other_input:
            return Origin(create, Standing.OTHER_INPUT if compared else Standing.EXPLAINED, other_input)
        judged = replayed > create.index or self.lost
        return Origin(create, Standing.UNEXPLAINED if judged else Standing.UNJUDGED, NOTHING)


def same_call(create: Created, item: Pending) -> bool:
    """Whether kind, name and token agree, as far as the log holds them. Inputs are another question."""
    if create.kind != item.kind:
        return False
    if create.name is not None and create.name not in (item.name, short(item.name)):
        return False
    return create.token is None or item.token is None or same_token(create.token, item.token)


def _holds_value(event: Event) -> bool:
    """Whether a replay is given what the event brought the workflow, if it brought anything."""
    return event.type not in (kinds.STEP_COMPLETED, kinds.HOOK_RECEIVED) or isinstance(event.payload, Inline)


def short(name: str | None) -> str | None:
    """A step name after its last ``//``."""
    return None if name is None else name.rpartition("//")[2]
