"""What is asked of npm: the versions that were published, what they depend on, and an installation.

npm reports a failure by a code (E404, ETARGET, ENOTFOUND, ...) among its words; each becomes one sentence here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from stormctl.errors import StormctlError
from stormctl.targets.sdk.node import Said, Tools, call

VIEW_SECONDS = 90.0
INSTALL_SECONDS = 900.0
#: npm's own patience with a registry that does not answer, in ms; by default it would take minutes to give up
_PATIENCE = ("--fetch-retries=1", "--fetch-retry-mintimeout=500", "--fetch-timeout=30000")

_CODE = re.compile(r"^npm (?:error|ERR!) code (\S+)", re.MULTILINE)
_NOT_FOUND = {"E404", "ETARGET", "ENOVERSIONS"}
_NO_NETWORK = {
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ENETUNREACH",
    "EHOSTUNREACH",
    "ETIMEDOUT",
    "ERR_SOCKET_TIMEOUT",
    "ENOTCACHED",
    "EPIPE",
}
_DISK_FULL = {"ENOSPC", "EDQUOT"}


class NpmFailure(StormctlError):
    """npm could not do what was asked. ``code`` is npm's own; the subclasses are those that somebody reacts to."""

    def __init__(self, message: str, *, remedy: str, code: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.code = code


class NotPublished(NpmFailure):
    """A package or a version that the registry does not have."""


class RegistryUnreachable(NpmFailure):
    """The registry did not answer."""


class DiskFull(NpmFailure):
    """There was no room for the packages."""


def view(tools: Tools, package: str, *fields: str) -> Any:
    """Fields of a package from the registry (``workflow@4.8.9``, ``dependencies``), as npm's JSON; None where empty.

    NotPublished for what is not there, RegistryUnreachable when nobody answers.
    """
    said = call(
        [tools.npm, "view", package, *fields, "--json", "--loglevel=error", *_PATIENCE],
        cwd=Path("/"),
        timeout_s=VIEW_SECONDS,
    )
    if said.code:
        raise failure(said, f"looking up {package}")
    text = said.out.strip()
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        raise NpmFailure(
            f"npm said something about {package} that is no JSON: {text.splitlines()[0][:200]}",
            remedy="See whether `npm view workflow version --json` works.",
        ) from None


def dependencies(tools: Tools, package: str) -> dict[str, str]:
    """What one version of a package depends on."""
    found = view(tools, package, "dependencies")
    return {str(name): str(version) for name, version in found.items()} if isinstance(found, dict) else {}


def published(tools: Tools, package: str) -> list[str]:
    """Every published version of a package, oldest first."""
    found = view(tools, package, "versions")
    return [str(found)] if isinstance(found, str) else [str(version) for version in found or ()]


def install(tools: Tools, folder: Path) -> None:
    """Install what the folder's package file asks for, following its lock file where there is one. Runs no scripts."""
    said = call(
        [
            tools.npm,
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--no-progress",
            "--no-update-notifier",
            "--loglevel=error",
            *_PATIENCE,
        ],
        cwd=folder,
        timeout_s=INSTALL_SECONDS,
    )
    if said.code:
        raise failure(said, "installing the packages")


def failure(said: Said, doing: str) -> NpmFailure:
    """The error that npm's words mean."""
    found = _CODE.search(said.all)
    code = found[1] if found is not None else ""
    words = _words(said)
    if code in _NOT_FOUND:
        return NotPublished(
            f"{doing} failed, because the registry does not have it: {words}",
            remedy="Give a version that was published: `npm view workflow versions` lists them.",
            code=code,
        )
    if code in _NO_NETWORK:
        return RegistryUnreachable(
            f"{doing} failed, because the npm registry does not answer ({code}): {words}",
            remedy="See that this machine reaches the registry (`npm ping`). What is installed works without it.",
            code=code,
        )
    if code in _DISK_FULL or "ENOSPC" in said.all:
        return DiskFull(
            f"{doing} failed, because the disk is full",
            remedy="Make room (a version takes 90 to 320 MB), or name another folder by STORMCTL_CACHE.",
            code=code or "ENOSPC",
        )
    return NpmFailure(
        f"{doing} failed ({code or f'exit code {said.code}'}): {words}",
        remedy="`stormctl sdk doctor` looks for the cause.",
        code=code,
    )


def _words(said: Said) -> str:
    """The sentence of npm's that says what happened."""
    lines = [
        re.sub(r"^npm (?:error|ERR!) ?", "", line).strip()
        for line in said.err.splitlines()
        if re.match(r"npm (?:error|ERR!)", line)
    ]
    telling = [line for line in lines if line and not re.match(r"(code|errno|syscall|path|A complete log)\b", line)]
    last = [line.strip() for line in said.all.splitlines() if line.strip()]
    return (telling[0] if telling else last[-1] if last else "it said nothing")[:300]
