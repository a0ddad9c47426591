"""What the tests of the target url share."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.targets.url.shop import Shop


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run the tests of this folder that are coroutines, each in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """An app that runs, with hook-storms on a store of its own."""
    with Shop(tmp_path / "shop-data") as made:
        yield made
