"""A sweep over every prefix says the same whether the engine shares one walk or replays each prefix by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from stormctl.engine import children
from stormctl.engine import replay as replaying
from stormctl.engine.door import Engine, Pass
from stormctl.history import Capture, EventLog
from stormctl.readers import Unreadable, open_captures
from stormctl.sweeps import SweepPlan, sweep_paths
from stormctl.sweeps.plan import own_engine
from stormctl.sweeps.rebinding import Rebinding, rebinding
from stormctl.workloads.registry import WORKLOADS


class OneByOne:
    """An engine that replays every prefix by itself."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name = engine.name
        self.workload = engine.workload

    def passes(self, log: EventLog, prefixes: Iterable[int], **how: Any) -> Iterator[Pass]:
        for length in prefixes:
            yield from self._engine.passes(log, [length], **how)

    def open(self, log: EventLog) -> Any:
        return self._engine.open(log)


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A process is forked for every prefix, however short; the list has an entry for each."""
    made: list[int] = []
    fork = children.fork

    def counted(*arguments: Any) -> children.Child | None:
        made.append(1)
        return fork(*arguments)

    monkeypatch.setattr(children, "fork", counted)
    monkeypatch.setattr(replaying, "SHORT", 0)
    return made


def both(capture: Capture, generation: str, first: int = 1) -> tuple[Rebinding, Rebinding]:
    name = (capture.run.workload if capture.run else None) or "step-storm"
    code = WORKLOADS[name]
    input = code.parse_input(capture.run.input if capture.run else {})
    lengths = range(first, len(capture.log) + 1)
    engine = own_engine(generation, code, input)
    return rebinding(capture.log, engine, lengths), rebinding(capture.log, OneByOne(engine), lengths)


def captures(root: Path) -> Iterator[Capture]:
    for item in open_captures([root / "fixtures" / "logs"]):
        if not isinstance(item, Unreadable) and (item.run is None or item.run.workload in (None, *WORKLOADS)):
            yield item


@pytest.mark.parametrize(("generation", "first"), [("nets", 0), ("dispenser", 1), ("dispenser[ids=per-kind]", 0)])
def test_on_every_fixture(root: Path, generation: str, first: int, forked: list[int]) -> None:
    for capture in islice(captures(root), first, None, 2):  # half of them each: a fork costs more in a test's process
        shared, single = both(capture, generation)
        assert shared == single, capture.source
    assert forked


@pytest.mark.parametrize("generation", ["nets", "dispenser"])
def test_around_the_flip_of_the_production_log(shared_data: Path, generation: str, forked: list[int]) -> None:
    (capture,) = open_captures([shared_data / "wrun-41KZYJ92TP-storm-log.json"])
    assert isinstance(capture, Capture)
    shared, single = both(capture, generation, first=capture.log.length_of_prefix(560))
    assert shared == single
    assert len(shared.flips) == (1 if generation == "nets" else 0)
    assert forked


def test_a_file_alone_is_swept_with_all_processes(root: Path, forked: list[int]) -> None:
    path = root / "fixtures" / "logs" / "3543-finalized-twice.ndjson"
    plan = SweepPlan(engines=("nets",))
    (alone,) = sweep_paths([path], plan, processes=1)
    (shared,) = sweep_paths([path], plan, processes=4)
    assert shared == alone
    assert forked
