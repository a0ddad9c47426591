"""Files that were cut, flipped, spliced and filled with nonsense, through every reader and every sweep: one sentence,
or a report, soon.

``STORMCTL_EXAMPLES`` says how many; 10,000 take some minutes.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.history import Capture
from stormctl.readers import Reading, Unreadable, open_captures
from tests.readers.looked import look
from tests.readers.samples import MORE, SAMPLES, store_files, write_files

pytestmark = pytest.mark.timeout(max(120, settings.default.max_examples))
ALL = {**SAMPLES, **MORE}
#: Each example writes a file and reads it, so this share of the asked number is tried per form of file.
EXAMPLES = max(20, settings.default.max_examples // len(ALL))
HOSTILE: list[Any] = [
    None, True, -1, 0, 2**63, 10**30, 1e308, "", "\x1b[2J", "\ud800", "../../etc/passwd", "x" * 5000, [], {}, [[]],
    {"$bytes": "!"}, {"__type": "Uint8Array", "data": 7}, {"0": 256}, {"type": "Buffer", "data": [1, "x", -5]},
    "2026-13-45T99:99:99Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999Z", "evnt_" + "9" * 26,
    {"$bytes": "Z3ppcA=="}, {"$bytes": "ZGV2bFtbLTFd"}, "run_created", "\N{LOCK} Encrypted", ["devl"], {"token": {}},
]  # fmt: skip


@pytest.mark.parametrize("form", ALL)
def test_the_samples_are_read_by_whom_they_are_for(tmp_path: Path, form: str) -> None:
    name, content = ALL[form]
    (tmp_path / name).write_bytes(content)
    found = list(open_captures([tmp_path / name]))
    assert found
    assert all(isinstance(one, Capture) for one in found), found


def mutations(content: bytes, draw: random.Random) -> Iterator[bytes]:
    """Bytes flipped, cut out, doubled, swapped in from elsewhere, and the file cut off."""
    size = len(content)
    at, to = sorted((draw.randrange(size), draw.randrange(size)))
    yield content[:at]
    yield content[:at] + content[to:]
    yield content[:to] + content[at:]
    yield content[:at] + bytes(draw.randrange(256) for _ in range(draw.randrange(1, 9))) + content[at:]
    flipped = bytearray(content)
    for _ in range(draw.randrange(1, 6)):
        flipped[draw.randrange(size)] ^= 1 << draw.randrange(8)
    yield bytes(flipped)
    other = draw.choice(list(ALL.values()))[1]
    yield content[:at] + other[draw.randrange(len(other)) :]


@pytest.mark.parametrize("form", ALL)
def test_bytes_that_were_changed(tmp_path: Path, form: str) -> None:
    name, content = ALL[form]
    path = tmp_path / name
    draw = random.Random(f"bytes of {form}")
    for _ in range(max(1, EXAMPLES // 6)):
        for changed in mutations(content, draw):
            path.write_bytes(changed)
            look(path)


@pytest.mark.parametrize("form", ALL)
def test_bytes_that_were_changed_with_the_reader_named(tmp_path: Path, form: str) -> None:
    name, content = ALL[form]
    path = tmp_path / name
    draw = random.Random(f"named {form}")
    for reader in SAMPLES:
        for changed in mutations(content, draw):
            path.write_bytes(changed)
            look(path, Reading(reader))


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Every place inside a JSON value: its container and the key there."""
    found: list[tuple[Any, Any]] = []
    keys = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ()
    for key in keys:
        found.append((value, key))
        found += places_in(value[key])
    return found


def _values(draw: st.DrawFn, value: Any) -> Any:
    for _ in range(draw(st.integers(1, 4))):
        places = places_in(value)
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        what = draw(st.sampled_from(["put", "drop", "double"]))
        if what == "put":
            holder[key] = copy.deepcopy(draw(st.sampled_from(HOSTILE)))
        elif what == "drop":
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
    return value


JSON_FORMS = [form for form, (_, content) in ALL.items() if content[:1] in (b"{", b"[") and b"\n{" not in content]


@st.composite
def changed_values(draw: st.DrawFn) -> tuple[str, Any]:
    form = draw(st.sampled_from(JSON_FORMS))
    return ALL[form][0], _values(draw, json.loads(ALL[form][1]))


@given(changed_values())
def test_values_that_were_changed(tmp_path_factory: pytest.TempPathFactory, changed: tuple[str, Any]) -> None:
    name, value = changed
    path = tmp_path_factory.mktemp("values") / name
    path.write_bytes(json.dumps(value).encode())
    look(path)


@given(st.data())
def test_a_store_with_one_file_changed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    files = store_files()
    name = data.draw(st.sampled_from([name for name in files if name.endswith(".json")]))
    value = _values(data.draw, json.loads(files[name]))
    broken = data.draw(st.sampled_from([json.dumps(value).encode(), files[name][: len(files[name]) // 2], b"", b"\0"]))
    folder = write_files(tmp_path_factory.mktemp("store"), {**files, name: broken})
    look(folder)


Hostile = Callable[[], bytes]
BOMBS: dict[str, tuple[str, Hostile, str]] = {
    "brackets": ("a.json", lambda: b'[{"eventType":' + b"[" * 300_000, "nested too deeply"),
    "a few hundred brackets": (
        "a.json",
        lambda: b'[{"eventType":"x","eventData":{"a":' + b"[" * 400 + b"]" * 400 + b"}}]",
        "nested too deeply",
    ),
    "objects": ("a.json", lambda: b'[{"eventType":' + b'{"a":' * 300_000, "nested too deeply"),
    "a long number": ("a.json", lambda: b'[{"eventType":' + b"9" * 200_000 + b"}]", "too many digits"),
    "a large float": ("a.json", lambda: b'[{"eventType":"x","a":1e999}]', "too large"),
    "NaN": ("a.json", lambda: b'[{"eventType":NaN}]', "NaN"),
    "a key twice": ("a.json", lambda: b'[{"eventType":"x","runId":"a","runId":"b"}]', "twice"),
    "an endless text": ("a.json", lambda: b'[{"eventType":"' + b"x" * 3_000_000, "cut off"),
    "broken UTF-8": ("a.json", lambda: b'[{"eventType":"\xc3\x28"}]', "UTF-8"),
    "late broken UTF-8": ("a.json", lambda: b'[{"eventType":"' + b"x" * 99_999 + b'\xff"}]', "UTF-8"),
    "a cut pair of UTF-16": ("a.json", lambda: b"\xff\xfe" + '[{"eventType":"x"'.encode("utf-16-le")[:-1], "UTF-16"),
    "an open quote": ("a.csv", lambda: SAMPLES["workflow-csv"][1] + b'"' + b"x,\n" * 500_000, "is not CSV"),
    "a wide row": ("a.csv", lambda: SAMPLES["workflow-csv"][1] + b"x," * 500_000, "cells for 8 columns"),
    "commas": ("a.json", lambda: b'[{"eventType":"x"}' + b"," * 300_000, "is not JSON"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_is_meant_to_hurt_gets_one_sentence(tmp_path: Path, bomb: str) -> None:
    name, make, said = BOMBS[bomb]
    path = tmp_path / name
    path.write_bytes(make())
    look(path)
    found = [one for one in open_captures([path]) if isinstance(one, Unreadable)]
    assert any(said in one.error for one in found), found
