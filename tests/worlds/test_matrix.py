"""What a store accepts, state by state: our table, on both worlds and conditions, and the measured one beside it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from stormctl.worlds import MAIN, SEQ_FINAL, Appended, AppendRequest, Condition, Refused
from tests.worlds.making import (
    ATTR,
    HOOK,
    HOOK_2,
    OTHER_RUN,
    STEP,
    WAIT,
    local,
    make_run,
    memory,
    want,
)

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

TABLE = """
running                 | run_started again              | no event
run missing             | run_started run_completed run_failed run_cancelled | appended
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
hook disposed           | hook_created                   | conflict
hook disposed           | hook_received hook_disposed    | not-found
attr set                | attr_set                       | conflict
"""
AFTER = """
run_started                                            | expired
step_created step_started_lazy wait_created hook_created attr_set | conflict
step_started step_completed step_failed step_retrying  | appended
wait_completed hook_received hook_disposed             | not-found
"""


def rows() -> list[tuple[str, str, str]]:
    found = [
        (state.strip(), attempt, outcome.strip())
        for state, attempts, outcome in (line.split("|") for line in TABLE.strip().splitlines())
        for attempt in attempts.strip().split(" ")
        if attempt != "again"
    ]
    for ending in ("run_completed", "run_failed", "run_cancelled"):
        for line in AFTER.strip().splitlines():
            attempts, outcome = line.split("|")
            found += [(f"after {ending}", attempt, outcome.strip()) for attempt in attempts.split()]
        for again in ("run_completed", "run_failed", "run_cancelled"):
            twice = ending == again == "run_cancelled"
            found.append((f"after {ending}", again, "appended" if twice else "conflict"))
        pending = f"after {ending}, step pending"
        found += [(pending, "step_started", "expired"), (pending, "step_failed", "expired")]
        found += [(pending, "step_completed", "appended"), (pending, "step_retrying", "appended")]
    found.append(("hook live", "hook_created other id same token same run", "hook_conflict"))
    found.append(("hook live", "hook_created other run", "hook_conflict"))
    return found


def outcome_of(answer: Appended | Refused) -> str:
    if isinstance(answer, Refused):
        return str(answer.refusal)
    if not answer.events:
        return "no event"
    return "hook_conflict" if answer.events[-1].type == "hook_conflict" else "appended"


def walk(condition: Condition, folder: Path | None, table: list[tuple[str, str, str]]) -> list[str]:
    """Every row of the table, each on runs of its own; the rows that came out otherwise."""

    async def go() -> list[str]:
        wrong = []
        for index, (state, attempt, expected) in enumerate(table):
            world = memory(condition) if folder is None else local(folder / str(index), condition)
            for request in STATES[state]:
                assert isinstance(await world.append(request), Appended), (state, request.type)
            request = ATTEMPTS[attempt]
            before = await world.load(request.run_id)
            answer = await world.append(request)
            after = await world.load(request.run_id)
            landed = answer.events if isinstance(answer, Appended) else ()
            new = [event for event in after.events if event not in before.events]
            assert sorted(map(str, new)) == sorted(map(str, landed)), (state, attempt)
            if outcome_of(answer) != expected:
                wrong.append(f"{state}: {attempt} -> {outcome_of(answer)}, expected {expected}")
            await world.close()
        return wrong

    return asyncio.run(go())


@pytest.mark.parametrize("condition", [MAIN, SEQ_FINAL], ids=lambda condition: condition.name)
class TestTheDecisionTable:
    def test_holds_in_memory(self, condition: Condition) -> None:
        assert walk(condition, None, rows()) == []

    def test_holds_in_a_folder(self, condition: Condition, tmp_path: Path) -> None:
        assert walk(condition, tmp_path, rows()) == []


class TestTheMeasuredTable:
    def test_of_the_real_local_world_agrees(self) -> None:
        path = MEASURED / "matrix-local4.txt"
        if not path.exists():
            pytest.skip("the measured table is not on this machine")
        measured = []
        for line in path.read_text().splitlines():
            found = re.match(r"([^:]+): (.+?)\s{1,}(ok:\S+|[A-Z]\w+Error)", line)
            assert found is not None, line
            state, attempt, outcome = found.groups()
            state = state.replace("(resumeAt future)", "")
            if attempt.endswith("on PENDING step"):
                state += ", step pending"
            measured.append((state, attempt, _word(attempt, outcome, line)))
        assert len(measured) > 90
        assert walk(MAIN, None, measured) == []


def _word(attempt: str, outcome: str, line: str) -> str:
    if outcome.startswith("ok:noevent"):
        return "no event"
    if outcome.startswith("ok:hook_conflict"):
        return "hook_conflict"
    if outcome.startswith("ok:"):
        return "appended"
    if outcome == "EntityConflictError":
        return "conflict"
    if outcome == "RunExpiredError":
        return "expired"
    assert "not found" in line, line
    return "not-found"
