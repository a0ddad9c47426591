"""Captures from stores that are written to: whole, of one moment, without secrets, resumable, inside their folder."""

from __future__ import annotations

import asyncio
import json
import shutil
import stat
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import StoreBusy, StoreForeign, UnreadableInput, UsageError
from stormctl.history import Capture, EventLog, Inline
from stormctl.history.tokens import same_token, seal
from stormctl.readers import Unreadable, open_captures
from stormctl.readers.live import (
    AGAIN,
    FIRST,
    Asked,
    Begun,
    CaptureFolder,
    LocalSource,
    SourceLost,
    Step,
    Taken,
    capture_runs,
    opened,
    parse_since,
)
from stormctl.readers.live import local as live_local
from stormctl.readers.live.naming import may_be_a_name, stem_of
from stormctl.readers.live.seal import sealed
from stormctl.readers.worldlocal import read_run
from stormctl.sweeps import LogReport, SweepPlan, Verdict, sweep_log, sweep_paths
from stormctl.sweeps.pairs import judge_pair
from stormctl.testing import LogBuilder
from stormctl.worlds import condition_named
from tests.readers.store_folder import write_store
from tests.worlds.making import RUN, corr, local, make_run, want

SDK_RUN = "wrun_01KE0000000000000000000001"
ASKED = Asked("a store")


class Given:
    """A source of captures that a test gives, and may change while it is read."""

    shown = "a store"

    def __init__(self, *captures: Capture) -> None:
        self.captures = {one.log.run_id: one for one in captures}
        self.asked: list[str] = []
        self.broken: set[str] = set()

    def runs(self, since: int | None = None) -> list[str]:
        return list(self.captures)

    def read(self, runs: Sequence[str]) -> Iterator[Taken]:
        for run_id in runs:
            self.asked.append(run_id)
            if run_id in self.broken or run_id not in self.captures:
                yield Taken(run_id, None, (Unreadable(run_id, "it cannot be read", "Mend it."),))
            else:
                yield Taken(run_id, self.captures[run_id])


def a_run(run_id: str, events: int = 4) -> Capture:
    built = LogBuilder(run_id).run_created().run_started().hook_created(0, "a-secret-token").hook_received(0)
    return built.until(events).capture(live=True)


def taken_of(path: Path, source: Any, asked: Asked = ASKED, **how: Any) -> list[Begun | Step]:
    with opened(path, asked) as folder:
        return list(capture_runs(source, folder, **how))


def captures_at(path: Path) -> list[Capture]:
    found = list(open_captures([path]))
    assert all(isinstance(one, Capture) for one in found), found
    return [one for one in found if isinstance(one, Capture)]


class TestFolder:
    def test_it_holds_a_log_for_each_run_and_is_its_owners_only(self, tmp_path: Path) -> None:
        out = tmp_path / "out"
        begun, *steps = taken_of(out, Given(a_run("wrun_1"), a_run("wrun_2")))
        assert begun == Begun(FIRST, 2, 0)
        assert [step.run_id for step in steps if isinstance(step, Step)] == ["wrun_1", "wrun_2"]
        assert [one.log.run_id for one in captures_at(out)] == ["wrun_1", "wrun_2"]
        assert stat.S_IMODE(out.stat().st_mode) == 0o700
        assert not list(out.rglob("*.part"))

    def test_the_second_call_goes_on_and_says_how_many_were_there(self, tmp_path: Path) -> None:
        source = Given(a_run("wrun_1"), a_run("wrun_2"), a_run("wrun_3"))
        with opened(tmp_path / "out", ASKED) as folder:
            steps = capture_runs(source, folder)
            for _ in range(3):  # the pass, and two runs
                next(steps)
            steps.close()  # type: ignore[attr-defined]
        begun, *rest = taken_of(tmp_path / "out", source)
        assert begun == Begun(FIRST, 3, 2)
        assert [step.run_id for step in rest if isinstance(step, Step)] == ["wrun_3"]
        assert source.asked == ["wrun_1", "wrun_2", "wrun_3"]

    def test_a_run_that_cannot_be_read_stops_nothing_and_is_tried_again(self, tmp_path: Path) -> None:
        source = Given(a_run("wrun_1"), a_run("wrun_2"))
        source.broken = {"wrun_1"}
        _, bad, good = taken_of(tmp_path / "out", source)
        assert isinstance(bad, Step)
        assert isinstance(good, Step)
        assert (bad.landed, good.landed is not None) == (None, True)
        source.broken = set()
        begun, again = taken_of(tmp_path / "out", source)
        assert begun == Begun(FIRST, 2, 1)
        assert isinstance(again, Step)
        assert again.run_id == "wrun_1"

    def test_a_line_that_a_kill_has_torn_counts_as_absent_and_harms_none_behind_it(self, tmp_path: Path) -> None:
        source = Given(a_run("wrun_1"), a_run("wrun_2"))
        taken_of(tmp_path / "out", source)
        journal = tmp_path / "out" / "captured.ndjson"
        journal.write_bytes(journal.read_bytes()[:-20])
        assert taken_of(tmp_path / "out", source)[0] == Begun(FIRST, 2, 1)
        assert taken_of(tmp_path / "out", source)[0] == Begun(FIRST, 2, 2)

    def test_a_log_that_somebody_has_removed_is_captured_again(self, tmp_path: Path) -> None:
        source = Given(a_run("wrun_1"))
        taken_of(tmp_path / "out", source)
        (tmp_path / "out" / "logs" / "wrun_1.ndjson").unlink()
        assert taken_of(tmp_path / "out", source)[0] == Begun(FIRST, 1, 0)

    def test_the_newest_runs_alone_and_those_that_are_named(self, tmp_path: Path) -> None:
        source = Given(*(a_run(f"wrun_{number}") for number in range(5)))
        taken_of(tmp_path / "newest", source, limit=2)
        taken_of(tmp_path / "named", source, runs=["wrun_0", "wrun_4", "wrun_0", "wrun_9"])
        assert [one.log.run_id for one in captures_at(tmp_path / "newest")] == ["wrun_3", "wrun_4"]
        assert [one.log.run_id for one in captures_at(tmp_path / "named")] == ["wrun_0", "wrun_4"]

    @pytest.mark.parametrize(
        "asked", [Asked("another store"), Asked("a store", with_payloads=True), Asked("a store", twice=True)]
    )
    def test_another_question_is_refused(self, tmp_path: Path, asked: Asked) -> None:
        taken_of(tmp_path / "out", Given(a_run("wrun_1")))
        with pytest.raises(UsageError, match="is a capture") as refused, opened(tmp_path / "out", asked):
            pass
        assert "--out" in refused.value.remedy

    def test_what_is_no_capture_is_not_written_to(self, tmp_path: Path) -> None:
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "letter.txt").write_text("dear")
        (tmp_path / "file").write_text("x")
        for name in ("mine", "file"):
            with pytest.raises(StoreForeign), opened(tmp_path / name, ASKED):
                pass
        assert [one.name for one in (tmp_path / "mine").iterdir()] == ["letter.txt"]

    @pytest.mark.parametrize("text", ["", "[]", "{", '{"schema":"other/1","since":null}', '{"schema":3}'])
    def test_a_damaged_description_is_told(self, tmp_path: Path, text: str) -> None:
        taken_of(tmp_path / "out", Given(a_run("wrun_1")))
        (tmp_path / "out" / "capture.json").write_text(text)
        with pytest.raises(UnreadableInput, match="is damaged"), opened(tmp_path / "out", ASKED):
            pass

    def test_two_do_not_write_at_once(self, tmp_path: Path) -> None:
        with opened(tmp_path / "out", ASKED), pytest.raises(StoreBusy), opened(tmp_path / "out", ASKED):
            pass

    def test_a_store_that_is_gone_ends_it_and_keeps_what_landed(self, tmp_path: Path) -> None:
        class Gone(Given):
            def read(self, runs: Sequence[str]) -> Iterator[Taken]:
                yield from super().read(runs[:1])
                raise SourceLost("the server went away", remedy="Start it.")

        with pytest.raises(SourceLost):
            taken_of(tmp_path / "out", Gone(a_run("wrun_1"), a_run("wrun_2")))
        assert taken_of(tmp_path / "out", Given(a_run("wrun_1"), a_run("wrun_2")))[0] == Begun(FIRST, 2, 1)


class TestTwice:
    ASKED = Asked("a store", twice=True)

    def test_both_captures_are_kept_and_swept_as_a_pair(self, tmp_path: Path) -> None:
        source = Growing(a_run("wrun_1", events=3), a_run("wrun_1", events=4))
        taken_of(tmp_path / "out", source, self.ASKED)
        (found,) = captures_at(tmp_path / "out")
        assert found.earlier is not None
        assert (len(found.earlier.log), len(found.log)) == (3, 4)
        assert judge_pair(found).verdict is Verdict.CLEAN
        (report,) = sweep_paths([tmp_path / "out"], SweepPlan())
        assert "append-only" in [one.sweep for one in report.sweeps]  # type: ignore[union-attr]

    def test_an_event_that_appeared_in_between_is_told(self, tmp_path: Path) -> None:
        whole = LogBuilder("wrun_1").run_created().run_started().hook_created(0, "t").hook_received(0)
        source = Growing(whole.without(3).capture(live=True), whole.capture(live=True))
        taken_of(tmp_path / "out", source, self.ASKED)
        (found,) = captures_at(tmp_path / "out")
        assert [one.key.split("/")[1] for one in judge_pair(found).findings] == ["inserted"]

    def test_killed_between_the_two_it_goes_on_and_keeps_the_first(self, tmp_path: Path) -> None:
        source = Growing(a_run("wrun_1", events=2), a_run("wrun_1", events=4))
        with opened(tmp_path / "out", self.ASKED) as folder:
            steps = capture_runs(source, folder)
            assert [type(next(steps)) for _ in range(2)] == [Begun, Step]
            folder._set_aside(folder.log("wrun_1"))  # and killed before the second is written
        first, second, _ = taken_of(tmp_path / "out", source, self.ASKED)
        assert (first, second) == (Begun(FIRST, 1, 1), Begun(AGAIN, 1, 0))
        (found,) = captures_at(tmp_path / "out")
        assert found.earlier is not None
        assert (len(found.earlier.log), len(found.log)) == (2, 4)
        again = taken_of(tmp_path / "out", source, self.ASKED)
        assert again == [Begun(FIRST, 1, 1), Begun(AGAIN, 1, 1)]


class Growing(Given):
    """A source whose one run is another at each reading."""

    def __init__(self, *states: Capture) -> None:
        super().__init__(states[0])
        self._states = list(states)

    def read(self, runs: Sequence[str]) -> Iterator[Taken]:
        for run_id in runs:
            state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
            yield Taken(run_id, state)


# -- what is kept ------------------------------------------------------------------------------------------------------

SECRETS = ("a-secret-token", "a-secret-payload", "a-secret-input", "a-secret-output", "a-secret-error")


def secretive() -> Capture:
    built = LogBuilder("wrun_1").run_created("step-storm", token="a-secret-input").run_started()
    built.hook_created(0, "a-secret-token").hook_received(0, "a-secret-payload")
    found = built.capture()
    events = [
        replace(event, data={"token": "a-secret-token", "stack": "a-secret-error", "said": "to a-secret-token!"})
        for event in found.log
    ]
    events[0] = replace(events[0], payload=Inline({"v": "a-secret-input"}))
    assert found.run is not None
    run = replace(found.run, status="failed", output="a-secret-output", error_message="a-secret-error", error_code="E")
    data = {"rows": {"hook": {"resumeToken": "a-secret-token", "input": {"$bytes": "YS1zZWNyZXQ="}}}, "world": "x 1"}
    return replace(found, log=EventLog(events, "wrun_1"), run=run, data=data)


def everything_in(folder: Path) -> str:
    return "\n".join(path.read_text() for path in folder.rglob("*") if path.is_file())


def test_without_payloads_nothing_that_was_said_in_the_run_is_written(tmp_path: Path) -> None:
    taken_of(tmp_path / "out", Given(secretive()))
    written = everything_in(tmp_path / "out")
    assert [secret for secret in SECRETS if secret in written] == []
    (found,) = captures_at(tmp_path / "out")
    assert found.run is not None
    assert (found.run.status, found.run.error_code, found.run.workload) == ("failed", "E", None)
    assert found.log[2].token == seal("a-secret-token")
    assert [one.payload and one.payload.digest for one in found.log] == [
        one.payload and one.payload.digest for one in secretive().log
    ]
    assert found.data["world"] == "x 1"


def test_with_payloads_all_of_it_is(tmp_path: Path) -> None:
    taken_of(tmp_path / "out", Given(secretive()), Asked("a store", with_payloads=True))
    (found,) = captures_at(tmp_path / "out")
    assert found.log == secretive().log
    assert found.run == secretive().run


def test_a_sealed_token_is_the_same_as_its_token_and_as_no_other() -> None:
    assert same_token(seal("t"), "t")
    assert same_token("t", seal("t"))
    assert seal(seal("t")) == seal("t")
    assert not same_token(seal("t"), "u")
    assert not same_token("t", "u")


def test_a_log_with_sealed_tokens_replays_as_the_one_with_the_tokens(storm_of_hooks: Capture) -> None:
    plan = SweepPlan(engines=("nets",))
    tokens = {event.token for event in storm_of_hooks.log if event.token}
    assert tokens
    hidden = replace(storm_of_hooks, log=sealed(storm_of_hooks).log)
    assert not tokens & {event.token for event in hidden.log}
    one, two = sweep_log(storm_of_hooks, plan), sweep_log(hidden, plan)
    assert one.rebinding == two.rebinding
    assert one.verdict is two.verdict is Verdict.CLEAN


def test_a_log_of_another_hook_still_diverges_when_it_is_sealed(storm_of_hooks: Capture) -> None:
    def other(capture: Capture) -> Capture:
        events = [replace(one, token=f"{one.token}?") if one.token else one for one in capture.log]
        return replace(capture, log=EventLog(events, capture.log.run_id))

    wrong = replace(storm_of_hooks, log=sealed(other(storm_of_hooks)).log)
    (found,) = sweep_log(wrong, SweepPlan(engines=("nets",))).rebinding
    assert found.divergence is not None


@pytest.fixture(scope="module")
def storm_of_hooks() -> Capture:
    found = open_captures([Path(__file__).resolve().parents[2] / "fixtures" / "logs" / "clean-hook-storm.ndjson"])
    (capture,) = found
    assert isinstance(capture, Capture)
    return capture


# -- names -------------------------------------------------------------------------------------------------------------

HOSTILE = [
    "../../escape", "..", ".", "/etc/passwd", "a/b", "a-b", "a\\b", "a b", "", "x" * 400, "con\x00trol", "\x1b[2J",
    "-rf", ".hidden", "a\n.ndjson", "x.meta", "x", "wrun_\u202e1", "\ud800", "[red]x", "runs", "events",
]  # fmt: skip


def test_whatever_a_run_is_called_its_files_stay_in_their_folder_and_come_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    names = [name for name in HOSTILE if name != "\ud800" and name]
    taken_of(out, Given(*(a_run(name) for name in names)), Asked("a store", twice=True))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    assert {path.name for path in out.iterdir()} == {
        "capture.json", "capture.lock", "captured.ndjson", "logs", "earlier",
    }  # fmt: skip
    found = captures_at(out)
    assert sorted(one.log.run_id for one in found) == sorted(names)
    assert all(one.earlier is not None for one in found)


@given(st.lists(st.text(max_size=60) | st.sampled_from(HOSTILE), max_size=12))
def test_different_runs_have_different_names_that_are_names(run_ids: list[str]) -> None:
    stems = {run_id: stem_of(run_id) for run_id in run_ids}
    assert len(set(stems.values())) == len(set(run_ids))
    assert all(may_be_a_name(stem) and len(stem) <= 120 and stem.isascii() for stem in stems.values())
    assert all(stem_of(stem) != stem or run_id == stem for run_id, stem in stems.items())


# -- folders of a local world ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sdk-4.8", "sdk-5.0"])
def test_a_store_of_the_sdk_comes_back_as_it_is_read(tmp_path: Path, root: Path, name: str) -> None:
    store = root / "fixtures" / "stores" / name
    source = LocalSource(store)
    taken_of(tmp_path / "out", source, Asked(source.shown, with_payloads=True))
    (run_id,) = source.runs()
    (found,) = captures_at(tmp_path / "out")
    straight = read_run(store, run_id)
    assert found.log == straight.log
    assert found.run == straight.run
    assert found.evidence.missing == straight.evidence.missing
    assert not found.evidence.truncated


def test_where_no_store_is_the_remedy_says_what_one_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no store") as refused:
        LocalSource(tmp_path)
    assert "events/" in refused.value.remedy


@pytest.mark.parametrize("run_id", ["../runs/x", "/etc/passwd", "..", "a\0b", "x" * 300, "wrun_none"])
def test_a_run_that_no_store_can_have_is_not_looked_for(tmp_path: Path, root: Path, run_id: str) -> None:
    shutil.copytree(root / "fixtures" / "stores" / "sdk-4.8", tmp_path / "store")
    (tmp_path / "store" / "x.json").write_text("{}")
    (found,) = LocalSource(tmp_path / "store").read([run_id])
    assert found.capture is None
    assert "holds no run" in found.broken[0].error


def test_runs_that_changed_since(tmp_path: Path) -> None:
    for number in (1, 2):
        built = LogBuilder(f"wrun_{number}", positions=False).run_created().run_started()
        write_store(tmp_path / "store", built.log(), "hookStorm", {})
    source = LocalSource(tmp_path / "store")
    assert source.runs(0) == source.runs() == ["wrun_1", "wrun_2"]
    now = max(path.stat().st_ctime_ns for path in (tmp_path / "store" / "events").iterdir()) // 1_000_000
    assert source.runs(now + 60_000) == []


def test_a_run_that_grows_between_two_listings_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = LogBuilder("wrun_1", positions=False).run_created().run_started().hook_created(0, "t").hook_received(0)
    store, reads = tmp_path / "store", []
    write_store(store, built.until(2).log(), "hookStorm", {})
    real = live_local._read

    def read(of: Any, run_id: str) -> Taken:
        found = real(of, run_id)
        reads.append(len(found.capture.log) if found.capture else 0)
        if len(reads) == 1:
            write_store(store, built.log(), "hookStorm", {})
        return found

    monkeypatch.setattr(live_local, "_read", read)
    (found,) = LocalSource(store).read(["wrun_1"])
    assert reads == [2, 4]
    assert found.capture is not None
    assert (len(found.capture.log), found.capture.evidence.truncated) == (4, False)


def test_a_run_that_never_rests_is_kept_as_it_was_last_seen_and_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = LogBuilder("wrun_1", positions=False).run_created().run_started().hook_created(0, "t")
    store = tmp_path / "store"
    write_store(store, built.until(2).log(), "hookStorm", {})
    real = live_local._read

    def read(of: Any, run_id: str) -> Taken:
        found = real(of, run_id)
        built.hook_received(0)
        write_store(store, built.log(), "hookStorm", {})
        return found

    monkeypatch.setattr(live_local, "_read", read)
    monkeypatch.setattr(live_local, "PAUSE_S", 0)
    (found,) = LocalSource(store).read(["wrun_1"])
    assert found.capture is not None
    assert (found.capture.evidence.truncated, found.capture.evidence.live) == (True, True)
    assert live_local.GROWING in found.capture.evidence.notes


@pytest.mark.parametrize("condition", ["main-local", "seq-final"])
def test_a_store_of_ours_that_is_written_meanwhile_is_captured_without_a_gap(tmp_path: Path, condition: str) -> None:
    folder, problems = tmp_path / "store", []
    written = threading.Event()

    async def write() -> None:
        world = local(folder, condition_named(condition, "local"))
        try:
            for request in make_run():
                await world.append(request)
            written.set()
            for number in range(60):
                await world.append(want("hook_created", corr("hook", 100 + number), token=f"token-{number}"))
        finally:
            await world.close()

    writer = threading.Thread(target=lambda: asyncio.run(write()))
    writer.start()
    written.wait(30)
    number, seen = 0, []
    try:
        while writer.is_alive() or number == 0:
            number += 1
            out = tmp_path / f"out-{number}"
            source = LocalSource(folder)
            taken_of(out, source, Asked(source.shown))
            (found,) = captures_at(out)
            seen.append(found.log)
            report = sweep_log(found, SweepPlan())
            problems += [one.message for one in report.findings if one.sweep == "dense"]
    finally:
        writer.join()
    assert problems == []
    whole = [event.event_id for event in read_run(folder, RUN).log]
    assert all([event.event_id for event in log] == whole[: len(log)] for log in seen)
    assert "token-" not in everything_in(tmp_path / f"out-{number}")


# -- since -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90m", 1_000_000_000_000 - 5_400_000),
        ("1.5h", 1_000_000_000_000 - 5_400_000),
        ("7d", 1_000_000_000_000 - 604_800_000),
        ("2001-09-09T01:46:40Z", 1_000_000_000_000),
        ("2001-09-09T03:46:40+02:00", 1_000_000_000_000),
        ("2001-09-09 01:46:40", 1_000_000_000_000),
        ("1970-01-02", 86_400_000),
    ],
)
def test_since_is_a_time_or_how_long_ago(text: str, at: int) -> None:
    assert parse_since(text, 1_000_000_000_000) == at


@pytest.mark.parametrize("text", ["", "x", "-1h", "1y", "9" * 40, "nan", "1969-01-01", "\x1b[2J"])
def test_what_is_no_time_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="is no time") as refused:
        parse_since(text, 1_000_000_000_000)
    assert "\x1b" not in str(refused.value)


def test_the_journal_and_the_description_are_json(tmp_path: Path) -> None:
    taken_of(tmp_path / "out", Given(a_run("wrun_1")), replace(ASKED, since=5))
    about = json.loads((tmp_path / "out" / "capture.json").read_text())
    assert (about["schema"], about["source"], about["since"]) == ("stormctl.capture/1", "a store", 5)
    (line,) = map(json.loads, (tmp_path / "out" / "captured.ndjson").read_text().splitlines())
    assert (line["run_id"], line["log"], line["events"]) == ("wrun_1", "wrun_1.ndjson", 4)


def test_the_folder_keeps_the_time_that_it_began_with(tmp_path: Path) -> None:
    taken_of(tmp_path / "out", Given(a_run("wrun_1")), replace(ASKED, since=5))
    with opened(tmp_path / "out", replace(ASKED, since=9)) as folder:
        assert isinstance(folder, CaptureFolder)
        assert folder.asked.since == 5


def test_an_earlier_capture_that_is_named_goes_before_the_one_in_the_folder(tmp_path: Path) -> None:
    source = Growing(a_run("wrun_1", events=3), a_run("wrun_1", events=4))
    taken_of(tmp_path / "out", source, Asked("a store", twice=True))
    other = LogBuilder("wrun_1").run_created().run_started().hook_created(0, "x").step(1, "gone").capture(live=True)
    taken_of(tmp_path / "other", Given(other))
    (by_folder,) = sweep_paths([tmp_path / "out"], SweepPlan())
    (by_name,) = sweep_paths([tmp_path / "out"], SweepPlan(earlier=str(tmp_path / "other")))
    assert isinstance(by_folder, LogReport)
    assert isinstance(by_name, LogReport)
    assert "append-only" not in by_folder.fatal_by_sweep()
    assert "append-only" in by_name.fatal_by_sweep()


def test_an_earlier_capture_that_is_damaged_does_not_hide_the_later_one(tmp_path: Path) -> None:
    taken_of(tmp_path / "out", Given(a_run("wrun_1")), Asked("a store", twice=True))
    (tmp_path / "out" / "earlier" / "logs" / "wrun_1.ndjson").write_text("{")
    (found,) = captures_at(tmp_path / "out")
    assert (len(found.log), found.earlier) == (4, None)
    assert "its earlier capture is unreadable" in found.evidence.notes[-1]


def test_a_store_that_can_no_longer_be_listed_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_store(tmp_path / "store", a_run("wrun_1").log, "hookStorm", {})
    source = LocalSource(tmp_path / "store")

    def fail(_self: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(live_local.Store, "event_names", fail)
    with pytest.raises(SourceLost) as lost:
        list(source.read(["wrun_1"]))
    assert lost.value.remedy
