"""What a store accepts, state by state: our three tables on all three stores, and the measured ones beside them."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from stormctl.worlds import Appended, AppendRequest, Condition, Refused, condition_named
from stormctl.worlds.condition import Semantics
from tests.worlds.making import (
    ATTR,
    HOOK,
    HOOK_2,
    OTHER_RUN,
    STEP,
    WAIT,
    make_run,
    want,
)
from tests.worlds.stores import Fresh, Stores, logged

MEASURED = Path(__file__).resolve().parents[3] / "shared" / "data" / "wdk"

CREATE_STEP = want("step_created", STEP, name="step//x//work", payload=[1])
CREATE_WAIT = want("wait_created", WAIT, resume_at=9_999_999_999_999)
CREATE_HOOK = want("hook_created", HOOK, token="tok-1")
LAZY = want("step_started", STEP, name="step//x//work", payload=[1], lazy=True)
START, COMPLETE, FAIL, RETRY = (want(f"step_{what}", STEP) for what in ("started", "completed", "failed", "retrying"))
ATTRIBUTE = want("attr_set", ATTR, data={"changes": [{"key": "phase", "value": "two"}]})

ATTEMPTS: dict[str, AppendRequest] = {
    "run_started": want("run_started"),
    "run_started again": want("run_started"),
    "run_completed": want("run_completed", payload="done"),
    "run_failed": want("run_failed", data={"errorCode": "USER_ERROR", "error": "boom"}),
    "run_cancelled": want("run_cancelled"),
    "step_created": CREATE_STEP,
    "step_started": START,
    "step_started_lazy": LAZY,
    "step_completed": COMPLETE,
    "step_failed": FAIL,
    "step_retrying": RETRY,
    "wait_created": CREATE_WAIT,
    "wait_completed": want("wait_completed", WAIT),
    "hook_created": CREATE_HOOK,
    "hook_created same id same token": CREATE_HOOK,
    "hook_created other id same token same run": want("hook_created", HOOK_2, token="tok-1"),
    "hook_created other run": want("hook_created", HOOK_2, token="tok-1", run=OTHER_RUN),
    "hook_received": want("hook_received", HOOK, token="tok-1", payload={"n": 1}),
    "hook_disposed": want("hook_disposed", HOOK, token="tok-1"),
    "attr_set": ATTRIBUTE,
    "step_started on PENDING step": START,
    "step_failed on PENDING step": FAIL,
    "step_completed on PENDING step": COMPLETE,
}

RUNNING = [*make_run(), *make_run(OTHER_RUN)]
STATES: dict[str, list[AppendRequest]] = {
    "run missing": [],
    "run pending": make_run()[:1],
    "running": RUNNING,
    "step missing": RUNNING,
    "step pending": [*RUNNING, CREATE_STEP],
    "step running": [*RUNNING, CREATE_STEP, START],
    "step completed": [*RUNNING, CREATE_STEP, START, COMPLETE],
    "step failed": [*RUNNING, CREATE_STEP, START, FAIL],
    "wait missing": RUNNING,
    "wait waiting": [*RUNNING, CREATE_WAIT],
    "wait completed": [*RUNNING, CREATE_WAIT, want("wait_completed", WAIT)],
    "hook missing": RUNNING,
    "hook live": [*RUNNING, CREATE_HOOK],
    "hook disposed": [*RUNNING, CREATE_HOOK, want("hook_disposed", HOOK)],
    "attr set": [*RUNNING, ATTRIBUTE],
}
for ending in ("run_completed", "run_failed", "run_cancelled"):
    STATES[f"after {ending}"] = [*RUNNING, CREATE_STEP, START, CREATE_WAIT, CREATE_HOOK, ATTEMPTS[ending]]
    STATES[f"after {ending}, step pending"] = [*RUNNING, CREATE_STEP, ATTEMPTS[ending]]

#: outcome, or outcome by table: local4, local5, pg4. ``+conflict`` lands and is refused all the same.
TABLE = """
running                 | run_started again              | no event
run missing             | run_started                    | appended not-found appended
run missing             | run_completed run_cancelled    | appended appended not-found
run missing             | run_failed                     | appended not-found not-found
run missing             | step_created wait_created hook_created step_started_lazy | appended
run missing             | step_started step_completed step_failed step_retrying | not-found
run missing             | wait_completed hook_received hook_disposed attr_set | not-found
run pending             | run_started run_completed run_failed run_cancelled | appended
run pending             | step_created step_started_lazy wait_created hook_created attr_set | appended
run pending             | step_started step_completed step_failed step_retrying | not-found
run pending             | wait_completed hook_received hook_disposed | not-found
step missing            | step_started step_completed step_failed step_retrying | not-found
step pending            | step_created step_started_lazy | conflict
step pending            | step_started step_completed step_failed step_retrying | appended
step running            | step_created step_started_lazy | conflict
step running            | step_started step_completed step_failed step_retrying | appended
step completed          | step_created step_started_lazy step_started | conflict
step completed          | step_completed step_failed step_retrying | conflict
step failed             | step_created step_started_lazy step_started | conflict
step failed             | step_completed step_failed step_retrying | conflict
wait missing            | wait_completed                 | not-found
wait waiting            | wait_created                   | conflict
wait waiting            | wait_completed                 | appended
wait completed          | wait_completed wait_created    | conflict
hook missing            | hook_received hook_disposed    | not-found
hook live               | hook_received hook_disposed    | appended
hook live               | hook_created                   | conflict
hook disposed           | hook_created                   | +conflict +conflict conflict
hook disposed           | hook_received hook_disposed    | not-found
attr set                | attr_set                       | conflict
"""
AFTER = """
run_started                                            | expired
step_created step_started_lazy wait_created hook_created attr_set | conflict
step_started                                           | appended expired appended
step_completed step_failed step_retrying               | appended
wait_completed hook_received hook_disposed             | not-found
"""
AFTER_PENDING = """
step_started                                           | expired
step_failed                                            | expired expired appended
step_completed step_retrying                           | appended
"""
ENDINGS = ("run_completed", "run_failed", "run_cancelled")
TABLES = (Semantics.LOCAL4, Semantics.LOCAL5, Semantics.PG4)
Row = tuple[str, str, str]


def rows(semantics: Semantics) -> list[Row]:
    """The table of one world: state, attempt, outcome."""

    def of(state: str, attempts: str, outcome: str) -> list[Row]:
        words = [outcome.strip()] if outcome.strip() == "no event" else outcome.split()
        chosen = words[TABLES.index(semantics)] if len(words) > 1 else words[0]
        return [(state.strip(), attempt, chosen) for attempt in attempts.split() if attempt != "again"]

    found = [row for line in TABLE.strip().splitlines() for row in of(*line.split("|"))]
    for ending in ENDINGS:
        for table, state in ((AFTER, f"after {ending}"), (AFTER_PENDING, f"after {ending}, step pending")):
            for line in table.strip().splitlines():
                found += of(state, *line.split("|"))
        for again in ENDINGS:
            twice = ending == again == "run_cancelled"
            found.append((f"after {ending}", again, "appended" if twice else "conflict"))
    found.append(("hook live", "hook_created other id same token same run", "hook_conflict"))
    found.append(("hook live", "hook_created other run", "hook_conflict"))
    return found


def measured(semantics: Semantics) -> list[Row]:
    """The table that was measured on the real world; skips where it is absent."""
    path = MEASURED / f"matrix-{semantics}.txt"
    if not path.exists():
        pytest.skip("the measured tables are not on this machine")
    found = []
    for line in path.read_text().splitlines():
        parts = re.match(r"([^:]+): (.+?)\s{1,}(ok:\S+|[A-Z]\w+Error(?:\(\+1\))?)", line)
        if parts is None:
            parts = re.match(r"attr_set duplicate same corr\s+EntityConflictError", line)
            assert parts is not None, line
            found.append(("attr set", "attr_set", "conflict"))
            continue
        state, attempt, outcome = parts.groups()
        state = state.replace("(resumeAt future)", "")
        if attempt.endswith("on PENDING step"):
            state += ", step pending"
        found.append((state, attempt, _word(outcome)))
    return found


def _word(outcome: str) -> str:
    if outcome.startswith("ok:"):
        return {"ok:noevent(+0)": "no event", "ok:hook_conflict(+1)": "hook_conflict"}.get(outcome, "appended")
    return {
        "EntityConflictError": "conflict",
        "EntityConflictError(+1)": "+conflict",
        "RunExpiredError": "expired",
    }.get(outcome, "not-found")


def condition_of(semantics: Semantics, store: str) -> Condition:
    """A condition without a lock that follows the table, with claims as its world has them."""
    base = condition_named("main-pg" if semantics is Semantics.PG4 else "main-local", store)
    return replace(base, name=f"table-{semantics}", semantics=semantics)


async def walk(stores: Stores, condition: Condition, table: list[Row]) -> list[str]:
    """Every row of the table, each on runs of its own; the rows that came out otherwise."""
    wrong = []
    async with stores:
        world = stores.open(condition)
        for state, attempt, expected in table:
            fresh = Fresh()
            for request in STATES[state]:
                assert isinstance(await world.append(fresh(request)), Appended), (state, request.type)
            request = fresh(ATTEMPTS[attempt])
            before = await logged(world, request.run_id)
            answer = await world.append(request)
            known = {event.event_id for event in before}
            new = [event for event in await logged(world, request.run_id) if event.event_id not in known]
            outcome = outcome_of(answer)
            if isinstance(answer, Refused):
                outcome = f"{'+' * len(new)}{outcome}"
            else:
                landed = [(event.event_id, event.type) for event in answer.events]
                assert [(event.event_id, event.type) for event in new] == landed, (state, attempt)
            if outcome != expected:
                wrong.append(f"{state}: {attempt} -> {outcome}, expected {expected}")
    return wrong


def outcome_of(answer: Appended | Refused) -> str:
    if isinstance(answer, Refused):
        return str(answer.refusal)
    if not answer.events:
        return "no event"
    return "hook_conflict" if answer.events[-1].type == "hook_conflict" else "appended"


@pytest.mark.parametrize("semantics", TABLES)
class TestTheDecisionTable:
    def test_of_each_world_holds_on_every_store(self, stores: Stores, semantics: Semantics) -> None:
        assert asyncio.run(walk(stores, condition_of(semantics, stores.kind), rows(semantics))) == []

    def test_agrees_with_the_measured_one(self, stores: Stores, semantics: Semantics) -> None:
        table = measured(semantics)
        assert len(table) > 90
        assert asyncio.run(walk(stores, condition_of(semantics, stores.kind), table)) == []


@pytest.mark.parametrize("name", ["seq-final", "slots-link", "in-band"])
def test_the_table_holds_under_conditions_with_positions_too(stores: Stores, name: str) -> None:
    condition = stores.named(name)
    table = rows(condition.semantics)
    if condition.locks:  # under the lock nothing lands that is refused
        table = [(state, attempt, outcome.lstrip("+")) for state, attempt, outcome in table]
    assert asyncio.run(walk(stores, condition, table)) == []
