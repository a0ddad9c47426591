"""Packages of the npm registry that tests look through: kept in the user's cache, never in the project."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest


def npm_package(name: str, version: str, *members: str) -> Path:
    """The folder that holds these files of a package, fetched the first time. Skips a test where that cannot be.

    No script of the package is run: it is unpacked, and nothing else of it is kept.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stormctl" / f"{name}-{version}"
    if all((home / member).exists() for member in members):
        return home
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"{name} is not in the cache, and there is no npm to fetch it")
    home.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", f"{name}@{version}", "--silent"]
    try:
        ran = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=110, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"the npm registry gives no {name}")
    packed = home / f"{name}-{version}.tgz"
    if ran.returncode or not packed.exists():
        pytest.skip(f"the npm registry gives no {name}")
    with tarfile.open(packed) as archive:
        for member in members:
            content = archive.extractfile(f"package/{member}")
            assert content is not None
            part = home / f"{member}.{os.getpid()}"
            part.write_bytes(content.read())
            part.replace(home / member)
    packed.unlink(missing_ok=True)
    return home
