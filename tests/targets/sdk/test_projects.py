"""Installing a version, with a node and an npm that do as they are told."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from stormctl.errors import EXIT_USAGE, PlanError, StormctlError, UsageError
from stormctl.targets.sdk import cache, npm, setup
from stormctl.targets.sdk.cache import cache_folder
from stormctl.targets.sdk.doctor import doctor
from stormctl.targets.sdk.node import SdkUnavailable, find_tools
from stormctl.targets.sdk.projects import ensure, find, installed, remove
from tests.targets.sdk.fake_tools import FakeTools

SPEC_TEXT = (
    "This Workflow runtime supports Worlds with spec version 6 through 7, but the configured World declares spec"
    " version 5. Install another."
)


def package_of(folder: Path) -> dict[str, object]:
    return dict(json.loads((folder / "package.json").read_text()))


# -- what is installed ------------------------------------------------------------------------------------------------


def test_a_version_is_installed_once_and_found_again(fake: FakeTools) -> None:
    told: list[str] = []
    project = ensure("4.8.9", tell=told.append)
    assert (project.version, project.world, project.world_version) == ("4.8.9", "local", "4.4.1")
    assert project.folder == cache_folder() / "4.8.9-local"
    assert (project.exact, project.light, project.current, project.spec_version) == (True, True, True, 7)
    assert told[0] == "looking up workflow 4.8.9 in the npm registry"
    assert told[-1] == f"workflow 4.8.9 with world local is installed in {project.folder}"

    asked = len(fake.calls())
    assert ensure("workflow@4.8.9") == project
    assert find("4.8.9") == project
    assert installed() == [project]
    assert len(fake.calls()) == asked  # nothing at all is run for one that is there


@pytest.mark.parametrize(
    ("version", "kind", "extension"), [("4.8.9", "commonjs", "js"), ("5.0.0-beta.55", "module", "mjs")]
)
def test_the_package_file_goes_by_the_major_version(fake: FakeTools, version: str, kind: str, extension: str) -> None:
    folder = ensure(version).folder
    assert package_of(folder)["type"] == kind
    assert fake.count("node", "build.mjs", extension) == 1


def test_no_script_of_a_package_is_ever_run(fake: FakeTools) -> None:
    ensure("4.8.9")
    (install,) = [call for call in fake.calls() if call[1] == "install"]
    assert "--ignore-scripts" in install


def test_the_light_set_overrides_with_an_empty_package_of_ours(fake: FakeTools) -> None:
    folder = ensure("4.8.9").folder
    package = package_of(folder)
    assert package["overrides"] == dict.fromkeys(setup.NEEDLESS, "$stormctl-nothing")
    assert package["dependencies"] == {
        "workflow": "4.8.9",
        "@workflow/builders": "4.8.9",
        "@workflow/world-local": "4.4.1",
        "stormctl-nothing": "file:./stormctl-nothing",
    }
    assert set(package_of(folder / "stormctl-nothing")) == {"name", "version", "description"}


def test_the_lock_file_is_kept(fake: FakeTools) -> None:
    assert (ensure("4.8.9").folder / "package-lock.json").is_file()


@pytest.mark.parametrize(
    ("writer", "line"),
    [
        ("setAttributes", "export { setAttributes as setAttributes } from 'workflow';"),
        ("experimental_setAttributes", "export { experimental_setAttributes as setAttributes } from 'workflow';"),
        (None, "throw new Error("),
    ],
)
def test_attributes_are_written_by_what_the_version_calls_it(fake: FakeTools, writer: str | None, line: str) -> None:
    fake.checks(attributeWriter=writer)
    project = ensure("4.8.9")
    assert line in (project.folder / "workflows/attributes.ts").read_text()
    assert project.attributes == (writer is not None)


def test_one_that_another_stormctl_made_is_made_again_from_the_same_packages(fake: FakeTools) -> None:
    before = ensure("4.8.9")
    record = before.folder / "stormctl.json"
    record.write_text(record.read_text().replace(before.templates, "0" * 16))
    (before.folder / "package-lock.json").write_text('{"kept": true}')
    fake.says("npm install", writes={"node_modules/x": "x"})  # npm leaves a lock file that fits as it is
    told: list[str] = []
    after = ensure("4.8.9", tell=told.append)
    assert after.current
    assert told[0] == "4.8.9-local was made by another stormctl: making it again"
    assert (after.folder / "package-lock.json").read_text() == '{"kept": true}'
    assert {entry.name for entry in cache_folder().iterdir()} == {"4.8.9-local", ".4.8.9-local.lock"}


def test_what_a_killed_installation_left_is_no_project_and_is_swept_away(fake: FakeTools) -> None:
    left = cache_folder() / ".making-4.8.9-local-abc"
    left.mkdir(parents=True)
    (left / "package.json").write_text("{}")
    half = cache_folder() / "4.6.1-local"
    half.mkdir()
    assert installed() == []
    ensure("4.8.9")
    assert not left.exists()


def _install(told: str) -> None:
    with open(told, "a") as file:
        ensure("4.8.9", tell=lambda text: file.write(f"{text}\n") and None)


def test_two_processes_install_one_version_once(fake: FakeTools, tmp_path: Path) -> None:
    fake.says("npm install", sleep=0.5, writes={"package-lock.json": "{}", "node_modules/x": "x"})
    context = multiprocessing.get_context("fork")
    tellings = [str(tmp_path / name) for name in ("one", "two")]
    workers = [context.Process(target=_install, args=(telling,)) for telling in tellings]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert fake.count("npm", "install") == 1
    words = [Path(telling).read_text() for telling in tellings]
    assert sum("another process is busy with 4.8.9-local: waiting for it" in text for text in words) == 1


# -- where the light set does not do ----------------------------------------------------------------------------------


def test_a_light_set_that_cannot_be_installed_gives_way_to_all_packages(fake: FakeTools) -> None:
    fake.says(
        "npm install",
        fake.failure("EOVERRIDE", "Override for @workflow/cli conflicts"),
        {"writes": {"package-lock.json": "{}", "node_modules/x": "x"}},
    )
    told: list[str] = []
    project = ensure("4.8.9", tell=told.append)
    assert not project.light
    assert "overrides" not in package_of(project.folder)
    assert not (project.folder / "stormctl-nothing").exists()
    assert any("the light set of packages does not do" in line and "EOVERRIDE" in line for line in told)


def test_a_light_set_that_cannot_be_built_gives_way_to_all_packages(fake: FakeTools) -> None:
    fake.says(
        "node build.mjs js",
        {"code": 1, "err": "Error: Cannot find module '@workflow/rollup'\n    at x\n\nNode.js v20.20.2"},
        {"writes": {".well-known/workflow/v1/manifest.json": "{}"}},
    )
    told: list[str] = []
    assert not ensure("4.8.9", tell=told.append).light
    assert any("Error: Cannot find module '@workflow/rollup'" in line for line in told)


def test_a_version_that_neither_set_can_build_is_one_error_and_leaves_nothing(fake: FakeTools) -> None:
    fake.says("node build.mjs js", code=1, err="SyntaxError: Unexpected token")
    with pytest.raises(
        setup.SetupFailure, match=r"cannot be built for workflow 4\.8\.9: SyntaxError: Unexpected token"
    ):
        ensure("4.8.9")
    assert installed() == []
    assert not list(cache_folder().glob(".making-*"))


def test_a_build_that_lost_a_workflow_is_refused(fake: FakeTools) -> None:
    fake.checks(workflows=[])
    with pytest.raises(setup.SetupFailure, match=r"built 0 workflows and not workflow//\./workflows/step_storm//"):
        ensure("4.8.9")


# -- the world of Postgres --------------------------------------------------------------------------------------------


def test_the_world_that_was_made_for_a_version_is_chosen(fake: FakeTools) -> None:
    project = ensure("4.8.9", "postgres")
    assert (project.world_version, project.exact) == ("4.3.7", True)
    assert not fake.count("@workflow/world-postgres@4.3.0")  # no older one is even looked at


def test_an_older_exact_world_is_chosen_before_a_newer_one(fake: FakeTools) -> None:
    project = ensure("5.0.0-beta.35", "postgres")
    assert (project.world_version, project.exact) == ("5.0.0-beta.27", True)


def test_a_hole_in_the_registry_is_stepped_over(fake: FakeTools) -> None:
    fake.says(
        "npm install",
        fake.failure("ETARGET", "No matching version found for @workflow/errors@5.0.0-beta.13."),
        {"writes": {"package-lock.json": "{}", "node_modules/x": "x"}},
    )
    told: list[str] = []
    project = ensure("5.0.0-beta.55", "postgres", tell=told.append)
    assert (project.world_version, project.exact, project.light) == ("5.0.0-beta.27", False, True)
    assert "@workflow/world-postgres 5.0.0-beta.29 cannot be installed (ETARGET): trying an older one" in told


def test_a_world_whose_spec_version_does_not_fit_is_said_so(fake: FakeTools) -> None:
    fake.says(
        "npm install",
        fake.failure("ETARGET", "No matching version found for @workflow/errors@5.0.0-beta.13."),
        {"writes": {"package-lock.json": "{}", "node_modules/x": "x"}},
    )
    fake.says("node check.mjs world", out="STORMCTL " + json.dumps({"ok": False, "error": SPEC_TEXT, "name": "Error"}))
    with pytest.raises(setup.WorldMisfit) as error:
        ensure("5.0.0-beta.55", "postgres")
    assert str(error.value) == (
        "no @workflow/world-postgres fits workflow 5.0.0-beta.55; the runtime refuses 5.0.0-beta.27, the latest that"
        f" can be installed (5.0.0-beta.29 cannot be installed at all): {SPEC_TEXT.rstrip('.')}"
    )
    assert "--world local" in error.value.remedy
    assert installed() == []
    assert fake.count("npm", "install") == 2  # not with all packages too: they would not help


def test_a_world_that_the_sdk_has_not_is_refused(fake: FakeTools) -> None:
    with pytest.raises(PlanError, match="no world 'postgress'") as error:
        ensure("4.8.9", "postgress")
    assert error.value.remedy == "Did you mean 'postgres'?"


# -- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_version_that_was_never_published_names_its_neighbours(fake: FakeTools) -> None:
    with pytest.raises(npm.NotPublished, match=r"workflow 5\.0\.0-beta\.29 was never published") as error:
        ensure("5.0.0-beta.29")
    assert error.value.remedy == "Did you mean 5.0.0-beta.26 or 5.0.0-beta.35?"


@pytest.mark.parametrize("code", ["ENOTFOUND", "ECONNREFUSED", "EAI_AGAIN", "ERR_SOCKET_TIMEOUT", "ETIMEDOUT"])
@pytest.mark.parametrize("stage", ["view workflow@4.8.9 dependencies", "install"])
def test_a_registry_that_does_not_answer_is_said_so_at_once(fake: FakeTools, code: str, stage: str) -> None:
    fake.says(f"npm {stage}", fake.failure(code, "request to https://registry.example/workflow failed"))
    with pytest.raises(npm.RegistryUnreachable, match=rf"does not answer \({code}\)") as error:
        ensure("4.8.9")
    assert "npm ping" in error.value.remedy
    assert fake.count("npm", "install") == (stage == "install")  # no second try with all packages


def test_a_full_disk_is_said_so(fake: FakeTools) -> None:
    fake.says("npm install", fake.failure("ENOSPC", "ENOSPC: no space left on device, write"))
    with pytest.raises(npm.DiskFull, match="because the disk is full") as error:
        ensure("4.8.9")
    assert "STORMCTL_CACHE" in error.value.remedy
    assert not list(cache_folder().glob(".making-*"))


def test_a_disk_that_is_full_for_our_own_files_is_said_so(fake: FakeTools, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_more: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StormctlError, match=r"the disk of .* is full"):
        ensure("4.8.9")


def test_a_cache_that_is_no_folder_is_said_so(fake: FakeTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STORMCTL_CACHE", str(tmp_path / "file"))
    with pytest.raises(StormctlError, match="cannot be written") as error:
        ensure("4.8.9")
    assert "STORMCTL_CACHE" in error.value.remedy


def test_any_other_failure_of_npm_is_told_in_its_words(fake: FakeTools) -> None:
    fake.says("npm install", fake.failure("EBADPLATFORM", "Unsupported platform for x@1"))
    with pytest.raises(npm.NpmFailure, match=r"failed \(EBADPLATFORM\): Unsupported platform for x@1"):
        ensure("4.8.9")


def test_words_of_older_npms_are_understood(fake: FakeTools) -> None:
    fake.says("npm install", code=1, err="npm ERR! code ENOTFOUND\nnpm ERR! errno ENOTFOUND\nnpm ERR! request failed")
    with pytest.raises(npm.RegistryUnreachable, match="request failed"):
        ensure("4.8.9")


def test_an_npm_that_hangs_is_ended(fake: FakeTools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npm, "VIEW_SECONDS", 0.3)
    fake.says("npm view workflow@4.8.9 dependencies", sleep=60)
    with pytest.raises(StormctlError, match=r"did not end within 0 s"):
        ensure("4.8.9")


def test_nonsense_from_npm_is_no_traceback(fake: FakeTools) -> None:
    fake.says("npm view workflow@4.8.9 dependencies", out="<html>sign in to the hotel's network</html>")
    with pytest.raises(npm.NpmFailure, match="no JSON: <html>sign in"):
        ensure("4.8.9")


# -- node and npm -----------------------------------------------------------------------------------------------------


def test_a_machine_without_node_is_told_what_to_install(fake: FakeTools) -> None:
    (fake.bin / "node").unlink()
    with pytest.raises(SdkUnavailable, match="node is not on this machine's PATH") as error:
        ensure("4.8.9")
    assert "Node.js 20 or later" in error.value.remedy
    assert error.value.exit_code == EXIT_USAGE


def test_a_machine_without_npm_is_told_so(fake: FakeTools) -> None:
    (fake.bin / "npm").unlink()
    with pytest.raises(SdkUnavailable, match="npm is not on this machine's PATH, though node is"):
        ensure("4.8.9")


@pytest.mark.parametrize("version", ["v18.20.8", "v16.0.0", "nonsense"])
def test_a_node_that_is_too_old_is_told_so(fake: FakeTools, version: str) -> None:
    fake.says("node --version", out=version)
    with pytest.raises(SdkUnavailable, match=f"node is version {version}, and 20 or later is needed"):
        find_tools()


def test_a_node_that_does_not_run_is_told_so(fake: FakeTools) -> None:
    fake.says("node --version", code=126, err="node: cannot execute: wrong architecture")
    with pytest.raises(SdkUnavailable, match="does not work: node: cannot execute"):
        find_tools()


# -- removing, and the cache's place ----------------------------------------------------------------------------------


def test_removing_takes_every_world_of_a_version_or_one(fake: FakeTools) -> None:
    ensure("4.8.9")
    ensure("4.8.9", "postgres")
    assert [project.name for project in remove("4.8.9", "postgres")] == ["4.8.9-postgres"]
    assert [project.name for project in installed()] == ["4.8.9-local"]
    ensure("4.8.9", "postgres")
    assert {project.name for project in remove("4.8.9")} == {"4.8.9-local", "4.8.9-postgres"}
    assert installed() == []


def test_removing_what_is_not_there_names_what_is(fake: FakeTools) -> None:
    with pytest.raises(UsageError, match=r"workflow 4\.8\.9 is not installed") as error:
        remove("4.8.9")
    assert "stormctl sdk install" in error.value.remedy
    ensure("4.8.9")
    with pytest.raises(UsageError, match=r"4\.8\.8 is not installed") as error:
        remove("4.8.8")
    assert error.value.remedy == "Did you mean '4.8.9'?"


def test_the_cache_is_where_the_platform_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("STORMCTL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg/stormctl/sdk"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(cache.sys, "platform", "linux")
    assert cache_folder() == tmp_path / ".cache/stormctl/sdk"
    monkeypatch.setattr(cache.sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "Library/Caches/stormctl/sdk"
    monkeypatch.setenv("STORMCTL_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine/sdk"


# -- doctor -----------------------------------------------------------------------------------------------------------


def test_a_healthy_machine_is_said_to_be_so(fake: FakeTools) -> None:
    ensure("4.8.9")
    checks = list(doctor())
    assert [check.name for check in checks] == ["node and npm", "registry", "cache", "4.8.9-local"]
    assert all(check.ok for check in checks)


def test_doctor_says_what_is_wrong_and_goes_on(fake: FakeTools) -> None:
    ensure("4.8.9")
    fake.says("npm view workflow version", fake.failure("ENOTFOUND", "no network"))
    fake.says("node check.mjs built", code=1, err="Error: Cannot find module 'workflow/runtime'\nNode.js v20.20.2")
    found = {check.name: check for check in doctor("4.8.9")}
    assert not found["registry"].ok
    assert not found["4.8.9-local"].ok
    assert "Cannot find module 'workflow/runtime'" in found["4.8.9-local"].text
    assert found["cache"].ok


def test_doctor_of_a_version_that_is_not_there_is_a_failure(fake: FakeTools) -> None:
    last = list(doctor("4.8.9"))[-1]
    assert (last.ok, last.text) == (False, "is not installed")


def test_doctor_without_node_stops_there(fake: FakeTools) -> None:
    (fake.bin / "node").unlink()
    (check,) = doctor()
    assert not check.ok
    assert "Node.js 20" in check.remedy


def test_files_that_a_project_is_made_of_are_the_users_own(fake: FakeTools) -> None:
    folder = ensure("4.8.9").folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
