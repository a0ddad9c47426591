"""How far commits lag behind the minting of ids, and what was overtaken meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.history import COMMIT_CLOCK, COMMIT_TIMES, Capture, Event, EventLog, Evidence, ids
from stormctl.readers.ndjson import NdjsonReader
from stormctl.report.lag import run_lag, storm_lag, thinned
from stormctl.report.lag_picture import lag_figure
from stormctl.report.load import load_artefact
from stormctl.sweeps import SweepPlan, Verdict
from stormctl.sweeps.run import sweep_log
from tests.report.synthetic import build
from tests.report.test_timeline import capture_of
from tests.report.with_logs import RUNS, build_with_logs


def test_an_overtaken_event_could_be_missed_from_the_first_later_commit_to_its_own() -> None:
    found = run_lag(capture_of([10, 40, 20, 30]))
    assert found is not None
    assert found.overtaken == (20,)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30))
def test_overtaken_events_are_those_behind_a_later_one_that_was_committed_sooner(published: list[int]) -> None:
    found = run_lag(capture_of(list(published)))
    assert found is not None
    wanted = [at - min(published[i + 1 :]) for i, at in enumerate(published[:-1]) if min(published[i + 1 :]) < at]
    assert list(found.overtaken) == wanted


def test_the_sweep_of_the_commit_order_finds_something_where_this_does(root: Path) -> None:
    capture = next(NdjsonReader().read(root / "fixtures/storms/logs/hook-storm-corrupted.ndjson"))
    found = run_lag(capture)
    assert found is not None
    assert found.overtaken
    (judged,) = [one for one in sweep_log(capture, SweepPlan()).sweeps if one.sweep == "commit-order"]
    assert judged.verdict is Verdict.VIOLATED
    assert set(found.lags) >= {"step_created", "hook_received"}
    assert all(value >= 0 for values in found.lags.values() for value in values)


def test_where_a_server_keeps_commit_times_the_mint_is_read_from_the_id() -> None:
    minted = 1_790_000_000_000
    event_id = "evnt_" + ids.compose(minted, 7)
    log = EventLog([Event(type="step_created", run_id="wrun_x", event_id=event_id)], "wrun_x")
    times = {COMMIT_CLOCK: "server", COMMIT_TIMES: {event_id: (minted + 31) * 1000}}
    found = run_lag(Capture("made-up", log, Evidence("made-up"), data=times))
    assert found is not None
    assert found.lags == {"step_created": [31.0]}


def test_without_commit_times_there_is_nothing_to_tell() -> None:
    log = EventLog([Event(type="step_created", run_id="wrun_x", event_id="e")], "wrun_x")
    assert run_lag(Capture("made-up", log, Evidence("made-up"))) is None


def test_a_storm_is_counted_arm_by_arm_and_says_how_many_logs_it_read(tmp_path: Path, root: Path) -> None:
    artefact = load_artefact(build_with_logs(tmp_path / "storm", root))
    found = storm_lag(artefact)
    assert found.read == len(RUNS)
    old, new = (found.arms[arm] for arm in artefact.arms)
    assert (old.runs, old.hit, new.runs) == (len(RUNS), len(RUNS), 0)
    assert found.overtaken == len(old.overtaken) > 0
    made = lag_figure(found)
    assert made.get_suptitle().splitlines()[1] == f"{len(RUNS)} of 31 logs"
    assert "no commit times" in [text.get_text() for text in made.axes[1].texts]


def test_logs_are_taken_of_every_cell_alike(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        "stormctl.report.lag.captures", lambda _, attempts: asked.extend(a.cell.label for a in attempts) or ()
    )
    storm_lag(load_artefact(build(tmp_path / "storm")), most=8)
    assert len(asked) == 8
    assert len(set(asked)) == 4


def test_a_run_id_that_is_a_path_leads_nowhere(tmp_path: Path, root: Path) -> None:
    folder = build_with_logs(tmp_path / "storm", root)
    text = (folder / "attempts.ndjson").read_text().replace(RUNS[0], f"../logs/{RUNS[0]}")
    (folder / "attempts.ndjson").write_text(text)
    assert storm_lag(load_artefact(folder)).read == len(RUNS) - 1


@given(st.lists(st.floats(0, 1e6, allow_nan=False), max_size=60), st.integers(2, 20))
def test_thinned_values_keep_both_ends(values: list[float], most: int) -> None:
    found = thinned(values, most)
    assert len(found) == min(most, len(values))
    if values:
        assert (found[0], found[-1]) == (min(values), max(values))
