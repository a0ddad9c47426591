"""Payload bytes: every type, every wrapping, and everything that a hostile one may try."""

from __future__ import annotations

import base64
import gzip
import json
import math
from contextlib import suppress
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import UnreadableInput
from stormctl.history import Damaged, Inline, Sealed, digest_value
from stormctl.readers import devalue
from stormctl.readers.devalue import decode
from stormctl.readers.payloads import Encoded, bytes_of, payload_of, readable
from stormctl.worlds.encode import pack_bytes


def devl(text: str) -> bytes:
    return b"devl" + text.encode()


class TestValues:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("[42]", 42),
            ('["x"]', "x"),
            ("[null]", None),
            ("-1", None),
            ("-4", math.inf),
            ('[[1,2,1],"a",{"k":3},true]', ["a", {"k": True}, "a"]),
            ('[{"args":1,"closureVars":-1,"thisVal":-1},[2],{"r":3},0]', {"args": [{"r": 0}]}),
            ("[[1,-2,-1],7]", [7, None, None]),
            ("[[-7,5,1,1],9]", [None, 9, None, None, None]),
            ('[["Date","2026-01-02T12:00:00.000Z"]]', "2026-01-02T12:00:00.000Z"),
            ('[["Date",""]]', ""),
            ('[["BigInt","-123456789012345678901234567890"]]', -123456789012345678901234567890),
            ('[["Map",1,2,3,4],"a",1,"b",2]', {"$type": "Map", "entries": [["a", 1], ["b", 2]]}),
            ('[["Set",1,2],"a","b"]', {"$type": "Set", "values": ["a", "b"]}),
            ('[["RegExp","a+","gi"]]', {"$type": "RegExp", "source": "a+", "flags": "gi"}),
            ('[["RegExp","a+"]]', {"$type": "RegExp", "source": "a+", "flags": ""}),
            ('[["Object","boxed"]]', "boxed"),
            ('[["null","k",1],5]', {"k": 5}),
            ('[["ArrayBuffer","AAE="]]', {"$bytes": "AAE="}),
            ('[["URL","https://a.b/"]]', "https://a.b/"),
            ('[["Error",1],{"name":2,"message":3},"E","m"]', {"$type": "Error", "name": "E", "message": "m"}),
            ('[["StepFunction",1],"step//x"]', {"$type": "StepFunction", "value": "step//x"}),
            ('[["Uint8Array",1],["ArrayBuffer","AAE="]]', {"$type": "Uint8Array", "$bytes": "AAE="}),
        ],
    )
    def test_each_type_is_what_json_makes_of_it(self, text: str, value: Any) -> None:
        assert decode(devl(text)) == value

    def test_not_a_number_and_minus_zero(self) -> None:
        nan, zero = decode(devl("[[-3,-6]]"))
        assert math.isnan(nan)
        assert math.copysign(1, zero) == -1

    def test_a_value_inside_itself_becomes_a_reference(self) -> None:
        assert decode(devl('[{"self":0,"n":1},3]')) == {"self": {"$ref": 0}, "n": 3}
        assert decode(devl("[[1],[0]]")) == [[{"$ref": 0}]]

    def test_a_value_that_is_named_twice_is_there_twice(self) -> None:
        assert decode(devl('[[1,1],{"a":2},1]')) == [{"a": 1}, {"a": 1}]

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
            lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
            max_leaves=20,
        )
    )
    def test_what_our_worlds_write_comes_back(self, value: Any) -> None:
        assert decode(pack_bytes(value)) == value


class TestWrappings:
    def test_gzip_and_zstd_in_any_order(self) -> None:
        plain = devl('["x"]')
        zipped, small = b"gzip" + gzip.compress(plain), b"zstd" + zstandard.compress(plain)
        for raw in (zipped, small, b"gzip" + gzip.compress(small), b"zstd" + zstandard.compress(zipped)):
            assert decode(raw) == "x"

    def test_bytes_without_a_prefix_are_json(self) -> None:
        assert decode(b'[{"a": 1}]') == [{"a": 1}]
        assert decode(b"true") is True
        assert decode(b"1796") == 1796

    @pytest.mark.parametrize("prefix", [b"encr", b"encp"])
    def test_what_is_encrypted_stays_so(self, prefix: bytes) -> None:
        with pytest.raises(UnreadableInput, match="is encrypted"):
            decode(prefix + b"\x00\x01")
        assert isinstance(payload_of({"$bytes": base64.b64encode(prefix + b"\x00").decode()}), Sealed)

    def test_wrapped_too_often(self) -> None:
        raw = devl("[1]")
        for _ in range(devalue.MAX_WRAPPINGS):
            raw = b"gzip" + gzip.compress(raw)
        with pytest.raises(UnreadableInput, match="wrapped more than"):
            decode(raw)


class TestBombs:
    def test_a_small_gzip_of_a_large_payload_is_refused(self) -> None:
        bomb = b"gzip" + gzip.compress(devl('["' + "x" * (1 << 20) + '"]'))
        assert len(bomb) < 2_000
        assert len(decode(bomb)) == 1 << 20
        with pytest.raises(UnreadableInput, match="unpacks to more than 2000 bytes"):
            decode(bomb, most=2_000)

    def test_a_small_zstd_of_a_large_payload_is_refused(self) -> None:
        bomb = b"zstd" + zstandard.compress(b"x" * (64 << 20))
        with pytest.raises(UnreadableInput, match="unpacks to more than"):
            decode(bomb)

    def test_references_that_double_at_each_level_are_refused(self) -> None:
        flat = [[place + 1, place + 1] for place in range(100)]
        with pytest.raises(UnreadableInput, match="holds values of more than"):
            decode(devl(json.dumps([*flat, 1])))

    def test_one_long_text_named_often_is_refused(self) -> None:
        flat = [[1] * 10_000, "x" * 10_000]
        with pytest.raises(UnreadableInput, match="holds values of more than"):
            decode(devl(json.dumps(flat)))

    def test_deep_values_are_refused_in_either_form(self) -> None:
        deep = [[place + 1] for place in range(5_000)]
        for raw in (devl(json.dumps([*deep, 1])), b"[" * 900 + b"]" * 900, b"[" * 90_000):
            with pytest.raises(UnreadableInput, match="nest"):
                decode(raw)

    def test_depth_is_counted_through_values_that_were_made_before(self) -> None:
        half = devalue.MAX_DEPTH - 10
        first = [[place + 2] for place in range(half)]  # elements 1 to half, deepest last
        chain = [[half + 2 + place] for place in range(1, half)]
        flat = [[1, half + 2], *first, 7, *chain, [1]]
        with pytest.raises(UnreadableInput, match="nests deeper"):
            decode(devl(json.dumps(flat)))

    def test_a_sparse_array_without_end_is_refused(self) -> None:
        with pytest.raises(UnreadableInput, match="holds values of more than"):
            decode(devl("[[-7,99999999999]]"))


class TestDamage:
    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"devl",
            b"devl[",
            b"devl[]",
            b"devl{}",
            b"devl7",
            b"devl-9",
            b"devl[[9]]",
            b"devl[[-8]]",
            b'devl[["Map",1],2]',
            b'devl[{"a":"b"}]',
            b"devl[[1.5],1]",
            b"devl[[true],1]",
            b'devl[["BigInt","1e5"]]',
            b'devl[["ArrayBuffer","?"]]',
            b"devl[[-7]]",
            b"devl[[-7,2,5,1],1]",
            b"devl\xff\xfe",
            b"gzip",
            b"gzipxxxx",
            b"gzip" + gzip.compress(b"devl[1]", mtime=0)[:-9],
            b"zstd",
            b"zstdxxxx",
            b"zstd" + zstandard.compress(b"devl[1]")[:-3],
            b"what[1]",
            b"\x00\x01\x02",
            b"NaN",
        ],
    )
    def test_damage_is_named_and_nothing_else_happens(self, raw: bytes) -> None:
        with pytest.raises(UnreadableInput):
            decode(raw)
        payload = payload_of(raw)
        assert isinstance(payload, Damaged)
        assert payload.digest
        with pytest.raises(UnreadableInput):
            payload.load()

    @given(st.binary(max_size=60), st.sampled_from([b"", b"devl", b"gzip", b"zstd", b"devl[[", b'devl[["Map",']))
    def test_any_bytes_are_a_value_or_a_refusal(self, rest: bytes, prefix: bytes) -> None:
        with suppress(UnreadableInput):
            decode(prefix + rest)

    @given(
        st.lists(
            st.integers(-8, 12)
            | st.text(max_size=3)
            | st.lists(st.integers(-8, 12) | st.sampled_from(["Map", "Set", "Date", "x"]), max_size=5)
            | st.dictionaries(st.text(max_size=2), st.integers(-8, 12), max_size=3),
            min_size=1,
            max_size=12,
        )
    )
    def test_any_flattened_array_ends_and_can_be_digested(self, flat: list[Any]) -> None:
        payload = payload_of(devl(json.dumps(flat)))
        assert payload is not None
        assert payload.digest


class TestPayloads:
    def test_one_value_has_one_digest_however_it_is_wrapped(self) -> None:
        value = {"b": [1, "x"], "a": None}
        raw = pack_bytes(value)
        forms: list[Any] = [
            raw,
            b"gzip" + gzip.compress(raw),
            {"__type": "Uint8Array", "data": base64.b64encode(raw).decode()},
            {"$bytes": base64.b64encode(raw).decode()},
            {"type": "Buffer", "data": list(raw)},
            {str(place): byte for place, byte in enumerate(raw)},
            value,
        ]
        assert {payload_of(form).digest for form in forms} == {digest_value(value)}  # type: ignore[union-attr]

    def test_a_steps_input_is_its_arguments(self) -> None:
        given = devl('[{"args":1,"closureVars":-1,"thisVal":-1},[2],7]')
        assert readable(payload_of(given, arguments=True)) == [7]
        assert readable(payload_of(given)) == {"args": [7]}
        closed = devl('[{"args":1,"closureVars":2},[],{"x":3},7]')
        assert readable(payload_of(closed, arguments=True)) == {"args": [], "closureVars": {"x": 7}}

    def test_a_large_payload_is_opened_when_it_is_asked_for(self) -> None:
        raw = devl('["' + "x" * 100_000)
        payload = payload_of(raw)
        assert isinstance(payload, Encoded)
        assert payload.digest  # of the bytes, for there is no value
        with pytest.raises(UnreadableInput):
            payload.load()

    def test_what_tools_print_instead_of_a_payload_is_sealed(self) -> None:
        for text in ("\N{LOCK} Encrypted (key absent)", "<data expired>"):
            assert isinstance(payload_of(text), Sealed)
        assert payload_of("plain") == Inline("plain")

    def test_broken_base64_is_damage(self) -> None:
        payload = payload_of({"__type": "Uint8Array", "data": "?"})
        assert isinstance(payload, Damaged)
        assert readable(payload) is None

    def test_what_is_no_bytes_is_left_alone(self) -> None:
        for value in ({"0": 300}, {"0": "a"}, {"1": 1}, {"$bytes": "AA==", "more": 1}, {}, [], 7):
            assert bytes_of(value) is None
