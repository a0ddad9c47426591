"""A sweep spares replays that bind nothing new; what it says must be what replaying every prefix says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stormctl.engine.door import Engine
from stormctl.history import Capture
from stormctl.readers import Unreadable, open_captures
from stormctl.sweeps.plan import own_engine
from stormctl.sweeps.rebinding import Rebinding, rebinding
from stormctl.workloads.registry import WORKLOADS


class Patient:
    """An engine that spares nothing, and counts."""

    def __init__(self, engine: Engine, *, spares: bool) -> None:
        self._engine = engine
        self._spares = spares
        self.name = engine.name
        self.workload = engine.workload
        self.passes_made = 0

    def passes(self, *arguments, **options):  # type: ignore[no-untyped-def]
        for one in self._engine.passes(*arguments, **options):
            self.passes_made += 1
            yield one

    def open(self, log):  # type: ignore[no-untyped-def]
        return self._engine.open(log)

    def binds_nothing_new(self, before, event) -> bool:  # type: ignore[no-untyped-def]
        return self._spares and self._engine.binds_nothing_new(before, event)


def both(capture: Capture, generation: str, first: int = 1) -> tuple[Rebinding, Rebinding, int, int]:
    name = (capture.run.workload if capture.run else None) or "step-storm"
    code = WORKLOADS[name]
    input = code.parse_input(capture.run.input if capture.run else {})
    lengths = range(first, len(capture.log) + 1)
    spared = Patient(own_engine(generation, code, input), spares=True)
    patient = Patient(own_engine(generation, code, input), spares=False)
    found = rebinding(capture.log, spared, lengths), rebinding(capture.log, patient, lengths)
    return *found, spared.passes_made, patient.passes_made


def captures(root: Path) -> Iterator[Capture]:
    for item in open_captures([root / "fixtures" / "logs"]):
        if not isinstance(item, Unreadable) and (item.run is None or item.run.workload in (None, *WORKLOADS)):
            yield item


@pytest.mark.parametrize("generation", ["nets", "dispenser"])
def test_on_every_fixture_the_spared_sweep_says_what_the_whole_one_says(root: Path, generation: str) -> None:
    spared = whole = 0
    for capture in captures(root):
        quick, slow, few, many = both(capture, generation)
        assert quick == slow, capture.source
        spared += few
        whole += many
    assert spared < whole


@pytest.mark.parametrize("generation", ["nets", "dispenser"])
def test_around_the_flip_of_the_production_log_too(shared_data: Path, generation: str) -> None:
    (capture,) = open_captures([shared_data / "wrun-41KZYJ92TP-storm-log.json"])
    assert isinstance(capture, Capture)
    quick, slow, few, many = both(capture, generation, first=capture.log.length_of_prefix(560))
    assert quick == slow
    assert few < many
    assert len(quick.flips) == (1 if generation == "nets" else 0)
