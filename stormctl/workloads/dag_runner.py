"""dag-runner: a scheduler keeps several nodes in flight, each a chain of steps, some of which bind a hook in between.

Nothing outside races the run: siblings complete a few milliseconds apart because they are siblings. The width exceeds
the inline limit, so that a wave is part inline and part queue, and whoever awaits a hook's registration makes the
runtime run nothing inline and come back over the committed create (vercel/workflow #4201).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stormctl.engine.hook import Hook
from stormctl.engine.replay import INLINE_STEPS
from stormctl.engine.workflow import Workflow
from stormctl.history import EventLog
from stormctl.workloads import parts, storm
from stormctl.workloads.base import (
    Act,
    Now,
    Pressure,
    Resume,
    RoleReport,
    RunEnded,
    Sleep,
    StepBody,
    Together,
    WaitForHook,
    Workload,
)

RECEIVED, WATCHDOG, NONE = "received", "watchdog", "none"


@dataclass(frozen=True)
class Input:
    """The published defaults. Times are milliseconds.

    Every ``worker_every``-th node is a worker node (0: none), which binds a hook and waits for its callback, sent
    ``worker_callback_ms`` after the hook was seen. ``hook_timeout_ms`` is how long the driver looks for a hook:
    upstream's cap of a run.
    """

    token: str = ""
    nodes: int = 12
    width: int = 5
    evaluate_ms: float = 1500.0
    evaluate_jitter_ms: float = 2500.0
    short_step_ms: float = 150.0
    worker_every: int = 3
    worker_watchdog_ms: float = 6000.0
    prelude_binds: int = 2
    worker_callback_ms: float = 2500.0
    hook_timeout_ms: float = 240_000.0


def evaluate_time(input: Input, node: int) -> float:
    """How long a node's long step works, in ms."""
    return parts.spread(input.evaluate_ms, input.evaluate_jitter_ms, node)


def worker_nodes(input: Input) -> list[int]:
    """The nodes that bind a hook."""
    every = input.worker_every
    return [] if every <= 0 else list(range(every - 1, input.nodes, every))


# -- the body -------------------------------------------------------------------------------------------------------


class _Runner:
    """The hooks that a run has bound, and how many of its nodes are done."""

    def __init__(self, wf: Workflow, input: Input) -> None:
        self.wf = wf
        self.input = input
        self.hooks: list[Hook] = []
        self.confirmed = 0
        self.done = 0

    async def bind(self, name: str) -> Hook:
        """Create a hook and wait until the store has registered it for this run."""
        hook = self.wf.hook(f"{self.input.token}:{name}")
        self.hooks.append(hook)
        if await hook.conflict() is None:
            self.confirmed += 1
        return hook

    async def node(self, node: int) -> dict[str, Any]:
        """The chain of one node; its ledger record."""
        wf, input = self.wf, self.input
        short, worker = input.short_step_ms, node in worker_nodes(input)
        await wf.step("claimNodeStep", short, wf.run_id, node)
        await wf.step("evaluateNodeStep", evaluate_time(input, node), wf.run_id, node, worker)
        callback = NONE
        if worker:
            hook = await wf.run(self.bind(f"node:{node}"))
            await wf.step("enqueueWorkerStep", short, wf.run_id, node)
            callback = await wf.race(
                hook.next().then(lambda _: RECEIVED),
                wf.sleep(input.worker_watchdog_ms).then(lambda _: WATCHDOG),
            )
        await wf.step("finishNodeStep", short, wf.run_id, node, callback)
        await wf.step("transitionNodeStep", short, wf.run_id, node)
        self.done += 1
        return {"node": node, "worker": worker, "callback": callback, "order": self.done}


async def body(wf: Workflow, input: Input) -> dict[str, Any]:
    """The workflow."""
    runner = _Runner(wf, input)
    try:
        for index in range(input.prelude_binds):
            await wf.step("preludeStep", input.short_step_ms, wf.run_id, index)
            await wf.run(runner.bind(f"prelude:{index}"))
        # awaited as it is: upstream's scheduler is a part of the workflow's function
        ledger = await parts.pool(wf, input.nodes, input.width, lambda node: wf.run(runner.node(node)))
    finally:
        for hook in runner.hooks:
            hook.dispose()
    return {
        "runId": wf.run_id,
        "nodes": input.nodes,
        "width": input.width,
        "ledger": ledger,
        "bindsConfirmed": runner.confirmed,
    }


def work_step(delay_ms: float, run_id: str, node: int, *_rest: Any) -> Generator[Act, Any, dict[str, Any]]:
    """Work for ``delay_ms``."""
    yield Sleep(delay_ms)
    return {"node": node}


CHAIN = ("claimNodeStep", "evaluateNodeStep", "finishNodeStep", "transitionNodeStep")
STEPS: dict[str, StepBody] = dict.fromkeys(("preludeStep", "enqueueWorkerStep", *CHAIN), work_step)

# -- the driver -----------------------------------------------------------------------------------------------------


def drive(input: Input, pressure: Pressure) -> Generator[Act, Any, None]:
    """Call back every worker node some time after its hook was seen, looking for the hooks in the nodes' order."""
    pressure.count("callbacks_sent", 0)
    return _look_for(input, pressure, worker_nodes(input))


def _look_for(input: Input, pressure: Pressure, nodes: Sequence[int]) -> Generator[Act, Any, None]:
    if not nodes or (yield RunEnded()):
        return
    if (yield WaitForHook(f"{input.token}:node:{nodes[0]}", input.hook_timeout_ms)) is None:
        pressure.hook_missing = not (yield RunEnded())
        return
    # the callback is on its way while the next hook is looked for
    yield Together((_call_back(input, pressure, nodes[0]), _look_for(input, pressure, nodes[1:])))


def _call_back(input: Input, pressure: Pressure, node: int) -> Generator[Act, Any, None]:
    yield Sleep(input.worker_callback_ms)
    if (yield RunEnded()):
        return
    pressure.resumes_sent += 1
    pressure.count("callbacks_sent")
    if not (yield Resume(f"{input.token}:node:{node}", {"node": node, "sentAt": (yield Now())})):
        pressure.resumes_failed += 1


# -- what must hold -------------------------------------------------------------------------------------------------


def check(value: Any, input: Input) -> str | None:
    """The first disagreement of a returned ledger with itself and its input, in upstream's order, or None."""
    ledger = value.get("ledger") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(ledger, list):
        return "the run returned no ledger"
    if len(ledger) != input.nodes:
        return f"the ledger has {len(ledger)} nodes of {input.nodes}"
    seen: set[Any] = set()
    workers = 0
    for place, record in enumerate(ledger):
        if not isinstance(record, dict) or not isinstance(record.get("node"), int):
            return f"record {place} names no node"
        node, worker, callback = record["node"], record.get("worker"), record.get("callback")
        if node in seen:
            return f"node {node} is done twice"
        seen.add(node)
        if bool(worker) != (callback != NONE):
            return f"node {node} is {'a' if worker else 'no'} worker and its callback is {callback}"
        workers += bool(worker)
    wanted = input.prelude_binds + workers
    if value.get("bindsConfirmed") != wanted:
        return f"{value.get('bindsConfirmed')} binds were confirmed where {input.prelude_binds} + {workers} should be"
    return None


def unanswered(value: Any) -> int:
    """How many worker nodes of a completed run the watchdog ended."""
    return sum(1 for record in value["ledger"] if record["callback"] == WATCHDOG)


def counts(input: Input, _unanswered: int) -> Mapping[str, int]:
    """Exact counts of a completed run's creates: no branch takes other steps than another."""
    workers = len(worker_nodes(input))
    return {
        **dict.fromkeys(CHAIN, input.nodes),
        "preludeStep": input.prelude_binds,
        "enqueueWorkerStep": workers,
        "hook_created": input.prelude_binds + workers,
        "wait_created": workers,
    }


def roles(input: Input, log: EventLog) -> RoleReport:
    """No prefix holds more of a role than the nodes allow."""
    most = counts(input, 0)
    per_node = "once per node"
    whys = {**dict.fromkeys(CHAIN, per_node), "preludeStep": "once per bind", "enqueueWorkerStep": "once per worker"}
    return storm.at_most(log, {role: (most[role], why) for role, why in whys.items()})


def warnings(input: Input) -> list[str]:
    """What would make the scenario prove nothing."""
    found = []
    if input.width <= INLINE_STEPS:
        found.append(f"{input.width} nodes in flight all run inline: nothing goes through the queue")
    if input.worker_callback_ms >= input.worker_watchdog_ms:
        found.append(f"a callback after {input.worker_callback_ms:g} ms comes after the watchdog")
    return found


def vacuous(value: Any, input: Input, _log: EventLog | None, _pressure: Pressure) -> str | None:
    """Why a completed run proves nothing: no worker was called back in time."""
    workers = len(worker_nodes(input))
    if workers and unanswered(value) == workers:
        return "no callback arrived: the watchdog ended every worker"
    return None


DAG_RUNNER = Workload(
    name="dag-runner",
    summary="a scheduler keeps chains of steps in flight, some of which bind a hook and await its registration",
    input_type=Input,
    body=body,
    steps=STEPS,
    driver=drive,
    check=check,
    stragglers=unanswered,
    counts=counts,
    roles=roles,
    warnings=warnings,
    ledger_code="BAD_DAG_RUNNER_LEDGER",
    vacuous=vacuous,
)
