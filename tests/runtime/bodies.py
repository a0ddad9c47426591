"""Small workflows for the tests of the delivery loop."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from stormctl.engine.workflow import Workflow
from stormctl.workloads.base import Act, SetAttributes, Sleep, Workload


@dataclass(frozen=True)
class Nothing:
    """No input."""

    token: str = ""


def work(*arguments: Any) -> Generator[Act, Any, Any]:
    yield Sleep(5)
    return list(arguments)


def noisy(*_arguments: Any) -> Generator[Act, Any, Any]:
    yield SetAttributes({"phase": "one"})
    return None


def broken(*_arguments: Any) -> Generator[Act, Any, Any]:
    yield from ()
    raise ValueError("no such thing")


def scenario(body: Any) -> Workload:
    """A workload around a body."""
    return Workload(
        name="small",
        summary="",
        input_type=Nothing,
        body=body,
        steps={"work": work, "noisy": noisy, "broken": broken},
        driver=lambda _input, _pressure: iter(()),  # type: ignore[arg-type,return-value]
        check=lambda _value, _input: None,
        stragglers=lambda _value: 0,
        counts=lambda _input, _stragglers: {},
    )


async def five_steps(wf: Workflow, _input: Nothing) -> list[Any]:
    return list(await wf.all(wf.step("work", index) for index in range(5)))


async def one_of_each(wf: Workflow, _input: Nothing) -> str:
    hook = wf.hook("door")
    wait = wf.sleep(1_000)
    attribute = wf.set_attributes({"phase": "one"})
    await wf.all([wf.step("work", index) for index in range(4)] + [wait, attribute, hook.next()])
    return "done"


async def nap(wf: Workflow, _input: Nothing) -> str:
    await wf.sleep(1_000)
    return "rested"


async def breaks(wf: Workflow, _input: Nothing) -> None:
    await wf.step("broken")


async def raises(wf: Workflow, _input: Nothing) -> None:
    await wf.step("work")
    raise RuntimeError("the workflow itself is wrong")


async def leaves_something(wf: Workflow, _input: Nothing) -> str:
    hook = wf.hook("door")
    await wf.step("noisy")
    wf.sleep(9_000)
    wf.step("work", "never run")
    hook.dispose()
    return "gone"
