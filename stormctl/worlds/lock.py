"""The append lock of a run: one file name, and the rules by which it changes hands.

* **Take**: ``link`` a holder file, which already says who is asking and for what, to the lock's name. The link fails
  when the name is taken, and the lock is never seen half written. (Upstream creates the file exclusively and then
  writes it; a link excludes as well, and on ext4 it costs half as much because the holder file is written once and
  used again.)
* **Break**: a lock is stale when it was last written longer ago than the limit, or when the process that wrote it is
  surely dead. The breaker links its own holder file to ``<lock>.next.<nonce of the stale lock>``: that name exists once
  per generation of the lock, so one breaker wins. The winner looks again and then *renames* that name over the lock:
  there is no moment without a lock, and no way to remove one that somebody else has just taken. A breaker that dies in
  between is itself broken in the same manner.
* **Release**: by its owner only, which is sure that it is still the owner: the name stands for the very file that it
  holds open, and less than half the limit has passed since it wrote it. Past that it refreshes the lock first and
  looks whether a breaker has stepped forward; the breaker looks at the time after stepping forward, so that one of
  the two sees the other.
* **Abandon**: the owner sets its own holder file's time to 1970, through its open descriptor, so that it can never
  touch a lock that belongs to somebody else by now. The next to come breaks the lock and repairs what its intent
  names.

Upstream's lock (vercel/workflow #3269) differs in two ways, and a condition can ask for them: with ``Breaking.EARLY``
whoever sees an old lock unlinks it by its name, so that two who saw the same one can both come in, and its holder is
never told; with ``Release.BLIND`` a holder unlinks whatever stands under the name.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from stormctl.errors import StoreFailure
from stormctl.worlds.condition import Breaking, Release
from stormctl.worlds.files import Files
from stormctl.worlds.process import is_dead, whoami
from stormctl.worlds.store_ops import Intent

_SIZE = 512


@dataclass(slots=True)
class Held:
    """A lock in our hands. ``left`` are the intents of those whose lock was broken to get it."""

    path: str
    holder: str
    fd: int
    nonce: str
    taken: float
    left: tuple[Intent, ...]
    grew: bool = False


@dataclass(frozen=True, slots=True)
class _Seen:
    """A lock file as somebody else reads it."""

    nonce: str
    modified: float
    owner: dict[str, Any]
    intents: tuple[Intent, ...]


class AppendLocks:
    """Takes, breaks and releases lock files. Methods make file calls and may raise OSError."""

    def __init__(
        self,
        files: Files,
        holders: str,
        stale_ms: float,
        nonce: Callable[[], str],
        wall: Callable[[], float] = time.time,
        *,
        breaking: Breaking = Breaking.CAREFUL,
        release: Release = Release.OWNER_CHECKED,
    ) -> None:
        self._files = files
        self._holders = holders
        self._stale = stale_ms / 1000
        self._nonce = nonce
        self._wall = wall
        self._early = breaking is Breaking.EARLY
        self._blind = release is Release.BLIND
        self._free: list[tuple[str, int]] = []
        self._given_up: set[str] = set()

    def try_take(self, path: str, intent: Intent) -> Held | None:
        """The lock, when it is free or can be broken; None while somebody holds it."""
        holder, fd = self._holder()
        try:
            held = self._write(holder, fd, path, intent, ())
            try:
                self._files.link(holder, path)
                return held
            except FileExistsError:
                pass
            seen = self._look(path)
            if self._early:
                return self._barge_in(holder, fd, path, intent, seen)
            if seen is not None and self._is_stale(seen):
                held = self._write(holder, fd, path, intent, seen.intents)
                if self._usurp(holder, path, seen):
                    return held
                self._forget(holder, fd)
            else:
                self._free.append((holder, fd))
            return None
        except OSError:
            # What was linked anywhere by now is ours and unused: let it be broken at once.
            self._forget(holder, fd)
            raise

    def confirm(self, held: Held) -> None:
        """Make sure that the lock is still ours and stays so for half its limit; StoreFailure when it was broken."""
        if self._wall() - held.taken < self._stale / 2:
            return
        held.taken = self._wall()
        self._files.age(held.fd, held.taken)
        if self._files.exists(f"{held.path}.next.{held.nonce}") or not self._files.same(held.fd, held.path):
            raise StoreFailure(
                f"the append lock of this run was broken: its holder (pid {os.getpid()}) took longer than "
                f"{self._stale:g} s",
                remedy="Look for what stopped the process for so long, or raise the condition's stale_ms.",
            )

    def release(self, held: Held) -> None:
        """Give the lock back. Never raises: what cannot be released is left to be broken."""
        if self._blind:
            self._unlink_whatever(held)
            return
        try:
            self.confirm(held)
            if self._files.same(held.fd, held.path):
                self._files.unlink(held.path)
                if not held.grew:  # the next body may be shorter than what stands there
                    self._free.append((held.holder, held.fd))
                    return
        except (OSError, StoreFailure):
            pass
        self.abandon(held)

    def abandon(self, held: Held) -> None:
        """Leave the lock to be broken, with its intent. Never raises."""
        if self._blind:
            self._unlink_whatever(held)
            return
        self._forget(held.holder, held.fd, held.nonce)

    def close(self) -> None:
        """Remove the holder files that are not in use."""
        while self._free:
            holder, fd = self._free.pop()
            os.close(fd)
            self._files.discard(holder)

    # -- inside

    def _holder(self) -> tuple[str, int]:
        try:
            return self._free.pop()
        except IndexError:
            path = f"{self._holders}/{os.getpid()}-{self._nonce()}"
            return path, self._files.create(path)

    def _write(self, holder: str, fd: int, path: str, intent: Intent, left: tuple[Intent, ...]) -> Held:
        nonce = self._nonce()
        taken = self._wall()
        body = whoami() | {
            "nonce": nonce,
            "acquiredAt": int(taken * 1000),
            "append": asdict(intent),
            "left": [asdict(one) for one in left],
        }
        raw = msgspec.json.encode(body)
        self._files.rewrite(fd, raw.ljust(_SIZE))
        return Held(path, holder, fd, nonce, taken, left, grew=len(raw) > _SIZE)

    def _look(self, path: str) -> _Seen | None:
        found = self._files.look(path)
        if found is None:
            return None
        raw, modified = found
        try:
            body = msgspec.json.decode(raw)
            intents = (*map(_intent, body["left"]), _intent(body["append"]))
            return _Seen(body["nonce"], modified, body, intents)
        except (msgspec.DecodeError, KeyError, TypeError):
            return _Seen("unreadable", modified, {}, ())

    def _is_stale(self, seen: _Seen) -> bool:
        return self._wall() - seen.modified > self._stale or seen.nonce in self._given_up or is_dead(seen.owner)

    def _usurp(self, holder: str, path: str, seen: _Seen) -> bool:
        """Step into the place of the stale lock of one generation; False when another did or its owner came back."""
        claim = f"{path}.next.{seen.nonce}"
        try:
            self._files.link(holder, claim)
        except FileExistsError:
            rival = self._look(claim)
            if rival is None or not self._is_stale(rival) or not self._usurp(holder, claim, rival):
                return False
        now = self._look(path)
        if now is None or now.nonce != seen.nonce or not self._is_stale(now):
            self._files.remove(claim)
            return False
        self._files.rename(claim, path)
        return True

    def _barge_in(self, holder: str, fd: int, path: str, intent: Intent, seen: _Seen | None) -> Held | None:
        """Upstream's way past an old lock: unlink the name, and take it if nobody else was faster. Alive or dead does
        not matter, and the name may stand for a younger lock by now."""
        if seen is None or self._wall() - seen.modified <= self._stale:
            self._free.append((holder, fd))
            return None
        self._files.remove(path)
        held = self._write(holder, fd, path, intent, seen.intents)
        try:
            self._files.link(holder, path)
        except FileExistsError:
            self._free.append((holder, fd))
            return None
        return held

    def _unlink_whatever(self, held: Held) -> None:
        with contextlib.suppress(OSError):
            self._files.unlink(held.path)
        os.close(held.fd)
        self._files.discard(held.holder)

    def _forget(self, holder: str, fd: int, nonce: str | None = None) -> None:
        try:
            self._files.age(fd, 0)
        except OSError:
            if nonce is not None:  # this process knows; for the others the lock goes stale by itself
                self._given_up.add(nonce)
        os.close(fd)
        self._files.discard(holder)


def _intent(raw: dict[str, Any]) -> Intent:
    return Intent(raw["type"], raw.get("correlation_id"), raw.get("token"), tuple(map(_intent, raw.get("also", ()))))
