"""The real corrupted log of vercel/workflow #3543: clean under every structural sweep, and yet corrupted."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormctl.history import Capture
from stormctl.readers import open_captures
from stormctl.sweeps import LogReport, PrefixRange, SweepPlan, Verdict, sweep_log
from tests.replayed import Once


def swept(shared_data: Path, replayed_once: Once, *engines: str) -> LogReport:
    (capture,) = open_captures([shared_data / "wrun-41KZYJ92TP-storm-log.json"])
    assert isinstance(capture, Capture)
    with replayed_once():
        return sweep_log(capture, SweepPlan(workload="step-storm", engines=engines, prefixes=PrefixRange(540, None)))


def test_only_the_role_counts_see_the_fault(shared_data: Path, replayed_once: Once) -> None:
    report = swept(shared_data, replayed_once)
    results = {result.sweep: result for result in report.sweeps}
    assert report.verdict is Verdict.VIOLATED
    assert report.fatal_by_sweep() == {"roles": 1}
    assert results["dense"].missing == (1, 2, 655)
    assert {name for name, result in results.items() if result.verdict is Verdict.CLEAN} == {
        "attributes",
        "cap",
        "dense",
        "hook-conflicts",
        "lifecycle",
        "one-body",
        "ranks",
        "spec",
    }
    assert results["id-order"].missing == ("event ids",)
    (finding,) = results["roles"].findings
    assert finding.positions == (631,)
    assert finding.witness == (
        "630 step_created rank 198 step:finalizeStep",
        "631 step_created rank 199 step:finalizeStep",
    )


@pytest.mark.parametrize(
    ("engine", "flips", "clean_through", "rank"),
    [("nets", [(611, 612, 198, "step:finalizeStep", "step:releaseStep")], 629, 198), ("dispenser", [], 630, 199)],
)
def test_each_generation_gives_the_published_numbers(
    shared_data: Path,
    replayed_once: Once,
    engine: str,
    flips: list[tuple[object, ...]],
    clean_through: int,
    rank: int,
) -> None:
    (found,) = swept(shared_data, replayed_once, engine).rebinding
    assert found.prefixes == 115, "tests of the command and of the engine replay all 652"
    assert [(flip.before, flip.after, flip.rank, flip.was, flip.now) for flip in found.flips] == flips
    assert found.clean_through == clean_through
    lost = found.divergence
    assert lost is not None
    assert (lost.prefix, lost.position, lost.rank) == (clean_through + 1, clean_through + 1, rank)
    assert (lost.expected, lost.actual) == ("step:finalizeStep", "step:releaseStep")
