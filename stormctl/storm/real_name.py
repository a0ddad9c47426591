"""The name of a real engine, where a plan or a command names one: ``sdk:4.8.9``, ``sdk:own``, ``sdk:FOLDER``.

Switches of the SDK that the replay is to be made under follow in brackets, as a storm's environment set them:

    sdk:5.0.0-beta.55[WORKFLOW_LOG_ORDER_DRAWS=0]

Only switches of the SDK itself are taken (``WORKFLOW_...``), because a name can come out of a captured file, and of
those not the ones that a replay sets: a body must not begin, and nothing may be remembered from pass to pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from stormctl.errors import UsageError

SCHEME = "sdk:"
#: the version that a log says it was written by; in a storm, the one that the cell ran
OWN = "own"
#: what a replay sets itself, to these values
SET_BY_REPLAY: Mapping[str, str] = MappingProxyType({
    "WORKFLOW_OPTIMISTIC_INLINE_START": "0",
    "WORKFLOW_TURBO": "0",
    "WORKFLOW_RETAINED_VM": "0",
    "WORKFLOW_REPLAY_DIVERGENCE_MAX_RETRIES": "3",
    "WORKFLOW_DEFERRED_CHECK_DELAY_MS": "100",
})  # fmt: skip
#: where a server of the SDK has its store and its address, which no replay has
_PLACES = re.compile(r"WORKFLOW_(TARGET_WORLD|LOCAL_\w+|POSTGRES_\w+)")
_SWITCH = re.compile(r"WORKFLOW_[A-Z0-9_]{1,60}")
_VALUE = re.compile(r"[A-Za-z0-9._:/@%+,-]{0,100}")
_BRACKETS = re.compile(r"(?P<named>[^\[\]]+)\[(?P<switches>[^\[\]]*)\]")
#: a comma between switches: a value may hold one, but no equals sign
_COMMA = re.compile(r",(?=[^,=]*=)")
_VERSION = re.compile(r"(?:workflow@|v)?\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?")
_NOTHING: Mapping[str, str] = MappingProxyType({})
_FORMS = "Give sdk:FOLDER with a built bundle, sdk:4.8.9, or sdk:own."


@dataclass(frozen=True, slots=True)
class RealName:
    """A real engine by name. ``named`` is ``own``, a version, or the path of a bundle; ``switches`` are in order."""

    named: str
    switches: Mapping[str, str] = field(default_factory=lambda: _NOTHING)

    @property
    def is_own(self) -> bool:
        """Whether the log, or the cell of a storm, tells the version."""
        return self.named == OWN

    @property
    def is_version(self) -> bool:
        """Whether it is a published version, and not the path of a bundle."""
        return _VERSION.fullmatch(self.named) is not None

    @property
    def is_path(self) -> bool:
        """Whether it is the path of a bundle."""
        return not self.is_own and not self.is_version

    def within(self, environment: Mapping[str, str]) -> RealName:
        """The same under the switches of an environment that reach a replay; its own switches win."""
        return replace(self, switches=_in_order({**replayed(environment), **self.switches}))

    def __str__(self) -> str:
        """The name as it is typed."""
        listed = ",".join(f"{name}={value}" for name, value in self.switches.items())
        return f"{SCHEME}{self.named}" + (f"[{listed}]" if listed else "")


def parse_real(text: str, base: Path | None = None) -> RealName:
    """The parts of a name. A relative path is taken from ``base``, else from the working folder, and made absolute.

    Whether there is such a bundle is not looked at. UsageError for what is no such name, and for a switch that no
    replay can have.
    """
    named, switches = text.removeprefix(SCHEME).strip(), _NOTHING
    found = _BRACKETS.fullmatch(named)
    if found is not None and not _path(named, base).exists():  # a folder may be called so
        named, switches = found["named"].strip(), _switches(found["switches"])
    if not named:
        raise UsageError(f"{SCHEME} names no bundle", remedy=_FORMS)
    name = RealName(named, switches)
    return replace(name, named=str(_path(named, base))) if name.is_path else name


def replayed(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The switches in an environment that a replay can have; whatever else is in it is passed over."""
    return _in_order({
        name: value
        for name, value in environment.items()
        if isinstance(name, str)
        and isinstance(value, str)
        and _SWITCH.fullmatch(name) is not None
        and _VALUE.fullmatch(value) is not None
        and _PLACES.fullmatch(name) is None
        and name not in SET_BY_REPLAY
    })  # fmt: skip


def _switches(text: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for part in _COMMA.split(text):
        name, equals, value = (one.strip() for one in part.partition("="))
        if not equals or _SWITCH.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            raise UsageError(
                f"{part.strip()[:80]!r} is no switch of the SDK",
                remedy="Write NAME=value pairs in the brackets: sdk:own[WORKFLOW_LOG_ORDER_DRAWS=0].",
            )
        if name in found:
            raise UsageError(f"the brackets set {name} twice", remedy="Set it once.")
        if name in SET_BY_REPLAY or _PLACES.fullmatch(name) is not None:
            raise UsageError(f"{name} is set by the replay itself", remedy="Leave it out.")
        found[name] = value
    return _in_order(found)


def _in_order(switches: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(sorted(switches.items())))


def _path(named: str, base: Path | None) -> Path:
    path = Path(named).expanduser()
    return (path if base is None else base / path).absolute()
