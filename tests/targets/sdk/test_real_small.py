"""One run of a really installed version, small enough for every run of the tests: all of it, from npm to a verdict.

Skipped, with a reason, without node or without an answer of the registry. STORMCTL_CACHE keeps what was installed.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from stormctl.engine.door import Outcome
from stormctl.errors import StormctlError
from stormctl.targets.sdk import npm
from stormctl.targets.sdk.host import Host
from stormctl.targets.sdk.node import call, find_tools
from stormctl.targets.sdk.projects import Project, ensure, find
from stormctl.testing import replay
from stormctl.workloads.registry import WORKLOADS
from tests.targets.sdk.test_real import GOOD, attempt

#: a registry that is there answers in one or two
ANSWER_SECONDS = 10.0


@pytest.fixture(scope="module")
def small() -> Project:
    """The version, from the cache or the registry."""
    try:
        tools = find_tools()
        ready = find(GOOD)
        if ready is not None and ready.current:
            return ready
        asked = [tools.npm, "view", f"workflow@{GOOD}", "version", "--fetch-retries=0", "--fetch-timeout=8000"]
        said = call(asked, cwd=Path("/"), timeout_s=ANSWER_SECONDS)
    except StormctlError as error:
        pytest.skip(f"the real SDK cannot be installed here: {error}")
    if said.code:
        pytest.skip("the real SDK cannot be installed here: the npm registry does not answer")
    with contextlib.suppress(npm.RegistryUnreachable):
        return ensure(GOOD)
    pytest.skip("the real SDK cannot be installed here: the npm registry stopped to answer")


@pytest.mark.timeout(180)
async def test_a_run_of_the_published_sdk_completes_and_our_body_follows_its_log(
    small: Project, tmp_path: Path
) -> None:
    async with await Host.start(small, tmp_path / "host") as host:
        capture, given, status, error = await attempt(host, "capture-hook-storm")
    assert (status, error) == ("completed", None)
    made = await asyncio.to_thread(replay, WORKLOADS["capture-hook-storm"], capture, input=given, generation="rearm")
    assert made.outcome is Outcome.COMPLETED, made.divergence
