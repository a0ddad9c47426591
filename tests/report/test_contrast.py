"""Two arms or two storms compared: what stands against what, what is left out, what decides, what is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormctl.errors import UsageError
from stormctl.report.contrast import Contrast, Verdict, contrast, p_text, sentence
from stormctl.report.sides import OUTCOMES, sides
from stormctl.stats import Rate, attempts_needed, boschloo, difference, stratified
from stormctl.storm.until import FILE
from stormctl.workloads.registry import WORKLOADS
from tests.report.folders import NEW, OLD, folder, outcomes

CONTROL = next(name for name, workload in WORKLOADS.items() if workload.control)
HOOK, STEP = "hook-storm", "step-storm"


def compared(*folders: Path, arms: tuple[str, str] | None = None, outcome: str = "corrupted") -> Contrast:
    return contrast(sides(folders, arms, outcome), outcome)


def pair(path: Path, old: str, new: str, scenario: str = HOOK, **more: Any) -> Path:
    return folder(path, {(scenario, OLD): old, (scenario, NEW): new}, **more)


class TestOneStorm:
    def test_that_helps_says_so_and_by_how_much(self, tmp_path: Path) -> None:
        found = compared(pair(tmp_path / "a", outcomes(20, 24), outcomes(2, 24)))
        assert found.sentence == (
            "seq-final + dispenser corrupts less: 20/24 -> 2/24, difference 75 points (51 to 88), exact p <0.001"
        )
        assert found.verdict is Verdict.BETTER
        assert found.warnings == found.drifts == ()

    def test_that_harms_says_so(self, tmp_path: Path) -> None:
        found = compared(pair(tmp_path / "a", outcomes(2, 24), outcomes(20, 24)))
        assert found.sentence.startswith("seq-final + dispenser corrupts more: 2/24 -> 20/24, difference 75 points")
        assert found.verdict is Verdict.WORSE

    def test_that_does_not_tell_says_how_many_attempts_would(self, tmp_path: Path) -> None:
        found = compared(pair(tmp_path / "a", outcomes(3, 14), outcomes(5, 14)))
        needed = attempts_needed(3 / 14, 5 / 14)
        assert needed is not None
        assert found.sentence == (
            f"not resolved: 3/14 against 5/14 needs about {needed.n} attempts each, "
            "if the rates are what they look like"
        )
        assert found.verdict is Verdict.UNRESOLVED

    def test_in_which_nothing_happened_says_what_may_still_be(self, tmp_path: Path) -> None:
        found = compared(pair(tmp_path / "a", "." * 14, "." * 14))
        assert found.sentence == "not resolved: 0/14 against 0/14 look equal, and may differ by -22 to 22 points"

    def test_takes_the_first_and_the_last_arm_and_names_those_between(self, tmp_path: Path) -> None:
        cells = {(HOOK, OLD): "cccccc", (HOOK, "seq-tail + dispenser"): "cc....", (HOOK, NEW): "......"}
        found = compared(folder(tmp_path / "a", cells))
        assert found.sides.names == (OLD, NEW)
        assert found.warnings == ("not compared: seq-tail + dispenser",)

    def test_takes_the_arms_that_are_named(self, tmp_path: Path) -> None:
        cells = {(HOOK, OLD): "cccccc", (HOOK, "seq-tail + dispenser"): "cc....", (HOOK, NEW): "......"}
        found = compared(folder(tmp_path / "a", cells), arms=("seq-tail + dispenser", OLD))
        assert [str(one.difference.first)[:3] for one in found.cells] == ["2/6"]
        assert found.warnings == ("not compared: seq-final + dispenser",)

    def test_on_two_worlds_compares_each_world_with_itself(self, tmp_path: Path) -> None:
        path = pair(tmp_path / "a", "cccccc", "......", worlds=["local", "postgres"])
        assert [one.where for one in compared(path).cells] == ["hook-storm, local", "hook-storm, postgres"]

    def test_with_one_arm_compares_its_worlds(self, tmp_path: Path) -> None:
        path = folder(tmp_path / "a", {(HOOK, OLD): "cccccc"}, worlds=["local", "postgres"])
        found = compared(path)
        assert [one.where for one in found.cells] == ["hook-storm, local | postgres"]
        assert found.sides.names == ("local/main + nets", "postgres/main + nets")

    def test_with_one_arm_on_one_world_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="has one arm"):
            compared(folder(tmp_path / "a", {(HOOK, OLD): "cccccc"}))

    def test_whose_arm_is_not_there_is_refused_with_the_likeliest(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"there is no arm 'main \+ net'") as caught:
            compared(pair(tmp_path / "a", "c", "."), arms=("main + net", NEW))
        assert "main + nets" in caught.value.remedy
        with pytest.raises(UsageError, match="cannot differ from itself"):
            compared(tmp_path / "a", arms=(OLD, OLD))


class TestSeveralCells:
    def test_are_pooled_by_their_own_differences_and_adjusted_for_being_several(self, tmp_path: Path) -> None:
        cells = {
            (STEP, OLD): outcomes(20, 24), (STEP, NEW): outcomes(2, 24),
            (HOOK, OLD): outcomes(8, 24), (HOOK, NEW): outcomes(1, 24),
        }  # fmt: skip
        found = compared(folder(tmp_path / "a", cells))
        hook = boschloo(Rate(8, 24), Rate(1, 24))
        assert [one.adjusted for one in found.cells][1] == hook
        assert found.cells[0].p is not None
        assert found.cells[0].adjusted == pytest.approx(2 * found.cells[0].p)
        assert found.pooled.p == stratified([(Rate(20, 24), Rate(2, 24)), (Rate(8, 24), Rate(1, 24))])
        assert found.sentence.startswith("seq-final + dispenser corrupts less: 28/48 -> 3/48, difference 52 points")

    def test_one_of_which_is_worse_make_the_whole_worse(self, tmp_path: Path) -> None:
        cells = {
            (STEP, OLD): outcomes(24, 24), (STEP, NEW): outcomes(0, 24),
            (HOOK, OLD): outcomes(0, 24), (HOOK, NEW): outcomes(10, 24),
        }  # fmt: skip
        found = compared(folder(tmp_path / "a", cells))
        assert found.sentence.startswith("seq-final + dispenser corrupts less: 24/48 -> 10/48")
        assert found.verdict is Verdict.WORSE

    def test_that_are_each_too_small_can_tell_together(self, tmp_path: Path) -> None:
        cells = {
            (STEP, OLD): "ccc..", (STEP, NEW): ".....", (HOOK, OLD): "cccc.", (HOOK, NEW): "c....",
            ("blocked-branch", OLD): "cccc.", ("blocked-branch", NEW): "c....",
        }  # fmt: skip
        found = compared(folder(tmp_path / "a", cells))
        assert [found.sign_of(one) for one in found.cells] == [0, 0, 0]
        assert found.verdict is Verdict.BETTER

    def test_adjusted_are_not_told_where_one_alone_would_be(self, tmp_path: Path) -> None:
        """The twin: the same cell alone has p 0.03."""
        hook = {(HOOK, OLD): "cccccc..", (HOOK, NEW): "c......."}
        alone = compared(folder(tmp_path / "a", hook)).cells[0]
        assert alone.adjusted == alone.p
        step = {(STEP, OLD): "cccc....", (STEP, NEW): "cccc...."}
        both = compared(folder(tmp_path / "b", {**hook, **step})).cells[0]
        assert both.p == alone.p
        assert both.adjusted == pytest.approx(2 * (alone.p or 0))

    def test_that_are_controls_are_shown_and_decide_nothing(self, tmp_path: Path) -> None:
        cells = {
            (CONTROL, OLD): "......", (CONTROL, NEW): "......", (HOOK, OLD): "cccccc", (HOOK, NEW): "......",
        }  # fmt: skip
        found = compared(folder(tmp_path / "a", cells))
        assert found.cells[0].adjusted is None
        assert found.cell_sentence(found.cells[0]) == "a control, 0/6 and 0/6: not compared"
        assert found.cells[1].adjusted == found.cells[1].p == found.pooled.p


class TestLeftOut:
    def test_is_infra_and_it_is_said(self, tmp_path: Path) -> None:
        found = compared(pair(tmp_path / "a", "ccccccii", "......."))
        assert str(found.pooled.difference.first).startswith("6/6")
        assert found.warnings == ("2 + 0 infra attempts are left out (old + new)",)

    def test_is_an_arm_whose_control_failed_and_it_is_said(self, tmp_path: Path) -> None:
        cells = {
            (CONTROL, OLD): "dddddd", (CONTROL, NEW): "......", (HOOK, OLD): "dddddd", (HOOK, NEW): "......",
        }  # fmt: skip
        found = compared(folder(tmp_path / "a", cells), outcome="stuck")
        assert found.verdict is Verdict.UNRESOLVED
        assert {one.excluded for one in found.cells} == {"environment suspect"}
        assert any(one.startswith("environment suspect, a control failed") for one in found.warnings)

    def test_is_not_a_run_without_pressure_but_it_is_said(self, tmp_path: Path) -> None:
        found = compared(pair(tmp_path / "a", "cccccc", "......", flags={(HOOK, NEW): 4}))
        assert found.warnings == (
            "0 + 4 completed attempts without pressure, or vacuous, are counted as they came out (old + new)",
        )


class TestTwoStorms:
    def test_are_warned_of_because_they_did_not_take_turns(self, tmp_path: Path) -> None:
        first = folder(tmp_path / "a", {(HOOK, OLD): outcomes(20, 24)})
        second = folder(tmp_path / "b", {(HOOK, OLD): outcomes(2, 24)})
        found = compared(first, second)
        assert found.sentence.startswith("B corrupts less: 20/24 -> 2/24")
        assert [one.split(",")[0] for one in found.warnings] == ["two storms"]

    def test_that_were_not_the_same_storm_are_told_apart_by_what_differs(self, tmp_path: Path) -> None:
        first = folder(tmp_path / "a", {(HOOK, OLD): "cccccc"}, input={"rounds": 6}, env={"cores": 4})
        second = folder(tmp_path / "b", {(HOOK, OLD): "......"}, input={"rounds": 3}, seed=8, time_scale=0.05)
        warned = [one for one in compared(first, second).warnings if one.startswith("not the same storm")]
        assert warned == [
            "not the same storm: seed 7 against 8; time_scale 0.1 against 0.05; hook-storm rounds 6 against 3; "
            "cores 4 against 2"
        ]

    def test_whose_plan_is_lost_are_compared_all_the_same(self, tmp_path: Path) -> None:
        first, second = (folder(tmp_path / name, {(HOOK, OLD): "cccccc"}) for name in "ab")
        (second / "plan.yaml").unlink()
        assert any("a plan.yaml is absent" in one for one in compared(first, second).warnings)

    def test_compare_each_arm_that_both_have(self, tmp_path: Path) -> None:
        first = pair(tmp_path / "a", "cccccc", "......")
        second = folder(tmp_path / "b", {(HOOK, OLD): "cccccc", (HOOK, "seq-tail + dispenser"): "......"})
        found = compared(first, second)
        assert [one.arms for one in found.sides.pairings] == [(OLD, OLD)]
        assert "not compared: seq-final + dispenser of A" in found.warnings
        assert "not compared: seq-tail + dispenser of B" in found.warnings

    def test_of_one_arm_each_compare_whatever_those_are_called(self, tmp_path: Path) -> None:
        first, second = folder(tmp_path / "a", {(HOOK, OLD): "cccccc"}), folder(tmp_path / "b", {(HOOK, NEW): "......"})
        assert compared(first, second).sides.names == (OLD, NEW)

    def test_without_an_arm_in_common_are_refused_with_what_to_write(self, tmp_path: Path) -> None:
        first = pair(tmp_path / "a", "c", ".")
        second = folder(tmp_path / "b", {(HOOK, "seq-tail + dispenser"): "."})
        with pytest.raises(UsageError, match="no arm in common") as caught:
            compared(first, second)
        assert caught.value.remedy == "Say which to compare: --arms 'main + nets' 'seq-tail + dispenser'."
        assert compared(first, second, arms=(OLD, "seq-tail + dispenser")).cells

    def test_without_a_scenario_in_common_are_refused(self, tmp_path: Path) -> None:
        first, second = folder(tmp_path / "a", {(HOOK, OLD): "c"}), folder(tmp_path / "b", {(STEP, OLD): "c"})
        with pytest.raises(UsageError, match="no scenario in common"):
            compared(first, second)

    def test_and_cells_of_one_storm_that_ran_one_after_another_are_warned_of_too(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        arms = ("workflow 4.6.1 + as published", "workflow 4.8.9 + as published")
        cells = {("capture-hook-storm", arm): letters for arm, letters in zip(arms, ("cccccc", "......"), strict=True)}
        matrix = {"scenario": ["capture-hook-storm"], "world": ["local"], "version": ["4.6.1", "4.8.9"]}
        folder(path, cells, world="local", target="sdk", matrix=matrix)
        found = compared(path)
        assert found.verdict is Verdict.BETTER
        assert found.warnings[0].startswith("this storm ran cell after cell")


class TestDrift:
    def test_of_one_condition_is_told(self, tmp_path: Path) -> None:
        found = compared(pair(tmp_path / "a", "c" * 12 + "." * 12, outcomes(12, 24)))
        assert [str(one).split(":")[1].split(" (p")[0].strip() for one in found.drifts] == [
            "main + nets in hook-storm, postgres, had 12/12 in its first half and 0/12 in its second"
        ]

    def test_is_not_told_of_the_same_attempts_spread_evenly(self, tmp_path: Path) -> None:
        assert compared(pair(tmp_path / "a", outcomes(12, 24), outcomes(12, 24))).drifts == ()

    def test_over_cells_is_told_where_no_cell_alone_would_show_it(self, tmp_path: Path) -> None:
        falling, steady = "cccc.ccc" + "c.c...c.", outcomes(8, 16)
        cells = {
            (one, arm): falling if arm == OLD else steady
            for one in (STEP, HOOK, "blocked-branch")
            for arm in (OLD, NEW)
        }
        drifts = compared(folder(tmp_path / "a", cells)).drifts
        assert [(one.arm, one.where) for one in drifts] == [(OLD, None)]

    def test_is_by_start_and_not_by_landing(self, tmp_path: Path) -> None:
        path = pair(tmp_path / "a", outcomes(12, 24), outcomes(12, 24))
        lines = (path / "attempts.ndjson").read_text().splitlines()
        corrupted_first = sorted(lines, key=lambda line: '"corrupted"' not in line)
        (path / "attempts.ndjson").write_text("\n".join(corrupted_first) + "\n")
        assert compared(path).drifts == ()


class TestOutcomes:
    @pytest.mark.parametrize(
        ("outcome", "said"),
        [
            ("corrupted", "not resolved: 1/8 against 1/8"),
            ("stuck", "seq-final + dispenser gets stuck less often: 6/8 -> 0/8"),
            ("completed", "seq-final + dispenser completes more often: 0/8 -> 7/8"),
            ("any-failure", "seq-final + dispenser fails less often: 8/8 -> 1/8"),
        ],
    )
    def test_count_what_they_say(self, tmp_path: Path, outcome: str, said: str) -> None:
        found = compared(pair(tmp_path / "a", "cdddsssu", "c......."), outcome=outcome)
        assert found.sentence.startswith(said)
        assert found.verdict is (Verdict.UNRESOLVED if outcome == "corrupted" else Verdict.BETTER)

    def test_completing_less_often_is_worse(self, tmp_path: Path) -> None:
        found = compared(pair(tmp_path / "a", "........", "cccccccc"), outcome="completed")
        assert found.verdict is Verdict.WORSE
        assert "completes less often: 8/8 -> 0/8, difference 100 points (" in found.sentence

    def test_contradicting_counts_completed_runs_that_were_swept(self, tmp_path: Path) -> None:
        bad = [f"wrun_hook-storm-postgres-main-{number}" for number in range(3, 9)]
        found = compared(pair(tmp_path / "a", "cc" + "." * 8, "." * 10, contradicting=bad), outcome="contradicting")
        assert found.sentence.startswith("seq-final + dispenser contradicts its log less often: 6/8 -> 0/10")
        assert "2 + 0 attempts are left out: no sweep could judge them (old + new)" in found.warnings

    def test_are_those_that_the_command_takes(self) -> None:
        from stormctl.cli.diff import Compared

        assert tuple(map(str, Compared)) == OUTCOMES


def test_a_storm_that_may_have_been_stopped_early_is_warned_of(tmp_path: Path) -> None:
    path = pair(tmp_path / "a", "cccccc", "......")
    (path / FILE).write_text("{}")
    assert any("--until-resolved" in one for one in compared(path).warnings)


rates = st.integers(1, 40).flatmap(lambda n: st.builds(Rate, st.integers(0, n), st.just(n)))


@given(rates, rates, st.sampled_from(OUTCOMES))
@settings(max_examples=60, deadline=None)
def test_a_sentence_never_claims_what_the_exact_test_does_not(old: Rate, new: Rate, outcome: str) -> None:
    p = boschloo(old, new)
    assert p is not None
    said = sentence(outcome, "B", difference(old, new), p, None)
    assert said.startswith("B ") == (p <= 0.05)
    assert said.startswith("not resolved: ") == (p > 0.05)
    if p <= 0.05:
        assert (f" {'less' if (old.share or 0) > (new.share or 0) else 'more'}" in said) is True


def test_p_values_are_short() -> None:
    assert [p_text(p) for p in (None, 0.0, 0.0004, 0.001, 0.0312, 0.0999, 0.5, 1.0)] == [
        "-", "<0.001", "<0.001", "0.001", "0.031", "0.10", "0.50", "1.00",
    ]  # fmt: skip
