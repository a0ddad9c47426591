"""docs/corrupted-run.md against the program: its commands print what it shows, on the captured run that it tells of.

``STORMCTL_UPDATE=1`` writes the output of its commands anew. Those that need a bundle are marked ``sdk``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from stormctl.cli.options import READER_NAMES
from stormctl.engine.generations import GENERATIONS
from stormctl.history import Capture, Event
from stormctl.readers import open_captures
from stormctl.readers.payloads import Encoded
from stormctl.readers.sdk_capture import RUN_FACTS
from stormctl.targets.sdk import projects
from stormctl.targets.sdk.replay import record_of
from tests.targets.sdk.conftest import real

__all__ = ["real"]

CONSOLE = re.compile(r"^```console\n(\$ ([^\n]*)\n)(.*?)^```$", re.MULTILINE | re.DOTALL)
SCRIPT = re.compile(r"^```js\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CAPTURE = "fixtures/captures/v489-clean-hookStorm-03.json"
VERSION = "4.8.9"


@pytest.fixture(scope="module")
def page(root: Path) -> Path:
    return root / "docs" / "corrupted-run.md"


def run(command: str, root: Path) -> str:
    """What a shell in the project's folder prints, ``stormctl`` being this one."""
    ran = subprocess.run(
        ["bash", "-c", f'stormctl() {{ "{sys.executable}" -m stormctl "$@"; }}\n{command}'],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.stderr == ""
    return ran.stdout


def check(page: Path, root: Path, wanted: Callable[[str], bool]) -> int:
    """Run the commands that are wanted, compare them with the page, and say how many there were."""
    text = page.read_text()

    def shown(found: re.Match[str]) -> str:
        return f"```console\n{found[1]}{run(found[2], root)}```" if wanted(found[2]) else found[0]

    again = CONSOLE.sub(shown, text)
    if os.environ.get("STORMCTL_UPDATE"):
        page.write_text(again)
    assert again == page.read_text()
    return sum(wanted(found[1]) for found in CONSOLE.findall(text))


def needs_a_bundle(command: str) -> bool:
    return "--engine sdk:" in command


def test_the_commands_that_need_the_log_alone_print_what_the_page_shows(page: Path, root: Path) -> None:
    assert check(page, root, lambda command: not needs_a_bundle(command)) == 1


@pytest.mark.sdk
@pytest.mark.timeout(900)
def test_those_that_need_a_bundle_do_so_too(page: Path, root: Path, real: Callable[..., object]) -> None:
    if projects.find(VERSION) is None:
        real(VERSION)
    assert check(page, root, needs_a_bundle) == 3


@pytest.mark.sdk
def test_its_script_writes_what_the_reader_takes(
    page: Path, root: Path, real: Callable[..., object], tmp_path: Path, shared_data: Path
) -> None:
    """In a project of that version, on a real store: the run it prints is the run in the store, bytes and all."""
    if projects.find(VERSION) is None:
        real(VERSION)
    project = projects.find(VERSION)
    assert project is not None
    with tarfile.open(shared_data / "wdk" / "local-v4.tgz") as packed:
        packed.extractall(tmp_path, filter="data")
    runs = tmp_path / "l4" / "runs"
    run_id = sorted(runs.iterdir())[0].name.partition(".")[0]
    (script,) = SCRIPT.findall(page.read_text())
    ran = subprocess.run(
        ["node", "--input-type=module", "-e", script, run_id],
        cwd=project.folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "WORKFLOW_TARGET_WORLD": "local", "WORKFLOW_LOCAL_DATA_DIR": str(runs.parent)},
    )
    (tmp_path / "run.json").write_text(ran.stdout)
    (printed,) = open_captures([tmp_path / "run.json"])
    assert isinstance(printed, Capture)
    (stored,) = (one for one in open_captures([runs.parent]) if isinstance(one, Capture) and one.log.run_id == run_id)
    assert [_facts(event) for event in printed.log] == [_facts(event) for event in stored.log]
    assert any(isinstance(event.payload, Encoded) for event in printed.log)
    for key in ("startedAt", "workflowName"):
        assert printed.data[RUN_FACTS][key] == stored.data[RUN_FACTS][key]


def _facts(event: Event) -> tuple[object, ...]:
    raw = event.payload.raw if isinstance(event.payload, Encoded) else None
    return event.type, event.event_id, event.correlation_id, event.created_at, event.resume_at, raw


def test_the_captured_run_is_all_that_a_replay_needs(root: Path) -> None:
    (found,) = open_captures([root / CAPTURE])
    record = record_of(found)  # type: ignore[arg-type]
    assert (record.length, record.core_version, record.started_by) == (46, VERSION, "row")
    assert (root / CAPTURE).stat().st_size < 64 << 10


def test_what_it_names_is_there(page: Path, root: Path) -> None:
    text = page.read_text()
    assert "workflow-inspect" in READER_NAMES
    assert {"opposite", "transitive", "turnstile", "rearm", "registered"} <= set(GENERATIONS)
    for link in re.findall(r"\]\(([a-z-]+\.md)(?:#[a-z-]+)?\)", text):
        assert (root / "docs" / link).exists(), link


def test_every_refusal_that_it_tells_of_is_one_that_is_said(page: Path, root: Path) -> None:
    """The words in the table are those of the program."""
    source = "".join(path.read_text() for path in (root / "stormctl/targets/sdk/replay").glob("*.py"))
    said = re.sub(r'"\s*\n\s*f?"', "", source)
    table = page.read_text().partition("## What a refusal means")[2].partition("\n## ")[0]
    for words in (
        "none of the ids that the bundle asks for at the start is in the log",
        "where the bundle asks for",
        "the bundle fails at the start of the run",
        "is there only as a value",
        "was not captured",
        "is encrypted",
        "startedAt of the run",
        "the true start of the run",
        "a part of its events",
        "its run_created",
        "is no flow bundle",
        "holds no flow bundle",
        "tried to reach the network",
        "the pass did not end within",
    ):
        assert words in said, words
        assert words in table, words
