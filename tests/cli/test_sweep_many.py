"""Many logs: the same answers however they are shared out and printed, in little memory, harmless in each format."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from stormctl.cli import sweep_output
from stormctl.history import Capture
from stormctl.readers import Unreadable, write_capture
from stormctl.sweeps import LogReport, SweepPlan, shares, sweep_log, sweep_paths, sweep_report
from stormctl.sweeps import spread as spreading
from stormctl.testing import LogBuilder
from tests.readers.store_folder import write_store

Run = Callable[..., Any]
AT = "2026-01-02T12:00:00Z"
FORMATS = ("table", "json", "ndjson", "md", "junit")
EVIL = "a\x1b[2J\u202e`|<b>@all [x](http://e.vil) ]]>&\n# head"


def a_log(name: str, *, broken: bool = False, live: bool = False) -> Capture:
    built = LogBuilder(name).run_created("step-storm").run_started().step(0, "a").step(1, "b")
    return (built.without(3) if broken else built).capture(live=live)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty logs: each tenth has a gap, each tenth was still going, and one cannot be read."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(30):
        write_capture(a_log(f"wrun_{number:02}", broken=number % 10 == 5, live=number % 10 == 2), folder)
    (folder / "logs" / "wrun_07.ndjson").write_text("{")
    return folder


def rows(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


class TestSharing:
    @pytest.mark.parametrize("format", FORMATS)
    def test_the_number_of_processes_changes_nothing(self, stormctl: Run, many: Path, format: str) -> None:
        one, three = (stormctl("sweep", many, "--format", format, "--jobs", jobs) for jobs in (1, 3))
        assert (one.out, one.err) == (three.out, three.err)
        assert one.code == three.code == 4

    def test_few_files_are_ahead_of_the_reports(self, many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from concurrent.futures import ProcessPoolExecutor

        submitted = []
        real = ProcessPoolExecutor.submit

        def submit(self: Any, *arguments: Any) -> Any:
            submitted.append(arguments[1])
            return real(self, *arguments)

        monkeypatch.setattr(ProcessPoolExecutor, "submit", submit)
        reports = sweep_paths([many], SweepPlan(), processes=2)
        next(reports)
        assert len(submitted) == 2 * spreading.AHEAD
        assert len(list(reports)) == 29
        assert len(submitted) == 30

    def test_the_processes_end_when_nobody_reads_on(self, many: Path) -> None:
        import multiprocessing

        reports = sweep_paths([many], SweepPlan(), processes=2)
        next(reports)
        assert multiprocessing.active_children()
        reports.close()  # type: ignore[attr-defined]
        assert not multiprocessing.active_children()

    def test_a_file_of_many_runs_goes_through_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spreading, "HELD", 3)
        events = [
            {"eventType": kind, "runId": f"wrun_{run}", "eventId": f"evnt_{run}{place}", "createdAt": AT}
            for run in range(9)
            for place, kind in enumerate(("run_created", "run_started"))
        ]  # fmt: skip
        for name in ("a.ndjson", "b.ndjson"):
            (tmp_path / name).write_text("".join(json.dumps(event) + "\n" for event in events))
        one, two = (list(sweep_paths([tmp_path], SweepPlan(), processes=count)) for count in (1, 2))
        assert one == two
        assert len(one) == 18

    def test_the_runs_of_a_store_are_shared_out(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shares, "FEW_RUNS", 4)
        for number in range(18):
            built = LogBuilder(f"wrun_{number:02}", positions=False).run_created().run_started().hook_created(0, "t")
            write_store(tmp_path / "store", built.log(), "hookStorm", {})
        (tmp_path / "store" / "runs" / "wrun_07.json").write_text("{")
        one, two = (list(sweep_paths([tmp_path], SweepPlan(), processes=count)) for count in (1, 2))
        assert one == two
        assert len(shares.shared_out(tmp_path / "store", 2)) == 5
        assert {type(item) for item in one} == {LogReport, Unreadable}

    def test_jobs_and_dask_are_not_both_given(self, stormctl: Run, many: Path) -> None:
        ran = stormctl("sweep", many, "--jobs", 2, "--dask", "tcp://127.0.0.1:1")
        assert (ran.code, ran.out) == (2, "")
        assert "Give one of them." in ran.err

    @pytest.mark.parametrize("jobs", ["0", "-1", "x", "1e9"])
    def test_a_number_of_jobs_that_is_none_is_refused(self, stormctl: Run, many: Path, jobs: str) -> None:
        ran = stormctl("sweep", many, "--jobs", jobs)
        assert (ran.code, ran.out) == (2, "")


class TestFormats:
    def test_json_is_the_report_byte_for_byte(self, stormctl: Run, many: Path) -> None:
        items = list(sweep_paths([many], SweepPlan(profile="auto")))
        logs = [one for one in items if isinstance(one, LogReport)]
        broken = [one for one in items if isinstance(one, Unreadable)]
        assert (
            stormctl("sweep", many, "--format", "json").out == f"{json.dumps(sweep_report(logs, broken), indent=2)}\n"
        )

    def test_json_without_a_log_is_the_report_too(self, stormctl: Run) -> None:
        found = json.loads(stormctl("sweep", "no-such-file", "--format", "json").out)
        assert (found["logs"], len(found["unreadable"])) == ([], 1)

    def test_ndjson_has_a_line_for_each_log_in_the_order_of_the_files(self, stormctl: Run, many: Path) -> None:
        found = rows(stormctl("sweep", many, "--format", "ndjson").out)
        assert [Path(row["source"]).stem for row in found] == [f"wrun_{number:02}" for number in range(30)]
        assert {row["schema"] for row in found} == {"stormctl.sweep-line/1"}
        assert [row["line"] for row in found].count("unreadable") == 1
        whole = json.loads(stormctl("sweep", many, "--format", "json").out)
        logs = [
            {key: row[key] for key in row if key not in ("schema", "line")} for row in found if row["line"] == "log"
        ]
        assert logs == whole["logs"]

    def test_ndjson_comes_while_it_is_swept(self, capsys: pytest.CaptureFixture[str]) -> None:
        seen = []

        def items() -> Any:
            for number in range(3):
                yield sweep_log(a_log(f"wrun_{number}"), SweepPlan())
                seen.append(capsys.readouterr().out.count("\n"))

        sweep_output.show(items(), sweep_output.SweepFormat.NDJSON)
        assert seen == [1, 1, 1]

    def test_junit_has_a_case_for_each_log(self, stormctl: Run, many: Path) -> None:
        suite = ElementTree.fromstring(stormctl("sweep", many, "--format", "junit").out)[0]
        cases = list(suite)
        counts = {what: sum(case.find(what) is not None for case in cases) for what in ("failure", "error", "skipped")}
        assert len(cases) == int(suite.get("tests", "")) == 30
        assert counts == {"failure": 3, "error": 1, "skipped": 3}
        assert [int(suite.get(name, "")) for name in ("failures", "errors", "skipped")] == [3, 1, 3]
        failed = next(case for case in cases if case.find("failure") is not None)
        assert failed.get("name", "").endswith("wrun_05.ndjson")
        assert "position 3" in (failed.findtext("failure") or "")

    def test_a_clean_log_is_a_case_that_passes(self, stormctl: Run) -> None:
        ran = stormctl("sweep", "fixtures/logs/clean-step-storm.ndjson", "--format", "junit")
        (case,) = ElementTree.fromstring(ran.out)[0]
        assert (ran.code, list(case)) == (0, [])

    def test_the_summary_counts_sweeps_by_world_and_shows_failing_logs_alone(self, stormctl: Run, many: Path) -> None:
        out = stormctl("sweep", many).out
        first, *lines = out.splitlines()
        assert first == "violated  23 clean, 3 violated, 3 unknown of 29 logs; 1 could not be read"
        (dense,) = (line for line in lines if line.startswith("  dense  "))
        assert dense.split() == ["dense", "26", "/", "3", "/", "0"]
        assert [line.split("  ")[0] for line in lines if line.endswith(".ndjson")] == ["violated"] * 3 + ["unreadable"]
        assert any("fatal  dense/gap" in line and line.split()[-2:] == ["3", "3"] for line in lines)
        assert all(len(line) <= 80 for line in lines if "/" not in line)

    def test_few_logs_are_shown_in_full(self, stormctl: Run, many: Path) -> None:
        files = sorted((many / "logs").glob("*.ndjson"))[: sweep_output.FEW]
        assert stormctl("sweep", *files).out.count("profile strict") == sweep_output.FEW - 1

    def test_failing_logs_beyond_a_few_are_counted(self, stormctl: Run, tmp_path: Path) -> None:
        for number in range(40):
            write_capture(a_log(f"wrun_{number}", broken=True), tmp_path)
        out = stormctl("sweep", tmp_path).out
        assert "and 20 more violated; --format ndjson tells of each log" in out
        markdown = stormctl("sweep", tmp_path, "--format", "md").out
        assert "* and 20 more" in markdown
        assert len(markdown) < 65_536, "what GitHub takes as a comment"

    def test_markdown_says_the_verdict_first(self, stormctl: Run, many: Path) -> None:
        out = stormctl("sweep", many, "--format", "md").out
        assert out.startswith("**violated**: 23 clean, 3 violated, 3 unknown of 29 logs; 1 could not be read\n")
        assert "| dense | 26 / 3 / 0 |" in out

    @pytest.mark.parametrize("format", FORMATS)
    @pytest.mark.parametrize("count", [1, 30])
    def test_what_a_run_and_a_file_are_called_is_harmless(
        self, stormctl: Run, tmp_path: Path, format: str, count: int
    ) -> None:
        from dataclasses import replace

        from stormctl.history import EventLog

        for number in range(count):
            capture = a_log("wrun_x", broken=True)
            evil = replace(capture, log=EventLog([replace(one, name=EVIL) for one in capture.log], f"{EVIL}{number}"))
            log = write_capture(evil, tmp_path, stem=f"{number}")
            log.rename(log.with_name(f"{EVIL.replace('/', '')}{number}.ndjson"))
            meta = log.with_name(f"{number}.meta.json")
            meta.rename(log.with_name(f"{EVIL.replace('/', '')}{number}.meta.json"))
        (tmp_path / "logs" / f"{EVIL.replace('/', '')}bad.ndjson").write_text("{")
        ran = stormctl("sweep", tmp_path, "--format", format)
        assert (ran.code, ran.err) == (4, "")
        assert "\x1b" not in ran.out
        assert "\u202e" not in ran.out
        if format == "json":
            assert len(json.loads(ran.out)["logs"]) == count
        elif format == "ndjson":
            assert all(row["run_id"].startswith(EVIL) for row in rows(ran.out) if row["line"] == "log")
        elif format == "junit":
            suite = ElementTree.fromstring(ran.out)[0]
            assert len(suite) == count + 1
            assert {child.tag for case in suite for child in case} == {"failure", "error"}
        elif format == "md":
            outside = "".join(part for line in ran.out.splitlines() for part in line.split("`")[::2])
            assert "@all" not in outside
            assert "e.vil" not in outside
            assert not any(line.startswith("# ") for line in ran.out.splitlines())


def test_thousands_of_logs_are_never_held(tmp_path: Path) -> None:
    """Peak memory with many logs is that with few: reports are printed and forgotten."""
    code = (
        "import resource, sys\n"
        "from stormctl.cli.sweep_output import show, SweepFormat\n"
        "from stormctl.sweeps import SweepPlan, sweep_log\n"
        "from stormctl.testing import LogBuilder\n"
        "report = sweep_log(LogBuilder().run_created().run_started().step(0, 'a').without(2).capture(), SweepPlan())\n"
        "from dataclasses import replace\n"
        "count = int(sys.argv[2])\n"
        "items = (replace(report, source=f'{number}' * 20, reasons=tuple('x' * 5000 for _ in range(2)))\n"
        "         for number in range(count))\n"
        "show(items, SweepFormat(sys.argv[1]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    )

    def peak(format: str, count: int) -> int:
        ran = subprocess.run(
            [sys.executable, "-c", code, format, str(count)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
        return int(ran.stderr)

    for format in FORMATS:
        assert peak(format, 5_000) < peak(format, 50) + 8_000, format  # KiB; held, they were 50 MB


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_is_documented(root: Path, format: str) -> None:
    assert set(FORMATS) == {str(one) for one in sweep_output.SweepFormat}
    page = (root / "docs" / "sweep-json.md").read_text()
    assert (
        f"* **{format}**:" in page or f"`--format {format}` prints" in page or f"--format {format}` prints it" in page
    )
