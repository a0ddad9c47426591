"""The name of a real engine: what it may say, and how it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import PlanError, UsageError
from stormctl.storm.describe import describe
from stormctl.storm.plan import Plan, load_plan, parse_plan, resolved_yaml
from stormctl.storm.real_name import SET_BY_REPLAY, parse_real, replayed
from tests.storm.making import SMALL

DRAWS = "WORKFLOW_LOG_ORDER_DRAWS"
SDK = {
    "schema": "stormctl.plan/1",
    "name": "small",
    "target": "sdk",
    "scenario": "hook-storm",
    "version": "4.8.9",
}


class TestAName:
    def test_of_a_version_with_a_switch_is_read_and_written_as_it_was(self) -> None:
        found = parse_real(f"sdk:5.0.0-beta.55[{DRAWS}=0]")
        assert (found.named, found.is_version, dict(found.switches)) == ("5.0.0-beta.55", True, {DRAWS: "0"})
        assert str(found) == f"sdk:5.0.0-beta.55[{DRAWS}=0]"

    def test_without_brackets_has_no_switches(self) -> None:
        assert str(parse_real("sdk:own")) == "sdk:own"
        assert str(parse_real("sdk:4.8.9")) == "sdk:4.8.9"

    def test_lists_its_switches_in_order_and_takes_a_comma_inside_a_value(self) -> None:
        found = parse_real("sdk:own[WORKFLOW_Z=1,2, WORKFLOW_A=x]")
        assert str(found) == "sdk:own[WORKFLOW_A=x,WORKFLOW_Z=1,2]"
        assert parse_real(str(found)) == found

    def test_of_a_folder_is_an_absolute_path_from_where_it_was_written(self, tmp_path: Path) -> None:
        assert parse_real(f"sdk:app[{DRAWS}=0]", tmp_path).named == str(tmp_path / "app")

    def test_may_be_a_folder_that_is_called_so(self, tmp_path: Path) -> None:
        (tmp_path / f"app[{DRAWS}=0]").mkdir()
        found = parse_real(f"sdk:app[{DRAWS}=0]", tmp_path)
        assert (Path(found.named).name, dict(found.switches)) == (f"app[{DRAWS}=0]", {})

    @pytest.mark.parametrize(
        ("switches", "said"),
        [
            ("NODE_OPTIONS=--import=/x.mjs", "is no switch of the SDK"),  # would run what a file names
            ("PATH=/tmp", "is no switch of the SDK"),
            (DRAWS, "is no switch of the SDK"),
            (f"{DRAWS}=0 1", "is no switch of the SDK"),
            (f"{DRAWS}=0,{DRAWS}=1", f"the brackets set {DRAWS} twice"),
            ("WORKFLOW_OPTIMISTIC_INLINE_START=1", "is set by the replay itself"),  # a body would begin
            ("WORKFLOW_LOCAL_DATA_DIR=/srv", "is set by the replay itself"),
        ],
    )
    def test_sets_only_what_a_replay_can_have(self, switches: str, said: str) -> None:
        with pytest.raises(UsageError, match=said):
            parse_real(f"sdk:own[{switches}]")

    def test_of_nothing_is_refused(self) -> None:
        with pytest.raises(UsageError, match="names no bundle"):
            parse_real("sdk:")

    @given(
        named=st.sampled_from(["own", "4.8.9", "5.0.0-beta.55", "/app/v1"]),
        switches=st.dictionaries(
            st.from_regex(r"WORKFLOW_X[A-Z0-9_]{0,10}", fullmatch=True),
            st.from_regex(r"[A-Za-z0-9._:/@%+,-]{0,12}", fullmatch=True),
            max_size=4,
        ),
    )
    def test_is_read_as_it_was_written(self, named: str, switches: dict[str, str]) -> None:
        found = parse_real(f"sdk:{named}").within(switches)
        assert dict(found.switches) == switches
        assert parse_real(str(found)) == found

    def test_is_laid_over_an_environment_of_which_a_replay_takes_only_its_switches(self) -> None:
        environment = {
            DRAWS: "0",
            "WORKFLOW_POSTGRES_URL": "postgres://secret",
            "WORKFLOW_TURBO": "1",
            "NODE_OPTIONS": "--inspect",
        }
        assert dict(replayed(environment)) == {DRAWS: "0"}
        assert str(parse_real(f"sdk:own[{DRAWS}=1]").within(environment)) == f"sdk:own[{DRAWS}=1]"
        assert not set(replayed(dict.fromkeys(SET_BY_REPLAY, "1")))


class TestInAPlan:
    def plan(self, sweeps: object, **changes: object) -> Plan:
        return parse_plan({**SDK, **changes, "sweeps": sweeps}, "plans/small.yaml")

    def test_real_engines_and_generations_stand_beside_the_sweeps(self) -> None:
        found = self.plan(["all", "#3554", "sdk:own"])
        assert found.sweeps == ("all", "dispenser", "sdk:own")
        assert (found.generations, found.real_engines) == (("dispenser",), ("sdk:own",))

    def test_the_sweeps_alone_replay_nothing_more(self) -> None:
        found = self.plan(["all", "lifecycle"])
        assert (found.generations, found.real_engines) == ((), ())

    def test_a_folder_lies_beside_the_plan_or_where_the_command_is_typed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert self.plan(["sdk:app"]).real_engines == (f"sdk:{tmp_path}/plans/app",)
        found = parse_plan(SDK, "plans/small.yaml", {"sweeps": ["all", "sdk:app"]})
        assert found.real_engines == (f"sdk:{tmp_path}/app",)

    def test_it_is_kept_as_it_was_meant(self, tmp_path: Path) -> None:
        found = self.plan(["all", f"sdk:own[{DRAWS}=0]", "nets[ids=call-site]"])
        kept = tmp_path / "plan.yaml"
        kept.write_text(resolved_yaml(found))
        assert load_plan(kept).sweeps == found.sweeps

    def test_a_target_without_a_bundle_is_told_of_with_what_to_do(self) -> None:
        with pytest.raises(PlanError, match="the target embedded has no bundle of the SDK") as caught:
            parse_plan({**SMALL, "sweeps": ["all", "sdk:own"]}, "small.yaml")
        assert caught.value.remedy == "Name one of our generations, such as nets, or set `target: sdk`."

    def test_generations_are_for_every_target(self) -> None:
        assert parse_plan({**SMALL, "sweeps": ["all", "nets"]}, "small.yaml").generations == ("nets",)

    def test_what_is_neither_is_answered_with_what_was_meant(self) -> None:
        with pytest.raises(PlanError, match="there is no sweep, and no generation, 'lifecycl'") as caught:
            self.plan(["lifecycl"])
        assert caught.value.remedy == "Did you mean 'lifecycle'?"
        with pytest.raises(PlanError, match="is no switch"):
            self.plan(["sdk:own[PATH=/]"])

    def test_what_replays_every_log_is_said_before_the_storm(self) -> None:
        assert "every log is replayed by nets, sdk:own too" in describe(self.plan(["all", "nets", "sdk:own"])).lines()
