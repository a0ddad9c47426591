"""Faults as data: what a plan may say, what it is told when that cannot be meant, and when a fault fires."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import PlanError
from stormctl.history import kinds
from stormctl.storm.faults.base import Fault, When
from stormctl.storm.faults.fired import FaultFired, FolderLedger, ListLedger, read_fired
from stormctl.storm.faults.injector import Injector, Trigger
from stormctl.storm.faults.kill import PLACES
from stormctl.storm.faults.messages import KINDS
from stormctl.storm.faults.registry import FAMILIES, parse_faults
from stormctl.storm.faults.stop import HELD
from stormctl.storm.plan import load_plan, parse_plan, resolved_yaml
from stormctl.worlds import Message
from stormctl.worlds.base import AppendRequest
from stormctl.worlds.condition import Point
from stormctl.worlds.delay import PRODUCTION
from stormctl.worlds.memory import MemoryQueue
from tests.storm.making import SMALL

GOOD: list[tuple[dict[str, Any], str]] = [
    ({"kill": "worker", "at": "publish", "every": 12, "limit": 3}, "kill worker at publish"),
    ({"kill": "worker", "at": "step body", "probability": 0.5}, "kill worker at step body"),
    ({"stop": "holder", "at": "allocate", "for": "2500ms"}, "stop holder at allocate"),
    ({"delay": "publish", "fixed": "50ms"}, "delay publish"),
    ({"delay": "publish", "creates": {"median": "31ms", "p99": "1s", "longest": "2s"}}, "delay publish"),
    ({"drop": "message", "kind": "step", "probability": 0.1}, "drop message"),
    ({"duplicate": "message", "every": 5}, "duplicate message"),
    ({"delay": "message", "by": "200ms", "every": 2}, "delay message"),
    ({"disconnect": "postgres", "every": "5s", "limit": 2}, "disconnect postgres"),
]


@pytest.mark.parametrize(("given", "label"), GOOD, ids=[str(item) for item, _ in GOOD])
def test_every_family_is_read_named_and_written_back(given: dict[str, Any], label: str) -> None:
    (fault,) = parse_faults([given])
    assert fault.label == label
    assert parse_faults([fault.row()]) == (fault,)


def test_every_family_has_an_example_above() -> None:
    assert {(verb, item[verb]) for item, _ in GOOD for verb, _ in FAMILIES if verb in item} == set(FAMILIES)


WRONG: list[tuple[Any, str]] = [
    ("kill", "Write it as"),
    ({}, "Write it as"),
    ({"kil": "worker"}, "Did you mean 'kill'?"),
    ({"kill": "worker", "drop": "message"}, "Make two faults"),
    ({"kill": "driver"}, "Known are worker"),
    ({"delay": "mesage"}, "Did you mean 'message'?"),
    ({"kill": "worker"}, "Known are enter"),
    ({"kill": "worker", "at": "pubish"}, "Did you mean 'publish'?"),
    ({"kill": "worker", "at": "publish", "evry": 3}, "Did you mean 'every'?"),
    ({"kill": "worker", "at": "publish", "every": 3, "probability": 0.5}, "Keep one"),
    ({"kill": "worker", "at": "publish", "every": 0}, "from 1"),
    ({"kill": "worker", "at": "publish", "probability": 0}, "Leave the fault out"),
    ({"kill": "worker", "at": "publish", "probability": 2}, "from 0 to 1"),
    ({"kill": "worker", "at": "publish", "type": "step_create"}, "Did you mean 'step_created'?"),
    ({"kill": "worker", "at": "step body", "type": "step_created"}, "Leave `type` out"),
    ({"stop": "holder", "at": "publish"}, "Write `for: 2500ms`"),
    ({"stop": "holder", "at": "mint-early", "for": "1s"}, "Known are"),
    ({"stop": "holder", "at": "publish", "for": "1h"}, "at most 600s"),
    ({"delay": "publish", "fixed": "1s", "creates": {}}, "Keep one"),
    ({"delay": "publish", "creates": {"medain": "1s"}}, "Did you mean 'median'?"),
    ({"delay": "publish", "creates": {"median": "5s", "p99": "1s"}}, "median: 31ms"),
    ({"delay": "publish", "creates": 3}, "Its keys are"),
    ({"delay": "message"}, "Write `by: 2500ms`"),
    ({"drop": "message", "kind": "hook"}, "Known are"),
    ({"disconnect": "local", "every": "5s"}, "Known are postgres"),
    ({"disconnect": "postgres", "every": 5}, "Write a number with ms"),
]


@pytest.mark.parametrize(("given", "remedy"), WRONG, ids=[str(item) for item, _ in WRONG])
def test_what_cannot_be_meant_is_one_sentence_that_names_the_fault(given: Any, remedy: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse_faults([{"drop": "message"}, given])
    assert remedy in caught.value.remedy
    assert "faults[2]" in str(caught.value)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["publish", "1s", "any", 0.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)
keys = st.sampled_from(["at", "type", "every", "probability", "limit", "for", "creates", "fixed", "kind", "by", "x"])


@given(st.sampled_from(sorted(FAMILIES)), st.dictionaries(keys, anything, max_size=5))
def test_any_fields_make_a_fault_or_a_plan_error(family: tuple[str, str], fields: dict[str, Any]) -> None:
    refused = None
    try:
        (fault,) = parse_faults([{family[0]: family[1], **fields}])
        assert parse_faults([fault.row()]) == (fault,)
    except PlanError as caught:
        refused = caught
    assert refused is None or refused.remedy


when = st.fixed_dictionaries({}, optional={"limit": st.integers(1, 99)}).flatmap(
    lambda limit: st.sampled_from([{}, {"every": 7}, {"probability": 0.25}]).map(lambda often: {**limit, **often})
)
killing = st.builds(lambda at, how: {"kill": "worker", "at": at, **how}, st.sampled_from(PLACES), when)
stopping = st.builds(
    lambda at, ms, how: {"stop": "holder", "at": at, "for": f"{ms}ms", **how},
    st.sampled_from(HELD),
    st.integers(1, 600_000),
    when,
)
messaging = st.builds(
    lambda verb, kind, how: {verb: "message", "kind": kind, **how},
    st.sampled_from(["drop", "duplicate"]),
    st.sampled_from(KINDS),
    when,
)


@given(st.lists(killing | stopping | messaging, max_size=5))
def test_a_resolved_plan_says_the_same_faults(faults: list[dict[str, Any]]) -> None:
    plan = parse_plan({**SMALL, "world": "local", "faults": faults}, "p")
    assert parse_plan(yaml.safe_load(resolved_yaml(plan)), "p").faults == plan.faults


class TestWhereAFaultCanStrike:
    def test_a_stop_of_the_only_process_there_is_is_refused(self) -> None:
        with pytest.raises(PlanError, match=r"faults\[1\] \(stop holder at publish\) .* the driver's process"):
            parse_plan({**SMALL, "faults": [{"stop": "holder", "at": "publish", "for": "1s"}]}, "p")

    def test_nobody_holds_a_lock_where_none_is_taken(self) -> None:
        stop = [{"stop": "holder", "at": "publish", "for": "1s"}]
        with pytest.raises(PlanError, match="main takes no lock"):
            parse_plan({**SMALL, "world": "local", "condition": "main", "faults": stop}, "p")
        both = parse_plan({**SMALL, "world": "local", "condition": ["main", "seq-final"], "faults": stop}, "p")
        assert len(both.faults) == 1

    def test_a_folder_has_no_connection_to_end(self) -> None:
        with pytest.raises(PlanError, match="the memory world has no connection to postgres"):
            parse_plan({**SMALL, "faults": [{"disconnect": "postgres", "every": "5s"}]}, "p")

    def test_a_plan_file_with_faults_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "plan.yaml"
        path.write_text(yaml.safe_dump({**SMALL, "faults": [{"kill": "worker", "at": "publish", "every": 12}]}))
        assert [fault.label for fault in load_plan(path).faults] == ["kill worker at publish"]


class TestATrigger:
    def test_fires_each_so_many_times(self) -> None:
        trigger = Trigger(1, When(every=3), "s", ListLedger())
        assert [trigger.fires() for _ in range(7)] == [False, False, True, False, False, True, False]

    def test_fires_by_its_seed_and_no_other_one(self) -> None:
        def sequence(number: int, seed: str) -> list[bool]:
            trigger = Trigger(number, When(None, 0.5), seed, ListLedger())
            return [trigger.fires() for _ in range(64)]

        assert sequence(1, "a") == sequence(1, "a")
        assert sequence(1, "a") != sequence(1, "b")
        assert sequence(1, "a") != sequence(2, "a")
        assert 16 < sum(sequence(1, "a")) < 48

    @given(st.integers(1, 5), st.integers(1, 4))
    def test_keeps_its_limit_across_processes(self, limit: int, processes: int) -> None:
        import tempfile

        with tempfile.TemporaryDirectory() as place:
            (Path(place) / "audit").mkdir()
            ledgers = [FolderLedger(Path(place), f"w{index}") for index in range(processes)]
            triggers = [Trigger(1, When(1, None, limit), "s", ledger) for ledger in ledgers]
            fired = sum(trigger.fires() for _ in range(4) for trigger in triggers)
            assert fired == min(limit, 4 * processes)


class TestTheRecord:
    def test_is_written_before_the_fault_acts(self, tmp_path: Path) -> None:
        (tmp_path / "audit").mkdir()
        seen: list[list[FaultFired]] = []

        class Watching:
            async def kill(self, _reason: str) -> None:
                seen.append(list(read_fired(tmp_path)))

            async def stop(self, _ms: float) -> None:
                raise AssertionError

        injector = _injector({"kill": "worker", "at": "publish"}, Watching(), FolderLedger(tmp_path, "w"))
        asyncio.run(injector.on_point(Point.PUBLISH, AppendRequest("wrun_1", kinds.RUN_STARTED, "wrt_1")))
        ((fired,),) = seen
        assert (fired.fault, fired.label, fired.worker, fired.at) == (1, "kill worker at publish", "w", "publish")
        assert (fired.run_id, fired.type, fired.cell) == ("wrun_1", "run_started", "cell")

    def test_a_torn_line_is_left_out(self, tmp_path: Path) -> None:
        (tmp_path / "audit").mkdir()
        FolderLedger(tmp_path, "w").write(FaultFired(1, "kill worker at publish", "w", 5))
        with (tmp_path / "audit" / "faults-w.ndjson").open("a") as file:
            file.write('{"schema": "stormctl.fault/1", "fau')
        assert [fired.time for fired in read_fired(tmp_path)] == [5]


def _injector(given: dict[str, Any], hands: Any, ledger: Any) -> Injector:
    faults: list[tuple[int, Fault]] = list(enumerate(parse_faults([given]), start=1))
    return Injector(faults, seed="s", worker="w", cell="cell", hands=hands, ledger=ledger)


class Struck(Exception):
    """A fault struck."""


class Raising:
    async def kill(self, reason: str) -> None:
        raise Struck(reason)

    async def stop(self, ms: float) -> None:
        raise Struck(str(ms))


class TestAPoint:
    def test_is_struck_for_the_type_that_the_plan_names_and_no_other(self) -> None:
        injector = _injector({"kill": "worker", "at": "admit", "type": "step_created"}, Raising(), ListLedger())
        other = AppendRequest("wrun_1", kinds.WAIT_CREATED, "wrt_1", correlation_id="wait_1")
        asyncio.run(injector.on_point(Point.ADMIT, other))
        lazy = AppendRequest("wrun_1", kinds.STEP_STARTED, "wrt_1", correlation_id="step_1", lazy=True)
        asyncio.run(injector.on_point(Point.EFFECTS, lazy))
        with pytest.raises(Struck, match="kill worker at admit"):
            asyncio.run(injector.on_point(Point.ADMIT, lazy))

    def test_of_the_drivers_own_appends_is_never_struck(self) -> None:
        injector = _injector({"kill": "worker", "at": "enter", "every": 1}, Raising(), ListLedger())
        asyncio.run(injector.on_point(Point.ENTER, AppendRequest("wrun_1", kinds.RUN_CREATED, "driver")))
        with pytest.raises(Struck):  # whereas a worker's is, by the same injector
            asyncio.run(injector.on_point(Point.ENTER, AppendRequest("wrun_1", kinds.RUN_STARTED, "wrt_1")))

    def test_inside_a_step_body_is_struck_there_only(self) -> None:
        injector = _injector({"kill": "worker", "at": "step body"}, Raising(), ListLedger())
        asyncio.run(injector.on_point(Point.PUBLISH, AppendRequest("wrun_1", kinds.STEP_STARTED, "wrt_1")))
        with pytest.raises(Struck):
            asyncio.run(injector.in_body("wrun_1"))


class TestAMessage:
    def sent(self, given: dict[str, Any], *messages: Message) -> tuple[list[Any], ListLedger]:
        async def main() -> tuple[list[Any], ListLedger]:
            now = [0]
            ledger = ListLedger()
            queue = _injector(given, Raising(), ledger).queue(MemoryQueue(lambda: now[0]))
            for message in messages:
                assert await queue.send(message) is True
            first = await queue.receive(99)
            now[0] = 500
            return [(one.message.run_id, 0) for one in first] + [
                (one.message.run_id, 500) for one in await queue.receive(99)
            ], ledger

        return asyncio.run(main())

    def test_that_is_dropped_never_comes(self) -> None:
        came, ledger = self.sent({"drop": "message", "every": 2}, Message("a"), Message("b"), Message("c"))
        assert came == [("a", 0), ("c", 0)]
        assert [(fired.run_id, fired.label) for fired in ledger.fired] == [("b", "drop message")]

    def test_that_is_duplicated_comes_twice(self) -> None:
        came, _ = self.sent({"duplicate": "message", "every": 1, "limit": 1}, Message("a"), Message("b"))
        assert came == [("a", 0), ("a", 0), ("b", 0)]

    def test_that_is_delayed_comes_later(self) -> None:
        came, _ = self.sent({"delay": "message", "by": "500ms", "every": 2}, Message("a"), Message("b"))
        assert came == [("a", 0), ("b", 500)]

    def test_of_another_kind_is_left_alone(self) -> None:
        step = Message("b", step_id="step_1")
        came, _ = self.sent({"drop": "message", "kind": "step", "every": 1}, Message("a"), step)
        assert came == [("a", 0)]
        came, _ = self.sent({"drop": "message", "kind": "wake", "every": 1}, Message("a"), step)
        assert came == [("b", 0)]

    def test_with_no_fault_for_it_meets_the_queue_itself(self) -> None:
        queue = MemoryQueue()
        assert _injector({"kill": "worker", "at": "enter"}, Raising(), ListLedger()).queue(queue) is queue


def test_a_delay_of_publication_is_in_force_and_said_once() -> None:
    ledger = ListLedger()
    injector = _injector({"delay": "publish", "fixed": "70ms", "receipts": "2ms"}, Raising(), ledger)
    shape = injector.shape(PRODUCTION)
    assert (shape.create_median, shape.longest, shape.receipt) == (70.0, 70.0, 2.0)
    assert [fired.label for fired in ledger.fired] == ["delay publish"]
