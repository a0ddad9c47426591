"""Two engines beside each other: which agree, and what is said where they do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from stormctl.engine.door import Create, Divergence, Engine, Outcome, Pass, Pending, Session
from stormctl.errors import StormctlError
from stormctl.history import Capture, EventLog
from stormctl.readers.open import open_captures
from stormctl.report.conformance_table import conformance_json, conformance_text
from stormctl.sweeps.plan import SweepPlan, own_engine
from stormctl.sweeps.run import scenario_of
from stormctl.targets.sdk.replay.conformance import Agreement, compare, table
from stormctl.testing import LogBuilder, run_serially
from stormctl.workloads.registry import WORKLOADS

FLIPS = Path(__file__).parents[4] / "fixtures" / "storms" / "logs" / "step-storm-flips.ndjson"
STORM = WORKLOADS["step-storm"]
INPUT = STORM.input_type(token="t", rounds=2, width=2)  # type: ignore[call-arg]


class Changed:
    """An engine whose passes are changed on their way out."""

    workload = None

    def __init__(self, engine: Engine, change: Any, name: str = "sdk:real") -> None:
        self.name = name
        self._engine = engine
        self._change = change

    def passes(self, log: EventLog, prefixes: Iterable[int], **how: Any) -> Iterator[Pass]:
        for one in self._engine.passes(log, prefixes, **how):
            yield self._change(one)

    def open(self, log: EventLog) -> Session:
        raise NotImplementedError


def storm() -> LogBuilder:
    return run_serially(STORM, INPUT, late=[2])


def engine(name: str = "rearm") -> Engine:
    return own_engine(name, STORM, INPUT)


def flipping() -> tuple[Capture, Engine, Engine]:
    """A completed storm that two generations replay differently, with both."""
    (capture,) = open_captures([FLIPS])
    assert isinstance(capture, Capture)
    scenario, _ = scenario_of(capture, SweepPlan())
    assert scenario is not None
    nets, dispenser = (own_engine(name, scenario.workload, scenario.input) for name in ("nets", "dispenser"))
    return capture, nets, dispenser


def compared(change: Any, name: str = "rearm") -> Agreement:
    (found,) = compare(storm().capture(), Changed(engine(name), change), [engine()])
    return found


def test_an_engine_agrees_with_itself_on_every_prefix() -> None:
    found = compared(lambda one: one)
    assert found.agreed == found.prefixes == len(storm().events) - 2  # neither its create nor its end
    assert found.first is None


def test_two_generations_that_differ_part_somewhere_and_the_place_is_named() -> None:
    capture, nets, dispenser = flipping()
    (found,) = compare(capture, Changed(nets, lambda one: one), [dispenser])
    assert 0 < found.agreed < found.prefixes
    assert found.first is not None
    assert found.first.prefix == 43
    assert (found.first.real, found.first.ours[:20]) == ("asks for nothing else", "asks for recoverStep")


def test_a_create_that_only_one_asks_for_is_named() -> None:
    more = Pending(99, "step", "step_X", "extra", None, created=False, create=Create.EAGER)
    found = compared(lambda one: replace(one, pending=(*one.pending, more)) if one.prefix == 5 else one)
    assert found.agreed == found.prefixes - 1
    assert found.first is not None
    assert (found.first.prefix, found.first.real) == (5, "asks for extra step_X")
    assert found.first.ours == "asks for nothing else"


def test_another_input_of_one_call_parts_them() -> None:
    def other(one: Pass) -> Pass:
        changed = tuple(replace(item, arguments=["other"]) if item.kind == "step" else item for item in one.pending)
        return replace(one, pending=changed)

    found = compared(other)
    assert found.first is not None
    assert found.first.real.startswith("calls ")


def test_an_input_that_one_engine_does_not_tell_is_not_compared() -> None:
    def blind(one: Pass) -> Pass:
        return replace(one, pending=tuple(replace(item, arguments=None) for item in one.pending))

    assert compared(blind).first is None


def test_another_class_of_create_is_no_difference() -> None:
    def eager(one: Pass) -> Pass:
        changed = (replace(item, create=Create.EAGER) if item.create is Create.LAZY else item for item in one.pending)
        return replace(one, pending=tuple(changed))

    assert compared(eager).first is None


def test_a_divergence_at_another_event_parts_them() -> None:
    lost = Divergence("name", 4, 5, "evnt_x", "step_created", 1, "step:a", "step:b", "text")
    found = compared(lambda one: replace(one, outcome=Outcome.DIVERGED, divergence=lost) if one.prefix == 6 else one)
    assert found.first is not None
    assert found.first.real == "diverges at evnt_x (step:a, where the workflow is at step:b)"


def test_an_engine_that_cannot_replay_the_log_compares_nothing_and_says_why() -> None:
    class Refusing(Changed):
        def passes(self, log: EventLog, prefixes: Iterable[int], **how: Any) -> Iterator[Pass]:
            raise StormctlError("the capture lacks its input", remedy="Capture it again.")
            yield

    (found,) = compare(storm().capture(), Refusing(engine(), None), [engine()])
    assert (found.prefixes, found.why) == (0, "the capture lacks its input. Capture it again.")


class TestTheTable:
    def rows(self) -> list[Agreement]:
        capture, nets, dispenser = flipping()
        return list(compare(capture, Changed(nets, lambda one: one), [dispenser, nets]))

    def test_the_generation_that_agrees_best_comes_first(self) -> None:
        rows = table(self.rows())
        assert [row.generation for row in rows] == ["nets", "dispenser"]
        assert rows[0].share == 1.0
        assert rows[1].share is not None
        assert rows[1].share < 1.0

    def test_it_fits_80_columns_and_never_says_100_for_less(self) -> None:
        text = conformance_text(table(self.rows()), width=80)
        lines = text.splitlines()
        assert max(map(len, lines[:6])) <= 80
        assert sum("100 %" in line for line in lines) == 1
        assert any(line.startswith("dispenser and sdk:real part at prefix ") for line in lines)

    def test_what_was_left_out_is_said_once_a_log(self) -> None:
        one = Agreement("r", "a.json", "4.8.9", "sdk:own", "nets", 0, 0, why="no input")
        text = conformance_text(table([one, replace(one, generation="queue")]))
        assert text.count("left out: a.json: no input") == 1
        assert '"share": null' in conformance_json(table([one]))
