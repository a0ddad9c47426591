"""Tables and histories that were cut, flipped and filled with nonsense, with and without a map, and then swept."""

from __future__ import annotations

import copy
import csv
import io
import json
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.readers import Reading, Unreadable, open_captures
from stormctl.readers.parquet import write_parquet
from stormctl.readers.tables import find_map, shipped_maps
from stormctl.readers.tables.maps import MapError, TableMap
from stormctl.readers.tables.shipped import FOLDER
from stormctl.testing import LogBuilder
from tests.readers.looked import SECONDS, look
from tests.readers.test_mutated import HOSTILE, mutations, places_in
from tests.readers.test_tables import NAMES, OWN

TABLES = Path(__file__).resolve().parents[2] / "fixtures" / "tables"
pytestmark = pytest.mark.timeout(max(120, settings.default.max_examples))


def a_parquet_log() -> bytes:
    built = LogBuilder().run_created("step-storm").run_started().step(1, "charge", 1).run_completed()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        write_parquet([built.capture()], path, with_payloads=True)
        return path.read_bytes()


def a_parquet_table() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = list(csv.DictReader((TABLES / "dbos.csv").read_text().splitlines()))
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


FORMS: dict[str, tuple[str, bytes, str | None]] = {
    path.name: (path.name, path.read_bytes(), None) for path in sorted(TABLES.iterdir())
}
FORMS["a log in Parquet"] = ("log.parquet", a_parquet_log(), None)
FORMS["a table in Parquet"] = ("table.parquet", a_parquet_table(), None)
FORMS["the protobuf form of dapr"] = ("dapr-protobuf.ndjson", FORMS["dapr-protobuf.ndjson"][1], "map:dapr-durable-task")
#: Each example writes a file, reads and sweeps it, so this share of the asked number is tried per form.
EXAMPLES = max(12, settings.default.max_examples // len(FORMS))


@pytest.mark.parametrize("form", FORMS)
def test_bytes_that_were_changed(tmp_path: Path, form: str) -> None:
    name, content, reader = FORMS[form]
    path = tmp_path / name
    draw = random.Random(f"bytes of {form}")
    for _ in range(max(2, EXAMPLES // 6)):
        for changed in mutations(content, draw):
            path.write_bytes(changed)
            look(path, Reading(reader))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", shipped_maps())
def test_a_table_by_a_map_that_is_for_another(tmp_path: Path, form: str, name: str) -> None:
    path = tmp_path / FORMS[form][0]
    path.write_bytes(FORMS[form][1])
    look(path, Reading(f"map:{name}"))


def _cells() -> st.SearchStrategy[Any]:
    return st.sampled_from(HOSTILE) | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)


@st.composite
def changed_rows(draw: st.DrawFn) -> tuple[str, bytes]:
    """Rows of one of the tables, with some of their values exchanged, as JSON or as CSV."""
    form = draw(st.sampled_from([form for form in FORMS if form.endswith(("json", "ndjson"))]))
    text = FORMS[form][1].decode()
    value = [json.loads(line) for line in text.splitlines()] if form.endswith("ndjson") else json.loads(text)
    for _ in range(draw(st.integers(1, 4))):
        places = places_in(value)
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        what = draw(st.sampled_from(["put", "drop", "double"]))
        if what == "put":
            holder[key] = copy.deepcopy(draw(_cells()))
        elif what == "drop":
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
    return FORMS[form][0], json.dumps(value).encode()


@given(changed_rows(), st.sampled_from([None, *(f"map:{name}" for name in shipped_maps())]))
def test_values_that_were_changed(
    tmp_path_factory: pytest.TempPathFactory, changed: tuple[str, bytes], reader: str | None
) -> None:
    path = tmp_path_factory.mktemp("values") / changed[0].replace("ndjson", "json")
    path.write_bytes(changed[1])
    look(path, Reading(reader))


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), _cells()), max_size=6))
def test_any_rows_by_a_map_of_ones_own(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]) -> None:
    import yaml

    folder = tmp_path_factory.mktemp("rows")
    (folder / "own.yaml").write_text(yaml.safe_dump(OWN))
    (folder / "a.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    look(folder / "a.ndjson", Reading(f"map:{folder / 'own.yaml'}"))
    with (folder / "a.csv").open("w", newline="", encoding="utf-8", errors="replace") as file:
        writer = csv.DictWriter(file, NAMES)
        writer.writeheader()
        writer.writerows(rows)
    look(folder / "a.csv", Reading(f"map:{folder / 'own.yaml'}"))


PARTS = ("columns", "types", "skip", "defaults", "base", "digits", "absent", "rows", "signature", "name", "ulids")
ANY = st.recursive(_cells(), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner), max_leaves=8)


def is_a_map_or_a_sentence(read: Callable[[], TableMap]) -> bool:
    try:
        return bool(read())
    except MapError as error:
        return "\n" not in f"{error}{error.remedy}"


@given(ANY)
def test_any_content_of_a_map_is_a_map_or_a_sentence(content: Any) -> None:
    for part in PARTS:
        assert is_a_map_or_a_sentence(partial(TableMap.parse, {**OWN, part: content}, "own.yaml"))


@pytest.mark.parametrize("name", shipped_maps())
def test_bytes_of_a_map_that_were_changed(tmp_path: Path, name: str) -> None:
    path = tmp_path / "own.yaml"
    draw = random.Random(f"map {name}")
    for changed in mutations((FOLDER / f"{name}.yaml").read_bytes(), draw):
        path.write_bytes(changed)
        began = time.process_time()
        assert is_a_map_or_a_sentence(partial(find_map, str(path)))
        assert time.process_time() - began < SECONDS


HEADER = b"workflow_uuid,function_id,function_name\n"
HOSTILE_TABLES: dict[str, tuple[str, bytes, str]] = {
    "an open quote": ("a.csv", b'workflow_uuid,function_id,function_name\n"' + b"x\n" * 200_000, "is no CSV"),
    "a wide row": (
        "a.csv",
        b"workflow_uuid,function_id,function_name\n" + b"x," * 200_000,
        "cells where the header has",
    ),
    "a wide header": (
        "a.csv",
        HEADER[:-1] + b",x" * 100_000 + b"\n1,2\n",
        "more than 4096 columns",
    ),
    "a column twice": ("a.csv", b"workflow_uuid,workflow_uuid\n1,2\n", "twice"),
    "no rows": ("a.csv", HEADER, "holds no events"),
    "a zero byte": ("a.csv", HEADER + b"1,2,a\n" * 2000 + b"\0", "is binary"),
    "broken UTF-8": (
        "a.csv",
        b"workflow_uuid,function_id,function_name\n" + b"1,2,a\n" * 2000 + b"\xff,1,a\n",
        "UTF-8",
    ),
    "deep brackets": ("a.json", b'[{"workflow_uuid":' + b"[" * 200_000, "nested too deeply"),
    "an escape": ("a.ndjson", b'{"workflow_uuid":"\\u001b[2J","function_id":"\\u001b[2J"}', "takes a whole number"),
}


@pytest.mark.parametrize("what", HOSTILE_TABLES)
def test_what_is_meant_to_hurt_gets_one_sentence(tmp_path: Path, what: str) -> None:
    name, content, said = HOSTILE_TABLES[what]
    path = tmp_path / name
    path.write_bytes(content)
    look(path, Reading("map:dbos"))
    found = [one for one in open_captures([path], Reading("map:dbos")) if isinstance(one, Unreadable)]
    assert any(said in one.error for one in found), found
