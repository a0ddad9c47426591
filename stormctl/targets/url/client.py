"""The routes of an app, called: what came back as a value, and what is wrong with an answer in one sentence."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from stormctl.errors import StormctlError, UsageError
from stormctl.storm.url_app import App, Route
from stormctl.targets.http import Address, BadAnswer, Reply, exchange, listens
from stormctl.targets.url.filling import at, in_body, in_path, with_environment

#: how long an app may take to accept a connection
CONNECT_SECONDS = 5.0
_SHOWN = 80


class AppAway(StormctlError):
    """Nobody listens where the app should be."""


class AppRefused(StormctlError):
    """The app answered, and not with what its file says."""


class AppSlow(StormctlError):
    """The app did not answer in time."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a route answered: ``gone`` when it says that something is not there, any more or yet."""

    value: Any
    gone: bool = False


class AppClient:
    """Calls the routes of one app. Making it takes the values of its headers from the environment: UsageError when one
    is not set."""

    def __init__(self, app: App, environment: Mapping[str, str] | None = None) -> None:
        self.app = app
        parts = urlsplit(app.url)
        tls = parts.scheme == "https"
        self._address = Address(parts.hostname or "", parts.port or (443 if tls else 80), tls)
        self._below = parts.path
        self._headers = {
            name: _sendable(with_environment(text, f"the header {name} of app {app.name}", environment), name, app)
            for name, text in app.headers.items()
        }

    async def ping(self) -> None:
        """AppAway when nobody listens."""
        try:
            await listens(self._address, CONNECT_SECONDS)
        except (OSError, TimeoutError) as error:
            raise self._away(error) from None

    async def call(self, route: Route, values: Mapping[str, Any]) -> Said:
        """Call a route. AppAway, AppSlow or AppRefused, each one sentence with a remedy, when that came to nothing."""
        headers = {"accept": "application/json", **self._headers}
        body = None
        if route.body is not None:
            body = json.dumps(in_body(route.body, values), allow_nan=False).encode()
            if not any(name.lower() == "content-type" for name in headers):
                headers["content-type"] = "application/json"
        target = self._below + in_path(route.path, values)
        try:
            reply = await exchange(
                self._address, route.method, target, headers=headers, body=body, timeout_s=route.timeout_ms / 1000
            )
        except TimeoutError:
            raise AppSlow(
                f"app {self.app.name} did not answer {_shown(route)} within {route.timeout_ms / 1000:g} s",
                remedy=f"See what it is busy with, or give `{route.name}` a longer `timeout`.",
            ) from None
        except BadAnswer as bad:
            raise AppRefused(
                f"app {self.app.name} answered {_shown(route)} with {bad}",
                remedy=f"See that {self.app.url} is the app and speaks plain HTTP.",
            ) from None
        except OSError as error:
            raise self._away(error) from None
        return self._said(route, reply)

    def read(self, route: Route, said: Said, what: str, *, kind: type | tuple[type, ...] = str) -> Any:
        """What an answer holds at the place that the file names for it; AppRefused when it is not there."""
        path = route.reads[what]
        found = at(said.value, path)
        if isinstance(found, kind) and not isinstance(found, bool) and found != "":
            return found
        where = f"at {path!r} " if path else ""
        raise AppRefused(
            f"the answer of app {self.app.name} to {_shown(route)} holds no {what} {where}but {_brief(said.value)}",
            remedy=f"Say where it is: `{route.name}: {{{what}: ...}}` in the app's file.",
        )

    def _said(self, route: Route, reply: Reply) -> Said:
        what = f"app {self.app.name} answered {_shown(route)} with {reply.status}"
        try:
            value = json.loads(reply.body) if reply.body.strip() else None
        except ValueError:
            value = reply
        if reply.status in route.gone and value is not reply:
            return Said(value, gone=True)
        if not 200 <= reply.status < 300:
            raise AppRefused(f"{what}{_content(reply, value)}", remedy=_remedy(route, reply, plain=value is reply))
        if value is reply:
            raise AppRefused(
                f"{what} and {_kind(reply)} instead of JSON",
                remedy=f"Name the route that answers JSON as {route.name}.",
            )
        return Said(value)

    def _away(self, error: BaseException) -> AppAway:
        if isinstance(error, ssl.SSLError):
            why, remedy = f"TLS fails ({error.reason or error})", "See to its certificate, or write http:// in `url`."
        elif isinstance(error, TimeoutError):
            why, remedy = f"no connection within {CONNECT_SECONDS:g} s", "Start it, or correct `url` in the app's file."
        else:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
            remedy = "Start it, or correct `url` in the app's file."
        return AppAway(f"app {self.app.name} cannot be reached at {self.app.url}: {why}", remedy=remedy)


def _shown(route: Route) -> str:
    """The route as its file has it: what is filled in may be a secret."""
    return f"{route.name} ({route.method} {route.path})"


def _content(reply: Reply, value: Any) -> str:
    if value is reply:
        return f" and {_kind(reply)}"
    return "" if value is None else f": {_brief(value)}"


def _kind(reply: Reply) -> str:
    kind = reply.content_type.partition(";")[0].strip()
    return "an HTML page" if kind == "text/html" else kind or "text"


def _brief(value: Any) -> str:
    """The beginning of an answer, without what may be long."""
    if isinstance(value, Mapping):
        for key in ("error", "message", "detail", "title"):
            if isinstance(value.get(key), str):
                return str(value[key])[:_SHOWN]
        return "an object with " + (", ".join(str(key)[:20] for key in list(value)[:6]) or "nothing in it")
    return "nothing" if value is None else f"a {type(value).__name__}"


def _remedy(route: Route, reply: Reply, *, plain: bool) -> str:
    if reply.status in (401, 403):
        return "Give it what it asks for under `headers`, with secrets as ${NAME}."
    if reply.status in (404, 405):
        more = " The app must answer JSON where something is gone." if plain and route.gone else ""
        return f"Correct method and path of `{route.name}` in the app's file.{more}"
    if 300 <= reply.status < 400:
        return f"Name the place that it redirects to as the path of `{route.name}`: redirects are not followed."
    return "Read the app's own log." if reply.status >= 500 else f"Correct `{route.name}` in the app's file."


def _sendable(value: str, name: str, app: App) -> str:
    if not value.isprintable() or not value.isascii():
        raise UsageError(
            f"the header {name} of app {app.name} gets a value with line breaks or signs that none may have",
            remedy="Set its environment variable to plain ASCII.",
        )
    return value
