"""A process that kills itself at a point of an append: run as a script by the crash tests."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from stormctl.worlds import AppendRequest, Point
from stormctl.worlds.local import LocalOptions, LocalWorld
from tests.worlds.making import HOOK, STEP, WAIT, want

DEATHS = {
    "step_created": want("step_created", STEP, name="s", payload=1, writer="dying", count=4),
    "lazy": want("step_started", STEP, name="s", payload=1, lazy=True, writer="dying", count=4),
    "wait_completed": want("wait_completed", WAIT, writer="dying"),
    "hook_disposed": want("hook_disposed", HOOK, token="t", writer="dying"),
    "run_completed": want("run_completed", payload=1, writer="dying", count=4),
}


def main(folder: str, what: str, where: str) -> None:
    async def die(point: Point, request: AppendRequest) -> None:
        if point is Point(where):
            os.kill(os.getpid(), signal.SIGKILL)

    async def go() -> None:
        world = LocalWorld.join(folder, None, LocalOptions(storage_scale=0, threads=1, on_point=die))
        await world.append(DEATHS[what])

    asyncio.run(go())


if __name__ == "__main__":
    main(*sys.argv[1:])
