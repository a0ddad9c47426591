"""What the storm scenarios have in common: the tail of a branch, the close of a round, the ledger and its checks.

All of them amplify: the recovery path calls one step more than the settled path, so a writer that misses one event
draws another number of ids, and every later id of the run is renamed (vercel/workflow #3147).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping
from typing import Any, Protocol

from stormctl.engine.workflow import Workflow
from stormctl.history import EventLog, kinds
from stormctl.workloads.base import Act, Pressure, RoleExcess, RoleReport, SetAttributes, Sleep, StepBody
from stormctl.workloads.races import Drawn, Race, Trail, ends, written

SETTLED, WATCHDOG = "settled", "watchdog"
#: the error code of a completed run whose ledger does not add up
BAD_LEDGER = "BAD_STORM_LEDGER"


class StormInput(Protocol):
    """The fields that every storm's input has."""

    @property
    def rounds(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def reconcile_base(self) -> int: ...


# -- the body's parts -----------------------------------------------------------------------------------------------


async def finish_branch(wf: Workflow, round: int, index: int, winner: str) -> str:
    """What follows a branch's race: recovery calls two steps where settlement calls one; release is always called."""
    try:
        if winner == WATCHDOG:
            await wf.step("recoverStep", wf.run_id, round, index)
        await wf.step("finalizeStep", wf.run_id, round, index, winner)
    finally:
        await wf.step("releaseStep", wf.run_id, round, index)
    return winner


async def reconcile(wf: Workflow, input: StormInput, round: int, winners: list[str]) -> dict[str, Any]:
    """Reconcile in parallel, once more per straggler: the round's ledger record."""
    stragglers = winners.count(WATCHDOG)
    reconciled = await wf.all(
        wf.step("reconcileStep", wf.run_id, round, index, stragglers)
        for index in range(input.reconcile_base + stragglers)
    )
    return {
        "round": round,
        "branches": [{"round": round, "index": index, "winner": winner} for index, winner in enumerate(winners)],
        "stragglers": stragglers,
        "reconciled": len(reconciled),
    }


# -- the steps ------------------------------------------------------------------------------------------------------


def settle_step(
    delay_ms: float, run_id: str, round: int, index: int, attr_writes: int
) -> Generator[Act, Any, dict[str, Any]]:
    """Write the settle attribute so many times, then work for ``delay_ms``."""
    for write in range(attr_writes):
        yield SetAttributes({"settle": f"{round}/{index}/{write}"})
    yield Sleep(delay_ms)
    return {"round": round, "index": index}


def short_step(run_id: str, round: int, index: int, *_rest: Any) -> Generator[Act, Any, dict[str, Any]]:
    """A step that does nothing but return."""
    yield from ()
    return {"round": round, "index": index}


STEPS: dict[str, StepBody] = {
    "settleStep": settle_step,
    "recoverStep": short_step,
    "finalizeStep": short_step,
    "releaseStep": short_step,
    "reconcileStep": short_step,
}

# -- the races as a log tells them ------------------------------------------------------------------------------------


def branch_race(trail: Trail, round: int, index: int, settled: int | None, watchdog: Drawn | None) -> Race:
    """The race of a branch. ``settled`` is where its settlement has its result, ``watchdog`` is its wait.

    Recovery follows the watchdog alone; finalization names who won.
    """
    run_id = trail.run_id
    return Race(
        branch=(round, index),
        ends=ends(settled=settled, watchdog=None if watchdog is None else watchdog.end),
        written=written(
            settled=trail.steps("finalizeStep", run_id, round, index, SETTLED),
            watchdog=[
                *trail.steps("recoverStep", run_id, round, index),
                *trail.steps("finalizeStep", run_id, round, index, WATCHDOG),
            ],
        ),
    )


# -- what must hold at the end --------------------------------------------------------------------------------------


def check_ledger(value: Any, input: StormInput) -> str | None:
    """The first disagreement of a returned ledger with itself and its input, in upstream's order, or None."""
    if not isinstance(value, dict):
        return "the run returned no object"
    ledger = value.get("ledger")
    if not isinstance(ledger, list):
        return "the ledger is no list"
    if len(ledger) != input.rounds:
        return f"the ledger has {len(ledger)} rounds of {input.rounds}"
    for place, record in enumerate(ledger):
        problem = _check_record(record, place, input)
        if problem is not None:
            return f"round {place}: {problem}"
    return None


def _check_record(record: Any, place: int, input: StormInput) -> str | None:
    if not isinstance(record, dict):
        return "the record is no object"
    if record.get("round") != place:
        return f"the record says round {record.get('round')}"
    branches = record.get("branches")
    if not isinstance(branches, list) or len(branches) != input.width:
        return f"the record does not hold {input.width} branches"
    late = sum(1 for branch in branches if isinstance(branch, dict) and branch.get("winner") == WATCHDOG)
    if record.get("stragglers") != late:
        return f"{late} branches straggled and the record says {record.get('stragglers')}"
    if record.get("reconciled") != input.reconcile_base + late:
        return f"{record.get('reconciled')} steps reconciled where {input.reconcile_base} + {late} should have"
    return None


def count_stragglers(value: Any) -> int:
    """How many branches of a completed run the watchdog won."""
    return sum(record["stragglers"] for record in value["ledger"])


def one_sided(value: Any, input: StormInput, _log: EventLog | None, _pressure: Pressure) -> str | None:
    """Why a completed storm proves nothing: nobody straggled, or everybody did, so no two branches differed."""
    return one_way(count_stragglers(value), input.rounds * input.width)


def one_way(stragglers: int, branches: int) -> str | None:
    """Why so many stragglers among so many branches prove nothing, or None."""
    if stragglers == 0:
        return "nobody straggled: every branch took the same steps"
    if stragglers == branches:
        return "everybody straggled: every branch took the same steps"
    return None


def step_counts(input: StormInput, stragglers: int, *, settles: bool) -> dict[str, int]:
    """How often each step of a completed run is created."""
    branches = input.rounds * input.width
    return {
        "settleStep": branches if settles else 0,
        "recoverStep": stragglers,
        "finalizeStep": branches,
        "releaseStep": branches,
        "reconcileStep": input.rounds * input.reconcile_base + stragglers,
    }


def count_roles(log: EventLog, limits: Mapping[str, tuple[int, str]], opener: str, per_round: int) -> RoleReport:
    """The first event with which each role is created more often than the rounds entered so far allow.

    A round is entered when its first opener is created: ``opener`` is a step name or an event type, ``per_round`` how
    many a round has. ``limits`` gives for each step name the most of one round, and why.
    """

    def limit(role: str, made: Mapping[str, int]) -> tuple[int, str]:
        most, why = limits[role]
        return most * -(-made.get(opener, 0) // per_round), why

    return limit_roles(log, limits, limit)


def at_most(log: EventLog, limits: Mapping[str, tuple[int, str]]) -> RoleReport:
    """The first event with which each role (a step name) is created more often than a whole run may, and why."""
    return limit_roles(log, limits, lambda role, _made: limits[role])


def limit_roles(
    log: EventLog, roles: Collection[str], limit: Callable[[str, Mapping[str, int]], tuple[int, str]]
) -> RoleReport:
    """The first event with which each of the roles passes its limit.

    ``limit(role, made)`` is the most that may exist of a role, and why; ``made`` counts what has been created up to
    and with the event, by step name and by event type.
    """
    made: Counter[str] = Counter()
    created: set[str | None] = set()
    passed: set[str] = set()
    excesses: list[RoleExcess] = []
    for index, event in enumerate(log):
        if event.type not in kinds.CREATES or event.correlation_id in created:
            continue  # one entity created twice is another sweep's business
        created.add(event.correlation_id)
        role = event.short_name
        made[event.type] += 1
        if role is None:
            continue
        made[role] += 1
        if role not in roles or role in passed:
            continue
        most, why = limit(role, made)
        if made[role] > most:
            passed.add(role)
            excesses.append(RoleExcess(index, role, most, made[role], why))
    return RoleReport(tuple(excesses))


def role_limits(input: StormInput) -> dict[str, tuple[int, str]]:
    """The most that one round may create of each role, and why."""
    width = input.width
    return {
        "settleStep": (width, "one settlement per branch"),
        "recoverStep": (width, "at most one recovery per branch"),
        "finalizeStep": (width, "one finalization per branch"),
        "releaseStep": (width, "one release per branch"),
        "reconcileStep": (input.reconcile_base + width, "one reconciliation per straggler beside the base"),
    }
