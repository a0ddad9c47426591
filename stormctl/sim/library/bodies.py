"""Workflows that the book has no scenario of: each as small as its bug allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stormctl.engine.workflow import Workflow
from stormctl.sim.book.bodies import BODIES, HOUR_MS, MINUTE_MS, Input, nothing
from stormctl.workloads.base import Workload


async def clocked(wf: Workflow, input: Input) -> str:
    """A branch by the run's own clock, while a payload lies unread."""
    wf.hook(input.token)
    began = wf.now()
    await wf.step("work")
    word = "soon" if wf.now() - began < HOUR_MS else "late"
    await wf.step(word)
    return word


async def paused(wf: Workflow, input: Input) -> str:
    """A wait behind a step, while a payload lies unread."""
    wf.hook(input.token)
    await wf.step("work")
    await wf.sleep(MINUTE_MS)
    await wf.step("close")
    return "closed"


_STEPS = ("work", "soon", "late", "close")

#: by name, those of the book among them
BODIES_OF_BUGS: Mapping[str, Workload] = {
    **{name.removeprefix("book-"): workload for name, workload in BODIES.items()},
    **{
        body.__name__: replace(
            BODIES["book-fork"],
            name=f"bug-{body.__name__}",
            summary=(body.__doc__ or "").strip(),
            body=body,
            steps=dict.fromkeys(_STEPS, nothing),
        )
        for body in (clocked, paused)
    },
}
