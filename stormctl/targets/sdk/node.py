"""Node and npm on this machine: where they are, whether they are new enough, and one bounded call of either."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stormctl.errors import StoreFailure, UsageError

#: 18 lacks what the host uses, and the SDK's own packages ask for 20 at least
LEAST_NODE = 20
PROBE_SECONDS = 20.0
#: how much of what a program said is kept, from its end
MOST_SAID = 200_000

INSTALL_NODE = f"Install Node.js {LEAST_NODE} or later with npm (https://nodejs.org). The target embedded needs none."

_STEERING = ("WORKFLOW_", "VERCEL", "STORMCTL_")

#: how Node begins the line that says what went wrong
_ERROR = re.compile(r"(?:Uncaught )?\w*Error(?: \[\w+\])?: ")


class SdkUnavailable(UsageError):
    """Something that the real SDK needs is missing on this machine: exit code 2."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs: their paths and versions."""

    node: str
    npm: str
    node_version: str
    npm_version: str


@dataclass(frozen=True, slots=True)
class Said:
    """What a program left: its exit code and the end of what it said."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        """Both, errors last."""
        return f"{self.out}\n{self.err}"


def find_node() -> tuple[str, str]:
    """Node, new enough: its path and version. SdkUnavailable says what is missing and what to do."""
    node = shutil.which("node")
    if node is None:
        raise SdkUnavailable("node is not on this machine's PATH", remedy=INSTALL_NODE)
    version = _version_of(node, "Node.js")
    major = re.match(r"v?(\d+)\.", version)
    if major is None or int(major[1]) < LEAST_NODE:
        raise SdkUnavailable(f"node is version {version}, and {LEAST_NODE} or later is needed", remedy=INSTALL_NODE)
    return node, version.removeprefix("v")


def find_tools() -> Tools:
    """Node and npm, new enough. SdkUnavailable says what is missing and what to do."""
    node, version = find_node()
    npm = shutil.which("npm")
    if npm is None:
        raise SdkUnavailable(
            "npm is not on this machine's PATH, though node is",
            remedy="Install npm; it comes with the packages of https://nodejs.org.",
        )
    return Tools(node, npm, version, _version_of(npm, "npm"))


def _version_of(program: str, name: str) -> str:
    try:
        said = call([program, "--version"], cwd=Path("/"), timeout_s=PROBE_SECONDS)
    except StoreFailure as error:
        raise SdkUnavailable(f"{program} does not answer: {error}", remedy=f"Repair {name}.") from None
    lines = said.out.strip().splitlines()
    if said.code or not lines:
        words = last_line(said.all) or f"exit code {said.code}"
        raise SdkUnavailable(f"{program} does not work: {words}", remedy=f"Repair {name}.")
    return lines[-1]


def surroundings() -> dict[str, str]:
    """This process's environment, without what would steer the SDK or its host unseen: only a plan may do that."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_STEERING)}


def call(command: Sequence[str], *, cwd: Path, timeout_s: float, environment: Mapping[str, str] | None = None) -> Said:
    """Run a program to its end, with everything that it started. StoreFailure when it takes longer than ``timeout_s``.

    It gets no input. What it says goes through files, so that a child which outlives it cannot keep us waiting.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**surroundings(), **(environment or {})},
                start_new_session=True,
            )
        except OSError as error:
            raise StoreFailure(
                f"{command[0]} cannot be started: {error.strerror or error}", remedy="See whether it is intact."
            ) from None
        try:
            code = process.wait(timeout_s)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # it has a group of its own, with all that it started
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise StoreFailure(
                f"`{' '.join(map(str, command[:3]))}` did not end within {timeout_s:.0f} s",
                remedy="See whether the machine and the network are overloaded, and try again.",
            ) from None
        return Said(code, _end_of(out), _end_of(err))


def _end_of(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - MOST_SAID))
    return file.read().decode("utf-8", "replace")


def last_line(text: str) -> str:
    """What a program's last words were about: the last line that names an error, else the last that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or [""])[-1][:300]
