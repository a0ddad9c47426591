"""Rounds in which parallel branches race a hook each: what hook-storm and blocked-branch have in common."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from typing import Any, Protocol

from stormctl.engine.hook import Hook
from stormctl.engine.promise import Promise
from stormctl.engine.workflow import Workflow
from stormctl.history import EventLog
from stormctl.workloads import storm
from stormctl.workloads.base import Act, Pressure, Resume, RoleReport, RunEnded, Sleep, Together, WaitForHook
from stormctl.workloads.races import Drawn, Race, Trail
from stormctl.workloads.storm import StormInput


class HookInput(StormInput, Protocol):
    """The fields that the input of such a scenario has. Times are milliseconds."""

    @property
    def token(self) -> str: ...
    @property
    def watchdog_ms(self) -> float: ...
    @property
    def between_round_sleep_ms(self) -> float: ...
    @property
    def hook_timeout_ms(self) -> float: ...
    @property
    def lookup_ms(self) -> float: ...


#: one branch of a round: ``(wf, input, hook, round, index)``
Branch = Callable[[Workflow, Any, Hook, int, int], Coroutine[Any, Any, Promise]]
#: the resumes' delays from now, in ms by index; what it takes to know them may take time
Delays = Generator[Act, Any, list[float]]

# -- the body -------------------------------------------------------------------------------------------------------


async def play(wf: Workflow, input: HookInput, branch: Branch) -> dict[str, Any]:
    """Every round, with a sleep after each."""
    ledger = []
    for round in range(input.rounds):
        ledger.append(await wf.run(one_round(wf, input, branch, round)))
        if input.between_round_sleep_ms > 0:
            await wf.sleep(input.between_round_sleep_ms)
    return {"runId": wf.run_id, "rounds": input.rounds, "width": input.width, "ledger": ledger}


async def one_round(wf: Workflow, input: HookInput, branch: Branch, round: int) -> Any:
    """Create the round's hooks, run its branches, reconcile, and dispose the hooks whatever happened."""
    hooks = [wf.hook(f"{input.token}:{round}:{index}") for index in range(input.width)]
    try:
        winners = await wf.all(branch(wf, input, hook, round, index) for index, hook in enumerate(hooks))
        return await wf.run(storm.reconcile(wf, input, round, winners))
    finally:
        for hook in hooks:
            hook.dispose()


async def race_hook(wf: Workflow, input: HookInput, hook: Hook, round: int, index: int) -> Promise:
    """Race the hook's next payload against the watchdog, and finish by who won."""
    winner = await wf.race(
        hook.next().then(lambda _: storm.SETTLED),
        wf.sleep(input.watchdog_ms).then(lambda _: storm.WATCHDOG),
    )
    return wf.run(storm.finish_branch(wf, round, index, winner))


# -- the driver -----------------------------------------------------------------------------------------------------


def drive(input: HookInput, pressure: Pressure, delays: Callable[[], Delays]) -> Generator[Act, Any, None]:
    """Resume every hook of every round, each after its delay from the moment that the round's first hook is there."""
    for round in range(input.rounds):
        if (yield RunEnded()):
            return
        if (yield WaitForHook(f"{input.token}:{round}:0", input.hook_timeout_ms)) is None:
            pressure.hook_missing = not (yield RunEnded())
            return
        found = yield from delays()
        yield Together(tuple(_resume(input, pressure, round, index, delay) for index, delay in enumerate(found)))


def _resume(input: HookInput, pressure: Pressure, round: int, index: int, delay: float) -> Generator[Act, Any, None]:
    yield Sleep(delay)
    if (yield RunEnded()):
        return
    token = f"{input.token}:{round}:{index}"
    if (yield WaitForHook(token, input.lookup_ms)) is None:
        pressure.resumes_failed += 1  # the watchdog has disposed it already
        return
    pressure.resumes_sent += 1
    if not (yield Resume(token, {"index": index, "round": round})):
        pressure.resumes_failed += 1


# -- what must hold -------------------------------------------------------------------------------------------------


def counts(input: HookInput, stragglers: int, *, settles: bool) -> Mapping[str, int]:
    """Exact counts of a completed run's creates. ``settles`` says whether a branch calls settleStep."""
    branches = input.rounds * input.width
    return {
        **storm.step_counts(input, stragglers, settles=settles),
        "hook_created": branches,
        "wait_created": branches + (input.rounds if input.between_round_sleep_ms > 0 else 0),
    }


def hooks_of(input: HookInput, trail: Trail) -> Iterator[tuple[int, int, Drawn]]:
    """Round, index and hook of every branch whose hook is in a log."""
    for round in range(input.rounds):
        for index in range(input.width):
            hook = trail.hook(f"{input.token}:{round}:{index}")
            if hook is not None:
                yield round, index, hook


def races(input: HookInput, trail: Trail) -> Iterator[Race]:
    """Each branch's hook against its wait: a round draws all its hooks, and then one wait per hook in their order."""
    for round, index, hook in hooks_of(input, trail):
        received = hook.received[0] if hook.received else None
        yield storm.branch_race(trail, round, index, received, trail.after(hook, input.width))


def roles(input: HookInput, log: EventLog) -> RoleReport:
    """No prefix holds more of a role than its rounds allow."""
    return storm.count_roles(log, storm.role_limits(input), "hook_created", input.width)
