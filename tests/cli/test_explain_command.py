"""``stormctl explain`` as a whole: its three outputs, stored, its exit codes, and what it says to bad usage."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.replayed import Once

Run = Callable[..., Any]
Stored = Callable[[str, str], None]

CLEAN = "fixtures/logs/clean-step-storm.ndjson"
CORRUPTED = "fixtures/storms/logs/hook-storm-corrupted.ndjson"
FLIPS = "fixtures/storms/logs/step-storm-flips.ndjson"
STRANGE = "fixtures/logs/2029-step-bound-to-another-name.ndjson"
LOST = "fixtures/logs/3492-position-lost.ndjson"
FAILED = "fixtures/logs/4017-failed-with-a-clean-log.ndjson"
ALONE = "fixtures/logs/4199-step-started-twice-and-ended.ndjson"

#: each with its answer and its exit code
ANSWERS = {
    CLEAN: ("clean", 0),
    CORRUPTED: ("explained", 1),
    FLIPS: ("explained", 1),
    STRANGE: ("unclassified", 1),
    LOST: ("explained", 1),
    FAILED: ("open", 3),
    ALONE: ("needs a workload", 3),
}


@pytest.fixture(autouse=True)
def once(replayed_once: Once) -> Iterator[None]:
    """The same logs are explained again in each format: their prefixes are replayed once."""
    with replayed_once():
        yield


class TestText:
    @pytest.mark.parametrize("log", ANSWERS)
    def test_says_what_happened_and_fits_the_screen(self, log: str, stormctl: Run, stored: Stored) -> None:
        answer, code = ANSWERS[log]
        ran = stormctl("explain", log)
        assert (ran.code, ran.err) == (code, "")
        assert ran.out.startswith(f"{answer}  {log}\n")
        assert all(len(line) <= 80 for line in ran.out.splitlines())
        assert "\x1b" not in ran.out
        stored(f"explain-{Path(log).stem}.txt", ran.out)

    def test_counts_the_answers_first_where_there_are_several(self, stormctl: Run) -> None:
        ran = stormctl("explain", CLEAN, LOST, FAILED)
        assert ran.code == 1
        assert ran.out.splitlines()[0] == "1 explained, 1 open, 1 clean"

    def test_loses_nothing_without_colour(
        self, stormctl: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from stormctl.explain import explain
        from stormctl.readers.open import open_captures
        from stormctl.report.explain_text import explain_text

        (capture,) = open_captures([LOST])
        found = explain(capture)  # type: ignore[arg-type]
        plain = explain_text([found])
        monkeypatch.delenv("NO_COLOR")
        monkeypatch.setenv("TERM", "xterm")
        import re

        coloured = explain_text([found], color=True)
        assert coloured != plain
        assert [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()] == plain.splitlines()


class TestOtherFormats:
    @pytest.mark.parametrize("log", [CORRUPTED, FLIPS, LOST])
    def test_markdown_is_stored_whole(self, log: str, stormctl: Run, stored: Stored) -> None:
        ran = stormctl("explain", log, "--format", "md")
        assert ran.code == 1
        stored(f"explain-{Path(log).stem}.md", ran.out)

    def test_json_is_stored_whole(self, stormctl: Run, stored: Stored) -> None:
        ran = stormctl("explain", CORRUPTED, "--format", "json", "--engine", "nets", "--engine", "registered")
        stored("explain-hook-storm-corrupted.json", ran.out)

    def test_json_has_the_same_keys_for_every_answer(self, stormctl: Run) -> None:
        report = json.loads(stormctl("explain", *ANSWERS, "--format", "json", "--engine", "registered").out)
        assert report["schema"] == "stormctl.explain/1"
        assert len({tuple(log) for log in report["logs"]}) == 1

    def test_what_a_log_holds_is_no_markup(self, stormctl: Run, tmp_path: Path) -> None:
        log = tmp_path / "evil.ndjson"
        create = '{"position":%d,"type":"step_created","correlation_id":"step_x","name":"\\u001b[2J*x*[bold]|%d"}\n'
        log.write_text(create % (1, 1) + create % (2, 2))
        text = stormctl("explain", log)
        assert "\x1b" not in text.out
        assert "*x*[bold]|" in text.out
        markdown = stormctl("explain", log, "--format", "md")
        assert "\x1b" not in markdown.out
        assert "\\*x\\*\\[bold\\]\\|" in markdown.out


class TestExitCodes:
    @pytest.mark.parametrize("log", [CORRUPTED, STRANGE, FAILED, CLEAN])
    def test_report_only_lets_every_answer_pass(self, log: str, stormctl: Run) -> None:
        assert stormctl("explain", log, "--report-only", "--engine", "registered").code == 0

    def test_an_unreadable_file_is_told_beside_the_others(self, stormctl: Run, tmp_path: Path) -> None:
        (tmp_path / "bad.ndjson").write_text("")
        ran = stormctl("explain", LOST, tmp_path / "bad.ndjson", "--report-only")
        assert ran.code == 4
        assert "explained  fixtures/logs/3492-position-lost.ndjson" in ran.out
        assert "bad.ndjson is empty" in ran.out
        markdown = stormctl("explain", tmp_path / "bad.ndjson", "--format", "md")
        assert markdown.code == 4
        assert "Unreadable: bad.ndjson is empty" in markdown.out

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--engine", "nest"], "nets"),
            (["--workload", "step-strom"], "Did you mean 'step-storm'?"),
            (["--profile", "workflow@9"], "Did you mean 'workflow@5'?"),
            (["--format", "xml"], "xml"),
            (["--seconds", "0"], "seconds"),
        ],
    )
    def test_bad_usage_is_2_and_says_what_is_known(self, stormctl: Run, arguments: list[str], said: str) -> None:
        ran = stormctl("explain", CLEAN, *arguments)
        assert (ran.code, ran.out) == (2, "")
        assert said in ran.err
        assert "Traceback" not in ran.err


def test_a_profile_decides_what_counts(stormctl: Run) -> None:
    log = "fixtures/logs/2039-step-created-twice.ndjson"
    assert stormctl("explain", log).code == 1
    assert stormctl("explain", log, "--profile", "workflow@seq").code == 1
    assert stormctl("explain", log, "--profile", "workflow@5").code == 3, (
        "inert there, and no workload to judge the rest"
    )


def test_the_real_log_names_the_write_the_class_and_the_writers(
    stormctl: Run, shared_data: Path, stored: Stored
) -> None:
    log = shared_data / "wrun-41KZYJ92TP-storm-log.json"
    if not log.is_file():
        pytest.skip("the real log is not beside this clone")
    engines = ["--engine", "nets", "--engine", "dispenser", "--engine", "registered"]
    ran = stormctl("explain", log, "--workload", "step-storm", *engines)
    assert ran.code == 1
    _, _, rest = ran.out.partition("\n")
    stored("explain-real-log.txt", rest)
    for words in ("position 631, rank 199, finalizeStep", "net-order flip, closed by #3554", "prefix 610 or 611"):
        assert words in " ".join(rest.split())


def test_a_users_own_workflow_is_replayed_from_its_file(stormctl: Run) -> None:
    log, code = "fixtures/workflows/paid-early.ndjson", "fixtures/workflows/order.py:order"
    assert stormctl("explain", log).code == 3
    ran = stormctl("explain", log, "--workload", code)
    assert (ran.code, ran.err) == (0, "")
    assert "nothing wrong found: registered explains 6 of 6 creates" in " ".join(ran.out.split())
