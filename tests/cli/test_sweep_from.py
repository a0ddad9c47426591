"""``stormctl sweep`` and ``explain`` on other people's files: by content, by name, from archives and databases."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ran
from tests.readers.samples import MORE, SAMPLES, a_run, dumped, event, ndjson_log, run_row, tarred
from tests.readers.sdk_tables import TABLES, fill

Run = Callable[..., Ran]
FORMS = {**SAMPLES, **MORE}


def report(ran: Ran) -> dict[str, Any]:
    found = json.loads(ran.out)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_swept_and_none_without_events_is_called_clean(stormctl: Run, tmp_path: Path, form: str) -> None:
    name, content = FORMS[form]
    (tmp_path / name).write_bytes(content)
    ran = stormctl("sweep", tmp_path / name, "--format", "json")
    assert ran.code in (0, 1, 3), ran
    found = report(ran)
    assert found["unreadable"] == []
    assert found["logs"]
    assert all(log["verdict"] != "clean" for log in found["logs"] if log["events"] == 0)


def test_a_reader_can_be_named(stormctl: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(dumped(a_run()[3:] + a_run()[:3]))
    as_it_is = report(stormctl("sweep", path, "--format", "json"))
    ordered = report(stormctl("sweep", path, "--from", "workflow-inspect", "--format", "json"))

    def dense(found: dict[str, Any]) -> str:
        (verdict,) = (one["verdict"] for one in found["logs"][0]["sweeps"] if one["sweep"] == "dense")
        return str(verdict)

    assert dense(as_it_is) == "violated"
    assert dense(ordered) == "clean"


@pytest.mark.parametrize("command", ["sweep", "explain"])
def test_a_reader_that_there_is_not_is_bad_usage(stormctl: Run, tmp_path: Path, command: str) -> None:
    ran = stormctl(command, tmp_path / "nowhere", "--from", "workflow-inspekt")
    assert ran.code == 2
    assert ran.err == "stormctl: there is no reader 'workflow-inspekt'. Did you mean 'workflow-inspect'?\n"


def test_a_reader_that_is_named_wrongly_for_a_file_is_one_sentence(stormctl: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(ndjson_log())
    ran = stormctl("sweep", path, "--from", "workflow-csv")
    assert ran.code == 4
    assert "does not begin with the columns of a table" in " ".join(ran.out.split())


def test_what_a_stranger_wrote_into_names_cannot_move_the_cursor(stormctl: Run, tmp_path: Path) -> None:
    ugly = "wrun_\x1b[2J\x07"
    events = [{**body, "runId": ugly, "eventType": f"{body['eventType']}\x1b]0;x\x07"} for body in a_run()]
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "\x1b[31mevil.json").write_bytes(dumped(events))
    (folder / "\x1b[31mbad.json").write_bytes(b"[{\x1b")
    (folder / "a.tgz").write_bytes(tarred({"\x1b[2Jx.ndjson": b"{\x07}"}))
    for arguments in (["sweep", folder], ["sweep", folder, "--format", "json"], ["explain", folder]):
        ran = stormctl(*arguments)
        assert "\x1b" not in ran.out + ran.err
        assert "\x07" not in ran.out + ran.err


class TestPayloads:
    def opened(self, tmp_path: Path) -> Path:
        path = tmp_path / "a.json"
        secret = {"$bytes": "ZGV2bFsic2VjcmV0LXZhbHVlIl0="}  # devl["secret-value"]
        path.write_bytes(dumped([event(1, "run_created", input=secret), event(3, "run_completed", output=secret)]))
        return path

    def test_they_are_not_printed(self, stormctl: Run, tmp_path: Path) -> None:
        path = self.opened(tmp_path)
        for arguments in (["sweep", path], ["sweep", path, "--format", "json"], ["explain", path]):
            ran = stormctl(*arguments)
            assert ran.code == 1
            assert "secret-value" not in ran.out + ran.err

    def test_unless_somebody_asks_for_those_of_the_findings(self, stormctl: Run, tmp_path: Path) -> None:
        path = self.opened(tmp_path)
        assert 'payload of 3  "secret-value"' in stormctl("sweep", path, "--show-payloads").out
        (log,) = report(stormctl("sweep", path, "--show-payloads", "--format", "json"))["logs"]
        assert {"position": 3, "payload": '"secret-value"'} in log["payloads"]


def test_one_bad_file_among_many_does_not_hide_the_rest(stormctl: Run, tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number:03d}.ndjson").write_bytes(ndjson_log())
    (tmp_path / "150.ndjson").write_bytes(b"\0")
    ran = stormctl("sweep", tmp_path, "--format", "json")
    assert ran.code == 4
    found = report(ran)
    assert (len(found["logs"]), len(found["unreadable"])) == (299, 1)


@pytest.mark.storm
class TestDatabase:
    @pytest.fixture
    def dsn(self, postgres_dsn: str) -> str:
        import psycopg

        with psycopg.connect(postgres_dsn, autocommit=True) as connection:
            connection.execute(TABLES)
            row = run_row()
            fill(
                connection,
                "workflow_runs",
                [{"id": row["runId"], "deployment_id": "d", "status": "completed", "name": "w"}],
            )
            events = [("b", "run_started"), ("a", "run_created"), ("c", "run_completed")]
            rows = [
                {"id": f"wevt_{id}", "type": type, "run_id": row["runId"], "spec_version": 3} for id, type in events
            ]
            fill(connection, "workflow_events", rows)
        return postgres_dsn

    def test_a_dsn_stands_where_a_path_may(self, stormctl: Run, dsn: str) -> None:
        url = as_url(dsn)
        ran = stormctl("sweep", url, "--format", "json")
        (log,) = report(ran)["logs"]
        assert (log["events"], log["run_id"]) == (3, run_row()["runId"])
        assert ran.code in (0, 3), ran.out

    def test_any_dsn_does_when_the_reader_is_named(self, stormctl: Run, dsn: str) -> None:
        (log,) = report(stormctl("sweep", dsn, "--from", "workflow-postgres", "--format", "json"))["logs"]
        assert log["events"] == 3


def as_url(dsn: str) -> str:
    """A DSN as a URL, whatever form the tests' server gave it."""
    from urllib.parse import quote, urlencode

    from psycopg.conninfo import conninfo_to_dict

    found = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
    name = quote(found.pop("dbname", ""), safe="")
    return f"postgresql:///{name}?{urlencode(found)}"


@pytest.mark.skipif(os.name != "posix", reason="a fifo is POSIX's")
def test_a_fifo_in_a_folder_is_not_waited_for(stormctl: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.ndjson")
    for arguments in ([], ["--from", "workflow-json"]):
        ran = stormctl("sweep", tmp_path, *arguments)
        assert ran.code == 4
        assert "is not a regular file" in " ".join(ran.out.split())
