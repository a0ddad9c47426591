"""Plans for the target url: apps become the columns of a cell and come back, and what cannot be meant is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import PlanError, UsageError
from stormctl.storm.describe import describe
from stormctl.storm.plan import Plan, load_plan, parse_plan, resolved_yaml
from stormctl.storm.servers import server_for
from stormctl.storm.url_app import App, is_loopback, parse_app

APP: dict[str, Any] = {
    "name": "shop",
    "url": "http://127.0.0.1:3000",
    "start": {"path": "/storms", "body": {"workflow": "{workflow}", "input": "{input}"}},
    "resume": {"path": "/resume", "body": {"token": "{token}", "payload": "{payload}"}},
    "log": {"folder": "data"},
}
BASE: dict[str, Any] = {
    "schema": "stormctl.plan/1",
    "name": "url",
    "target": "url",
    "scenario": "hook-storm",
    "app": APP,
}


def parse(overrides: dict[str, list[str]] | None = None, **changes: Any) -> Plan:
    document = {key: value for key, value in {**BASE, **changes}.items() if value is not None}
    return parse_plan(document, "plans/url.yaml", overrides)


def app(**changes: Any) -> App:
    document = {key: value for key, value in {**APP, **changes}.items() if value is not None}
    return parse_app(document, "shop.yaml", Path("/srv/shop"))


class TestCells:
    def test_an_app_is_a_condition(self) -> None:
        plan = parse(app=[APP, {**APP, "name": "new", "version": "5.0.0-beta.55"}])
        assert [cell.label for cell in plan.cells] == [
            "hook-storm/url/shop/as it runs",
            "hook-storm/url/new (workflow 5.0.0-beta.55)/as it runs",
        ]

    def test_a_plan_comes_back_from_its_artefact(self, tmp_path: Path) -> None:
        full = {
            **APP,
            "headers": {"authorization": "Bearer ${TOKEN}"},
            "hook": "/hook?token={token}",
            "status": {"path": "/runs/{run}", "status": "state.now"},
            "cancel": {"path": "/cancel/{run}", "gone": [404]},
            "log": {"events": {"path": "/events/{run}?after={cursor}", "list": "page.rows", "cursor": "page.next"}},
            "patience": "3s",
            "workflows": {"hook-storm": "checkout"},
        }
        plan = parse(scenario=["hook-storm", "step-storm"], app=[full, {**APP, "name": "b", "version": "4.8.9"}])
        again = parse_plan(yaml.safe_load(resolved_yaml(plan)), str(tmp_path / "plan.yaml"))
        assert again.cells == plan.cells
        assert again.apps == plan.apps

    def test_a_file_lies_beside_its_plan_and_its_folder_beside_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "apps").mkdir()
        (tmp_path / "apps" / "shop.yaml").write_text(yaml.safe_dump(APP))
        (tmp_path / "plan.yaml").write_text(yaml.safe_dump({**BASE, "app": "apps/shop.yaml"}))
        plan = load_plan(tmp_path / "plan.yaml")
        assert plan.apps[0].log.where == str(tmp_path / "apps" / "data")

    def test_the_command_line_names_other_apps(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "other.yaml").write_text(yaml.safe_dump({**APP, "name": "other"}))
        monkeypatch.chdir(tmp_path)
        assert [one.name for one in parse({"app": ["other.yaml"]}).apps] == ["other"]

    def test_its_description_says_where_it_runs(self) -> None:
        lines = "\n".join(describe(parse()).lines())
        assert "cell after cell on shop at http://127.0.0.1:3000" in lines

    def test_no_database_of_ours_is_needed_and_none_is_taken(self) -> None:
        with server_for(parse(), None) as server:
            assert server is None
        with pytest.raises(UsageError, match="no cell of the plan lies in a database") as caught, server_for(
            parse(), "postgresql://localhost/x"
        ):  # fmt: skip
            pass
        assert "under `log`" in caught.value.remedy

    def test_the_shipped_example_is_one(self, root: Path) -> None:
        plan = load_plan(root / "configs" / "url-example.yaml")
        assert [one.label for one in plan.apps] == ["my-app (workflow 4.8.9)"]
        assert not plan.apps[0].attributes

    def test_the_page_names_every_key_of_an_app(self, root: Path) -> None:
        from stormctl.storm.url_app import KEYS, PLACES, READS

        page = (root / "docs" / "url.md").read_text()
        for key in (*KEYS, *PLACES, *(name for reads in READS.values() for name in reads)):
            assert f"`{key}`" in page or f"{key}:" in page, key
        assert all(f"`{{{name}}}`" in page for names in PLACES.values() for name in names)


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"name": None}, "named None", "`name:`"),
    ({"name": "My Shop"}, "named 'My Shop'", "lower-case"),
    ({"colour": "red"}, "unknown key 'colour'", "Known are"),
    ({"schema": "stormctl.app/2"}, "schema 'stormctl.app/2'", "Upgrade"),
    ({"url": "127.0.0.1:3000"}, "url is", "http://"),
    ({"url": "http://127.0.0.1:http"}, "url is", "http://"),
    ({"url": "http://user:secret@127.0.0.1"}, "more than a host", "${NAME}"),
    ({"url": "https://shop.example"}, "shop.example is another machine", "remote: true"),
    ({"url": "http://0.0.0.0:3000"}, "0.0.0.0 is another machine", "remote: true"),
    ({"url": "http://localhost.evil.example"}, "is another machine", "remote: true"),
    ({"version": "3.1"}, "no version of the Workflow SDK", "4.8.9"),
    ({"start": None}, "no route to start a run", "`start:`"),
    ({"resume": None}, "no route to resume a hook", "`resume:`"),
    ({"start": "/storms"}, "start names no {input}", "{input}"),
    ({"start": {"path": "storms", "body": "{input}"}}, "start.path is 'storms'", "/storms/start"),
    ({"start": {"path": "/s", "body": "{inptu}{input}"}}, "unknown placeholder {inptu}", "'input'"),
    ({"start": {"path": "/s", "body": "{input}", "method": "GET"}}, "has a body and is a GET", "method: POST"),
    ({"start": {"path": "/s", "body": "{input}", "gone": [404]}}, "unknown key 'gone'", "Known are"),
    ({"resume": {"path": "/r/{token}", "gone": [200]}}, "resume.gone is [200]", "400 to 599"),
    ({"resume": {"path": "/r/{token}", "timeout": 5}}, "resume.timeout is 5", "ms, s, m or h"),
    ({"resume": {"path": "/r/{token}", "timeout": "5m"}}, "resume.timeout is '5m'", "at most 2m"),
    ({"status": "/runs"}, "status names no {run}", "{run}"),
    ({"log": None}, "names 0 places", "folder"),
    ({"log": {"folder": "a", "postgres": "b"}}, "names 2 places", "Give one"),
    ({"log": {"postgres": "postgresql://u:secret@127.0.0.1/x"}}, "has a password written down", "${SHOP_DSN}"),
    ({"log": {"postgres": "host=x password=secret"}}, "has a password written down", "${SHOP_DSN}"),
    ({"log": {"events": "/events"}}, "events names no {run}", "{run}"),
    ({"headers": {"authorization": "Bearer secret"}}, "has a secret written down", "${SHOP_TOKEN}"),
    ({"headers": {"x-api-key": "secret"}}, "has a secret written down", "${SHOP_TOKEN}"),
    ({"headers": {"content-length": "3"}}, "cannot be set", "Leave it out"),
    ({"headers": {"x-a": "one\r\nx-b: two"}}, "signs that none may have", "ASCII"),
    ({"headers": {"x-a": 3}}, "headers is", "quotes"),
    ({"attributes": "no"}, "attributes is 'no'", "true or false"),
    ({"input": "camel"}, "input is 'camel'", "Known are"),
]


@pytest.mark.parametrize(("changes", "said", "remedy"), WRONG, ids=[one[1] for one in WRONG])
def test_a_wrong_app_is_one_sentence_with_a_remedy(changes: dict[str, Any], said: str, remedy: str) -> None:
    with pytest.raises(PlanError) as caught:
        app(**changes)
    assert said in str(caught.value)
    assert remedy in caught.value.remedy
    assert "secret@" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "https://shop.example", "remote": True},
        {"url": "http://[::1]:3000/below"},
        {"url": "http://localhost:3000/"},
        {"log": {"postgres": "${SHOP_DSN}"}},
        {"log": {"postgres": "postgresql:///shop?host=/run/postgresql"}},
        {"headers": {"x-api-key": "${KEY}", "x-shop": "blue"}},
        {"start": {"path": "/s?i={input}", "method": "GET"}},
    ],
)
def test_a_right_one_is_taken(changes: dict[str, Any]) -> None:
    assert app(**changes).name == "shop"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"app": None}, "names no app"),
        ({"app": []}, "names 0 apps"),
        ({"app": [APP, APP]}, "two apps are called shop"),
        ({"app": "nowhere.yaml"}, "cannot be read"),
        ({"matrix": {"pair": ["a + b"]}}, "has no pairs"),
        ({"matrix": {"version": ["4.8.9"]}}, "has no version"),
        ({"condition": "main"}, "the target url has no condition"),
        ({"host_faults": {"duplicate": 1}}, "the target url has no host_faults"),
        ({"world": "local"}, "the target url has no world"),
        ({"target": "sdk", "version": "4.8.9"}, "the target sdk has no app"),
        ({"target": "embedded", "condition": "main", "generation": "nets"}, "the target embedded has no app"),
    ],
)
def test_a_wrong_plan_is_one_sentence(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError, match=said) as caught:
        parse(**changes)
    assert caught.value.remedy


@given(st.ip_addresses())
def test_only_this_machine_is_this_machine(address: Any) -> None:
    assert is_loopback(str(address)) == address.is_loopback
