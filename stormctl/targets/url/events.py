"""The log of an app, read by a route of its own that returns events as JSON, as the SDK's ``events.list`` does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from stormctl.errors import StormctlError
from stormctl.history import Capture, Event, RunRow
from stormctl.readers.sdk_capture import Found, capture_of
from stormctl.readers.sdk_events import event_of, placed
from stormctl.storm.url_app import Route
from stormctl.targets.outside import Pending
from stormctl.targets.run import ENDED
from stormctl.targets.url.client import AppClient, AppRefused
from stormctl.targets.url.filling import at

MOST_PAGES = 2_000
#: more events of one run than any engine replays
MOST_EVENTS = 200_000
_LISTS = ("events", "data")


class EventsStore:
    """A store behind two routes: one for the events of a run and, where there is one, one for its state.

    Its methods block, as those of every store that is read from outside; each makes a loop of its own.
    """

    def __init__(self, client: AppClient, events: Route, status: Route | None) -> None:
        self._client = client
        self._events = events
        self._status = status

    def row(self, run_id: str) -> RunRow | None:
        """As the app has it; without a route for that, as the log does."""
        state = asyncio.run(self._state(run_id))
        if self._status is not None and (state is None or state["status"] not in ENDED):
            return None if state is None else RunRow(state["status"])
        return self._capture(run_id, state).run

    def last_wait(self, run_id: str) -> int | None:
        return self._pending(run_id).latest()

    def hook(self, run_id: str, token: str) -> str | None:
        return self._pending(run_id).hook(token)

    def capture(self, run_id: str) -> Capture:
        return self._capture(run_id, asyncio.run(self._state(run_id)))

    def close(self) -> None:
        """Nothing is open."""

    def _capture(self, run_id: str, state: Mapping[str, Any] | None) -> Capture:
        events, whole = asyncio.run(self._read(run_id))
        app = self._client.app
        return capture_of(
            Found(
                source=f"{app.name} {run_id}",
                run_id=run_id,
                events=placed(events),
                origin=f"the events route of app {app.name}",
                row=state,
                notes=() if whole else (f"more than {MOST_EVENTS} events; the rest was not read",),
                partial=not whole,
            )
        )

    def _pending(self, run_id: str) -> Pending:
        pending = Pending()
        for event in asyncio.run(self._read(run_id))[0]:
            pending.add(event)
        return pending

    async def _state(self, run_id: str) -> Mapping[str, Any] | None:
        """The run's row as the SDK writes one; None when the app has none, or no route for it."""
        if self._status is None:
            return None
        said = await self._client.call(self._status, {"run": run_id})
        if said.gone:
            return None
        row: dict[str, Any] = {"runId": run_id, "status": self._client.read(self._status, said, "status")}
        code = at(said.value, self._status.reads["error_code"])
        if isinstance(code, str):
            row["errorCode"] = code
        error = at(said.value, self._status.reads["error"])
        if isinstance(error, str):
            row["error"] = {"message": error, **({"code": code} if isinstance(code, str) else {})}
        elif isinstance(error, Mapping):
            row["error"] = dict(error)
        return row

    async def _read(self, run_id: str) -> tuple[list[Event], bool]:
        """Every event of the run in the order of the pages, and whether these are all."""
        events: list[Event] = []
        seen: set[str] = set()
        cursor = ""
        for _ in range(MOST_PAGES):
            said = await self._client.call(self._events, {"run": run_id, "cursor": cursor})
            events += self._page(run_id, said.value)
            if len(events) > MOST_EVENTS:
                return events[:MOST_EVENTS], False
            following = self._next(said.value)
            if not following:
                return events, True
            if following in seen:
                raise self._odd(
                    f"gives the cursor {following[:40]!r} a second time", "See that its path passes {cursor} on."
                )
            seen.add(following)
            cursor = following
        return events, False

    def _page(self, run_id: str, value: Any) -> list[Event]:
        path = self._events.reads["list"]
        found = at(value, path)
        if not path and isinstance(value, Mapping):
            found = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
        if not isinstance(found, list):
            raise self._odd("returns no list of events", "Say where it is: `events: {list: data.events}`.")
        events = []
        for number, body in enumerate(found, 1):
            where = f"event {number} of the answer of app {self._client.app.name}"
            if not isinstance(body, dict):
                raise self._odd(f"returns {type(body).__name__} as event {number}", "Return what events.list does.")
            try:
                event = event_of(body, where)
            except StormctlError as bad:
                raise self._odd(f"returns what is no event: {bad}", "Return what events.list does.") from None
            if event.run_id != run_id:
                raise self._odd(f"returns events of run {event.run_id}", "Put {run} where the app looks for it.")
            events.append(event)
        return events

    def _next(self, value: Any) -> str:
        path = self._events.reads["cursor"]
        if path:
            found = at(value, path)
            more = value.get("hasMore") if isinstance(value, Mapping) else None
            return "" if found is None or more is False else str(found)
        if isinstance(value, Mapping) and value.get("hasMore") is True:
            raise self._odd(
                "says that it has more pages", "Add {cursor} to its path, and `cursor:` with where the answer has it."
            )
        return ""

    def _odd(self, what: str, remedy: str) -> AppRefused:
        return AppRefused(f"the events route of app {self._client.app.name} {what}", remedy=remedy)
