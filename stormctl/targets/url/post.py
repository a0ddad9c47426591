"""An app while a cell of it is run: its routes, its store, and an eye on whether it is there.

An app that goes away, or whose route answers nonsense again and again, is told once, in one sentence. From then on
every attempt of the cell is a fault of the harness, said as such and at once, instead of a wall of stuck runs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from stormctl.errors import StormctlError
from stormctl.storm.events import StormNoted
from stormctl.storm.subject import Tell
from stormctl.storm.url_app import EVENTS, App, Route
from stormctl.targets.outside import Outside
from stormctl.targets.url.client import AppAway, AppClient, AppRefused, AppSlow, Said
from stormctl.targets.url.stores import open_store

POLL_SECONDS = 1.0
#: how often in a row a route may fail before its app is given up
MOST_FAILURES = 3
#: how long a run that was begun may be missing from the store
MISSING_SECONDS = 10.0

T = TypeVar("T")


class AppLost(StormctlError):
    """Nothing more can be measured on an app."""


class Post:
    """One app and one cell. Made by :meth:`open`; ``close`` it."""

    def __init__(self, label: str, client: AppClient, store: Outside, tell: Tell) -> None:
        self.label = label
        self.client = client
        self.store = store
        self.lost: StormctlError | None = None
        self._tell = tell
        self._failures: Counter[str] = Counter()
        self._said: set[str] = set()
        self._watching: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, label: str, app: App, tell: Tell, environment: Mapping[str, str] | None = None) -> Post:
        """Look whether the app is there and its store can be read. A StormctlError when not."""
        client = AppClient(app, environment)
        await client.ping()
        post = cls(label, client, await asyncio.to_thread(open_store, app, client, environment), tell)
        post._watching = asyncio.create_task(post._watch())
        return post

    async def close(self) -> None:
        """Let go of it. The app goes on."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await asyncio.to_thread(self.store.close)

    def check(self) -> None:
        """AppLost when the app was given up."""
        if self.lost is not None:
            raise AppLost(str(self.lost), remedy=self.lost.remedy)

    async def call(self, route: Route, values: Mapping[str, Any]) -> Said:
        """Call a route. An app whose route fails again and again is given up, with what it said last."""
        self.check()
        return await self._counted(route.name, self.client.call(route, values))

    async def look(self, ask: Callable[..., T], *values: Any) -> T:
        """Ask the store, which may lie behind a route, too: that one is given up as any other."""
        return await self._counted(EVENTS, asyncio.to_thread(ask, *values))

    async def say(self, bad: StormctlError) -> None:
        """Tell what is wrong, once: every attempt of the cell may meet it."""
        if str(bad) not in self._said and self.lost is None:
            self._said.add(str(bad))
            await self._tell(StormNoted(f"{self.label}: {bad}. {bad.remedy}"))

    async def lose(self, why: StormctlError) -> None:
        """Give the app up, and tell it."""
        if self.lost is None:
            self.lost = why
            await self._tell(StormNoted(f"{self.label}: {why}. {why.remedy}\nNothing more is measured in this cell."))

    async def _counted(self, what: str, work: Awaitable[T]) -> T:
        """Await it, and give the app up when this failed too often in a row."""
        try:
            found = await work
        except (AppRefused, AppSlow) as bad:
            self._failures[what] += 1
            if self._failures[what] >= MOST_FAILURES:
                await self.lose(bad)
            raise
        self._failures[what] = 0
        return found

    async def _watch(self) -> None:
        """Give it up when it was away for longer than its file allows."""
        loop = asyncio.get_running_loop()
        seen = loop.time()
        while self.lost is None:
            try:
                await self.client.ping()
                seen = loop.time()
            except AppAway as away:
                if loop.time() - seen >= self.client.app.patience_ms / 1000:
                    await self.lose(away)
            await asyncio.sleep(POLL_SECONDS)
