"""The production log of vercel/workflow #3543: the numbers that the engine is accepted by.

Upstream states the same: under the old nets one extension of the log, by event 611's successor, gives ordinal 198 to
another step; under the dispenser none does, and the log still cannot be read to its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from stormctl.engine.door import CALM, Divergence, Outcome, Pass, Perturbation
from stormctl.engine.engines import engine_for
from stormctl.engine.replay import ReplayEngine
from stormctl.history import Capture, EventLog
from stormctl.readers.open import open_file
from stormctl.workloads.registry import workload

NAME = "wrun-41KZYJ92TP-storm-log.json"
FLIP = [(611, 612, 198, "step:finalizeStep", "step:releaseStep")]
ORDERED = ("dispenser", "turnstile", "rearm", "registered")
#: where something happens, and the lengths around the ends
KEY = (3, 600, 605, *range(608, 615), 619, *range(628, 636), 645, 652, 653, 654)


@pytest.fixture(scope="module")
def log(shared_data: Path) -> EventLog:
    path = shared_data / NAME
    if not path.is_file():
        pytest.skip(f"{NAME} is not beside this clone")
    (capture,) = open_file(path)
    assert isinstance(capture, Capture)
    return capture.log


def storm(generation: str) -> ReplayEngine:
    code = workload("step-storm")
    return engine_for(generation, code, code.parse_input({}))


def swept(
    generation: str, log: EventLog, names: Iterable[int], perturbation: Perturbation = CALM
) -> tuple[list[tuple[int, int, int, str, str]], int, tuple[int, Divergence] | None]:
    """Flips, the longest prefix before the first divergence, and the first divergence with its prefix."""
    flips, clean, first = [], 0, None
    previous: Pass | None = None
    lengths = [log.length_of_prefix(name) for name in names]
    for one in storm(generation).passes(log, lengths, perturbation=perturbation):
        name = log.name_of_prefix(one.prefix)
        if one.divergence is not None:
            first = first or (name, one.divergence)
        elif first is None:
            clean = name
        if previous is not None:
            flips += [
                (log.name_of_prefix(previous.prefix), name, was.rank, was.label, now.label)
                for was, now in zip(previous.draws, one.draws, strict=False)
                if was.label != now.label
            ]
        previous = one
    return flips, clean, first


def test_the_log_is_the_one_that_was_published(log):
    assert len(log) == 652
    assert (log.name_of_prefix(1), log.name_of_prefix(652)) == (3, 654)
    creates = [event.short_name for event in log if event.type == "step_created"]
    assert {name: creates.count(name) for name in set(creates)} == {
        "settleStep": 40,
        "finalizeStep": 41,
        "releaseStep": 38,
        "recoverStep": 20,
        "reconcileStep": 21,
    }


@pytest.mark.parametrize("hops", [1, 3, 8])
def test_nets_flip_once_and_diverge_at_630_whatever_reading_costs(log, hops):
    flips, clean, first = swept("nets", log, KEY, Perturbation(hydration_hops=hops))
    assert flips == FLIP
    assert clean == 629
    assert first is not None
    prefix, found = first
    assert (prefix, found.position, found.rank, found.reason) == (630, 630, 198, "name")
    assert (found.expected, found.actual) == ("step:finalizeStep", "step:releaseStep")


@pytest.mark.parametrize("hops", [1, 3, 8])
@pytest.mark.parametrize("generation", ORDERED)
def test_the_dispenser_and_later_never_flip_and_diverge_one_event_later(log, generation, hops):
    flips, clean, first = swept(generation, log, KEY, Perturbation(hydration_hops=hops))
    assert flips == []
    assert clean == 630
    assert first is not None
    prefix, found = first
    assert (prefix, found.position, found.rank, found.reason) == (631, 631, 199, "name")
    assert (found.expected, found.actual) == ("step:finalizeStep", "step:releaseStep")


def test_every_prefix_under_nets_flips_once_in_all(log, replayed_once):
    with replayed_once():
        flips, clean, first = swept("nets", log, range(3, 655))
    assert (flips, clean, first and first[0]) == (FLIP, 629, 630)


def test_a_divergence_does_not_go_away_as_the_log_grows(log):
    for generation in ("nets", "dispenser"):
        found = {
            (one.divergence.position, one.divergence.text) if one.divergence else None
            for one in storm(generation).passes(log, range(log.length_of_prefix(631), len(log) + 1))
        }
        assert len(found) == 1
        assert None not in found


def test_the_second_writer_wanted_what_the_log_shows_it_wrote(log):
    """From 610 the pass wants 191, 193, 197 and, eagerly, 198 = finalize: the create at 630."""
    (one,) = storm("nets").passes(log, [log.length_of_prefix(610)])
    assert one.outcome is Outcome.SUSPENDED
    wanted = [(item.rank, item.name, item.create.value) for item in one.pending if item.create]
    assert wanted == [
        (191, "finalizeStep", "lazy"),
        (193, "finalizeStep", "lazy"),
        (197, "releaseStep", "lazy"),
        (198, "finalizeStep", "eager"),
    ]


def test_the_dispenser_binds_alike_however_long_reading_takes(log):
    lengths = [log.length_of_prefix(name) for name in (300, 450, 610, 612, 630)]
    calm = [one.draws for one in storm("dispenser").passes(log, lengths)]
    for seed in range(3):
        slow = Perturbation(hydration_hops=seed, hydration_ms=1.0, jitter_ms=4, seed=seed)
        assert [one.draws for one in storm("dispenser").passes(log, lengths, perturbation=slow)] == calm
