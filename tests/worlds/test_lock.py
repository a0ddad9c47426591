"""How the append lock changes hands: taken once, broken once, released by its owner only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stormctl.errors import StoreFailure
from stormctl.worlds.files import Files
from stormctl.worlds.lock import AppendLocks, Held
from stormctl.worlds.mint import Minter
from stormctl.worlds.process import whoami
from stormctl.worlds.store_ops import Intent
from tests.worlds.making import FailingFiles

STALE_MS = 100_000.0
MINE, YOURS = Intent("step_created", "step_1"), Intent("run_completed")


def grow_old(held: Held, seconds: float = STALE_MS / 1000 + 1) -> None:
    """Let the lock be that much older, for its owner as for everybody else."""
    held.taken -= seconds
    os.utime(held.fd, (held.taken, held.taken))


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "holders").mkdir()
    return str(tmp_path / "r.append.lock")


def locks(path: str, files: Files | None = None) -> AppendLocks:
    return AppendLocks(files or Files(), f"{os.path.dirname(path)}/holders", STALE_MS, Minter().nonce)


def take(owner: AppendLocks, path: str, intent: Intent = MINE) -> Held:
    held = owner.try_take(path, intent)
    assert held is not None
    return held


class TestALock:
    def test_is_held_by_one_and_says_who(self, path: str) -> None:
        one, other = locks(path), locks(path)
        held = take(one, path)
        assert other.try_take(path, YOURS) is None
        body = json.loads(Path(path).read_bytes())
        assert body["pid"] == os.getpid()
        assert body["append"]["correlation_id"] == "step_1"
        assert body["acquiredAt"] > 1_600_000_000_000
        one.release(held)
        assert not Path(path).exists()
        assert take(other, path).left == ()

    def test_of_threads_that_rush_goes_to_one(self, path: str) -> None:
        for _ in range(20):
            assert len(self.rush(path)) == 1
            Path(path).unlink()

    def test_that_is_stale_is_broken_by_exactly_one(self, path: str) -> None:
        for _ in range(20):
            grow_old(take(locks(path), path, YOURS))
            (winner,) = self.rush(path)
            assert winner.left == (YOURS,)
            assert not list(Path(path).parent.glob("*.next.*"))
            Path(path).unlink()

    def rush(self, path: str) -> list[Held]:
        owners = [locks(path) for _ in range(6)]
        got: list[Held] = []
        start = threading.Barrier(len(owners))

        def go(owner: AppendLocks) -> None:
            start.wait()
            held = owner.try_take(path, MINE)
            if held is not None:
                got.append(held)

        threads = [threading.Thread(target=go, args=(owner,)) for owner in owners]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 1
        return got


class TestAHolderThatWasTooSlow:
    def test_learns_that_it_lost_the_lock_before_it_publishes(self, path: str) -> None:
        slow, quick = locks(path), locks(path)
        held = take(slow, path)
        grow_old(held)
        take(quick, path)
        with pytest.raises(StoreFailure, match="was broken") as failure:
            slow.confirm(held)
        assert failure.value.remedy

    def test_does_not_release_the_lock_of_the_next_owner(self, path: str) -> None:
        slow, quick = locks(path), locks(path)
        held = take(slow, path)
        grow_old(held)
        taken = take(quick, path)
        slow.release(held)
        assert json.loads(Path(path).read_bytes())["nonce"] == taken.nonce

    def test_does_not_age_the_lock_of_the_next_owner_when_it_gives_up(self, path: str) -> None:
        slow, quick = locks(path), locks(path)
        held = take(slow, path)
        grow_old(held)
        take(quick, path)
        slow.abandon(held)
        assert locks(path).try_take(path, MINE) is None

    def test_that_comes_back_in_time_refreshes_it(self, path: str) -> None:
        owner = locks(path)
        held = take(owner, path)
        grow_old(held, STALE_MS / 1000 * 0.7)
        owner.confirm(held)
        assert locks(path).try_take(path, MINE) is None
        owner.release(held)
        assert not Path(path).exists()

    def test_and_a_breaker_that_has_stepped_forward_never_both_believe_they_hold_it(self, path: str) -> None:
        owner = locks(path)
        held = take(owner, path)
        grow_old(held)

        class Slow(Files):
            """The owner comes back between the breaker's claim and its second look."""

            def link(self, source: str, target: str) -> None:
                super().link(source, target)
                if ".next." in target:
                    with pytest.raises(StoreFailure):
                        owner.confirm(held)

        assert locks(path, Slow()).try_take(path, MINE) is None
        assert not list(Path(path).parent.glob("*.next.*"))


class TestAnAbandonedLock:
    def test_is_broken_at_once_and_hands_its_intent_on(self, path: str) -> None:
        owner = locks(path)
        owner.abandon(take(owner, path, YOURS))
        held = take(locks(path), path)
        assert held.left == (YOURS,)

    def test_of_one_that_had_broken_another_hands_on_both(self, path: str) -> None:
        owner = locks(path)
        owner.abandon(take(owner, path, YOURS))
        owner.abandon(take(owner, path, MINE))
        assert take(owner, path, Intent("attr_set")).left == (YOURS, MINE)

    def test_is_broken_also_when_a_breaker_died_before_it_finished(self, path: str) -> None:
        owner = locks(path)
        owner.abandon(take(owner, path, YOURS))
        nonce = json.loads(Path(path).read_bytes())["nonce"]
        dead = whoami() | {"pid": _dead_pid(), "nonce": "dead", "left": [], "append": {"type": "x"}}
        Path(f"{path}.next.{nonce}").write_text(json.dumps(dead))
        held = take(owner, path)
        assert held.left == (YOURS,)
        assert not list(Path(path).parent.glob("*.next.*"))

    def test_is_not_broken_twice_when_its_breaker_is_at_work(self, path: str) -> None:
        owner = locks(path)
        owner.abandon(take(owner, path, YOURS))
        nonce = json.loads(Path(path).read_bytes())["nonce"]
        alive = whoami() | {"nonce": "alive", "left": [], "append": {"type": "x"}}
        Path(f"{path}.next.{nonce}").write_text(json.dumps(alive))
        assert owner.try_take(path, MINE) is None


class TestALockOfADeadProcess:
    def test_is_broken_at_once(self, path: str) -> None:
        body = whoami() | {"pid": _dead_pid(), "nonce": "n", "left": [], "append": {"type": "run_completed"}}
        Path(path).write_text(json.dumps(body))
        assert take(locks(path), path).left == (Intent("run_completed"),)

    def test_on_another_machine_is_waited_for(self, path: str) -> None:
        body = whoami() | {"host": "elsewhere", "pid": _dead_pid(), "nonce": "n", "left": [], "append": {"type": "x"}}
        Path(path).write_text(json.dumps(body))
        assert locks(path).try_take(path, MINE) is None
        os.utime(path, (1_700_000_000, 1_700_000_000))
        assert locks(path).try_take(path, MINE) is not None


class TestAFailingDisk:
    def test_while_breaking_never_blocks_the_lock_for_good(self, path: str) -> None:
        for fail_at in range(6):
            files = FailingFiles()
            owner = locks(path, files)
            owner.abandon(take(owner, path, YOURS))
            files.fail_at = files.writes + fail_at
            try:
                held = owner.try_take(path, MINE)
            except OSError:
                held = None
            files.mend()
            if held is None:
                held = take(owner, path, MINE)
            assert YOURS in held.left, fail_at
            owner.release(held)
            assert not Path(path).exists(), fail_at


def _dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    return child.pid
