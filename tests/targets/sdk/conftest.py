"""What the tests of the target sdk share: fake tools, a stub of the SDK, and the real one where it can be had."""

from __future__ import annotations

import asyncio
import inspect
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from stormctl.errors import StormctlError
from stormctl.targets.sdk import npm, setup
from stormctl.targets.sdk.node import find_tools
from stormctl.targets.sdk.projects import Project, ensure
from tests.targets.sdk.fake_tools import FakeTools

STUB = Path(__file__).parent / "stub"
TEMPLATES = Path(setup.__file__).parent / "templates"


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run the tests of this folder that are coroutines, each in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTools:
    """A node and an npm that do as they are told, and a cache of the test's own."""
    made = FakeTools(tmp_path / "fake")
    monkeypatch.setenv("PATH", str(made.bin))
    monkeypatch.setenv("STORMCTL_CACHE", str(tmp_path / "cache"))
    return made


@pytest.fixture(scope="session")
def node() -> str:
    """The real node, new enough."""
    try:
        return find_tools().node
    except StormctlError as error:
        pytest.skip(str(error))


@pytest.fixture
def stub(node: str, tmp_path: Path) -> Project:
    """A project whose SDK is a stub of ours, and whose host is the real one."""
    folder = tmp_path / "stub-project"
    shutil.copytree(STUB, folder)
    (folder / "modules").rename(folder / "node_modules")  # a folder of that name is kept out of repositories
    (folder / "built").rename(folder / ".well-known")
    for file in TEMPLATES.glob("*.mjs"):
        shutil.copy(file, folder)
    return Project(
        version="5.0.0-stub.1",
        world="local",
        folder=folder,
        world_version="1.2.3",
        spec_version=9,
        exact=True,
        light=True,
        attributes=True,
        node="20",
        templates=setup.templates_digest(),
        made="now",
    )


@pytest.fixture(scope="session")
def real() -> Callable[[str], Project]:
    """A version of the real SDK, from the cache (STORMCTL_CACHE, else the user's) or from the registry."""

    def get(version: str, world: str = "local") -> Project:
        try:
            tools = find_tools()
        except StormctlError as error:
            pytest.skip(str(error))
        try:
            npm.view(tools, "workflow", "version")
        except StormctlError as error:
            pytest.skip(f"the real SDK cannot be installed here: {error}")
        return ensure(version, world)

    return get
