"""Sweeping over a Dask cluster: the reports of this process, in the same order, and one sentence where it fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stormctl.errors import StormctlError, UsageError
from stormctl.readers import write_capture
from stormctl.sweeps import LogReport, SweepPlan, sweep_paths
from stormctl.sweeps import dask as on_dask
from stormctl.sweeps.dask import Dask
from stormctl.testing import LogBuilder

pytestmark = pytest.mark.storm


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers of this machine, on the loopback alone."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None, silence_logs=50
        ) as made:
            yield made


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for number in range(12):
        built = LogBuilder(f"wrun_{number:02}").run_created("step-storm").run_started().step(0, "a")
        write_capture((built.without(3) if number % 3 == 0 else built).capture(), tmp_path)
    (tmp_path / "logs" / "wrun_05.ndjson").write_text("{")
    return tmp_path


@pytest.mark.filterwarnings("ignore")
def test_the_reports_are_those_of_this_process(
    cluster: Any, logs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = SweepPlan(profile="auto", engines=("nets",))
    for paths in ([logs], [Path("logs")], [logs / "logs" / "wrun_03.ndjson", "no-such-file", logs]):
        here = list(sweep_paths(paths, plan))
        assert list(sweep_paths(paths, plan, spread=Dask(cluster.scheduler_address))) == here
        assert {type(one) for one in here} >= {LogReport}


@pytest.mark.filterwarnings("ignore")
def test_few_files_are_ahead(cluster: Any, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    real = Dask._submit

    def submit(self: Dask, client: Any, file: Path, plan: SweepPlan) -> Any:
        sent.append(file.name)
        return real(self, client, file, plan)

    monkeypatch.setattr(Dask, "_submit", submit)
    monkeypatch.setattr(on_dask, "AHEAD", 2)
    reports = sweep_paths([logs], SweepPlan(), spread=Dask(cluster.scheduler_address))
    next(reports)
    assert len(sent) == 4
    reports.close()  # type: ignore[attr-defined]
    assert len(sent) == 4


@pytest.mark.filterwarnings("ignore")
def test_workers_of_another_stormctl_are_refused(cluster: Any, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_dask, "__version__", "99.0")
    with pytest.raises(UsageError, match="run stormctl") as refused:
        list(sweep_paths([logs], SweepPlan(), spread=Dask(cluster.scheduler_address)))
    assert "99.0" in refused.value.remedy


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "not an address", "\x1b[2J"])
def test_where_no_scheduler_answers_that_is_said(logs: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    monkeypatch.setattr(on_dask, "CONNECT_S", 1)
    with pytest.raises(UsageError, match="no Dask scheduler answers") as refused:
        list(sweep_paths([logs], SweepPlan(), spread=Dask(address)))
    assert "\x1b" not in str(refused.value)


def test_without_the_extra_the_remedy_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(StormctlError) as refused:
        Dask("tcp://127.0.0.1:9")
    assert refused.value.remedy == "Install stormctl[dask], or leave --dask out."
