"""docs/workflows.md against the program: its code runs, and its commands print what it shows.

``STORMCTL_UPDATE=1`` writes the output of its commands anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stormctl.testing
from stormctl.testing import ReplayFailure, assert_replays
from stormctl.workloads.user import load_workload

CONSOLE = re.compile(r"^```console\n(\$ ([^\n]*)\n)(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def page(root: Path) -> Path:
    return root / "docs" / "workflows.md"


def blocks(page: Path, language: str) -> Iterator[str]:
    yield from re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def run(command: str, root: Path) -> str:
    """What a shell in the project's folder prints, ``stormctl`` being this one."""
    ran = subprocess.run(
        ["bash", "-c", f'stormctl() {{ "{sys.executable}" -m stormctl "$@"; }}\n{command}'],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stderr == ""
    return ran.stdout


def test_every_command_prints_what_the_page_shows(page: Path, root: Path) -> None:
    text = page.read_text()

    def shown(found: re.Match[str]) -> str:
        return f"```console\n{found[1]}{run(found[2], root)}```"

    again = CONSOLE.sub(shown, text)
    if os.environ.get("STORMCTL_UPDATE"):
        page.write_text(again)
    assert len(CONSOLE.findall(text)) == 2
    assert again == page.read_text()


def test_its_code_is_in_the_files_or_runs(page: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = root / "fixtures" / "workflows"
    files = [(folder / name).read_text() for name in ("order.py", "test_order.py")]
    monkeypatch.chdir(root)
    names: dict[str, Any] = {name: getattr(stormctl.testing, name) for name in stormctl.testing.__all__}
    names["order"] = load_workload(f"{folder}/order.py:order").body
    run_here = 0
    for block in blocks(page, "python"):
        if not any(block in file for file in files):
            exec(block, names)
            run_here += 1
    assert run_here == 2


def test_its_tests_pass_for_a_user_who_runs_them(root: Path, tmp_path: Path) -> None:
    for name in ("order.py", "test_order.py"):
        (tmp_path / name).write_text((root / "fixtures" / "workflows" / name).read_text())
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "8 passed" in ran.stdout


def test_the_failure_that_it_shows_is_the_one_that_is_raised(page: Path, root: Path) -> None:
    spec = load_workload(f"{root}/fixtures/workflows/order.py:order")
    names: dict[str, Any] = {"LogBuilder": stormctl.testing.LogBuilder}
    text = (root / "fixtures" / "workflows" / "test_order.py").read_text()
    exec(text[text.index("def paid_early") : text.index("def test_")], names)
    with pytest.raises(ReplayFailure) as caught:
        assert_replays(spec.body, names["paid_early"](), generation="turnstile")
    assert list(blocks(page, "text")) == [f"{caught.value}\n"]


def test_it_lists_everything_that_a_test_may_call(page: Path) -> None:
    text = page.read_text()
    constants = {"RUN_ID", "START_MS", "TODAY", "ReplayResult", "ReplayResults"}
    for name in set(stormctl.testing.__all__) - constants:
        assert f"`{name}" in text
