"""What each generation got wrong, as the smallest workflow and log that show it.

A case says which generations show the fault, and how; every other one must draw what is right. The mechanisms are those
of vercel/workflow's pull requests; the workflows and logs are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stormctl.engine.door import CALM, Perturbation
from stormctl.history import Damaged, kinds
from stormctl.testing import LogBuilder
from tests.engine.writing import opened

YEAR = 365 * 86_400_000


@dataclass(frozen=True)
class Fault:
    """One fault. ``right`` is what a generation without it draws, in order; ``wrong`` is what each with it draws."""

    name: str
    body: Any
    log: Callable[[], LogBuilder]
    right: list[str]
    wrong: dict[str, list[str]]
    perturbation: Perturbation = CALM
    #: what else a faulty pass looks like
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)


def _each(names: list[str], draws: list[str]) -> dict[str, list[str]]:
    return dict.fromkeys(names, draws)


async def deep(wf: Any, hops: int) -> None:
    """Nothing, so many calls down: as many hops more."""
    if hops:
        await wf.run(deep(wf, hops - 1))


# -- a buffered payload against a wait (#2171) -----------------------------------------------------------------------


async def buffered_race(wf: Any, _input: Any) -> None:
    hook = wf.hook("door")
    timeout = wf.sleep(1000).then(lambda _: "timeout")
    await wf.step("work")
    winner = await wf.race(hook.next().then(lambda _: "payload"), timeout)
    await wf.step(f"won by {winner}")


def buffered_race_log() -> LogBuilder:
    created = opened().hook_created(0, "door").wait_created(1).step_created(2, "work").step_started(2)
    return created.hook_received(0).wait_completed(1).step_completed(2)


# -- an end of a wait and a result beside it, with a wait that nobody awaits (#3137, #3183) ----------------------------


async def neighbours(wf: Any, _input: Any) -> None:
    async def waiting() -> None:
        await wf.sleep(1000)
        await wf.step("after the wait")

    async def working() -> None:
        await wf.step("work")
        await wf.step("after the work")

    wf.sleep(YEAR)
    await wf.all([waiting(), working()])


def neighbours_log() -> LogBuilder:
    created = opened().wait_created(0, YEAR).wait_created(1).step_created(2, "work").step_started(2)
    return created.wait_completed(1).step_completed(2, "done")


# -- a batch of parallel results (#3183) ----------------------------------------------------------------------------


def fan_out(width: int) -> Any:
    async def body(wf: Any, _input: Any) -> None:
        async def branch(index: int) -> None:
            await wf.step("part", index)
            await wf.step("next", index)

        wf.sleep(YEAR)
        await wf.all([branch(index) for index in range(width)])

    return body


def fan_out_log(width: int) -> LogBuilder:
    built = opened().wait_created(0, YEAR)
    for index in range(width):
        built.step_created(index + 1, "part", index).step_started(index + 1)
    for index in range(width):
        built.step_completed(index + 1, index)
    return built


# -- a payload that is read late (#3196, #3406, #3879) --------------------------------------------------------------


async def buffered_claim(wf: Any, _input: Any) -> None:
    hook = wf.hook("door")

    async def working() -> None:
        await wf.step("work")
        await wf.step("after the work")

    async def reading() -> None:
        await wf.sleep(1000)
        await hook.next()
        await wf.step("after the hook")

    await wf.all([working(), reading()])


def buffered_claim_log() -> LogBuilder:
    created = opened().hook_created(0, "door").step_created(1, "work").wait_created(2)
    facts = created.hook_received(0).wait_completed(2).step_completed(1)
    return facts.step_created(3, "after the hook").step_created(4, "after the work")


# -- a branch that a shorter log leaves blocked (#3696) -------------------------------------------------------------


async def blocked_branch(wf: Any, _input: Any) -> None:
    async def branch(index: int) -> None:
        hook = wf.hook(f"done {index}")
        await wf.step("launch", index)
        winner = await wf.race(hook.next(), wf.sleep(3_600_000).then(lambda _: "watchdog"))
        if winner != "watchdog":
            await wf.step("finalize", index)

    await wf.all([branch(index) for index in range(3)])


def blocked_branch_log() -> LogBuilder:
    """Two branches launched and their hooks received; the last event is the third branch's launch."""
    built = opened()
    for index in range(3):
        built.hook_created(2 * index, f"done {index}")
    for index in range(3):
        built.step_created(2 * index + 1, "launch", index)
    return built.step_completed(1).step_completed(3).hook_received(0).hook_received(2).step_completed(5)


# -- slow reading and the deadline (#3196) --------------------------------------------------------------------------


async def slow_reading(wf: Any, _input: Any) -> None:
    async def working() -> None:
        await wf.step("work")
        await deep(wf, 5)
        await wf.step("after the work")

    async def waiting() -> None:
        await wf.sleep(10)
        await wf.step("after the wait")

    await wf.all([working(), waiting()])


def slow_reading_log() -> LogBuilder:
    return opened().step_created(0, "work").wait_created(1).step_completed(0).wait_completed(1)


# -- unread payloads before a wait (#3554) --------------------------------------------------------------------------


async def unread(wf: Any, _input: Any) -> None:
    wf.hook("poke")
    first = wf.sleep(1000)
    wf.sleep(YEAR)
    await first
    await wf.step("next")


def unread_log(pokes: int = 3) -> LogBuilder:
    built = opened().hook_created(0, "poke").wait_created(1).wait_created(2, YEAR)
    for _ in range(pokes):
        built.hook_received(0)
    return built.wait_completed(1)


def damaged_log() -> LogBuilder:
    created = opened().hook_created(0, "poke").wait_created(1).wait_created(2, YEAR)
    return created.hook_received(0).wait_completed(1).event(kinds.HOOK_RECEIVED, 0, payload=Damaged("it was cut off"))


# -- a retained session (#4017, #3879) ------------------------------------------------------------------------------


async def late_claim(wf: Any, _input: Any) -> None:
    hook = wf.hook("door")

    async def reading() -> None:
        await wf.step("first")
        await hook.next()
        await wf.step("after the hook")

    async def working() -> None:
        await wf.step("second")
        await wf.step("after the second")

    await wf.all([reading(), working()])


def late_claim_log() -> LogBuilder:
    return opened().hook_created(0, "door").step_created(1, "first").step_created(2, "second").hook_received(0)


HOOK_TWO = ["hook", "wait", "step:work"]
WAITS_TWO = ["wait", "wait", "step:work"]
PARTS = ["wait", *["step:part"] * 3]
MANY = ["wait", *["step:part"] * 40]
CLAIM = ["hook", "step:work", "wait"]
UNREAD = ["hook", "wait", "wait"]

FAULTS = [
    Fault(
        "a wait wins a race that the log gave to a payload (#2171)",
        buffered_race,
        buffered_race_log,
        right=[*HOOK_TWO, "step:won by payload"],
        wrong=_each(
            # since #3406 the step waits for the end of the wait, which lies before it in the log, and so has ended too
            ["queue", "unarmed", "nets", "dispenser-v1", "dispenser", "turnstile", "rearm", "registered"],
            [*HOOK_TWO, "step:won by timeout"],
        ),
    ),
    Fault(
        "a cached result overtakes the end of a wait (#3137), or the pass suspends before it (#3183)",
        neighbours,
        neighbours_log,
        right=[*WAITS_TWO, "step:after the wait", "step:after the work"],
        wrong={
            "opposite": [*WAITS_TWO, "step:after the work", "step:after the wait"],
            "transitive": [*WAITS_TWO, "step:after the wait"],
        },
        perturbation=Perturbation(hydration_ms=2.0, warm=100),
    ),
    Fault(
        "one idle turn retires every barrier, and a batch suspends after its first result (#3183)",
        fan_out(3),
        lambda: fan_out_log(3),
        right=[*PARTS, *["step:next"] * 3],
        wrong={"transitive": [*PARTS, "step:next"]},
    ),
    Fault(
        "16 looks without an idle turn suspend a batch of 40 in its middle (#3196, second form)",
        fan_out(40),
        lambda: fan_out_log(40),
        right=[*MANY, *["step:next"] * 40],
        wrong={"transitive": [*MANY, "step:next"], "unarmed[patience=rounds]": [*MANY, *["step:next"] * 16]},
        facts={"unarmed[patience=rounds]": {"undelivered": 24}},
    ),
    Fault(
        "a deadline for every barrier retires one whose payload is read slowly (#3196, first form)",
        slow_reading,
        slow_reading_log,
        right=["step:work", "wait", "step:after the work", "step:after the wait"],
        wrong=_each(
            ["queue", "opposite", "unarmed[abandons=any]"],
            ["step:work", "wait", "step:after the wait", "step:after the work"],
        ),
        perturbation=Perturbation(hydration_ms=50.0),
    ),
    Fault(
        "a step overtakes a wait that is parked behind an unread payload (#3406)",
        buffered_claim,
        buffered_claim_log,
        right=[*CLAIM, "step:after the hook", "step:after the work"],
        wrong={
            "queue": [*CLAIM, "step:after the work", "step:after the hook"],
            **_each(["opposite", "transitive", "parked-idle", "turnstile"], [*CLAIM, "step:after the work"]),
        },
        facts={
            name: {"outcome": "diverged"} for name in ("queue", "opposite", "transitive", "parked-idle", "turnstile")
        },
    ),
    Fault(
        "a pass suspends between two retirements (#3554, first form)",
        unread,
        unread_log,
        right=[*UNREAD, "step:next"],
        wrong={"transitive": UNREAD, "dispenser-v1": UNREAD},
        facts={"dispenser-v1": {"undelivered": 1, "stalled": False}},
    ),
    Fault(
        "a payload that cannot be read ends the promise queue and with it the look-out for an idle turn (#3554)",
        unread,
        damaged_log,
        right=[*UNREAD, "step:next"],
        wrong=_each(
            ["opposite", "transitive", "parked-idle", "nets", "dispenser-v1", "dispenser[rejected=dies]"], UNREAD
        ),
        perturbation=Perturbation(hydration_ms=2.0),
        facts={name: {"undelivered": 1, "stalled": True} for name in ("nets", "dispenser[rejected=dies]")},
    ),
]
