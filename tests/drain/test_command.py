"""`stormctl drain`, and `stormctl sweep` of what it writes."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from stormctl.cli.app import app, main
from stormctl.drain.model import Play
from stormctl.drain.picture import lanes
from stormctl.drain.scenarios import SCENARIOS, scenario
from stormctl.errors import UnreadableInput
from stormctl.sim.show.lanes import drawn
from stormctl.sweeps.drain.ndjson import SCHEMA, is_trace, lines, parse, read, write
from tests.drain.traces import one_event, trace

PAGE = Path(__file__).parents[2] / "docs" / "drain.md"


def stormctl(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80"})


@pytest.mark.parametrize(
    "shown",
    re.findall(r"```console\n\$ stormctl (drain .*?) \| tail -(\d+)\n(.*?)```", PAGE.read_text(), re.DOTALL),
)
def test_the_page_shows_what_the_commands_print(shown: tuple[str, str, str]) -> None:
    command, count, expected = shown
    assert stormctl(*command.split()).stdout.splitlines()[-int(count) :] == expected.splitlines()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(arguments)
    return code, capsys.readouterr().err


class TestRun:
    def test_shows_waves_counters_lanes_and_what_is_wrong(self) -> None:
        told = stormctl("drain", "run", "G1")
        assert told.exit_code == 1
        assert "PENDING A B" in told.stdout
        assert "violated  drain-coverage/view: W=3 covers A@2" in told.stdout
        assert max(map(len, told.stdout.splitlines())) <= 80

    def test_is_clean_under_the_last_generation(self) -> None:
        told = stormctl("drain", "run")
        assert told.exit_code == 0
        assert "nothing is wrong with it" in told.stdout

    def test_takes_injections_and_leaves_a_trace_that_sweep_reads(self, tmp_path: Path) -> None:
        file = tmp_path / "trace.ndjson"
        told = stormctl("drain", "run", "G2", "--inject", "queue (*): throw", "--trace", str(file))
        assert told.exit_code == 0  # the residual alone
        assert "residual  drain-coverage/residual-queue" in told.stdout
        swept = stormctl("sweep", str(file))
        assert swept.exit_code == 0
        assert "legal  drain-coverage/residual-queue" in swept.stdout
        assert "--engine" not in swept.stdout

    def test_a_token_of_a_search_plays_again(self) -> None:
        found = stormctl("drain", "explore", "G3", "--situation", "park-one", "--seeds", "600")
        assert found.exit_code == 1
        assert "must be caught" not in found.stdout  # of all situations together
        assert "F9" in found.stdout
        token = next(line.split()[-1] for line in found.stdout.splitlines() if "--token" in line)
        again = stormctl("drain", "run", "--token", token)
        assert again.exit_code == 1
        assert "drain-tenure/queued-after-park" in again.stdout

    def test_what_cannot_be_is_refused_in_a_sentence(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        for arguments in (
            ("run", "G9"),
            ("run", "--inject", "nonsense"),
            ("run", "--token", "sw1-nonsense"),
            ("explore", "G2", "--situation", "nowhere"),
            ("explore", "--budget", "soon"),
            ("show", "F77"),
        ):
            code, said = refused(capsys, "drain", *arguments)
            assert code == 2, arguments
            assert said.count("\n") == 1
        code, said = refused(capsys, "drain", "run", "--trace", str(tmp_path / "no" / "trace.ndjson"))
        assert code == 4
        assert "cannot be written" in said


def test_explore_of_the_last_generation_is_clean() -> None:
    told = stormctl("drain", "explore", "G4", "--seeds", "280", "--no-shrink")
    assert told.exit_code == 0
    assert "nothing beyond the residual" in told.stdout


def test_show_tells_of_every_failure_and_is_clean_since_each_is_closed() -> None:
    told = stormctl("drain", "show")
    assert told.exit_code == 0
    assert all(f"{one.id}  {one.title}" in told.stdout for one in SCENARIOS)


def test_list_names_the_loops_and_latency_draws_its_histogram() -> None:
    assert "G4" in stormctl("drain", "list").stdout
    told = stormctl("drain", "latency", "--events", "20")
    assert told.exit_code == 0
    assert "floor alone" in told.stdout


class TestThePicture:
    def test_draws_a_mark_at_the_index_where_it_landed(self) -> None:
        sound, ghost = (scenario(name) for name in ("F6", "F1"))
        play = sound.play(sound.passes).instance
        assert isinstance(play, Play)
        assert any("a[0]+ b[0]+" in row.text for row in lanes(play.trace()).rows)
        play = ghost.play(ghost.fails).instance
        assert isinstance(play, Play)
        assert any("a[1]+" in row.text and row.lane == "store" for row in lanes(play.trace()).rows)

    @pytest.mark.parametrize("one", SCENARIOS, ids=lambda one: one.id)
    def test_fits_the_screen(self, one: object) -> None:
        play = one.play(one.fails).instance  # type: ignore[attr-defined]
        assert all(len(line) <= 80 for line in drawn(lanes(play.trace()), most=30))


class TestTheFile:
    @pytest.mark.parametrize("one", SCENARIOS, ids=lambda one: one.id)
    def test_comes_back_as_it_was_written(self, one: object, tmp_path: Path) -> None:
        found = one.play(one.fails).instance.trace()  # type: ignore[attr-defined]
        file = tmp_path / "trace.ndjson"
        write(found, file)
        assert is_trace(file)
        assert read(file).records == found.records
        assert json.loads(file.read_text().splitlines()[0]) == {"schema": SCHEMA, "name": found.name}

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("not json", "no JSON object"),
            ("[]", "no JSON object"),
            ('{"n": 1, "t": 0, "tenure": 1, "kind": "dance"}', "the kind 'dance'"),
            ('{"n": 1, "t": 0, "tenure": 1, "kind": "flush.dance"}', "the kind 'flush.dance'"),
            ('{"n": 1, "t": 0, "tenure": 1, "kind": "flush"}', "the kind 'flush'"),
            ('{"n": 1, "t": 0, "tenure": 1, "kind": ["flush"]}', "the kind"),
            ('{"n": 1, "t": 0, "tenure": 1, "kind": "dispatch", "seq": 2}', "lacks 'event_id'"),
            ('{"n": true, "t": 0, "tenure": 1, "kind": "dispatch", "event_id": "x", "seq": 2}', "where int belongs"),
            ('{"n": 1, "t": 0, "tenure": 1, "kind": "dispatch", "event_id": "x", "seq": "2"}', "where int belongs"),
            ('{"n": 1, "t": 0, "tenure": 1, "kind": "activate", "pending": [["a"]], "w": 1}', "a list of 1"),
        ],
    )
    def test_names_the_line_that_is_none(self, line: str, said: str, tmp_path: Path) -> None:
        head, *rest = lines(trace(*one_event()))
        with pytest.raises(UnreadableInput, match="line 3") as caught:
            parse([head, rest[0], line], tmp_path / "t.ndjson")
        assert said in str(caught.value)

    def test_a_newer_version_is_a_clear_error_and_a_log_is_no_trace(self, tmp_path: Path) -> None:
        file = tmp_path / "new.ndjson"
        file.write_text('{"schema": "stormctl.drain-trace/2", "name": "x"}\n')
        told = stormctl("sweep", str(file))
        assert told.exit_code == 4
        assert "stormctl.drain-trace/2" in told.stdout
        log = tmp_path / "log.ndjson"
        log.write_text('{"type": "run_created"}\n')
        assert not is_trace(log)
        assert not is_trace(tmp_path / "absent")

    def test_only_one_sweep_of_it_and_one_that_is_for_logs(self, tmp_path: Path) -> None:
        file = tmp_path / "trace.ndjson"
        write(trace(*one_event()), file)
        assert stormctl("sweep", str(file), "--only", "drain-once").exit_code == 0
        told = stormctl("sweep", str(file), "--only", "liveness")
        assert told.exit_code == 3
        assert "an event log" in told.stdout

    @pytest.mark.parametrize("format", ["json", "ndjson", "md", "junit"])
    def test_every_report_tells_of_it(self, format: str, tmp_path: Path) -> None:
        file = tmp_path / "trace.ndjson"
        one = scenario("F6")
        write(one.play(one.fails).instance.trace(), file)
        told = stormctl("sweep", str(file), "--format", format)
        assert told.exit_code == 1
        assert "drain-coverage" in told.stdout

    @given(st.lists(st.text(max_size=60), max_size=6))
    def test_anything_else_is_unreadable_and_never_a_crash(self, rows: list[str]) -> None:
        head = json.dumps({"schema": SCHEMA, "name": "x"})
        with contextlib.suppress(UnreadableInput):
            assert parse([head, *rows], Path("t.ndjson")).records == ()


def test_a_sweep_of_traces_leaves_logs_alone(tmp_path: Path) -> None:
    log = Path(__file__).parents[2] / "fixtures" / "logs"
    told = stormctl("sweep", str(next(log.glob("*clean*step*.ndjson"))))
    assert "drain-" not in told.stdout


class TestATraceThatLacksSomething:
    def swept(self, path: Path, drop: str = "", first: int = 0) -> dict[str, tuple[str, list[str]]]:
        """The verdict and what is missing of each sweep, of a sound run without some of its records."""
        assert stormctl("drain", "run", "G4", "--trace", str(path)).exit_code == 0
        head, *rows = path.read_text().splitlines()
        kept = [row for row in rows if not drop or json.loads(row)["kind"] != drop]
        path.write_text("\n".join([head, *kept[first:]]) + "\n")
        (log,) = json.loads(stormctl("sweep", str(path), "--format", "json").stdout)["logs"]
        return {one["sweep"]: (one["verdict"], one["missing"]) for one in log["sweeps"]}

    def test_is_clean_where_it_lacks_nothing(self, tmp_path: Path) -> None:
        assert {verdict for verdict, _ in self.swept(tmp_path / "t.ndjson").values()} == {"clean"}

    @pytest.mark.parametrize(("kind", "sweep"), [("rest", "drain-wake"), ("counters", "drain-counters")])
    def test_is_unknown_to_the_sweep_that_goes_by_it(self, tmp_path: Path, kind: str, sweep: str) -> None:
        found = self.swept(tmp_path / "t.ndjson", kind)
        assert [name for name, (verdict, _) in found.items() if verdict == "unknown"] == [sweep]
        assert found[sweep][1]

    @pytest.mark.parametrize("first", [1, 8, 10_000])
    def test_is_unknown_to_all_where_it_has_no_beginning(self, tmp_path: Path, first: int) -> None:
        assert {verdict for verdict, _ in self.swept(tmp_path / "t.ndjson", first=first).values()} == {"unknown"}
