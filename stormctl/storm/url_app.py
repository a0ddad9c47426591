"""What a person writes down of an application that they run themselves, for the target ``url``. Schema
``stormctl.app/1``:

    schema: stormctl.app/1
    name: shop
    url: http://127.0.0.1:3000
    version: 4.8.9                        # of the Workflow SDK, where it is known
    headers: {authorization: "Bearer ${SHOP_TOKEN}"}
    start:  {path: /storms, body: {workflow: "{workflow}", input: "{input}"}, run_id: runId}
    resume: {path: /resume, body: {token: "{token}", payload: "{payload}"}}
    log:    {folder: ../shop/.workflow-data}

A text that is a placeholder and nothing else becomes the value itself; within a longer text it becomes text. Values
that nobody should write down stand as ``${NAME}``, are taken from the environment when a storm begins, and are kept
nowhere. Whatever cannot be meant is a PlanError.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stormctl.errors import PlanError, suggest
from stormctl.storm.planfile import format_duration, parse_duration

SCHEMA = "stormctl.app/1"
FOLDER, POSTGRES, EVENTS = "folder", "postgres", "events"
#: how an input's fields are called over there: as the published workflows read them, or as a plan writes them
SDK, STORMCTL = "sdk", "stormctl"
TIMEOUT_MS = 10_000.0
MOST_TIMEOUT_MS = 120_000.0
#: how long an app may be away before its cell is given up
PATIENCE_MS = 10_000.0
KEYS = (
    "schema", "name", "url", "remote", "version", "attributes", "input", "workflows", "headers", "timeout", "patience",
    "start", "resume", "hook", "status", "cancel", "log",
)  # fmt: skip
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
#: what each route may name, and what it must, and what of its answer is read unless the file says otherwise
PLACES: Mapping[str, tuple[str, ...]] = {
    "start": ("workflow", "input", "token"),
    "resume": ("token", "payload", "run"),
    "hook": ("token", "run"),
    "status": ("run",),
    "cancel": ("run", "reason"),
    EVENTS: ("run", "cursor"),
}
MUST: Mapping[str, tuple[str, ...]] = {
    "start": ("input",), "resume": ("token",), "hook": ("token",), "status": ("run",), "cancel": ("run",),
    EVENTS: ("run",),
}  # fmt: skip
READS: Mapping[str, Mapping[str, str]] = {
    "start": {"run_id": "runId"},
    "resume": {},
    "hook": {"id": "hookId", "run": ""},
    "status": {"status": "status", "error_code": "errorCode", "error": "error"},
    "cancel": {},
    EVENTS: {"list": "", "cursor": ""},
}
#: what says that something is not there, any more or yet
GONE: Mapping[str, tuple[int, ...]] = {
    "resume": (404, 409, 410), "hook": (404, 410), "status": (404,), "cancel": (404, 409, 410),
}  # fmt: skip
PLACE = re.compile(r"\{(\w+)\}")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,63})\}")

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,40}")
_VERSION = re.compile(r"[45]\.\d{1,6}\.\d{1,6}(?:-[0-9A-Za-z]+(?:[.-][0-9A-Za-z]+)*)?")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_SECRET = re.compile(r"authorization|cookie|token|secret|key|password|credential", re.IGNORECASE)
_PASSWORD = re.compile(r"(?<![A-Za-z])password\s*=|://[^/@\s]*:[^/@\s]+@", re.IGNORECASE)
_OWN_HEADERS = frozenset({"host", "connection", "content-length", "transfer-encoding"})
_FIELD = re.compile(r"[^.\s]{1,64}(?:\.[^.\s]{1,64}){0,7}")


@dataclass(frozen=True, slots=True)
class Route:
    """One call of the app. ``body`` is a template, None where the call has none; ``reads`` names what of its answer is
    read, as a dotted path; ``gone`` are statuses that say that something is not there."""

    name: str
    method: str
    path: str
    body: Any = None
    timeout_ms: float = TIMEOUT_MS
    reads: Mapping[str, str] = field(default_factory=dict)
    gone: tuple[int, ...] = ()

    def row(self) -> dict[str, Any]:
        """As a file has it."""
        body = {} if self.body is None else {"body": self.body}
        gone = {"gone": list(self.gone)} if self.name in GONE else {}
        reads = {key: value for key, value in self.reads.items() if value}
        return {
            "method": self.method,
            "path": self.path,
            **body,
            **reads,
            **gone,
            "timeout": format_duration(self.timeout_ms),
        }


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where logs are read. ``where`` is a folder (absolute), a DSN (which may hold ``${NAME}``), or empty."""

    kind: str
    where: str = ""
    route: Route | None = None

    def row(self) -> dict[str, Any]:
        """As a file has it."""
        return {self.kind: self.route.row() if self.route is not None else self.where}


@dataclass(frozen=True, slots=True)
class App:
    """An application, checked. ``version`` is that of its Workflow SDK, where it was told. Without ``hook`` hooks are
    looked up in the log, without ``status`` a run's state is, and without ``cancel`` runs are left to themselves."""

    name: str
    url: str
    log: LogPlace
    start: Route
    resume: Route
    hook: Route | None = None
    status: Route | None = None
    cancel: Route | None = None
    remote: bool = False
    version: str | None = None
    attributes: bool = True
    input: str = SDK
    workflows: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    patience_ms: float = PATIENCE_MS

    @property
    def label(self) -> str:
        """What tables call it: its name, and the version where it is known."""
        return self.name if self.version is None else f"{self.name} (workflow {self.version})"

    def workflow(self, scenario: str) -> str:
        """What the app calls the workflow that plays a scenario."""
        return self.workflows.get(scenario, scenario)

    def row(self) -> dict[str, Any]:
        """As a file has it, with everything that was left out; :func:`parse_app` reads it again."""
        routes = {name: route for name in PLACES if name != EVENTS and (route := getattr(self, name)) is not None}
        return {
            "schema": SCHEMA,
            "name": self.name,
            "url": self.url,
            "remote": self.remote,
            **({} if self.version is None else {"version": self.version}),
            "attributes": self.attributes,
            "input": self.input,
            "workflows": dict(self.workflows),
            "headers": dict(self.headers),
            "patience": format_duration(self.patience_ms),
            **{name: route.row() for name, route in routes.items()},
            "log": self.log.row(),
        }


def parse_app(document: Any, source: str, base: Path) -> App:
    """The app of a parsed YAML file. A relative folder lies below ``base``."""
    given = _known(document, KEYS, source)
    schema = given.get("schema", SCHEMA)
    if schema != SCHEMA:
        newer = str(schema).startswith("stormctl.app/")
        remedy = "Upgrade stormctl." if newer else f"Start it with `schema: {SCHEMA}`."
        raise PlanError(f"{source} has the schema {schema!r}", remedy=remedy)
    name = given.get("name")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise PlanError(
            f"the app in {source} is named {name!r}",
            remedy="Give it `name:`, in lower-case letters, digits and dashes.",
        )
    where = f"app {name}"
    version = _version(given.get("version"), where)
    timeout = _timeout(given.get("timeout"), f"{where}: timeout", TIMEOUT_MS)
    routes = {key: _route(key, given[key], where, timeout) for key in PLACES if given.get(key) is not None}
    for key, what in (("start", "start a run"), ("resume", "resume a hook")):
        if key not in routes:
            raise PlanError(f"{where} has no route to {what}", remedy=f"Add `{key}:` with a path and a body.")
    return App(
        name=name,
        url=_url(given.get("url"), remote=_flag(given.get("remote", False), f"{where}: remote"), where=where),
        log=_log(given.get("log"), where, base, timeout),
        start=routes["start"],
        resume=routes["resume"],
        hook=routes.get("hook"),
        status=routes.get("status"),
        cancel=routes.get("cancel"),
        remote=bool(given.get("remote", False)),
        version=version,
        attributes=_flag(given.get("attributes", not (version or "5").startswith("4.")), f"{where}: attributes"),
        input=_choice(given.get("input", SDK), (SDK, STORMCTL), f"{where}: input"),
        workflows=_texts(given.get("workflows"), f"{where}: workflows"),
        headers=_headers(given.get("headers"), where),
        patience_ms=_timeout(given.get("patience"), f"{where}: patience", PATIENCE_MS),
    )


def is_loopback(host: str) -> bool:
    """Whether a host's name can only mean this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def placeholders(template: Any) -> set[str]:
    """The names between braces in a template's texts."""
    if isinstance(template, str):
        return set(PLACE.findall(template))
    if isinstance(template, Mapping):
        return {name for value in template.values() for name in placeholders(value)}
    if isinstance(template, list):
        return {name for value in template for name in placeholders(value)}
    return set()


# -- the parts of a file -----------------------------------------------------------------------------------------------


def _known(value: Any, keys: Collection[str], where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise PlanError(f"{where} is {value!r}", remedy=f"Write a mapping with {', '.join(list(keys)[:4])}.")
    for key in value:
        if key not in keys:
            raise PlanError(f"{where} has an unknown key {key!r}", remedy=suggest(str(key), keys))
    return value


def _url(value: Any, *, remote: bool, where: str) -> str:
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
        port = None if parts is None else parts.port
    except ValueError:
        parts, port = None, None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise PlanError(f"{where}: url is {value!r}", remedy="Write it as http://127.0.0.1:3000.")
    if parts.username is not None or parts.query or parts.fragment:
        raise PlanError(
            f"{where}: url holds more than a host, a port and a path", remedy="Put secrets into `headers`, as ${NAME}."
        )
    if not is_loopback(parts.hostname) and not remote:
        raise PlanError(
            f"{where}: {parts.hostname} is another machine, and a storm breaks what it drives",
            remedy="If that is meant, add `remote: true` to the app.",
        )
    return str(value).rstrip("/")


def _route(name: str, value: Any, where: str, timeout_ms: float) -> Route:
    of = f"{where}: {name}"
    reads = READS[name]
    keys = ("method", "path", "body", "timeout", *reads, *(("gone",) if name in GONE else ()))
    given = _known({"path": value} if isinstance(value, str) else value, keys, of)
    path = given.get("path")
    if not isinstance(path, str) or not path.startswith("/") or not path.isprintable() or " " in path:
        raise PlanError(f"{of}.path is {path!r}", remedy="Write one such as /storms/start.")
    usual = "GET" if name in ("hook", "status", EVENTS) else "POST"
    method = _choice(given.get("method", usual), METHODS, f"{of}.method")
    body = given.get("body")
    if body is not None and method == "GET":
        raise PlanError(f"{of} has a body and is a GET", remedy="Set `method: POST`, or put the values into the path.")
    used = placeholders(path) | placeholders(body)
    for one in sorted(used - set(PLACES[name])):
        raise PlanError(f"{of} has an unknown placeholder {{{one}}}", remedy=suggest(one, PLACES[name]))
    for one in MUST[name]:
        if one not in used:
            raise PlanError(f"{of} names no {{{one}}}", remedy=f"Put {{{one}}} into its path or body.")
    return Route(
        name=name,
        method=method,
        path=path,
        body=body,
        timeout_ms=_timeout(given.get("timeout"), f"{of}.timeout", timeout_ms),
        reads={key: _field(given.get(key, usual), f"{of}.{key}") for key, usual in reads.items()},
        gone=_statuses(given.get("gone", list(GONE.get(name, ()))), f"{of}.gone"),
    )


def _log(value: Any, where: str, base: Path, timeout_ms: float) -> LogPlace:
    of = f"{where}: log"
    kinds = (FOLDER, POSTGRES, EVENTS)
    given = _known(value if value is not None else {}, kinds, of)
    if len(given) != 1:
        raise PlanError(
            f"{of} names {len(given)} places to read event logs",
            remedy="Give one: `folder:` of a local world, `postgres:` with a DSN, or `events:` with a route.",
        )
    ((kind, place),) = given.items()
    if kind == EVENTS:
        return LogPlace(kind, route=_route(EVENTS, place, of, timeout_ms))
    if not isinstance(place, str) or not place:
        raise PlanError(f"{of}.{kind} is {place!r}", remedy="Give it a text.")
    if kind == FOLDER:
        return LogPlace(kind, str((base / Path(place).expanduser()).absolute()))
    if _PASSWORD.search(VARIABLE.sub("", place)):
        raise PlanError(
            f"{of}.postgres has a password written down",
            remedy="Put the DSN into an environment variable and write `postgres: ${SHOP_DSN}`.",
        )
    return LogPlace(kind, place)


def _headers(value: Any, where: str) -> Mapping[str, str]:
    found = _texts(value, f"{where}: headers")
    for name, text in found.items():
        if _HEADER.fullmatch(name) is None or name.lower() in _OWN_HEADERS:
            raise PlanError(f"{where}: the header {name!r} cannot be set", remedy="Leave it out.")
        if not text.isprintable() or not text.isascii():
            raise PlanError(f"{where}: the header {name} has signs that none may have", remedy="Use plain ASCII.")
        if _SECRET.search(name) and VARIABLE.search(text) is None:
            raise PlanError(
                f"{where}: the header {name} has a secret written down",
                remedy=f'Put it into an environment variable: {name}: "${{SHOP_TOKEN}}".',
            )
    return found


def _texts(value: Any, where: str) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(one, str) for pair in value.items() for one in pair):
        raise PlanError(f"{where} is {value!r}", remedy="Write a mapping of texts; numbers go into quotes.")
    return dict(value)


def _field(value: Any, where: str) -> str:
    if value == "" or (isinstance(value, str) and _FIELD.fullmatch(value)):
        return str(value)
    raise PlanError(f"{where} is {value!r}", remedy="Say where in the answer it is: runId, or data.run.id.")


def _statuses(value: Any, where: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(one) is int and 400 <= one <= 599 for one in value):
        raise PlanError(f"{where} is {value!r}", remedy="Give a list of statuses from 400 to 599: [404, 410].")
    return tuple(value)


def _version(value: Any, where: str) -> str | None:
    if value is None:
        return None
    text = value.removeprefix("v") if isinstance(value, str) else ""
    if _VERSION.fullmatch(text) is None:
        raise PlanError(
            f"{where}: version is {value!r}, which is no version of the Workflow SDK",
            remedy="Give the one that the app has installed, such as 4.8.9, or leave it out.",
        )
    return text


def _timeout(value: Any, where: str, default: float) -> float:
    if value is None:
        return default
    ms = parse_duration(value, where)
    if ms > MOST_TIMEOUT_MS:
        raise PlanError(f"{where} is {value!r}", remedy=f"Give at most {format_duration(MOST_TIMEOUT_MS)}.")
    return ms


def _choice(value: Any, known: Collection[str], where: str) -> str:
    if value not in known:
        raise PlanError(f"{where} is {value!r}", remedy=suggest(str(value), known))
    return str(value)


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise PlanError(f"{where} is {value!r}", remedy="Make it true or false.")
    return value
