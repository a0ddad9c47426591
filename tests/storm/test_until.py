"""Stopping a storm once its two arms are told apart: which attempts are pairs, in which order, and what is said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pytest

from stormctl.errors import UnreadableInput, UsageError
from stormctl.storm import driver
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.driver import run_storm
from stormctl.storm.events import AttemptLanded, StormFinished, StormNoted
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Counted, Outcome
from stormctl.storm.plan import Plan, load_plan, resolved_yaml
from stormctl.storm.resume import resumable
from stormctl.storm.run import Announce, AttemptRun
from stormctl.storm.until import FILE, Arms, Until, full_name, narrowed, read_until
from stormctl.workloads.registry import WORKLOADS
from tests.storm.making import attempt, plan

OLD, NEW = "main + nets", "seq-final + dispenser"
ARMS = Arms(OLD, NEW)
MATRIX = {"scenario": ["step-storm", "hook-storm"], "pair": [OLD, "seq-tail + dispenser", NEW]}
CONTROL = next(name for name, workload in WORKLOADS.items() if workload.control)
Outcomes = Callable[[Cell, int], Outcome]


def wanted(**changes: Any) -> Plan:
    return narrowed(plan(matrix=MATRIX, attempts=12, **changes), ARMS)


def everywhere(cell: Cell, _number: int) -> Outcome:
    """The old arm is corrupted in every attempt, the new one in none."""
    return Outcome.CORRUPTED if cell.condition == "main" else Outcome.COMPLETED


def landed(made: Plan, outcomes: Outcomes = everywhere) -> list[Attempt]:
    return [
        attempt(number, outcomes(cell, number), cell=cell)
        for number in range(1, made.attempts + 1)
        for cell in made.cells
    ]


class TestTheNameOfAnArm:
    def test_may_be_the_part_that_no_other_arm_has(self) -> None:
        cells = plan(matrix=MATRIX).cells
        assert [full_name(cells, word) for word in (OLD, "main", "nets", "seq-final")] == [OLD, OLD, OLD, NEW]

    def test_may_not_be_a_part_of_several(self) -> None:
        with pytest.raises(UsageError, match="'dispenser' is part of several arms") as told:
            full_name(plan(matrix=MATRIX).cells, "dispenser")
        assert told.value.remedy == "Name one whole: 'seq-tail + dispenser', 'seq-final + dispenser'."

    def test_is_never_guessed(self) -> None:
        with pytest.raises(UsageError, match="there is no arm 'mian'"):
            full_name(plan(matrix=MATRIX).cells, "mian")


class TestWhichCells:
    def test_are_those_of_the_two_arms_in_the_order_in_which_they_are_named(self) -> None:
        made = wanted()
        assert [(cell.scenario, cell.condition) for cell in made.cells] == [
            ("step-storm", "main"),
            ("step-storm", "seq-final"),
            ("hook-storm", "main"),
            ("hook-storm", "seq-final"),
        ]
        back = narrowed(plan(matrix=MATRIX), Arms(NEW, OLD))
        assert [cell.condition for cell in back.cells[:2]] == ["seq-final", "main"]

    def test_are_kept_in_a_plan_that_can_be_read_again(self, tmp_path: Path) -> None:
        path = tmp_path / "plan.yaml"
        path.write_text(resolved_yaml(wanted()))
        assert load_plan(path).cells == wanted().cells

    def test_may_be_of_two_worlds(self) -> None:
        two = plan(matrix={"world": ["memory", "local"], "condition": ["main"], "generation": ["nets"]}, processes=1)
        made = narrowed(two, Arms("local/main + nets", "memory/main + nets"))
        assert [cell.world for cell in made.cells] == ["local", "memory"]
        assert Until(made, Arms("local/main + nets", "memory/main + nets")).standing.planned == 2

    @pytest.mark.parametrize(
        ("arms", "said"),
        [
            (("main + nets", "seq-finale + dispenser"), "there is no arm 'seq-finale"),
            (("main + nets", "memory/main + nets"), "share a cell"),
        ],
    )
    def test_that_cannot_be_told_apart_are_refused(self, arms: tuple[str, str], said: str) -> None:
        with pytest.raises(UsageError, match=said):
            narrowed(plan(matrix=MATRIX), Arms(*arms))

    def test_that_share_no_scenario_are_refused(self) -> None:
        apart = [
            {"scenario": "step-storm", "condition": "main", "generation": "nets"},
            {"scenario": "hook-storm", "condition": "seq-final", "generation": "dispenser"},
        ]
        with pytest.raises(UsageError, match="in the same scenarios"):
            narrowed(plan(matrix={"pair": apart}), ARMS)

    def test_of_a_target_that_does_not_take_turns_are_refused(self) -> None:
        other = plan(matrix=MATRIX)
        sdk = Plan(**{**{name: getattr(other, name) for name in Plan.__dataclass_fields__}, "target": "sdk"})
        with pytest.raises(UsageError, match="runs cell after cell"):
            narrowed(sdk, ARMS)


class TestTheRule:
    def test_takes_pairs_as_they_were_planned_however_they_land(self) -> None:
        """A corrupted run ends early: by landing, the first pairs would all look corrupted."""
        made, draw = wanted(), Random(3)

        def outcomes(cell: Cell, number: int) -> Outcome:
            corrupted = number % 3 == 0 if cell.condition == "main" else number % 5 == 0
            return Outcome.CORRUPTED if corrupted else Outcome.COMPLETED

        ends = set()
        for _ in range(20):
            attempts = landed(made, outcomes)
            draw.shuffle(attempts)
            until = Until(made, ARMS)
            for one in attempts:
                until.landed(one)
            ends.add(until.standing)
        assert len(ends) == 1
        assert ends.pop().pairs == 24

    def test_waits_for_both_of_a_pair(self) -> None:
        made = wanted()
        old, new = made.cells[:2]
        until = Until(made, ARMS)
        until.landed(attempt(2, Outcome.CORRUPTED, cell=old))
        until.landed(attempt(2, Outcome.COMPLETED, cell=new))
        assert until.standing.pairs == 0
        for one in landed(made)[:4]:
            until.landed(one)
        assert until.standing.pairs == 3  # both of the first, and the one that was waiting

    def test_is_resolved_once_the_old_arm_is_ahead_far_enough_and_says_so_once(self) -> None:
        until, said = Until(wanted(), ARMS), []
        for one in landed(wanted()):
            said.append(until.landed(one))
        told = [one for one in said if one]
        assert until.resolved
        assert until.standing.pairs == 7
        assert sum(one.startswith("resolved: ") for one in told) == 1
        assert told[-1] == (
            "resolved: main + nets corrupts more after 7 of 24 pairs (7 corrupted under main + nets only, 0 under "
            "seq-final + dispenser only); equal arms are called different in at most 5 % of storms"
        )

    def test_says_now_and_then_where_it_stands(self) -> None:
        until = Until(wanted(), ARMS)
        said = [text for one in landed(wanted(), lambda cell, number: Outcome.COMPLETED) if (text := until.landed(one))]
        assert 8 <= len(said) <= 12
        assert said[0] == (
            "pair 2 of 24: 0 corrupted under main + nets only, 0 under seq-final + dispenser only; no lead"
        )
        assert not until.resolved
        assert until.conclusion.startswith("not resolved after 24 of 24 pairs (0 corrupted")

    def test_passes_over_a_pair_that_infra_took_part_in(self) -> None:
        def outcomes(cell: Cell, number: int) -> Outcome:
            return Outcome.INFRA if number == 1 and cell.condition == "main" else everywhere(cell, number)

        until = Until(wanted(), ARMS)
        for one in landed(wanted(), outcomes):
            until.landed(one)
        assert until.resolved
        assert until.row()["left_out"] == 2
        assert "2 passed over as infra" in until.conclusion

    @pytest.mark.parametrize(
        ("counted", "outcome"),
        [
            (Counted.STUCK, Outcome.DORMANT),
            (Counted.STUCK, Outcome.SLOW),
            (Counted.ANY_FAILURE, Outcome.USER_ERROR),
            (Counted.ANY_FAILURE, Outcome.CORRUPTED),
        ],
    )
    def test_counts_what_it_is_told_to(self, counted: Counted, outcome: Outcome) -> None:
        def outcomes(cell: Cell, number: int) -> Outcome:
            return outcome if cell.condition == "main" else Outcome.COMPLETED

        told, other = Until(wanted(), Arms(OLD, NEW, counted)), Until(wanted(), Arms(OLD, NEW, Counted.CORRUPTED))
        for one in landed(wanted(), outcomes):
            told.landed(one)
            other.landed(one)
        assert told.standing.sign == 1
        assert other.resolved == (outcome is Outcome.CORRUPTED)

    def test_leaves_controls_out(self) -> None:
        made = narrowed(plan(matrix={**MATRIX, "scenario": [CONTROL, "step-storm"]}, attempts=3), ARMS)
        assert len(made.cells) == 4
        assert Until(made, ARMS).standing.planned == 3
        alone = narrowed(plan(matrix={**MATRIX, "scenario": [CONTROL]}, input={}), ARMS)
        with pytest.raises(UsageError, match="controls alone"):
            Until(alone, ARMS)

    def test_every_order_of_four_landings_is_the_same(self) -> None:
        made = narrowed(plan(matrix={**MATRIX, "scenario": ["step-storm"]}, attempts=2), ARMS)
        rows = set()
        for order in permutations(landed(made)):
            until = Until(made, ARMS)
            for one in order:
                until.landed(one)
            rows.add(json.dumps(until.row()))
        assert len(rows) == 1


class TestAStorm:
    @pytest.fixture
    def made(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Cell, int]]:
        """Attempts that land at once, the old arm's corrupted; the list says which ones were made."""
        made: list[tuple[Cell, int]] = []

        class Quick(AttemptRun):
            async def run(self, announce: Announce) -> Attempt:
                await announce(str(self._subject.run_id))
                made.append((self._lab.cell, self._number))
                await asyncio.sleep(0)
                outcome = everywhere(self._lab.cell, self._number)
                return attempt(self._number, outcome, cell=self._lab.cell, run_id=self._subject.run_id)

        monkeypatch.setattr(driver, "AttemptRun", Quick)
        return made

    def run(self, made: Plan, folder: StormFolder, until: Until, **more: Any) -> list[Any]:
        async def follow() -> list[Any]:
            return [event async for event in run_storm(made, folder, until=until, **more)]

        return asyncio.run(follow())

    def test_starts_nothing_more_once_it_is_resolved_and_lands_what_is_in_flight(
        self, made: list[tuple[Cell, int]], tmp_path: Path
    ) -> None:
        storm = wanted(concurrency=3)
        folder, until = StormFolder.create(storm, tmp_path), Until(storm, ARMS)
        events = self.run(storm, folder, until)
        assert until.standing.sign == 1
        assert 14 <= len(made) <= 17
        assert len([event for event in events if isinstance(event, AttemptLanded)]) == len(made)
        assert isinstance(events[-1], StormFinished)
        assert events[-1].reason == "resolved"
        assert [event.text for event in events if isinstance(event, StormNoted)][-1] == until.conclusion
        assert json.loads((folder.path / "storm.json").read_text())["reason"] == "resolved"
        kept = json.loads((folder.path / FILE).read_text())
        assert (kept["more"], kept["pairs"], kept["alpha"]) == (OLD, 7, 0.05)

    def test_takes_turns_between_the_arms(self, made: list[tuple[Cell, int]], tmp_path: Path) -> None:
        storm = wanted(concurrency=1)
        self.run(storm, StormFolder.create(storm, tmp_path), Until(storm, ARMS))
        assert [cell.condition for cell, _ in made[:8]] == ["main", "seq-final"] * 4

    def test_that_is_resolved_cannot_be_resumed(self, made: list[tuple[Cell, int]], tmp_path: Path) -> None:
        storm = wanted()
        folder = StormFolder.create(storm, tmp_path)
        self.run(storm, folder, Until(storm, ARMS))
        with pytest.raises(UsageError, match="nothing to resume"):
            resumable(folder.path)

    def test_that_was_interrupted_goes_on_with_its_rule_and_what_had_landed(
        self, made: list[tuple[Cell, int]], tmp_path: Path
    ) -> None:
        storm = wanted(concurrency=1)
        folder = StormFolder.create(storm, tmp_path)
        for one in landed(storm)[:10]:
            folder.record(one)
        folder.write_json(FILE, Until(storm, ARMS).row())
        found = resumable(folder.path)
        arms = read_until(found.folder.path)
        assert arms == ARMS
        until = Until(found.plan, ARMS, found.earlier.landed)
        assert until.standing.pairs == 5
        self.run(found.plan, found.folder, until, earlier=found.earlier)
        assert until.standing.pairs == 7
        assert len(made) == 4


class TestItsFile:
    def test_is_absent_of_a_plain_storm(self, tmp_path: Path) -> None:
        assert read_until(tmp_path) is None

    @pytest.mark.parametrize("text", ["{", "[]", '{"schema": "stormctl.until/1", "arms": ["a"]}'])
    def test_that_is_damaged_is_named(self, tmp_path: Path, text: str) -> None:
        (tmp_path / FILE).write_text(text)
        with pytest.raises(UnreadableInput, match="is damaged"):
            read_until(tmp_path)

    def test_of_a_newer_version_is_named(self, tmp_path: Path) -> None:
        (tmp_path / FILE).write_text('{"schema": "stormctl.until/2"}')
        with pytest.raises(UnreadableInput, match="until/2"):
            read_until(tmp_path)
