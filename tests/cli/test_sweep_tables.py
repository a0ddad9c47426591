"""The command over tables of other engines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
DBOS = "fixtures/tables/dbos.csv"


@pytest.mark.parametrize("path", ["azure-durable-task.csv", "temporal-history.json", "restate-journal.json"])
def test_a_table_that_a_shipped_map_is_for_needs_no_option(path: str, stormctl: Run) -> None:
    ran = stormctl("sweep", f"fixtures/tables/{path}")
    assert (ran.code, ran.err) == (3, ""), "nothing is fatal, and nobody named a workload"
    assert ran.out.startswith(f"unknown  fixtures/tables/{path}\n")


def test_a_map_by_name_and_a_map_in_a_file(stormctl: Run, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(
        "schema: stormctl.map/1\nname: own\ncolumns: {run: r, position: p, type: t, entity: e}\n"
        "types: {made: step_created, begun: step_started, done: step_completed}\n"
    )
    table = tmp_path / "t.csv"
    table.write_text("r,p,t,e\na,1,made,1\na,2,begun,1\na,4,done,1\n")
    ran = stormctl("sweep", str(table), "--map", str(own))
    assert ran.code == 1
    assert "position 3 is missing before 4" in ran.out
    assert stormctl("sweep", DBOS, "--map", "dbos").code == 3


def test_one_table_that_cannot_be_read_does_not_hide_the_others(stormctl: Run, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("workflow_uuid,function_name\na,b\n")
    ran = stormctl("sweep", str(table), DBOS, "--map", "dbos", "--format", "json")
    assert ran.code == 4
    report = json.loads(ran.out)
    assert [log["run_id"] for log in report["logs"]] == ["order-1", "order-2"]
    (lost,) = report["unreadable"]
    assert "has no column 'function_id', which the map dbos names for position" in lost["error"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--map", "dbs"], "Did you mean 'dbos'?"),
        (["--map", "dbos", "--from", "compact"], "a map is for tables, not for compact"),
        (["--map", "./none.yaml"], "the map none.yaml cannot be read: no such file or directory"),
    ],
)
def test_a_map_that_there_is_not_is_said_before_anything_is_read(options: list[str], said: str, stormctl: Run) -> None:
    ran = stormctl("sweep", DBOS, *options)
    assert (ran.code, ran.out) == (2, "")
    assert said in " ".join(ran.err.split())


def test_explain_reads_them_too(stormctl: Run) -> None:
    ran = stormctl("explain", "fixtures/logs/temporal-706-event-ids-not-continuous.ndjson")
    assert ran.err == ""
    assert ran.code in (1, 3)
