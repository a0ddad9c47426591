"""One run of an app under test: begun and pressed through its routes, watched by its log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from stormctl.errors import StormctlError
from stormctl.history import Capture, RunRow
from stormctl.storm.subject import Remains
from stormctl.storm.url_app import SDK
from stormctl.targets.run import NOTHING, OutsideRun, T
from stormctl.targets.sdk.workflows import sdk_input
from stormctl.targets.url.client import AppAway, AppRefused, AppSlow
from stormctl.targets.url.post import MISSING_SECONDS, AppLost, Post

_SICK = (AppAway, AppRefused, AppSlow, AppLost)


class UrlRun(OutsideRun):
    """A run of a scenario on an app. ``about`` goes into the data of its capture, which has what its events carry where
    ``payloads`` says so."""

    def __init__(
        self, post: Post, scenario: str, about: Mapping[str, Any] = NOTHING, *, payloads: bool = False
    ) -> None:
        super().__init__(post.store, about)
        self._payloads = payloads
        self._post = post
        self._scenario = scenario
        self._begun_at: float | None = None

    def check(self) -> None:
        """AppLost where the app was given up."""
        self._post.check()

    def with_more(self, capture: Capture) -> Remains:
        """As it is."""
        return Remains(capture, payloads=self._payloads)

    async def look(self, ask: Callable[..., T], *values: Any) -> T:
        """Through the post, which counts what fails."""
        return await self._post.look(ask, *values)

    async def begin(self, input: Any) -> None:
        """Start it by the app's route."""
        app = self._post.client.app
        given = sdk_input(self._scenario, input) if app.input == SDK else asdict(input)
        values = {"workflow": app.workflow(self._scenario), "input": given, "token": getattr(input, "token", "")}
        try:
            said = await self._post.call(app.start, values)
            self.run_id = str(self._post.client.read(app.start, said, "run_id", kind=(str, int)))
        except StormctlError as bad:
            await self._post.say(bad)
            raise
        self._begun_at = asyncio.get_running_loop().time()

    async def row(self) -> RunRow | None:
        """As the store has it. AppLost for a run that it never shows, or that cannot end any more."""
        try:
            found = await super().row()
        except _SICK as bad:
            if isinstance(bad, AppLost):
                raise
            self.check()
            return None
        if found is None:
            await self._missing()
        else:
            self._begun_at = None
        return found

    async def hook(self, token: str) -> str | None:
        """By the app's route, else by the log."""
        app = self._post.client.app
        with suppress(*_SICK):
            if app.hook is None:
                return await self.look(self.store.hook, self.id, token)
            said = await self._post.call(app.hook, {"token": token, "run": self.id})
            if said.gone:
                return None
            if app.hook.reads["run"] and self._post.client.read(app.hook, said, "run") != self.id:
                return None
            return str(self._post.client.read(app.hook, said, "id"))
        return None

    async def last_wait(self) -> int | None:
        """By the log; None while an app whose route gives it does not answer."""
        with suppress(*_SICK):
            return await super().last_wait()
        return None

    async def resume(self, token: str, payload: Any) -> bool:
        """By the app's route. False also when it does not answer: whether the payload arrived is for the log to say."""
        async with self.resumes:
            with suppress(*_SICK):
                values = {"token": token, "payload": payload, "run": self.id}
                return not (await self._post.call(self._post.client.app.resume, values)).gone
            return False

    async def cancel(self, reason: str) -> None:
        """By the app's route, where it has one."""
        route = self._post.client.app.cancel
        if self.run_id is None or route is None:
            return
        with suppress(StormctlError):
            await self._post.call(route, {"run": self.run_id, "reason": reason})

    async def _missing(self) -> None:
        """A run that was begun and is nowhere: the log is read in the wrong place."""
        if self._begun_at is None or asyncio.get_running_loop().time() - self._begun_at < MISSING_SECONDS:
            return
        app = self._post.client.app
        await self._post.lose(
            AppLost(
                f"app {app.name} began run {self.run_id}, and {app.log.where or 'its events route'} shows no such run "
                f"within {MISSING_SECONDS:g} s",
                remedy=f"See that `log` names the store that the app at {app.url} writes, and `start` the run's id.",
            )
        )
        self.check()
