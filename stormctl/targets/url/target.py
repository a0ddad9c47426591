"""The target ``url``: storms on applications that somebody else runs, each cell one of them with one scenario.

The storm starts runs and resumes hooks through the app's own routes, and reads its log where the app's file says.
Nothing of the app is installed, started, stopped or changed, and its runs stay in its store.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from stormctl.errors import StormctlError
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.events import StormNoted
from stormctl.storm.folder import StormFolder
from stormctl.storm.plan import Plan
from stormctl.storm.resume import Lost
from stormctl.storm.subject import Subject, Tell
from stormctl.storm.url_app import SDK, App
from stormctl.sweeps import SweepPlan
from stormctl.sweeps.profiles import AUTO
from stormctl.targets.run import RefusedRun
from stormctl.targets.sdk.account import account
from stormctl.targets.sdk.generations import generation_of
from stormctl.targets.sdk.replay.storms import account_of_replays, replayed_too
from stormctl.targets.sdk.workflows import fitted, twin, whole_ms
from stormctl.targets.url.post import AppLost, Post
from stormctl.targets.url.run import UrlRun


class UrlTarget:
    """The target. ``environment`` is where the values of headers and DSNs come from; None is this process's own.
    ``replays`` are the real engines (``sdk:FOLDER``) that every log is replayed by too."""

    #: one diverging run takes what its app has, so that cells side by side would measure each other
    apart = True

    def __init__(
        self, apps: Sequence[App], environment: Mapping[str, str] | None = None, *, replays: Sequence[str] = ()
    ) -> None:
        self._replays = tuple(replays)
        self._apps = {app.label: app for app in apps}
        self._environment = environment

    def sweeps(self, cell: Cell) -> SweepPlan:
        """By the profile that the log asks for, and replayed by the generation that predicts the app's version best; by
        the strict profile, and not replayed, where nobody told the version."""
        version = self._apps[cell.condition].version
        plan = SweepPlan(workload=cell.scenario)
        if version is not None:
            plan = replace(plan, profile=AUTO, engines=(generation_of(version),))
        return replayed_too(plan, self._replays)

    def account(self, folder: StormFolder, attempts: Sequence[Attempt]) -> Iterator[str]:
        """Which of the divergences that the apps printed are predicted, and what a real engine made of the logs."""
        yield from account(folder, attempts, self._stands_for)
        yield from account_of_replays(folder, attempts, lambda cell: self.sweeps(cell).engines)

    @asynccontextmanager
    async def stage(
        self, plan: Plan, folder: StormFolder, tell: Tell, _lost: Sequence[Lost] = ()
    ) -> AsyncIterator[_Stage]:
        """A stage whose cells are opened one by one. Runs of a driver that died are the app's, and are left to it."""
        if any(app.input == SDK for app in self._apps.values()):
            for scenario in plan.scenarios:
                twin(scenario)
        # the real engine replays no log without what its events carry
        stage = _Stage(self._apps, tell, self._environment, payloads=bool(self._replays))
        try:
            yield stage
        finally:
            await stage.close_all()

    def _stands_for(self, cell: Cell) -> str | None:
        version = self._apps[cell.condition].version
        return None if version is None else generation_of(version)


class _Stage:
    def __init__(
        self, apps: Mapping[str, App], tell: Tell, environment: Mapping[str, str] | None, *, payloads: bool = False
    ) -> None:
        self._payloads = payloads
        self._apps = apps
        self._tell = tell
        self._environment = environment
        self._posts: dict[Cell, Post] = {}
        self._refused: dict[Cell, StormctlError] = {}

    @property
    def notes(self) -> Iterator[str]:
        """What a person should know: whose runs stay behind, and what is judged less strictly."""
        for app in self._apps.values():
            if app.cancel is None:
                yield f"app {app.name} has no route to cancel runs: one that outlives its cap goes on"
            if app.version is None:
                yield f"nobody told the version of app {app.name}: its logs are not replayed, and are read strictly"

    def watches(self) -> Iterator[Coroutine[Any, Any, None]]:
        yield from ()

    async def open(self, cell: Cell) -> None:
        """Look at the app and its store. One that is not there costs the attempts of its cells, and is told."""
        try:
            self._posts[cell] = await Post.open(cell.label, self._apps[cell.condition], self._tell, self._environment)
        except StormctlError as bad:
            # a store that fails ends a storm; one that cannot be had costs its cell
            self._refused[cell] = AppLost(str(bad), remedy=bad.remedy)
            await self._tell(StormNoted(f"{cell.label}: {bad}. {bad.remedy}\nNothing is measured in this cell."))

    async def close(self, cell: Cell) -> None:
        """Let go of the app. It goes on."""
        post = self._posts.pop(cell, None)
        if post is not None:
            await post.close()

    async def close_all(self) -> None:
        """As :meth:`close`, for every cell that is still open."""
        for cell in list(self._posts):
            with contextlib.suppress(StormctlError):  # whatever ended the storm is what is told
                await self.close(cell)

    def fitted(self, cell: Cell, input: Any) -> Any:
        """As the app can play it: without attributes where it has none, and in whole milliseconds."""
        return whole_ms(fitted(input, attributes=self._apps[cell.condition].attributes))

    def subject(self, cell: Cell, _number: int) -> Subject:
        if cell in self._refused:
            return RefusedRun(self._refused[cell])
        app = self._apps[cell.condition]
        about = {
            "app": app.name,
            "version": app.version,
            # which of ours stands for it; None takes the cell's own word away, which names no generation
            "generation": None if app.version is None else generation_of(app.version),
        }
        return UrlRun(self._posts[cell], cell.scenario, about, payloads=self._payloads)
