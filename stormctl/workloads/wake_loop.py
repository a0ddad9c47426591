"""wake-loop: one sequential loop that races a hook, read by one iterator, against a heartbeat.

Nothing fans out; the concurrency comes from the driver, whose every wake is an invocation. A stale wake takes no step
and a fresh one four, the pending read is carried over a heartbeat, and the heartbeat is armed again only after it won:
whoever takes a wake for a heartbeat renames everything after it (vercel/workflow #4017).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stormctl.engine.promise import Promise
from stormctl.engine.workflow import Workflow
from stormctl.history import EventLog, kinds
from stormctl.workloads import parts, storm
from stormctl.workloads.base import (
    Act,
    Now,
    Pressure,
    Resume,
    RoleReport,
    RunEnded,
    Sleep,
    Together,
    Uniform,
    WaitForHook,
    Workload,
)
from stormctl.workloads.races import Drawn, Race, Trail, ends, written

START, CONTINUE, HEARTBEAT, WAKE = "start", "continue", "heartbeat", "wake"
#: how far the driver's idle times lie around the heartbeat, as a share of it
IDLE_SPREAD = 0.2


@dataclass(frozen=True)
class Input:
    """The published defaults. Times are milliseconds.

    ``wakes`` is how many fresh wakes end the loop, ``max_cycles`` how many cycles at most. Every ``continue_every``-th
    cycle is followed by another at once (0: none). ``short_step_ms`` is how long the three short steps of a cycle
    work. The ratios are the driver's: of fresh wakes, of bursts, and of idle times around the heartbeat.
    """

    token: str = ""
    wakes: int = 12
    heartbeat_ms: float = 4000.0
    step_delay_ms: float = 600.0
    step_delay_jitter_ms: float = 500.0
    short_step_ms: float = 50.0
    step_payload_bytes: int = 8192
    continue_every: int = 5
    max_cycles: int = 80
    fresh_ratio: float = 0.5
    burst_ratio: float = 0.25
    burst_size: int = 4
    gap_min_ms: float = 200.0
    gap_max_ms: float = 1500.0
    idle_ratio: float = 0.3
    hook_timeout_ms: float = 60_000.0

    def __post_init__(self) -> None:
        parts.check_ratios(fresh_ratio=self.fresh_ratio, burst_ratio=self.burst_ratio, idle_ratio=self.idle_ratio)
        parts.check_order(gap_min_ms=self.gap_min_ms, gap_max_ms=self.gap_max_ms)


# -- the body -------------------------------------------------------------------------------------------------------


class _Loop:
    """The loop's counters, and its cycle."""

    def __init__(self, wf: Workflow, input: Input) -> None:
        self.wf = wf
        self.input = input
        self.cycles = 0
        self.fresh = 0
        self.stale = 0
        self.heartbeats = 0
        self.ledger: list[dict[str, Any]] = []

    def verify(self, cycle: int, phase: str) -> Promise:
        """The short step that checks something."""
        input = self.input
        return self.wf.step("verifyStep", input.short_step_ms, self.wf.run_id, cycle, phase, input.step_payload_bytes)

    async def cycle(self, cause: str) -> bool:
        """Four steps one after another; whether the next cycle follows at once."""
        wf, input, index = self.wf, self.input, self.cycles
        self.cycles += 1
        self.ledger.append({"cycle": index, "cause": cause})
        size = input.step_payload_bytes
        await self.verify(index, "before")
        await wf.step("drainStep", drain_time(input, index), wf.run_id, index, input.continue_every, size)
        await self.verify(index, "after")
        await wf.step("syncStep", input.short_step_ms, wf.run_id, index, size)
        return follows(index, input.continue_every)


def drain_time(input: Input, index: int) -> float:
    """How long a cycle's long step works, in ms."""
    return parts.spread(input.step_delay_ms, input.step_delay_jitter_ms, index)


def follows(index: int, every: int) -> bool:
    """Whether another cycle follows a cycle at once. The drain step says the same; asking it would tie a replay to a
    payload that captures seldom keep."""
    return every > 0 and index % every == every - 1


async def body(wf: Workflow, input: Input) -> dict[str, Any]:
    """The workflow."""
    abort = wf.hook(f"{input.token}:abort")  # nobody ever reads it
    hook = wf.hook(input.token)
    loop = _Loop(wf, input)
    try:
        pending = hook.next()
        heartbeat: Promise | None = None
        more = await wf.run(loop.cycle(START))
        while loop.fresh < input.wakes and loop.cycles < input.max_cycles:
            while more and loop.cycles < input.max_cycles:
                more = await wf.run(loop.cycle(CONTINUE))
            if loop.cycles >= input.max_cycles:
                break
            if heartbeat is None:
                await loop.verify(loop.cycles, HEARTBEAT)
                heartbeat = wf.sleep(input.heartbeat_ms).then(lambda _: (HEARTBEAT, None))
            winner, payload = await wf.race(pending.then(lambda value: (WAKE, value)), heartbeat)
            if winner == HEARTBEAT:
                heartbeat = None
                loop.heartbeats += 1
                more = await wf.run(loop.cycle(HEARTBEAT))
                continue
            pending = hook.next()
            if not isinstance(payload, dict):
                raise ValueError("a wake without a payload: neither fresh nor stale")
            if payload.get("fresh"):
                loop.fresh += 1
                more = await wf.run(loop.cycle(WAKE))
            else:
                loop.stale += 1
                more = False
    finally:
        hook.dispose()
        abort.dispose()
    return {
        "runId": wf.run_id,
        "cycles": loop.cycles,
        "freshWakes": loop.fresh,
        "staleWakes": loop.stale,
        "heartbeats": loop.heartbeats,
        "ledger": loop.ledger,
    }


# -- the steps ------------------------------------------------------------------------------------------------------


def verify_step(delay_ms: float, run_id: str, cycle: int, phase: str, size: int) -> Generator[Act, Any, Any]:
    """Work for a moment."""
    yield Sleep(delay_ms)
    return {"cycle": cycle, "phase": phase, "payload": parts.padded(f"verify:{cycle}:{phase}", size)}


def drain_step(delay_ms: float, run_id: str, cycle: int, continue_every: int, size: int) -> Generator[Act, Any, Any]:
    """The long step, inside which heartbeats and bursts of wakes land. Only its inputs say whether ``more`` follows."""
    yield Sleep(delay_ms)
    return {"cycle": cycle, "more": follows(cycle, continue_every), "payload": parts.padded(f"drain:{cycle}", size)}


def sync_step(delay_ms: float, run_id: str, cycle: int, size: int) -> Generator[Act, Any, Any]:
    """Work for a moment."""
    yield Sleep(delay_ms)
    return {"cycle": cycle, "payload": parts.padded(f"sync:{cycle}", size)}


# -- the driver -----------------------------------------------------------------------------------------------------


def drive(input: Input, pressure: Pressure) -> Generator[Act, Any, None]:
    """Send wakes, alone or in bursts, with gaps between them that are now and then about a heartbeat long."""
    for what in ("fresh", "stale", "bursts", "idles"):
        pressure.count(what, 0)
    if (yield WaitForHook(input.token, input.hook_timeout_ms)) is None:
        pressure.hook_missing = not (yield RunEnded())
        return
    sequence = 0
    while not (yield RunEnded()):
        size = 1
        if (yield Uniform()) < input.burst_ratio:
            pressure.count("bursts")
            size = input.burst_size
        wakes = []
        for _ in range(size):
            sequence += 1
            wakes.append(_wake(input, pressure, sequence, fresh=(yield Uniform()) < input.fresh_ratio))
        yield Together(tuple(wakes))
        if (yield RunEnded()):
            return
        if (yield Uniform()) < input.idle_ratio:
            pressure.count("idles")
            spread = int(IDLE_SPREAD * input.heartbeat_ms)
            yield Sleep(input.heartbeat_ms - spread + int((yield Uniform()) * 2 * spread))
        else:
            yield Sleep(input.gap_min_ms + int((yield Uniform()) * (input.gap_max_ms - input.gap_min_ms)))


def _wake(input: Input, pressure: Pressure, sequence: int, *, fresh: bool) -> Generator[Act, Any, None]:
    pressure.resumes_sent += 1
    pressure.count("fresh" if fresh else "stale")
    now = yield Now()
    if not (yield Resume(input.token, {"fresh": fresh, "seq": sequence, "sentAt": now})):
        pressure.resumes_failed += 1


# -- the races as a log tells them ----------------------------------------------------------------------------------


def races(input: Input, trail: Trail) -> Iterator[Race]:
    """What caused each cycle: the heartbeat, or the next fresh wake that nobody has read. A stale wake leaves no trace.

    Which one did shows in what follows the cycle: only after a heartbeat is a new one armed. A heartbeat that ended
    while the loop was still at work wins whatever was received before it, because the read has one more turn to take.
    """
    hook = trail.hook(input.token)
    if hook is None:
        return
    fresh = [index for index in hook.received if _is_fresh(trail, index)]
    loop, read = _Told(input, trail), 0
    heartbeat: Drawn | None = None
    loop.play()
    while read < input.wakes and loop.cycles < input.max_cycles:
        begun = loop.synced()
        if heartbeat is None:
            arm = loop.armed()
            heartbeat = None if arm is None else trail.after(arm)
            begun = None if arm is None else arm.end
        if heartbeat is None or begun is None:
            return
        wake = fresh[read] if read < len(fresh) else None
        if heartbeat.end is not None and heartbeat.end < begun:
            wake = None
        if wake is None and heartbeat.end is None:
            return
        cycle = loop.cycles
        loop.play()
        rearmed, went_on = loop.armed(), loop.verified("before")
        shown = written(heartbeat=[rearmed]) if rearmed is not None else written(wake=went_on[:1])
        race = Race((cycle,), ends(wake=wake, heartbeat=heartbeat.end), shown)
        yield race
        if race.contradictions or not loop.began(cycle):
            return
        if race.first == WAKE:
            read += 1
        else:
            heartbeat = None


class _Told:
    """The loop as the steps in a log tell it."""

    def __init__(self, input: Input, trail: Trail) -> None:
        self._input = input
        self._trail = trail
        self.cycles = 0

    def play(self) -> None:
        """A cycle, and those that follow it at once."""
        more = True
        while more and self.cycles < self._input.max_cycles:
            more = follows(self.cycles, self._input.continue_every)
            self.cycles += 1

    def verified(self, phase: str, cycle: int | None = None) -> list[Drawn]:
        """The verifications of a phase of a cycle, of the next one by default."""
        input, at = self._input, self.cycles if cycle is None else cycle
        return self._trail.steps(
            "verifyStep", input.short_step_ms, self._trail.run_id, at, phase, input.step_payload_bytes
        )

    def armed(self) -> Drawn | None:
        """The verification before the heartbeat that is armed now."""
        return next(iter(self.verified(HEARTBEAT)), None)

    def began(self, cycle: int) -> bool:
        """Whether a cycle was begun."""
        return bool(self.verified("before", cycle))

    def synced(self) -> int | None:
        """Where the last cycle ended."""
        input = self._input
        last = self._trail.step(
            "syncStep", input.short_step_ms, self._trail.run_id, self.cycles - 1, input.step_payload_bytes
        )
        return None if last is None else last.end


def _is_fresh(trail: Trail, index: int) -> bool:
    payload = trail.payload(index)
    return isinstance(payload, Mapping) and bool(payload.get("fresh"))


# -- what must hold -------------------------------------------------------------------------------------------------


def check(value: Any, input: Input) -> str | None:
    """The first disagreement of a returned ledger with itself and its input, in upstream's order, or None."""
    if not isinstance(value, dict):
        return "the run returned no object"
    ledger = value.get("ledger")
    if not isinstance(ledger, list):
        return "the ledger is no list"
    if len(ledger) != value.get("cycles"):
        return f"the ledger has {len(ledger)} cycles and the run counted {value.get('cycles')}"
    if value.get("freshWakes") != input.wakes:
        return f"{value.get('freshWakes')} fresh wakes were processed of {input.wakes}"
    causes = [record.get("cause") if isinstance(record, dict) else None for record in ledger]
    for cause, key in ((WAKE, "freshWakes"), (HEARTBEAT, "heartbeats")):
        if causes.count(cause) != value.get(key):
            return f"{causes.count(cause)} cycles were caused by a {cause} and the run counted {value.get(key)}"
    if causes.count(START) != 1:
        return f"{causes.count(START)} cycles started the loop"
    return None


def heartbeats(value: Any) -> int:
    """How often the heartbeat won a completed run's race."""
    return int(value["heartbeats"])


def cycles(input: Input, beats: int) -> int:
    """How many cycles a completed run with so many heartbeats has: its ends are known, its continuations follow."""
    caused = 1 + input.wakes + beats
    total = caused
    while (
        input.continue_every > 0 and total < input.max_cycles and total - (total - 1) // input.continue_every < caused
    ):
        total += 1
    return total


def counts(input: Input, beats: int) -> Mapping[str, int]:
    """Exact counts of a completed run's creates. The heartbeat that was armed last never won."""
    total = cycles(input, beats)
    return {
        "verifyStep": 2 * total + beats + 1,
        "drainStep": total,
        "syncStep": total,
        "hook_created": 2,
        "wait_created": beats + 1,
    }


def roles(input: Input, log: EventLog) -> RoleReport:
    """The loop is sequential: no prefix holds more of one step than the others and the heartbeats account for."""

    def limit(role: str, made: Mapping[str, int]) -> tuple[int, str]:
        drains, syncs = made.get("drainStep", 0), made.get("syncStep", 0)
        if role == "drainStep":
            return min(syncs + 1, input.max_cycles), "a cycle drains once, after the one before has synced"
        if role == "syncStep":
            return drains, "a cycle syncs once, after it has drained"
        # two more than what followed them: the one under way, and one whose heartbeat is being written
        return drains + syncs + made.get(kinds.WAIT_CREATED, 0) + 2, "after a verification something else follows"

    return storm.limit_roles(log, ("verifyStep", "drainStep", "syncStep"), limit)


def warnings(input: Input) -> list[str]:
    """What would make the scenario prove nothing."""
    found = []
    if input.gap_max_ms >= input.heartbeat_ms:
        found.append(f"gaps of up to {input.gap_max_ms:g} ms outlast the heartbeat: it wins without being raced")
    if input.continue_every == 1:
        found.append("every cycle is followed by another: the loop never reads its hook")
    return found


def vacuous(value: Any, _input: Input, _log: EventLog | None, _pressure: Pressure) -> str | None:
    """Why a completed run proves nothing: it saw wakes of one kind only."""
    for kind in ("fresh", "stale"):
        if not value[f"{kind}Wakes"]:
            return f"no {kind} wake was processed: every wake took the same steps"
    return None


WAKE_LOOP = Workload(
    name="wake-loop",
    summary="a sequential loop races a hook against a heartbeat while wakes come singly and in bursts",
    input_type=Input,
    body=body,
    steps={"verifyStep": verify_step, "drainStep": drain_step, "syncStep": sync_step},
    driver=drive,
    check=check,
    stragglers=heartbeats,
    counts=counts,
    roles=roles,
    races=races,
    warnings=warnings,
    ledger_code="BAD_WAKE_LOOP_LEDGER",
    vacuous=vacuous,
    reads=frozenset({kinds.HOOK_RECEIVED}),
)
