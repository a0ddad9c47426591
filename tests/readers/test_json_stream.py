"""JSON read value by value gives what reading it whole gives, wherever its pieces end."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import UnreadableInput
from stormctl.readers import json_stream
from stormctl.readers.json_stream import Around, Item, array_items, documents

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "_CHUNK", 3)


def write(folder: Path, text: str) -> Path:
    path = folder / "a.json"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def parts(path: Path) -> Iterator[Any]:
    for piece in documents(path, ("data", "events")):
        yield piece.value if isinstance(piece, Item) else ("around", dict(piece.fields))


class TestForms:
    def test_an_array(self, tmp_path: Path) -> None:
        assert list(parts(write(tmp_path, "[1, {}, []]"))) == [1, {}, [], ("around", {})]

    def test_pages_one_after_the_other(self, tmp_path: Path) -> None:
        text = '{"data": [1, 2], "hasMore": true}\n{"hasMore": false, "data": [3]}'
        assert list(parts(write(tmp_path, text))) == [
            1, 2, ("around", {"hasMore": True}), 3, ("around", {"hasMore": False}),
        ]  # fmt: skip

    def test_an_object_per_line_or_indented_or_with_commas_between(self, tmp_path: Path) -> None:
        for text in ('{"a": 1}\n{"a": 2}\n', '{\n "a": 1\n}\n{\n "a": 2\n}', '{"a": 1},\n{"a": 2},'):
            assert list(parts(write(tmp_path, text))) == [{"a": 1}, {"a": 2}]

    def test_lines_before_the_first_document_are_passed_over_when_asked(self, tmp_path: Path) -> None:
        path = write(tmp_path, 'Workflow CLI v4\n[debug] using local\n{"data": [1]}')
        assert [piece.value for piece in documents(path, ("data",), junk=True) if isinstance(piece, Item)] == [1]
        with pytest.raises(UnreadableInput):
            list(documents(path, ("data",)))

    def test_items_know_their_document(self, tmp_path: Path) -> None:
        found = list(documents(write(tmp_path, '[1][2]{"a":3}'), ("data",)))
        assert [(one.document, one.where) for one in found if isinstance(one, Item)] == [
            (1, "row 1 of a.json"), (2, "row 2 of a.json"), (3, "row 3 of a.json"),
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("[1 2]", "where a comma belongs"),
            ("[1,", "cut off at row 2"),
            ("[1", "cut off"),
            ('{"data": [1]', "cut off"),
            ('{"data"', "cut off"),
            ('{"data" 1}', "a key has no value"),
            ("{data: 1}", "a key has no quotes"),
            ('{"a": 1 "b": 2}', "where a comma belongs"),
            ('{"data": [1], "data": [2]}', "twice"),
            ('{"a": 1, "a": 2}', "twice"),
            ("[1] x", "where an array or an object belongs"),
            ('[{"a": nope, "b": "................"}]', "is not JSON: expecting value"),
        ],
    )
    def test_what_is_no_json_is_named(self, tmp_path: Path, text: str, said: str) -> None:
        with pytest.raises(UnreadableInput) as caught:
            list(documents(write(tmp_path, text), ("data",)))
        assert said in str(caught.value)


@pytest.mark.usefixtures("small_pieces")
class TestInPieces:
    @given(st.lists(VALUES, max_size=5), st.sampled_from([None, 1]))
    def test_an_array_is_what_it_is_as_a_whole(
        self, tmp_path_factory: pytest.TempPathFactory, values: list[Any], indent: int | None
    ) -> None:
        path = write(tmp_path_factory.mktemp("stream"), json.dumps(values, indent=indent))
        assert [value for _, value in array_items(path)] == values

    @given(st.dictionaries(st.text(max_size=6), VALUES, max_size=4), st.lists(VALUES, max_size=4))
    def test_an_object_around_an_array(
        self, tmp_path_factory: pytest.TempPathFactory, fields: dict[str, Any], values: list[Any]
    ) -> None:
        fields = {key: value for key, value in fields.items() if key not in ("data", "events")}
        path = write(tmp_path_factory.mktemp("stream"), json.dumps({**fields, "data": values}, ensure_ascii=False))
        assert list(parts(path)) == [*values, ("around", fields)]


def test_a_value_that_needs_many_pieces_is_not_begun_anew_for_each() -> None:
    reads = 0

    class Counted(io.StringIO):
        def read(self, size: int | None = -1, /) -> str:
            nonlocal reads
            reads += 1
            return super().read(size)

    window = json_stream._Window(Counted(f'"{"x" * (8 << 20)}"'), "a")
    value, size = window.value("here")
    assert len(value) == size - 2 == 8 << 20
    assert reads < 15


def test_what_stands_around_comes_with_its_document(tmp_path: Path) -> None:
    found = list(documents(write(tmp_path, "[1][]"), ()))
    assert [one.document for one in found if isinstance(one, Around)] == [1, 2]
