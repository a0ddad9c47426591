"""Schedules in words: what a person writes, and what a run is printed as."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import UsageError
from stormctl.sim.kernel import Chooser, Run, TapeChooser, play
from stormctl.sim.tape import Action, ScriptChooser, ScriptMismatch, Statement, parse, printed, script_of
from tests.sim.toys import Shared, Writers

TAPES = st.lists(st.integers(0, 3), max_size=30)
MODELS = st.builds(
    Writers,
    st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple),
    lossy=st.booleans(),
    relay=st.booleans(),
)


def run(script: str, model: Writers, *, rest: Chooser | None = None, loosely: bool = False) -> Run:
    chooser = ScriptChooser(parse(script), rest, loosely=loosely)
    found = play(model, chooser)
    chooser.finish(found)
    return found


def words(found: Run) -> list[str]:
    assert isinstance(found.instance, Shared)
    return found.instance.words


TWO = Writers((2, 2))


class TestScripts:
    def test_an_actor_stays_where_it_is_until_it_is_named_again(self) -> None:
        assert words(run("W1: mint\nW2: end\nW1: commit", TWO)) == ["2.0", "2.1", "1.0", "1.1"]

    def test_at_the_end_of_the_script_everybody_is_let_go(self) -> None:
        assert sorted(words(run("W1: mint; W2: mint", TWO))) == ["1.0", "1.1", "2.0", "2.1"]

    def test_what_the_script_does_not_say_goes_in_the_ordinary_order(self) -> None:
        assert words(run("", TWO)) == ["1.0", "1.1", "2.0", "2.1"]

    def test_the_nth_time_counts_from_the_statement_on(self) -> None:
        assert words(run("W1: run to publish (2); W2: end", TWO)) == ["1.0", "1.1", "2.0", "2.1"]
        assert words(run("W1: commit; W2: commit; W1: run to publish", TWO))[:3] == ["1.0", "2.0", "1.1"]

    def test_up_to_stops_before_the_operation(self) -> None:
        assert words(run("W1: run up to publish word_1; W2: end", TWO)) == ["1.0", "2.0", "2.1", "1.1"]

    def test_events_are_minted_and_committed(self) -> None:
        assert parse("W1: run to word_a minted") == (Statement("W1", Action.TO, "mint", "word_a", line=1),)
        assert parse("W1: run to word_a settle committed") == (
            Statement("W1", Action.TO, "publish", "word_a settle", line=1),
        )
        assert parse("W1: run to word_a") == (Statement("W1", Action.TO, "publish", "word_a", line=1),)

    def test_an_actor_that_cannot_go_on_is_helped_by_those_that_nobody_holds(self) -> None:
        model = Writers((1, 1), relay=True)
        assert words(run("W1: mint; R: run to word_relayed committed", model))[:2] == ["2.0", "relayed"]

    def test_one_that_is_held_does_not_help(self) -> None:
        model = Writers((1,), relay=True)
        with pytest.raises(ScriptMismatch, match="R cannot go on while W1, clock is held"):
            run("W1: mint; clock: run up to tick; R: run to word_relayed committed", model)

    def test_a_statement_that_nothing_meets_is_named(self) -> None:
        with pytest.raises(ScriptMismatch, match=r"line 2: `W1: run to publish \(5\)` cannot be met: W1 has ended"):
            run("W2: mint\nW1: run to publish (5)", TWO)
        with pytest.raises(ScriptMismatch, match="the run ended before `W7: mint`"):
            run("W7: mint; W1: end", TWO)
        with pytest.raises(ScriptMismatch, match="there is no W7"):
            run("W1: mint; W2: mint; W7: mint", TWO)

    def test_loosely_it_is_passed_over(self) -> None:
        chooser = ScriptChooser(parse("W1: mint; W2: mint; W7: mint; W2: end; W1: run to publish (7)"), loosely=True)
        found = play(TWO, chooser)
        chooser.finish(found)
        assert [str(statement) for statement in chooser.missed] == ["W7: mint", "W1: run to publish (7)"]
        assert words(found) == ["2.0", "2.1", "1.0", "1.1"]

    def test_a_pick_is_made_as_it_is_written(self) -> None:
        lossy = Writers((2, 1), lossy=True)
        assert words(run("W1: pick loss = lost (2)", lossy)) == ["1.0", "2.0"]
        assert words(run("W2: pick loss = lost; W1: pick loss = lost", lossy)) == ["1.1"]

    def test_a_pick_that_never_came_is_named(self) -> None:
        with pytest.raises(ScriptMismatch, match="the run ended before `W1: pick loss = lost`"):
            run("W1: pick loss = lost", TWO)

    def test_the_rest_can_be_left_to_a_strategy(self) -> None:
        found = {tuple(words(run("W1: commit", Writers((1, 1, 1)), rest=Dice(seed)))) for seed in range(30)}
        assert {order[0] for order in found} == {"1.0"}
        assert len(found) == 2


class Dice:
    """Any option, seeded."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def turn(self, stage: object, options: object) -> int:
        return self._random.randrange(9)

    def pick(self, stage: object, actor: int, pick: object) -> int:
        return self._random.randrange(9)


class TestText:
    @pytest.mark.parametrize(
        "text",
        ["W1", "W1 mint", "W1: ", ": mint", "W1: run to", "W1: Run to x", "W1: pick loss", "W1: pick = lost", "W1: 7"],
    )
    def test_what_is_no_statement_is_refused_with_its_line(self, text: str) -> None:
        with pytest.raises(UsageError, match="line 2"):
            parse(f"\n{text}")

    def test_comments_and_semicolons(self) -> None:
        text = "# all of it\nW1: mint; W2: end  # why\n\nW1: go on"
        assert printed(parse(text)) == "W1: mint\nW2: end\nW1: go on"

    def test_names_may_hold_a_colon(self) -> None:
        assert parse("S:settle: run to publish")[0].actor == "S:settle"

    @given(MODELS, TAPES)
    def test_a_run_is_printed_as_a_script_that_leads_to_the_same_run(self, model: Writers, tape: list[int]) -> None:
        first = play(model, TapeChooser(tape))
        script = script_of(first)
        again = run(printed(script), model)
        assert (again.turns, again.picks, words(again)) == (first.turns, first.picks, words(first))

    def test_what_nobody_changed_needs_no_word(self) -> None:
        assert script_of(play(TWO, TapeChooser())) == ()

    def test_two_preemptions_are_three_statements(self) -> None:
        first = play(TWO, TapeChooser([0, 1, 0, 0, 0, 0]))
        assert printed(script_of(first)) == "W1: run to mint word_0\nW2: run to mint word_0"
