"""What code that is scheduled must not use."""

from __future__ import annotations

from pathlib import Path

import pytest

import stormctl.sim
from stormctl.sim.banned import banned

ROOM = Path(stormctl.sim.__file__).parent

#: of this room: what may use something of the list, and why
ALLOWED = {
    "chain.py": {"os.environ"},  # hands the environment on to a process
    "explore.py": {"time"},  # a budget of seconds
    "models/leaks.py": {"random", "time", "the order of a set", "id()"},  # leaks on purpose
}
SCHEDULED = [
    "banned.py", "certify.py", "chain.py", "classes.py", "dpor.py", "explore.py", "kernel.py", "pool.py", "shrink.py",
    "stream.py", "tape.py", "token.py",
    *sorted(str(path.relative_to(ROOM)) for room in ("models", "strategies") for path in (ROOM / room).glob("*.py")),
]  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULED)
def test_nothing_that_differs_between_processes_is_used(name: str) -> None:
    found = {one.name for one in banned((ROOM / name).read_text())}
    assert found == ALLOWED.get(name, set())


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import random", "random"),
        ("from time import time", "time"),
        ("import uuid as u", "uuid"),
        ("key = id(one)", "id()"),
        ("key = hash(one)", "hash()"),
        ("import os\nos.urandom(8)", "os.urandom"),
        ("for one in {1, 2}: pass", "the order of a set"),
        ("for one in set(a) | set(b): pass", "the order of a set"),
        ("x = [one for one in set(a)]", "the order of a set"),
        ("x = list(frozenset(a))", "the order of a set"),
        ("x = [*{1, 2}]", "the order of a set"),
    ],
)
def test_each_of_them_is_found(source: str, name: str) -> None:
    (found,) = banned(source)
    assert found.name == name
    assert str(found) == f"line {source.count(chr(10)) + 1}: {name}"


@pytest.mark.parametrize(
    "source",
    [
        "seen = set()\nseen.add(1)\n1 in seen",
        "for one in sorted({1, 2}): pass",
        "from stormctl.times import x",
        "a.id(1)",
    ],
)
def test_what_looks_like_it_is_not_found(source: str) -> None:
    assert list(banned(source)) == []
