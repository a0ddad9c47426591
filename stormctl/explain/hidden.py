"""Leave-one-out: the event whose absence explains a create that no prefix does.

A reader can have a view that is no prefix of the log: an event was published late, behind its cursor, or it read pages
that did not fit together. Such a view is a prefix with a hole, and the hole is found by trying: each fact before the
create, newest first, is hidden, and the workflow replayed. A decision is never tried, because a reader that lacks one
asks for it again and is told that it exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stormctl.engine.door import Engine, Pass, Pending, Perturbation
from stormctl.errors import StormctlError
from stormctl.explain.creates import Created
from stormctl.explain.writers import same_call
from stormctl.history import EventLog, digest_value, kinds

#: events that decide which branch a workflow takes
FACTS = frozenset({*kinds.STEP_TERMINAL, kinds.WAIT_COMPLETED, kinds.HOOK_RECEIVED, kinds.HOOK_CONFLICT})
#: how many events are hidden in turn, and how many replays one create may cost
MAX_HIDDEN, MAX_PASSES = 48, 160
#: how often a view is shortened to where its replay diverged
MAX_SHORTER = 3


@dataclass(frozen=True, slots=True)
class View:
    """What a writer can have read: the first ``length`` events without the ``hidden`` ones (0-based indices)."""

    length: int
    hidden: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """What hiding one event at a time came to: the first view that explains the create, None when none did.

    ``tried`` of the ``facts`` before the create were hidden.
    """

    create: Created
    view: View | None
    tried: int
    facts: int


def leave_one_out(
    log: EventLog,
    engine: Engine,
    create: Created,
    *,
    first: Sequence[int] = (),
    inputs: bool = True,
    most: int = MAX_PASSES,
) -> Search:
    """Hide one fact at a time and look whether the workflow then asks for the create.

    ``first`` are indices to try before the others: events that are known to have been published late. ``inputs`` says
    whether recorded inputs can be compared, ``most`` how many replays it may cost.
    """
    facts = [index for index in range(create.index - 1, -1, -1) if log[index].type in FACTS]
    order = list(dict.fromkeys([*(index for index in first if index in set(facts)), *facts]))
    spent = 0
    for tried, index in enumerate(order[:MAX_HIDDEN]):
        length = create.index
        for _ in range(MAX_SHORTER + 1):
            if spent >= most:
                return Search(create, None, tried, len(order))
            (replay,) = engine.passes(log, (length,), hidden=frozenset({index}))
            spent += 1
            if asks_for(replay, create, inputs=inputs):
                return Search(create, View(length, (index,)), tried + 1, len(order))
            lost = replay.divergence
            if lost is None or not index < lost.index < length:
                break
            length = lost.index  # the view ended before what it cannot follow
    return Search(create, None, min(len(order), MAX_HIDDEN), len(order))


def asks_for(replay: Pass, create: Created, *, inputs: bool = True) -> bool:
    """Whether a delivery would create exactly this after the pass (in whatever class)."""
    if replay.divergence is not None:
        return False
    return any(item.create is not None and same(create, item, inputs=inputs) for item in replay.pending)


def same(create: Created, item: Pending, *, inputs: bool = True) -> bool:
    """Whether the create is what was asked for: the id, the name, the token, and the input where it is known."""
    if item.correlation_id != create.correlation_id or not same_call(create, item):
        return False
    return not inputs or create.digest is None or create.digest == digest_value(item.arguments)


#: replays that differ in nothing but how long things took: with an engine that is right none of them differs in its
#: draws
PERTURBATIONS: tuple[tuple[str, Perturbation], ...] = (
    ("each payload takes 1 hop to read", Perturbation(hydration_hops=1)),
    ("each payload takes 8 hops to read", Perturbation(hydration_hops=8)),
    ("each payload takes 20 ms to read", Perturbation(hydration_ms=20.0)),
    *((f"payloads take up to 4 ms to read (seed {seed})", Perturbation(jitter_ms=4, seed=seed)) for seed in (1, 2)),
)


@dataclass(frozen=True, slots=True)
class Shaken:
    """A create that a perturbed replay of the engine asks for where the plain one does not."""

    create: Created
    engine: str
    length: int
    how: str
    warm: bool


def shaken(
    log: EventLog, engine: Engine, create: Created, lengths: Iterable[int], *, inputs: bool = True
) -> Shaken | None:
    """The first perturbation under which a prefix asks for the create. An engine that cannot be perturbed has none."""
    for length in lengths:
        for how, perturbation in _perturbations(length):
            try:
                (replay,) = engine.passes(log, (length,), perturbation=perturbation)
            except StormctlError:
                return None
            if asks_for(replay, create, inputs=inputs):
                return Shaken(create, engine.name, length, how, warm=perturbation.warm > 0)
    return None


def _perturbations(length: int) -> Iterator[tuple[str, Perturbation]]:
    for share in (1, 2, 4):
        warm = length - length // (2 * share)
        slow = Perturbation(warm=warm, hydration_hops=8)
        yield f"results of the first {warm} events lie in the cache of the delivery", slow
    yield from PERTURBATIONS


__all__ = ["FACTS", "Search", "Shaken", "View", "asks_for", "leave_one_out", "same", "shaken"]
