"""What a test of a workflow asserts: it follows a log, and an id means the same thing to every reader of it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from stormctl.engine.door import Pass
from stormctl.history import EventLog
from stormctl.sweeps.perturbation import difference
from stormctl.sweeps.rebinding import flips
from stormctl.sweeps.ways import ways, words
from stormctl.sweeps.witness import line
from stormctl.testing.replaying import TODAY, Log, Replayed, judged, log_of, replay_prefixes, workload_of


class BindingFailure(AssertionError):
    """A rank that means two things: to two readers of one log, or to two replays of one prefix.

    ``rank`` is the ordinal of the id (None where only the outcome differs), ``was`` and ``now`` the two meanings.
    ``before`` and ``after`` name the prefixes, which are the same where a perturbation makes the difference.
    """

    def __init__(self, message: str, *, rank: int | None, was: str, now: str, before: int, after: int) -> None:
        super().__init__(message)
        self.rank = rank
        self.was = was
        self.now = now
        self.before = before
        self.after = after


def assert_replays(body: Replayed, log: Log, *, input: Any = None, generation: str = TODAY) -> Pass:
    """Assert that the body follows the log to its end, and return the pass. ReplayFailure says where it does not.

        def test_todays_code_still_follows_the_order_of_last_week():
            assert_replays(order, capture, generation="nets")

    A run that failed may raise; one that returned must return; one that is open may wait.
    """
    result = judged(body, log, input=input, generation=generation)
    if result.failure is not None:
        raise result.failure
    assert result.replay is not None
    return result.replay


def assert_binds_stably(
    body: Replayed, log: Log, *, input: Any = None, generation: str = TODAY, perturbations: int = 10, seed: int = 0
) -> None:
    """Assert that every id of the run means one thing, whoever reads the log and however long reading takes.

    Every prefix is replayed, as deliveries do that have read so far, and no rank may change its meaning from one to the
    next. Then every prefix is replayed ``perturbations`` ways, seeded by ``seed`` (other costs of reading a payload, a
    warm cache, coarser timers), and must give what it gave before. BindingFailure names the rank and both meanings.

        def test_payment_and_timeout_do_not_swap_ids():
            assert_binds_stably(order, raced(), generation="turnstile")
    """
    name, whole = workload_of(body).name, log_of(log)
    calm = replay_prefixes(body, log, input=input, generation=generation)
    for before, after in pairwise(calm):
        _no_flip(name, generation, whole, before, after)
    for way in ways(perturbations, seed, len(whole)):
        perturbed = replay_prefixes(body, log, input=input, generation=generation, perturbation=way)
        for one, other in zip(calm, perturbed, strict=True):
            unlike = difference(whole, one, other)
            if unlike is None:
                continue
            prefix = whole.name_of_prefix(one.prefix)
            what = "the pass" if unlike.rank is None else f"rank {unlike.rank}"
            raise BindingFailure(
                f"{name} does not bind stably under {generation}, replayed from prefix {prefix}\n"
                f"  {what} is {unlike.calm}\n"
                f"  and with {words(way)} it is {unlike.other}",
                rank=unlike.rank, was=unlike.calm, now=unlike.other, before=prefix, after=prefix,
            )  # fmt: skip


def _no_flip(name: str, generation: str, log: EventLog, before: Pass, after: Pass) -> None:
    names = log.name_of_prefix(before.prefix), log.name_of_prefix(after.prefix)
    for flip in flips(before, after, names) or ():
        raise BindingFailure(
            f"{name} does not bind stably under {generation}\n"
            f"  rank {flip.rank} is {flip.was} for who has read up to {flip.before}\n"
            f"  and {flip.now} from {flip.after} on, which adds {line(log, after.prefix - 1)}",
            rank=flip.rank, was=flip.was, now=flip.now, before=flip.before, after=flip.after,
        )  # fmt: skip
