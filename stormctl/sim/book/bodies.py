"""The workflows of the book: each as small as its race allows.

They are workloads without a driver: what comes from outside is in the scenario's script.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from stormctl.engine.workflow import Workflow
from stormctl.workloads.base import SetAttributes, Sleep, StepAttempt, StepBody, Workload

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

#: the token of the hook that most bodies have
TOKEN = "review"


@dataclass(frozen=True)
class Input:
    """What a body takes. ``token`` is the hook's; ``first`` and ``second`` are how many steps its branches write."""

    token: str = TOKEN
    first: int = 1
    second: int = 1


# -- steps -----------------------------------------------------------------------------------------------------------


def nothing(*_arguments: Any) -> Generator[Any, Any, None]:
    """A step that takes no time and says nothing."""
    yield Sleep(0)


def told(value: Any) -> StepBody:
    """A step that returns a value."""

    def body(*_arguments: Any) -> Generator[Any, Any, Any]:
        yield Sleep(0)
        return value

    return body


def third_time(*_arguments: Any) -> Generator[Any, Any, str]:
    """A step that fails twice and then does what it should."""
    attempt = yield StepAttempt()
    if attempt < 3:
        raise RuntimeError(f"attempt {attempt} is not the third")
    return "ok"


def marks(*_arguments: Any) -> Generator[Any, Any, str]:
    """A step that writes an attribute of the run from its own context."""
    yield SetAttributes({"stage": "probed"})
    return "probed"


# -- bodies ----------------------------------------------------------------------------------------------------------


async def empty(_wf: Workflow, _input: Input) -> str:
    """Nothing at all."""
    return "done"


async def one_step(wf: Workflow, _input: Input) -> None:
    """One step whose result is nothing."""
    await wf.step("touch")


async def review(wf: Workflow, input: Input) -> dict[str, Any]:
    """A charge while a reviewer decides; the reviewer's word settles or releases it."""
    hook = wf.hook(input.token)
    charging = wf.step("charge")
    verdict = await hook.next()
    await charging
    await wf.step("settle" if verdict["approved"] else "release")
    return {"status": "settled" if verdict["approved"] else "released", "reviewer": verdict.get("reviewer")}


async def deadline(wf: Workflow, input: Input) -> Any:
    """A decision that is waited for an hour at most."""
    hook = wf.hook(input.token)
    return await wf.race(
        hook.next().then(lambda verdict: "approved" if verdict["approved"] else "rejected"),
        wf.sleep(HOUR_MS).then(lambda _: "timed-out"),
    )


async def long_sleep(wf: Workflow, _input: Input) -> str:
    """Thirty days between two steps."""
    await wf.step("open")
    await wf.sleep(30 * DAY_MS)
    await wf.step("close")
    return "closed"


async def waits_for_ever(wf: Workflow, input: Input) -> Any:
    """A hook that nobody answers."""
    return await wf.hook(input.token).next()


async def retrying(wf: Workflow, _input: Input) -> Any:
    """A step that has to be tried three times."""
    return await wf.step("stubborn")


async def parallel(wf: Workflow, _input: Input) -> str:
    """Two steps at once."""
    left, right = await wf.all([wf.step("left"), wf.step("right")])
    return f"{left}+{right}"


async def confirmed(wf: Workflow, input: Input) -> str:
    """Two steps, one after the other, and only then the hook is looked at."""
    hook = wf.hook(input.token)
    await wf.step("prepare")
    await wf.step("announce")
    verdict = await hook.next()
    return "confirmed" if verdict["approved"] else "refused"


async def peek(wf: Workflow, input: Input) -> str:
    """Has the approval arrived yet? If it has not, ship without it."""
    hook = wf.hook(input.token)
    await wf.step("pack")
    seen = await wf.race(hook.next().then(lambda _: True), wf.run(_not_yet()))
    await wf.step("ship")
    return "shipped-approved" if seen else "shipped-unapproved"


async def _not_yet() -> bool:
    return False


async def probe(wf: Workflow, input: Input) -> str:
    """A hook against a step: whichever is first decides."""
    hook = wf.hook(input.token)
    first = await wf.race(hook.next().then(lambda _: "hook"), wf.step("probe").then(lambda _: "probe"))
    await wf.step("byHook" if first == "hook" else "byProbe")
    return "completed"


async def tagged(wf: Workflow, input: Input) -> Any:
    """The reviewer's word becomes an attribute, while a step runs beside it."""
    hook = wf.hook(input.token)

    async def tag() -> str:
        verdict = await hook.next()
        word = "approved" if verdict["approved"] else "rejected"
        await wf.set_attributes({"verdict": word})
        return word

    word, _ = await wf.all([tag(), wf.step("work")])
    return word


async def probed(wf: Workflow, input: Input) -> str:
    """A step that writes an attribute itself, and a hook that may land meanwhile."""
    hook = wf.hook(input.token)
    await wf.step("mark")
    verdict = await hook.next()
    return "completed" if verdict["approved"] else "refused"


async def fork(wf: Workflow, input: Input) -> str:
    """A hook against a time-out; the branches write so many steps each."""
    hook = wf.hook(input.token)
    winner = await wf.race(
        hook.next().then(lambda _: "hook"),
        wf.sleep(MINUTE_MS).then(lambda _: "timeout"),
    )
    for _ in range(input.first if winner == "hook" else input.second):
        await wf.step("recover" if winner == "hook" else "settle")
    await wf.step("close")
    return "completed"


async def paused_fork(wf: Workflow, input: Input) -> str:
    """A hook against a time-out, and a pause behind the branch: what follows is another delivery's."""
    hook = wf.hook(input.token)
    winner = await wf.race(
        hook.next().then(lambda _: "hook"),
        wf.sleep(MINUTE_MS).then(lambda _: "timeout"),
    )
    for _ in range(input.first if winner == "hook" else input.second):
        await wf.step("recover" if winner == "hook" else "settle")
    await wf.sleep(MINUTE_MS)
    await wf.step("close")
    return "completed"


async def early(wf: Workflow, _input: Input) -> Any:
    """A step against an hour: whichever is first is the answer, and the other does not matter any more."""
    return await wf.race(
        wf.step("work").then(lambda _: "worked"),
        wf.sleep(HOUR_MS).then(lambda _: "timed-out"),
    )


async def step_fork(wf: Workflow, input: Input) -> str:
    """Two of the run's own steps race; the first result decides what is written next."""
    winner = await wf.race(
        wf.step("fast").then(lambda _: "fast"),
        wf.step("slow").then(lambda _: "slow"),
    )
    for _ in range(input.first if winner == "fast" else input.second):
        await wf.step("afterFast" if winner == "fast" else "afterSlow")
    return "completed"


async def unclaimed(wf: Workflow, input: Input) -> list[str]:
    """Two branches, one behind a wait and one behind a step, while a payload lies unread: who goes on first?"""
    wf.hook(input.token)
    order: list[str] = []
    await wf.all(_branches(wf, order))
    return order


async def claimed(wf: Workflow, input: Input) -> list[str]:
    """The same, with somebody who reads the payload."""
    hook = wf.hook(input.token)
    order: list[str] = []
    await wf.all([*_branches(wf, order), hook.next()])
    return order


def _branches(wf: Workflow, order: list[str]) -> list[Coroutine[Any, Any, None]]:
    """A branch behind a wait and one behind a step; each says when it goes on."""

    async def waiter() -> None:
        await wf.sleep(MINUTE_MS)
        order.append("wait")
        await wf.step("afterWait")

    async def worker() -> None:
        await wf.step("work")
        order.append("step")
        await wf.step("afterWork")

    return [waiter(), worker()]


async def siblings(wf: Workflow, _input: Input) -> str:
    """Two steps side by side, and a third behind the first of them."""
    left, right = await wf.all([wf.step("left"), wf.step("right")])
    await wf.step("join")
    return f"{left}+{right}"


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


async def work_then_end(wf: Workflow, _input: Input) -> str:
    """One step, in whose middle the run is cancelled."""
    await wf.step("work")
    await wf.step("never")
    return "not cancelled"


#: steps that only have to be there
_PLAIN = [
    "touch",
    "charge",
    "settle",
    "release",
    "open",
    "close",
    "prepare",
    "announce",
    "pack",
    "ship",
    "byHook",
    "byProbe",
    "probe",
    "work",
    "recover",
    "fast",
    "slow",
    "afterFast",
    "afterSlow",
    "afterWait",
    "afterWork",
    "join",
    "never",
    "soon",
    "late",
]
STEPS: Mapping[str, StepBody] = {
    **dict.fromkeys(_PLAIN, nothing),
    "stubborn": third_time,
    "left": told("left"),
    "right": told("right"),
    "mark": marks,
}

_Body = Callable[[Any, Any], Coroutine[Any, Any, Any]]


def _workload(body: _Body) -> Workload:
    """A workload that is this body and the steps of the book."""
    name = body.__name__.replace("_", "-")
    return Workload(
        name=f"book-{name}",
        summary=(body.__doc__ or "").strip(),
        input_type=Input,
        body=body,
        steps=STEPS,
        driver=_silent,
        check=lambda _value, _input: None,
        stragglers=lambda _value: 0,
        counts=lambda _input, _stragglers: {},
        bare=True,
    )


def _silent(_input: Any, _pressure: Any) -> Generator[Any, Any, None]:
    """What comes from outside is in the script."""
    yield from ()


BODIES: Mapping[str, Workload] = {
    workload.name: workload
    for workload in map(
        _workload,
        (
            empty, one_step, review, deadline, long_sleep, waits_for_ever, retrying, parallel, confirmed, peek, probe,
            tagged, probed, fork, paused_fork, early, step_fork, unclaimed, claimed, siblings, clocked, paused,
            work_then_end,
        ),
    )
}  # fmt: skip
