"""The checks over whole columns: every report as by the ordinary way, of sound logs, all fixtures, mutated ones."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.history import Capture, kinds
from stormctl.readers import Unreadable, open_file, write_capture
from stormctl.readers.ndjson import events_by_line, events_of
from stormctl.readers.parquet import write_parquet
from stormctl.sweeps import LogReport, SweepPlan, Verdict, bulk, sweep_log, sweep_paths
from stormctl.testing import LogBuilder, run_serially
from stormctl.workloads.registry import WORKLOADS
from tests.readers.test_mutated import HOSTILE, mutations

pytestmark = pytest.mark.timeout(max(120, settings.default.max_examples))
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
LOGS = sorted(FIXTURES.rglob("*.ndjson"))
PLAN = SweepPlan(profile="auto", only=("dense", "id-order", "lifecycle"))
PLANS = (PLAN, *(replace(PLAN, only=(name,)) for name in PLAN.only))
EXAMPLES = max(1, settings.default.max_examples // 100)


def ordinary(path: Path, plan: SweepPlan) -> list[LogReport | Unreadable]:
    return [item if isinstance(item, Unreadable) else sweep_log(item, plan) for item in open_file(path)]


def same(path: Path, plan: SweepPlan = PLAN) -> list[LogReport | Unreadable]:
    """The reports of a file, which are the same by either way."""
    found = list(sweep_paths([path], plan))
    assert found == ordinary(path, plan)
    return found


@pytest.fixture
def cleared(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each run that was looked at in columns, whether it was plainly in order."""
    told: list[bool] = []
    fine = bulk._fine

    def looked(*arguments: Any) -> Any:
        found = fine(*arguments)
        told.extend(run is not None for run in found)
        return found

    monkeypatch.setattr(bulk, "_fine", looked)
    return told


def sound(name: str = "step-storm", run: int = 0, *, slots: bool = False) -> Capture:
    """The capture of a whole sound run."""
    workload = WORKLOADS[name]
    built = run_serially(workload, workload.input_type(token="t", width=2, rounds=2 if name == "step-storm" else 1))
    if slots:
        twin = LogBuilder(built.run_id, slots=True)
        for event in built.events:
            twin.event(event.type)
            kept = ("event_id", "position")
            twin.events[-1] = replace(event, **{key: getattr(twin.events[-1], key) for key in kept})
        twin._run = built._run
        built = twin
    found = built.capture()
    return found if not run else renamed(found, f"wrun_{run:026d}")


def renamed(capture: Capture, run_id: str) -> Capture:
    from stormctl.history import EventLog

    return replace(capture, log=EventLog([replace(event, run_id=run_id) for event in capture.log], run_id))


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: "+".join(plan.only))
@pytest.mark.parametrize("name", ["step-storm", "hook-storm"])
@pytest.mark.parametrize("slots", [False, True])
def test_a_sound_log_is_told_from_its_columns(
    tmp_path: Path, cleared: list[bool], name: str, slots: bool, plan: SweepPlan
) -> None:
    (found,) = same(write_capture(sound(name, slots=slots), tmp_path), plan)
    assert isinstance(found, LogReport)
    assert found.verdict is Verdict.CLEAN
    assert cleared == [True]


@pytest.mark.parametrize("name", ["step-storm", "hook-storm"])
def test_and_so_is_one_in_parquet(tmp_path: Path, cleared: list[bool], name: str) -> None:
    write_parquet([sound(name, run) for run in range(5)], tmp_path / "logs.parquet")
    assert len(same(tmp_path / "logs.parquet")) == 5
    assert cleared == [True] * 5


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: "+".join(plan.only))
@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_every_fixture_is_told_the_same(log: Path, plan: SweepPlan) -> None:
    same(log, plan)


def test_a_folder_of_good_and_bad_logs_is_told_in_its_order(tmp_path: Path, cleared: list[bool]) -> None:
    for run in range(6):
        log = write_capture(sound(run=run + 1), tmp_path)
        lines = log.read_text().splitlines(keepends=True)
        if run == 2:
            log.write_text("".join(lines[:10] + lines[11:]))
        if run == 4:
            log.write_text("".join(lines)[:-30])
    found = list(sweep_paths([tmp_path / "logs"], PLAN))
    assert [one.verdict if isinstance(one, LogReport) else None for one in found] == [
        Verdict.CLEAN, Verdict.CLEAN, Verdict.VIOLATED, Verdict.CLEAN, None, Verdict.CLEAN
    ]  # fmt: skip
    assert found == [item for log in sorted((tmp_path / "logs").glob("*.ndjson")) for item in ordinary(log, PLAN)]
    assert cleared.count(True) == 4


def test_of_a_parquet_file_only_the_doubtful_runs_are_read_row_by_row(
    tmp_path: Path, cleared: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    from stormctl.history import EventLog
    from stormctl.readers import parquet

    captures = [sound(run=run + 1) for run in range(8)]
    for bad in (0, 3, 4, 7):
        events = [event for event in captures[bad].log if event.position != 9]
        captures[bad] = replace(captures[bad], log=EventLog(events, captures[bad].log.run_id))
    path = tmp_path / "logs.parquet"
    write_parquet(captures, path)
    made: list[str] = []
    event_of_row = parquet.event_of_row

    def counted(row: Any, run_id: str, where: str) -> Any:
        made.append(run_id)
        return event_of_row(row, run_id, where)

    monkeypatch.setattr(parquet, "event_of_row", counted)
    found = list(sweep_paths([path], PLAN))
    assert len(made) == sum(len(captures[bad].log) for bad in (0, 3, 4, 7))
    assert found == ordinary(path, PLAN)
    assert cleared == [False, True, True, False, False, True, True, False]


def changed_rows(rows: list[dict[str, Any]], draw: random.Random) -> Iterator[list[dict[str, Any]]]:
    """The rows of a log with one thing changed, still written as we write them."""
    at, to = draw.randrange(len(rows)), draw.randrange(len(rows))
    yield [*rows[:at], *rows[at + 1 :]]
    yield [*rows[: at + 1], *rows[at:]]
    swapped = list(rows)
    swapped[at], swapped[to] = rows[to], rows[at]
    yield swapped
    moved = [{**row, "position": place} for place, row in enumerate(swapped, 1)]
    yield moved
    yield [{**row, "position": place} for place, row in enumerate([*rows[:at], *rows[at + 1 :]], 1)]
    key = draw.choice(
        ["type", "event_id", "correlation_id", "created_at", "resume_at", "token", "name", "spec", "data"]
    )
    other = draw.choice([rows[to].get(key), draw.choice(HOSTILE), draw.choice(sorted(kinds.ALL_TYPES))])
    changed = dict(rows[at])
    changed.pop(key, None)
    if other is not None:
        changed[key] = other
    order = [*list(rows[at]), key]
    yield [*rows[:at], dict(sorted(changed.items(), key=lambda item: order.index(item[0]))), *rows[at + 1 :]]
    with_data = {**rows[at], "data": draw.choice([{"serial": 5}, {"resumeId": "r"}, {"attempt": 1}, {"a": [[1]]}])}
    yield [*rows[:at], with_data, *rows[at + 1 :]]


def written(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


@pytest.mark.parametrize("name", ["step-storm", "hook-storm"])
@pytest.mark.parametrize("slots", [False, True])
def test_a_changed_log_is_told_the_same(tmp_path: Path, name: str, slots: bool) -> None:
    log = write_capture(sound(name, slots=slots), tmp_path)
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    draw = random.Random(f"{name} {slots}")
    for _ in range(5 * EXAMPLES):
        for changed in changed_rows(rows, draw):
            log.write_text(written(changed))
            same(log, draw.choice(PLANS))


@pytest.mark.parametrize("log", LOGS[:: max(1, len(LOGS) // 12)], ids=lambda log: log.stem)
def test_changed_bytes_are_told_the_same(tmp_path: Path, log: Path) -> None:
    copy = tmp_path / log.name
    beside = log.with_name(log.stem + ".meta.json")
    if beside.exists():
        shutil.copy(beside, tmp_path)
    content = log.read_bytes()
    draw = random.Random(log.name)
    for _ in range(EXAMPLES):
        for changed in mutations(content, draw):
            copy.write_bytes(changed)
            same(copy)


@pytest.mark.parametrize("name", ["step-storm", "hook-storm"])
def test_changed_bytes_of_parquet_are_told_the_same(tmp_path: Path, name: str) -> None:
    path = tmp_path / "logs.parquet"
    write_parquet([sound(name, run + 1) for run in range(3)], path)
    content = path.read_bytes()
    draw = random.Random(f"parquet {name}")
    for _ in range(3 * EXAMPLES):
        for changed in mutations(content, draw):
            path.write_bytes(changed)
            same(path)


def test_the_rows_of_parquet_say_whose_they_are_whatever_the_metadata_calls_them(tmp_path: Path) -> None:
    path = tmp_path / "logs.parquet"
    write_parquet([sound()], path)
    content = path.read_bytes()
    assert content.count(b'"run_id": "wrun_') == 1
    path.write_bytes(content.replace(b'"run_id": "wrun_', b'"run_id": "else_'))
    (found,) = same(path)
    assert isinstance(found, LogReport)
    assert found.run_id.startswith("wrun_")


ODD = {
    "a key twice": lambda line: line.replace('"type":', '"type":"x","type":', 1),
    "a blank": lambda line: line.replace(":", ": ", 1),
    "another order of keys": lambda line: json.dumps(dict(reversed(json.loads(line).items())), separators=(",", ":")),
    "an escape": lambda line: line.replace("run_created", "run\\u005fcreated"),
    "a line break": lambda line: line.replace(",", ",\n", 1),
    "a line break in data": lambda line: line[:-1] + ',"data":{"a":\n1}}',
    "two rows in one line": lambda line: line + line,
    "an empty line": lambda line: line + "\n",
    "a null": lambda line: line[:-1] + ',"token":null}',
    "an unknown key": lambda line: line[:-1] + ',"more":1}',
    "a number that is no whole one": lambda line: line.replace('"position":1,', '"position":1.0,'),
    "a number as text": lambda line: line.replace('"position":1,', '"position":"1",'),
    "a negative number": lambda line: line.replace('"position":1,', '"position":-1,'),
    "a large number": lambda line: line.replace('"position":1,', f'"position":{2**63},'),
    "NaN": lambda line: line[:-1] + ',"data":{"a":NaN}}',
    "a large float": lambda line: line[:-1] + ',"data":{"a":1e999}}',
    "a key twice in data": lambda line: line[:-1] + ',"data":{"a":1,"a":2}}',
    "deep data": lambda line: line[:-1] + ',"data":' + '{"a":' * 200 + "1" + "}" * 201,
    "data as deep as may be": lambda line: line[:-1] + ',"data":' + '{"a":' * 198 + "1" + "}" * 199,
    "data that is none": lambda line: line[:-1] + ',"data":[1]}',
    "a time of another zone": lambda line: line.replace("Z", "+00:00"),
    "a day that is none": lambda line: line.replace("2026-01-02", "2026-02-29"),
    "a time as a number": lambda line: line.replace('"2026-01-02T12:00:00.010Z"', "1767355200010"),
    "no time": lambda line: line.replace(',"created_at":"2026-01-02T12:00:00.010Z"', ""),
    "a payload": lambda line: line[:-1] + ',"payload":{"a":[1.5,null]}}',
    "a payload in two lines": lambda line: line[:-1] + ',"payload":[1,\n2]}',
    "bytes": lambda line: line[:-1] + ',"bytes":"Z3ppcA=="}',
    "broken bytes": lambda line: line[:-1] + ',"bytes":"!"}',
    "a letter beyond ASCII": lambda line: line[:-1] + ',"name":"é"}',
    "half a letter": lambda line: line[:-1] + ',"name":"\\ud800"}',
    "a spec version": lambda line: line[:-1] + ',"spec":5}',
    "a large spec version": lambda line: line[:-1] + f',"spec":{-(2**63)}}}',
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("end", ["\n", ""])
def test_what_only_the_reader_of_lines_knows_is_told_by_it(tmp_path: Path, odd: str, end: str) -> None:
    log = write_capture(sound(), tmp_path)
    first, *rest = log.read_text().splitlines(keepends=True)
    changed = ODD[odd](first[:-1]) + "\n"
    assert changed != first
    for text in (changed + "".join(rest), changed + "".join(rest)[:-1] + end, changed):
        log.write_text(text)
        for plan in PLANS:
            same(log, plan)


@given(st.data())
def test_events_are_the_same_whether_read_as_a_whole_or_line_by_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    log = data.draw(st.sampled_from([log for log in LOGS if log.parent.name == "logs"]))
    lines = log.read_text().splitlines(keepends=True)
    rows = [json.loads(line) for line in lines]
    draw = data.draw(st.randoms(use_true_random=False))
    changed = draw.choice(list(changed_rows(rows, draw)))
    copy = tmp_path_factory.mktemp("rows") / log.name
    copy.write_text(written(changed))

    import stormctl.readers.plain_rows  # so that short logs are read as a whole, too

    assert stormctl.readers.plain_rows

    def read(reader: Any) -> Any:
        try:
            return [(event, event.payload and event.payload.digest) for event in reader(copy, "run")]
        except Exception as error:
            return type(error), str(error)

    assert read(events_of) == read(events_by_line)


def test_what_a_plan_asks_besides_is_not_left_out(tmp_path: Path) -> None:
    log = write_capture(sound(), tmp_path)
    for plan in (
        replace(PLAN, only=("dense", "ranks")),
        replace(PLAN, workload="step-storm"),
        replace(PLAN, only=()),
        replace(PLAN, engines=("nets",)),
    ):
        assert not bulk.serves(plan)
        same(log, plan)


@pytest.mark.parametrize("what", ["live", "truncated", "omitted", "missing", "failed", "no end", "more events"])
def test_what_is_captured_beside_the_log_counts_too(tmp_path: Path, cleared: list[bool], what: str) -> None:
    log = write_capture(sound(), tmp_path)
    beside = log.with_name(log.stem + ".meta.json")
    about = json.loads(beside.read_text())
    if what in ("live", "truncated"):
        about["evidence"][what] = True
    elif what == "omitted":
        about["evidence"]["omitted"] = [1]
    elif what == "missing":
        about["evidence"]["missing"] = ["event_ids"]
    elif what == "failed":
        about["run"]["status"] = "failed"
    elif what == "more events":
        about["events"] += 1
    else:
        about["events"] -= 1
        log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))
    beside.write_text(json.dumps(about))
    (found,) = same(log)
    assert isinstance(found, LogReport)
    assert (found.verdict is Verdict.CLEAN) == (what == "omitted")
    assert cleared == [False]
