"""Shared by the tests of commands: run one in the project's folder, and compare its output with the stored one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from stormctl.cli import main

UPDATE = bool(os.environ.get("STORMCTL_UPDATE"))


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def stormctl(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, root: Path) -> Callable[..., Ran]:
    """Run a command line: ``stormctl("sweep", "a.ndjson").code``. Relative paths are the project's."""

    def run(*arguments: object) -> Ran:
        monkeypatch.chdir(root)
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def stored() -> Callable[[str, str], None]:
    """Compare a text with the stored one of that name. ``STORMCTL_UPDATE=1`` stores it instead."""

    def compare(name: str, text: str) -> None:
        path = Path(__file__).parent / "snapshots" / name
        if UPDATE:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path.name} is not stored; run the tests with STORMCTL_UPDATE=1 and read it"
        assert text == path.read_text()

    return compare
