"""The benchmarks measure something that ends."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path

import pytest

from stormctl.readers import open_captures
from stormctl.workloads.registry import workload


def test_the_reference_replay_ends_wherever_the_log_does(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    replay = importlib.import_module("replay")
    (capture,) = open_captures([root / "fixtures" / "logs" / "clean-step-storm.ndjson"])
    code = workload("step-storm")
    input = code.parse_input(capture.run.input)
    log = capture.log
    calls = [asyncio.run(replay.replay_on_asyncio(code.body, input, log[:length])) for length in range(len(log) + 1)]
    assert calls == sorted(calls)
    assert calls[-1] > 10


def test_make_bench_runs_every_benchmark_and_not_what_they_share(root: Path) -> None:
    assert "benchmarks/[a-z]*.py" in (root / "Makefile").read_text()
    for path in (root / "benchmarks").glob("*.py"):
        runs = '__name__ == "__main__"' in path.read_text()
        assert runs != path.name.startswith("_"), path.name
