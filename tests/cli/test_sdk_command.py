"""``stormctl sdk``: what it says, where it says it, and with which exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from stormctl.errors import EXIT_CLEAN, EXIT_INTERNAL, EXIT_USAGE
from tests.cli.conftest import Ran
from tests.targets.sdk.fake_tools import FakeTools

Run = Callable[..., Ran]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTools:
    """A node and an npm that do as they are told, and a cache of the test's own."""
    made = FakeTools(tmp_path / "fake")
    monkeypatch.setenv("PATH", str(made.bin))
    monkeypatch.setenv("STORMCTL_CACHE", str(tmp_path / "cache"))
    return made


def test_install_list_remove(fake: FakeTools, stormctl: Run, tmp_path: Path) -> None:
    folder = tmp_path / "cache/sdk/4.8.9-local"

    install = stormctl("sdk", "install", "4.8.9")
    assert install.code == EXIT_CLEAN
    assert re.fullmatch(rf"workflow 4\.8\.9 with @workflow/world-local 4\.4\.1\n  {folder} \(\d+ MB\)\n", install.out)
    assert install.err.splitlines() == [
        "looking up workflow 4.8.9 in the npm registry",
        "installing workflow 4.8.9 with @workflow/world-local 4.4.1",
        "building the workflows",
        f"workflow 4.8.9 with world local is installed in {folder}",
    ]
    assert stormctl("sdk", "install", "4.8.9").err == ""  # nothing to be done, nothing to be said

    shown = stormctl("sdk", "list")
    assert shown.code == EXIT_CLEAN
    assert [re.split(r"  +", line) for line in shown.out.splitlines()] == [
        ["version", "world", "world's version", "spec", "size", "made with"],
        ["4.8.9", "local", "4.4.1", "7", "0 MB", "node 20.20.2"],
    ]
    (row,) = json.loads(stormctl("sdk", "list", "--format", "json").out)
    assert (row["version"], row["world"], row["exact"], row["folder"]) == ("4.8.9", "local", True, str(folder))

    removed = stormctl("sdk", "remove", "4.8.9")
    assert (removed.code, removed.out) == (EXIT_CLEAN, f"removed workflow 4.8.9 with world local from {folder}\n")
    assert not folder.exists()
    assert "no version of the Workflow SDK is installed" in stormctl("sdk", "list").out


def test_install_for_postgres(fake: FakeTools, stormctl: Run) -> None:
    ran = stormctl("sdk", "install", "4.8.9", "--world", "postgres")
    assert ran.code == EXIT_CLEAN
    assert "workflow 4.8.9 with @workflow/world-postgres 4.3.7" in ran.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("install", "latest"), EXIT_USAGE, "'latest' is no version of the Workflow SDK. Give one as it was published"),
        (("install", "3.0.0"), EXIT_USAGE, "workflow 3.0.0 is neither 4.x nor 5.x"),
        (
            ("install", "5.0.0-beta.29"),
            EXIT_INTERNAL,
            "was never published. Did you mean 5.0.0-beta.26 or 5.0.0-beta.35?",
        ),
        (("remove", "4.8.9"), EXIT_USAGE, "workflow 4.8.9 is not installed"),
        (("install", "4.8.9", "--world", "vercel"), EXIT_USAGE, "'vercel' is not one of 'local', 'postgres'"),
    ],
)
def test_mistakes_are_one_sentence_and_a_remedy(
    fake: FakeTools, stormctl: Run, arguments: tuple[str, ...], code: int, words: str
) -> None:
    ran = stormctl("sdk", *arguments)
    assert ran.code == code
    assert words in re.sub(r"\s+", " ", ran.err.replace("│", ""))
    assert "Traceback" not in ran.err


def test_a_machine_without_node_is_told_what_to_install(fake: FakeTools, stormctl: Run) -> None:
    (fake.bin / "node").unlink()
    ran = stormctl("sdk", "install", "4.8.9")
    assert ran.code == EXIT_USAGE
    assert ran.err.startswith("stormctl: node is not on this machine's PATH. Install Node.js 20 or later with npm")


def test_doctor_of_a_healthy_machine(fake: FakeTools, stormctl: Run) -> None:
    stormctl("sdk", "install", "4.8.9")
    ran = stormctl("sdk", "doctor")
    assert ran.code == EXIT_CLEAN
    assert [line.split(":")[0] for line in ran.out.splitlines()] == [
        "ok  node and npm",
        "ok  registry",
        "ok  cache",
        "ok  4.8.9-local",
    ]


def test_doctor_of_a_sick_machine_says_what_to_do(fake: FakeTools, stormctl: Run) -> None:
    fake.says("npm view workflow version", fake.failure("ENOTFOUND", "getaddrinfo ENOTFOUND registry.example"))
    ran = stormctl("sdk", "doctor", "4.8.9")
    assert ran.code == EXIT_USAGE
    assert "bad registry: looking up workflow failed, because the npm registry does not answer (ENOTFOUND)" in ran.out
    assert "bad 4.8.9: is not installed. `stormctl sdk install 4.8.9` does that." in ran.out
