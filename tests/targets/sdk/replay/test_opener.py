"""From a name to the real engine: what is meant, under which switches, and what is no name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stormctl.errors import UsageError
from stormctl.history import Capture
from stormctl.targets.sdk.replay import Bundle, opener, pools
from stormctl.targets.sdk.replay.engine import NotOffered, SdkEngine
from stormctl.targets.sdk.replay.opener import open_engine, real_name
from stormctl.targets.sdk.replay.worker import _environment
from tests.targets.sdk.replay.tiny import bundle, capture, tiny_events

DRAWS = "WORKFLOW_LOG_ORDER_DRAWS"
#: asks for a step that is called as the switch is set
SWITCHED = f"""
  const name = `step//./tiny//draws-${{process.env.{DRAWS}}}-turbo-${{process.env.WORKFLOW_TURBO}}`;
  await next('step_created', 'step_01M8PJ0JWAZ2Z1EG55NRE54827', {{ stepName: name, input: bytes([]) }});
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The versions whose bundle was asked for; each is a small one of ours."""
    versions: list[str] = []

    def played(version: str) -> Bundle:
        versions.append(version)
        return replace(bundle(tmp_path / version), label=version, version=version)

    monkeypatch.setattr(opener, "bundle_of_version", played)
    opener._bundle.cache_clear()
    return versions


def log(version: str | None = "5.0.0-beta.55", **data: Any) -> Capture:
    events = tiny_events(1)
    context = {} if version is None else {"executionContext": {"workflowCoreVersion": version}}
    events[0] = replace(events[0], data={**events[0].data, **context})
    found = capture(events)
    return replace(found, data={**found.data, **data})


def opened(name: str, found: Capture) -> SdkEngine:
    engine = open_engine(name, found, None)
    assert isinstance(engine, SdkEngine)
    return engine


class TestANameThatAPersonTypes:
    def test_is_told_as_it_was_published_with_its_switches(self, asked: list[str]) -> None:
        assert real_name(f"sdk:v5.0.0-beta.55[{DRAWS}=0]") == f"sdk:5.0.0-beta.55[{DRAWS}=0]"
        assert asked == ["5.0.0-beta.55"]

    def test_installs_nothing_where_it_is_only_to_be_checked(self, asked: list[str]) -> None:
        assert real_name("sdk:4.8.9", install=False) == "sdk:4.8.9"
        assert asked == []

    def test_of_a_folder_becomes_its_whole_path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        bundle(tmp_path / "app")
        monkeypatch.chdir(tmp_path)
        assert real_name(f"sdk:app[{DRAWS}=0]") == f"sdk:{tmp_path}/app[{DRAWS}=0]"
        assert real_name("sdk:./app") == f"sdk:{tmp_path}/app"

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("sdk:", "names no bundle"),
            ("sdk:nowhere", "there is no bundle"),
            ("sdk:3.0.0", "neither 4.x nor 5.x"),
            ("sdk:own[PATH=/tmp]", "is no switch of the SDK"),
        ],
    )
    def test_that_means_nothing_is_refused(self, name: str, said: str) -> None:
        with pytest.raises(UsageError, match=said):
            real_name(name)


class TestWhatIsOpened:
    def test_own_is_the_version_of_the_log_under_the_switches_of_its_capture(self, asked: list[str]) -> None:
        found = opened("sdk:own", log(environment={DRAWS: "0", "NODE_OPTIONS": "--inspect", "WORKFLOW_TURBO": "1"}))
        assert asked == ["5.0.0-beta.55"]
        assert (found.name, found.environment) == ("sdk:own", {DRAWS: "0"})

    def test_a_switch_in_the_name_wins(self, asked: list[str]) -> None:
        found = opened(f"sdk:own[{DRAWS}=1]", log(environment={DRAWS: "0"}))
        assert found.environment == {DRAWS: "1"}

    def test_a_version_that_is_named_is_a_judge_without_the_captures_switches(self, asked: list[str]) -> None:
        found = opened("sdk:4.8.9", log(environment={DRAWS: "0"}))
        assert (asked, found.environment) == (["4.8.9"], {})

    def test_own_of_a_log_that_names_no_version_cannot_be_opened(self) -> None:
        with pytest.raises(NotOffered, match="does not say which version wrote it"):
            open_engine("sdk:own", log(None), None)

    @pytest.mark.parametrize("environment", [None, 3, ["x"], {"a": 1}, {DRAWS: 0}])
    def test_whatever_a_capture_has_for_an_environment_is_no_fault(self, asked: list[str], environment: object) -> None:
        assert opened("sdk:own", log(environment=environment)).environment == {}


class TestTheSwitches:
    def test_reach_the_workers_which_are_others_for_each_setting(self, node: str, tmp_path: Path) -> None:
        made = bundle(tmp_path / "app", SWITCHED)
        found = log()
        names = []
        for name in (f"sdk:{made.flow.parent}[{DRAWS}=0]", f"sdk:{made.flow.parent}[{DRAWS}=1]"):
            engine = opened(name, found)
            answers = pools.passes(engine.bundle, _record(found), [2], environment=engine.environment)
            names.append(next(answers).asked[0].name)
        pools.close()
        assert names == ["step//./tiny//draws-0-turbo-0", "step//./tiny//draws-1-turbo-0"]

    def test_never_move_a_worker_out_of_its_folder(self, tmp_path: Path) -> None:
        found = _environment(tmp_path, {DRAWS: "0"})
        assert (found[DRAWS], found["TMPDIR"]) == ("0", str(tmp_path))
        assert found["WORKFLOW_OPTIMISTIC_INLINE_START"] == "0"


def _record(found: Capture) -> Any:
    from stormctl.targets.sdk.replay import record_of

    return record_of(found)
