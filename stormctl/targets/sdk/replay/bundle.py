"""Finding a built flow bundle: the one module that a build of the SDK makes of an application's workflows.

    <project>/.well-known/workflow/v1/flow.js                                 4.x, CommonJS, all in one file
    <project>/.well-known/workflow/v1/flow.mjs, __step_registrations.mjs      5.x, ES modules

A builder for a framework puts the same module elsewhere (``.../workflow/v1/flow/route.js``). It carries the engine
itself, so that nothing of the project need lie beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from stormctl.errors import StormctlError
from stormctl.targets.sdk import projects
from stormctl.targets.sdk.cache import Tell
from stormctl.targets.sdk.pins import LOCAL, POSTGRES

#: where a build puts it, below a project
BUILT = Path(".well-known/workflow/v1")
#: how it is called there
NAMES = ("flow.mjs", "flow.js", "flow.cjs", "flow/route.js", "flow/route.mjs")
MAX_BYTES = 256 << 20

_SCRIPTS = (".js", ".mjs", ".cjs")
_BELOW = (Path(), BUILT, Path("workflow/v1"), Path("v1"), Path("app") / BUILT, Path("src/app") / BUILT)
#: a module that it takes from beside itself
_RELATIVE = re.compile(rb"""(?:from|import|import\(|require\()\s*["'](\.{1,2}/[^"'\n]{1,200})["']""")
_VERSION_FIELD = re.compile(rb"workflowCoreVersion: ([A-Za-z_$][\w$]*)[,\s]")
_VERSION_TEXT = re.compile(rb"""\b(version\d*) = "(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)";""")
_PACKAGE = "node_modules/@workflow/core/package.json"
#: how many folders above the bundle may hold the packages that it was built from
_UP = 6

GIVE_A_BUNDLE = (
    f"Give the folder of the built application, its {BUILT.as_posix()}, or the file flow.js or flow.mjs in it."
)


class BundleFault(StormctlError):
    """No flow bundle, or one that cannot be loaded or that does what no replay may do."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A built flow bundle: all that a replay needs of an application.

    ``label`` is how it is called: the version for one of ours, else the folder as it was given. ``flow`` is the module
    that exports POST. ``version`` is that of its ``@workflow/core``, as far as the bundle or the packages beside it
    tell; ``major`` is 4 or 5. ``digest`` is that of all its bytes.
    """

    label: str
    flow: Path
    version: str | None
    major: int
    digest: str


def find_bundle(path: Path) -> Bundle:
    """The bundle in a folder (a project, its ``.well-known/workflow/v1``, what holds ``flow.*``), or the file itself.

    BundleFault when there is none; whether it is one shows when it is loaded.
    """
    return _bundle(str(path), _flow_in(path))


def bundle_of_version(version: str, *, tell: Tell = lambda _text: None) -> Bundle:
    """The bundle of our own scenarios for a version of the SDK: that of an installed project, installed first if there
    is none. The world that the project was made for does not matter."""
    project = projects.find(version, LOCAL) or projects.find(version, POSTGRES) or projects.ensure(version, tell=tell)
    return _bundle(project.version, _flow_in(project.folder))


def _bundle(label: str, flow: Path) -> Bundle:
    try:
        status = flow.stat()
        digest, told = _read(flow, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise BundleFault(f"{flow} cannot be read: {error.strerror or error}", remedy=GIVE_A_BUNDLE) from None
    version = _version_beside(flow) or told
    major = int(version.split(".")[0]) if version is not None else 5 if flow.suffix == ".mjs" else 4
    return Bundle(label, flow, version, major, digest)


def _flow_in(path: Path) -> Path:
    path = path.expanduser().absolute()
    if path.is_file():
        if path.suffix not in _SCRIPTS:
            raise BundleFault(f"{path} is no JavaScript module, so it is no flow bundle", remedy=GIVE_A_BUNDLE)
        return path
    if not path.exists():
        raise BundleFault(f"there is no {path}", remedy=GIVE_A_BUNDLE)
    for below in _BELOW:
        found = [file for name in NAMES if (file := path / below / name).is_file()]
        if found:
            return max(found, key=lambda file: file.stat().st_mtime)  # a stale one of another version may lie beside it
    raise BundleFault(
        f"{path} holds no flow bundle: there is neither flow.js nor flow.mjs in it or in {BUILT.as_posix()} below it",
        remedy=f"Build the application first; then: {GIVE_A_BUNDLE[0].lower()}{GIVE_A_BUNDLE[1:]}",
    )


@lru_cache(maxsize=16)
def _read(flow: Path, _changed: int, _size: int) -> tuple[str, str | None]:
    """The digest of all its files, and the version of the engine that is built in."""
    digest = hashlib.sha256()
    told: str | None = None
    for file, content in _files(flow):
        digest.update(os.path.relpath(file, flow.parent).encode() + b"\0" + content + b"\0")
        told = told or _version_in(content)
    return digest.hexdigest()[:16], told


def _files(flow: Path) -> Iterator[tuple[Path, bytes]]:
    """The module, and those that it takes from beside itself."""
    seen: set[Path] = set()
    left, total = [flow], 0
    while left:
        file = left.pop(0)
        if file in seen or not file.is_file():
            continue  # a text inside the bundle may look like an import
        seen.add(file)
        total += file.stat().st_size
        if total > MAX_BYTES:
            raise BundleFault(f"{flow} is larger than {MAX_BYTES >> 20} MiB", remedy=GIVE_A_BUNDLE)
        content = file.read_bytes()
        yield file, content
        named = sorted({match[1].decode("utf-8", "replace") for match in _RELATIVE.finditer(content)})
        left += [Path(os.path.normpath(file.parent / name)) for name in named]


def _version_in(content: bytes) -> str | None:
    """The version that the bundle writes into the runs that it starts."""
    names = {match[1] for match in _VERSION_FIELD.finditer(content)}
    for match in _VERSION_TEXT.finditer(content):
        if match[1] in names:
            return match[2].decode()
    return None


def _version_beside(flow: Path) -> str | None:
    """The version of the engine's package above the bundle."""
    for folder in list(flow.parents)[:_UP]:
        try:
            found = json.loads((folder / _PACKAGE).read_bytes())["version"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        return found if isinstance(found, str) else None
    return None
