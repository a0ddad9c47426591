"""What tests share instead of replaying it again is what a replay says, and of nothing but the same question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stormctl.engine.door import Pass, Perturbation
from stormctl.engine.engines import engine_for
from stormctl.engine.generations import generation
from stormctl.engine.replay import Body, ReplayEngine
from stormctl.engine.workflow import Workflow
from stormctl.history import EventLog
from stormctl.testing import run_serially
from stormctl.workloads.registry import workload
from tests import replayed
from tests.replayed import Replayed

STORM = workload("step-storm")
LOG = run_serially(STORM, STORM.input_type(rounds=1, width=2)).log()
OTHER = EventLog(list(LOG)[:-1], LOG.run_id)


def small(generation: str = "nets", **given: int) -> ReplayEngine:
    return engine_for(generation, STORM, STORM.parse_input({"rounds": 1, "width": 2, **given}))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The prefixes that were really replayed."""
    found: list[int] = []
    real = replayed._replay

    def spied(engine: ReplayEngine, log: EventLog, lengths: list[int], **how: object) -> Iterator[Pass]:
        found.extend(lengths)
        return real(engine, log, lengths, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(replayed, "_replay", spied)
    return found


def test_every_field_is_that_of_a_replay_also_from_another_process(tmp_path: Path) -> None:
    lengths = [*range(len(LOG) + 1), 3]
    wanted = [whole(one) for one in small().passes(LOG, lengths)]
    for _ in range(2):
        with Replayed(tmp_path).used():
            assert [whole(one) for one in small().passes(LOG, lengths)] == wanted


def whole(one: Pass) -> dict[str, object]:
    told = {name: getattr(one, name) for name in one.__dataclass_fields__}
    told["draws"] = [(draw.rank, draw.kind, draw.name, draw.arguments, draw.id) for draw in one.draws]
    return told


def test_a_prefix_is_replayed_once(tmp_path: Path, asked: list[int]) -> None:
    for lengths in ([1, 2, 3], [2, 3, 4]):
        with Replayed(tmp_path).used():
            list(small().passes(LOG, lengths))
            list(small().passes(LOG, lengths))
    assert asked == [1, 2, 3, 4]


@pytest.mark.parametrize("other", [small("dispenser"), small("nets[ids=call-site]"), small(width=3)])
def test_another_generation_or_input_is_asked_itself(tmp_path: Path, asked: list[int], other: ReplayEngine) -> None:
    with Replayed(tmp_path).used():
        for one in (small(), other):
            list(one.passes(LOG, [5]))
    assert asked == [5, 5]


def test_so_is_a_body_that_shares_its_name_with_others(tmp_path: Path, asked: list[int]) -> None:
    def body_of(name: str) -> Body:
        async def body(wf: Workflow, _input: None) -> None:
            await wf.step(name)

        return body

    with Replayed(tmp_path).used():
        for name in ("one", "other"):
            (found,) = ReplayEngine(body_of(name), None, generation("nets"), workload="w").passes(LOG, [2])
            assert found.draws[0].name == name
    assert asked == [2, 2]


def test_so_is_another_log_and_what_is_hidden_or_perturbed(tmp_path: Path, asked: list[int]) -> None:
    with Replayed(tmp_path).used():
        list(small().passes(LOG, [5]))
        list(small().passes(OTHER, [5]))
        for _ in range(2):
            list(small().passes(LOG, [5], hidden=frozenset({2})))
            list(small().passes(LOG, [5], perturbation=Perturbation(hydration_hops=7)))
    assert asked == [5] * 6
