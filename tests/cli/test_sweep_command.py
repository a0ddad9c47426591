"""Exit codes, bad usage and bad input of the sweep command: one sentence, a remedy, and no traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.cli import main, sweep_output
from stormctl.cli.exit_code import combine
from stormctl.errors import StoreFailure, UsageError

Run = Callable[..., Any]
CLEAN = "fixtures/logs/clean-step-storm.ndjson"
VIOLATED = "fixtures/logs/3492-position-lost.ndjson"
UNKNOWN = "fixtures/logs/4017-failed-with-a-clean-log.ndjson"


class TestExitCodes:
    @pytest.mark.parametrize(
        ("paths", "code"),
        [
            ([CLEAN], 0),
            ([VIOLATED], 1),
            ([UNKNOWN], 3),
            ([CLEAN, UNKNOWN], 3),
            ([UNKNOWN, VIOLATED, CLEAN], 1),
            (["no-such-file"], 4),
            ([VIOLATED, "no-such-file"], 4),
        ],
    )
    def test_the_worst_that_holds_decides(self, stormctl: Run, paths: list[str], code: int) -> None:
        assert stormctl("sweep", *paths).code == code

    @pytest.mark.parametrize(("path", "code"), [(CLEAN, 0), (VIOLATED, 0), (UNKNOWN, 0), ("no-such-file", 4)])
    def test_report_only_lets_findings_pass_and_nothing_else(self, stormctl: Run, path: str, code: int) -> None:
        assert stormctl("sweep", path, "--report-only").code == code

    @given(st.lists(st.sampled_from([0, 1, 2, 3, 4])))
    def test_precedence_is_usage_then_internal_then_violations_then_unknown(self, codes: list[int]) -> None:
        assert combine(codes) == next((code for code in (2, 4, 1, 3) if code in codes), 0)
        assert combine(codes, report_only=True) == next((code for code in (2, 4) if code in codes), 0)


class TestBadUsage:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--engine", "nest"], "there is no generation 'nest'. Did you mean 'nets'?"),
            (["--workload", "step-strom"], "there is no workload 'step-strom'. Did you mean 'step-storm'?"),
            (["--profile", "workflow@9"], "there is no profile 'workflow@9'. Did you mean 'workflow@5'?"),
            (["--prefixes", "some"], "'some' names no prefixes. Give all, decisions, last, or two ends such as"),
            (["--prefixes", "9:3"], "the prefixes 9:3 run backwards. Give 3:9."),
            (["--format", "xml"], "xml"),
            (["--no-such-option"], "No such option"),
        ],
    )
    def test_it_exits_2_and_says_what_is_known(self, stormctl: Run, arguments: list[str], said: str) -> None:
        ran = stormctl("sweep", CLEAN, *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert said in ran.err
        assert "Traceback" not in ran.err

    def test_a_path_is_required(self, stormctl: Run) -> None:
        ran = stormctl("sweep")
        assert ran.code == 2
        assert "PATH" in ran.err

    def test_bad_usage_report_only_still_fails(self, stormctl: Run) -> None:
        assert stormctl("sweep", CLEAN, "--engine", "nest", "--report-only").code == 2


class TestBadInput:
    def test_every_good_log_is_reported_beside_the_bad_ones(self, stormctl: Run, tmp_path: Path) -> None:
        (tmp_path / "bad.json").write_text("[{")
        ran = stormctl("sweep", tmp_path / "bad.json", CLEAN, "--format", "json")
        report = json.loads(ran.out)
        assert (ran.code, ran.err) == (4, "")
        assert [log["verdict"] for log in report["logs"]] == ["clean"]
        (bad,) = report["unreadable"]
        assert bad["source"] == str(tmp_path / "bad.json")
        assert bad["error"].startswith("bad.json is not an event log that stormctl knows. Known are: ")

    def test_one_bad_log_is_the_first_line(self, stormctl: Run, tmp_path: Path) -> None:
        (tmp_path / "bad.ndjson").write_text("")
        ran = stormctl("sweep", tmp_path / "bad.ndjson")
        assert ran.out == f"unreadable  {tmp_path / 'bad.ndjson'}\n  bad.ndjson is empty. Capture the run again.\n"

    def test_what_a_log_holds_cannot_move_the_cursor(self, stormctl: Run, tmp_path: Path) -> None:
        log = tmp_path / "evil.ndjson"
        create = '{"position":%d,"type":"step_created","correlation_id":"step_x","name":"\\u001b[2Jx[bold]%d"}\n'
        log.write_text(create % (1, 1) + create % (2, 2))
        ran = stormctl("sweep", log)
        assert "\x1b" not in ran.out
        assert "\\x1b[2Jx[bold]1" in ran.out, "shown as it is, and not read as markup"


class TestErrors:
    def broken(self, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
        def fail(*_args: object, **_kwargs: object) -> None:
            raise error

        monkeypatch.setattr(sweep_output, "collect", fail)

    def test_a_fault_of_ours_is_an_internal_error_in_one_line(
        self, stormctl: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.broken(monkeypatch, ZeroDivisionError("oh no"))
        ran = stormctl("sweep", CLEAN)
        assert ran.code == 4
        assert ran.err == (
            "stormctl: internal error: ZeroDivisionError: oh no. "
            "Set STORMCTL_TRACEBACK=1 to see where, and report it.\n"
        )

    def test_its_traceback_is_there_when_asked_for(self, stormctl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken(monkeypatch, ZeroDivisionError("oh no"))
        monkeypatch.setenv("STORMCTL_TRACEBACK", "1")
        with pytest.raises(ZeroDivisionError):
            stormctl("sweep", CLEAN)

    def test_an_error_with_a_remedy_shows_both_and_its_own_code(
        self, stormctl: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for error, code in (
            (StoreFailure("the disk is full", remedy="Free some space."), 4),
            (UsageError("no", remedy="Yes."), 2),
        ):
            self.broken(monkeypatch, error)
            ran = stormctl("sweep", CLEAN)
            assert ran.code == code
            assert ran.err == f"stormctl: {error}. {error.remedy}\n"

    def test_an_interrupt_exits_130(self, stormctl: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken(monkeypatch, KeyboardInterrupt())
        assert stormctl("sweep", CLEAN).code == 130


class TestHelp:
    def test_every_command_shows_an_example(self, stormctl: Run) -> None:
        listed = stormctl("--help").out
        commands = re.findall(r"^│ ([a-z-]+) ", listed.partition("Commands")[2], flags=re.MULTILINE)
        assert "sweep" in commands
        for command in commands:
            assert f"Example:  stormctl {command}" in stormctl(command, "--help").out

    def test_it_fits_80_columns(self, stormctl: Run) -> None:
        assert all(len(line) <= 80 for line in stormctl("sweep", "--help").out.splitlines())

    def test_the_version_is_shown(self, stormctl: Run) -> None:
        from stormctl import __version__

        assert stormctl("--version").out == f"stormctl {__version__}\n"


def python(root: Path, *arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=root, env=environment, text=True, capture_output=True, check=False, **how
    )


class TestProcess:
    """What only a process of its own can show."""

    HEAVY = ("pandas", "matplotlib", "scipy", "psycopg", "pyarrow", "numpy", "jinja2", "yaml", "msgspec", "cbor2")

    @pytest.mark.parametrize("arguments", [["--help"], ["sweep", CLEAN, "--engine", "nets"]])
    def test_nothing_heavy_is_imported(self, root: Path, arguments: list[str]) -> None:
        code = (
            "import sys; from stormctl.cli import main; code = main(sys.argv[1:]);"
            f"print('HEAVY', [name for name in {self.HEAVY!r} if name in sys.modules])"
        )
        ran = python(root, "-c", code, *arguments)
        assert ran.stdout.rstrip().endswith("HEAVY []"), ran.stdout + ran.stderr

    def test_the_module_is_the_command(self, root: Path) -> None:
        ran = python(root, "-m", "stormctl", "sweep", VIOLATED)
        assert ran.returncode == 1
        assert ran.stdout.startswith(f"violated  {VIOLATED}\n")

    def test_a_reader_that_goes_away_does_not_change_the_exit_code(self, root: Path) -> None:
        read, write = os.pipe()
        os.close(read)
        code = "import sys; from stormctl.cli import main; sys.exit(main(sys.argv[1:]))"
        process = subprocess.run(
            [sys.executable, "-c", code, "sweep", VIOLATED],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            stdout=write,
            stderr=subprocess.PIPE,
            check=False,
        )
        os.close(write)
        assert (process.returncode, process.stderr) == (1, b"")

    def test_a_terminal_without_unicode_still_gets_its_report(self, root: Path, tmp_path: Path) -> None:
        log = tmp_path / "naïve.ndjson"
        log.write_text('{"position":1,"type":"run_created"}\n')
        environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONIOENCODING": "ascii"}
        ran = subprocess.run(
            [sys.executable, "-m", "stormctl", "sweep", str(log)], env=environment, capture_output=True, check=False
        )
        assert ran.returncode == 3, ran.stderr
        assert ran.stdout.startswith(b"unknown  ")


def test_main_takes_the_arguments_of_the_process(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "argv", ["stormctl", "sweep", CLEAN])
    assert main() == 0


class TestOnlySome:
    def test_they_are_reported_in_the_order_of_reports(self, stormctl: Run) -> None:
        answer = stormctl("sweep", CLEAN, "--only", "lifecycle, dense", "--format", "json")
        assert answer.code == 0
        (log,) = json.loads(answer.out)["logs"]
        assert [one["sweep"] for one in log["sweeps"]] == ["dense", "lifecycle"]

    def test_one_that_is_named_answers_also_where_it_would_be_left_out(self, stormctl: Run) -> None:
        answer = stormctl("sweep", CLEAN, "--only", "credit", "--format", "json")
        assert answer.code == 3
        assert json.loads(answer.out)["logs"][0]["verdict"] == "unknown"

    @pytest.mark.parametrize(("names", "said"), [("dens", "Did you mean 'dense'?"), (",", "--only names no sweep")])
    def test_what_is_no_sweep_is_told(self, stormctl: Run, names: str, said: str) -> None:
        answer = stormctl("sweep", CLEAN, "--only", names)
        assert answer.code == 2
        assert said in answer.err
