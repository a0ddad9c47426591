"""What the shell offers after Tab: asked as bash and zsh ask it, and once in a real bash with the installed script."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormctl.cli import complete
from stormctl.engine.generations import GENERATIONS
from stormctl.storm.plan import KEYS
from stormctl.sweeps.listing import listed
from stormctl.sweeps.profiles import PROFILES
from stormctl.sweeps.registered import in_order
from stormctl.workloads.registry import WORKLOADS
from stormctl.worlds import CONDITIONS, WORLDS

Offered = Callable[..., list[str]]


@pytest.fixture
def offered(stormctl: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Offered:
    """What bash is offered for a line that ends in the last word: ``offered("sweep", "--engine", "net")``."""

    def ask(*words: str) -> list[str]:
        monkeypatch.setenv("_STORMCTL_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(("stormctl", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        ran = stormctl()
        assert (ran.code, ran.err) == (0, "")
        return ran.out.split()

    return ask


def test_commands_and_options_are_offered(offered: Offered) -> None:
    assert offered("swee") == ["sweep", "sweeps"]
    assert "--until-resolved" in offered("run", "--un")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("sweep", "--engine", ""), (*GENERATIONS, "all", "sdk:own")),
        (("explain", "--engine", ""), (*GENERATIONS, "all", "sdk:own")),
        (("engines", ""), tuple(GENERATIONS)),
        (("sweeps", ""), tuple(one.name for one in listed())),
        (("sweep", "--only", ""), tuple(one.name for one in in_order())),
        (("conditions", ""), tuple(CONDITIONS)),
        (("sweep", "--workload", ""), tuple(WORKLOADS)),
        (("explain", "--workload", ""), tuple(WORKLOADS)),
        (("sweep", "--profile", ""), ("auto", *PROFILES)),
    ],
)
def test_every_name_is_offered(offered: Offered, words: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert offered(*words) == list(names)


def test_only_what_begins_so_is_offered(offered: Offered) -> None:
    found = offered("sweep", "--engine", "d")
    assert found
    assert all(name.startswith("d") for name in found)
    assert offered("sweep", "--engine", "no-such") == []
    assert offered("sweep", "--map", "tempo") == ["temporal"]
    assert "world-local" in offered("sweep", "--from", "wor")


def test_behind_a_comma_a_sweep_is_not_offered_twice(offered: Offered) -> None:
    found = offered("sweep", "--only", "dense,")
    assert "dense,lifecycle" in found
    assert "dense,dense" not in found


def test_the_keys_of_a_plan_are_offered_and_their_names(offered: Offered) -> None:
    keys = offered("run", "configs/quick.yaml", "-P", "")
    assert {"attempts=", "scenario=", "inputs="} <= set(keys) <= {f"{key}=" for key in KEYS}
    assert offered("run", "configs/quick.yaml", "-P", "scenario=hook-st") == ["scenario=hook-storm"]
    assert "condition=main,seq-final" in offered("run", "configs/quick.yaml", "-P", "condition=main,seq")
    assert "condition=main,main" not in offered("run", "configs/quick.yaml", "-P", "condition=main,")
    assert set(offered("run", "configs/quick.yaml", "-P", "world=")) == {f"world={name}" for name in WORLDS}
    assert offered("run", "configs/quick.yaml", "-P", "attempts=") == []


def test_an_installed_version_of_the_sdk_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed:
        version = "4.8.9"

    monkeypatch.setattr("stormctl.targets.sdk.projects.installed", lambda: [Installed()])
    assert ("sdk:4.8.9", "the real engine, installed") in complete.engines("sdk:4")


def test_a_completion_that_cannot_be_made_offers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr("stormctl.readers.tables.shipped.shipped_maps", broken)
    assert complete.maps("") == []


def test_zsh_is_told_what_each_is(stormctl: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_STORMCTL_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "stormctl sweeps den")
    said = stormctl().out
    assert '"dense":' in said
    assert next(one.question for one in listed("dense"))[:40] in said


def test_bash_completes_with_what_is_installed(tmp_path: Path, root: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    place = tmp_path / "bin"
    place.mkdir()
    program = place / "stormctl"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m stormctl "$@"\n')
    program.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if name not in ("BASH_ENV", "ZDOTDIR")}
    environment = {**inherited, "HOME": str(tmp_path), "PYTHONPATH": str(root), "PATH": f"{place}:{os.environ['PATH']}"}

    def run(script: str) -> str:
        ran = subprocess.run(
            [bash, "--norc", "-c", script], env=environment, capture_output=True, text=True, timeout=100, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    run("stormctl --install-completion; exit $?")  # two commands, so that bash stays and is found as the shell
    assert "stormctl" in (tmp_path / ".bashrc").read_text()
    script = (
        "source ~/.bashrc; COMP_WORDS=(stormctl sweep --engine tur); COMP_CWORD=3; "
        '$(complete -p stormctl | sed "s/.*-F //; s/ .*//") stormctl; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert run(script).split() == ["turnstile"]
