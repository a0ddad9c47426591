from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from stormctl.report.live import LiveTable, NdjsonWriter, PlainLines, event_row, follow
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.events import AttemptLanded, AttemptStarted, LogSwept, StormEvent, StormFinished, StormStarted
from stormctl.storm.outcome import Outcome

CELL = Cell("step-storm", "local", "main", "nets")
OTHER = Cell("step-storm", "local", "seq-final", "dispenser")
LANDED = Attempt(CELL, 1, "wrun_1", Outcome.CORRUPTED, duration_ms=8123.0, flags=("pressure-lost",))
STORM: list[StormEvent] = [
    StormStarted("small", 7, Path("/a"), {CELL: 2, OTHER: 2}, ("nobody will [straggle]",)),
    AttemptStarted(CELL, 1, "wrun_1"),
    AttemptStarted(OTHER, 1, "wrun_2"),
    AttemptLanded(LANDED),
    LogSwept(CELL, "wrun_1", "violated", {"roles": 2, "dense": 0}),
    StormFinished(Path("/a"), 1, 4, "interrupted", 12.4),
]


def test_plain_lines_say_what_landed_and_why_it_stopped() -> None:
    stream = io.StringIO()
    lines = PlainLines(Console(file=stream, width=80))
    for event in STORM:
        lines.handle(event)
    lines.close()
    assert stream.getvalue().splitlines() == [
        "small, seed 7: 4 attempts in 2 cells",
        "warning: nobody will [straggle]",
        "[1/4] step-storm, main + nets, attempt 1: corrupted after 8.1 s (pressure-lost)",
        "1 of 4 attempts landed in 12 s: interrupted",
    ]


def test_the_live_table_counts_running_landed_and_findings() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=100, force_terminal=True, color_system=None)
    live = LiveTable(console)
    for event in STORM[:-1]:
        live.handle(event)
    still = Console(file=io.StringIO(), width=100)
    still.print(live.render())
    live.handle(STORM[-1])
    still.print(live.render())
    live.close()
    text = still.file.getvalue()  # type: ignore[attr-defined]
    assert "small, seed 7   1 of 4 landed" in text
    old, new = (next(line for line in text.splitlines() if arm in line).split() for arm in ("main", "seq-final"))
    assert old[-6:] == ["0", "0", "1", "0", "0", "0"]  # running, completed, corrupted, stuck, other, infra
    assert new[-6:] == ["1", "0", "0", "0", "0", "0"]
    assert f"\n{'━' * 15}{'─' * 45}\n" in text  # one of four, on a line of its own
    assert "findings: roles 2" in text
    assert "sweeping logs: 1 of 1" in text  # the storm is over, its logs are not yet judged
    assert "warning: nobody will [straggle]" in stream.getvalue()


def test_a_live_table_that_never_started_closes_quietly() -> None:
    screen = io.StringIO()
    LiveTable(Console(file=screen, force_terminal=True)).close()
    assert "landed" not in screen.getvalue()


def test_the_handler_suits_the_place() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "xterm-256color"})
    assert isinstance(follow(terminal), LiveTable)
    assert isinstance(follow(Console(file=io.StringIO())), PlainLines)


def test_ndjson_is_one_object_per_event() -> None:
    stream = io.StringIO()
    writer = NdjsonWriter(stream)
    for event in STORM:
        writer.handle(event)
    writer.close()
    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [row["event"] for row in rows] == [
        "storm-started",
        "attempt-started",
        "attempt-started",
        "attempt-landed",
        "log-swept",
        "storm-finished",
    ]
    assert rows[0]["planned"][0] == {
        "scenario": "step-storm",
        "world": "local",
        "condition": "main",
        "generation": "nets",
        "attempts": 2,
    }
    assert Attempt.from_row(rows[3]) == LANDED


def test_rows_hold_json_values_only() -> None:
    for event in STORM:
        assert json.loads(json.dumps(event_row(event))) == event_row(event)
