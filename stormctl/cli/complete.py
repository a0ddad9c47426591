"""What the shell offers after Tab: the names that a command takes, each with a few words of what it is.

Nothing is loaded before somebody presses Tab, and nothing that goes wrong there reaches a terminal: a completion that
cannot be made offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps

Offered = list[tuple[str, str]]
Completer = Callable[[str], Offered]

#: a help text longer than this would wrap in most shells
_MOST_HELP = 70
#: the answers of a plan that are names; the other keys take a number or a word of the user's
_VALUES = ("scenario", "world", "condition", "generation")


def _quiet(made: Callable[[str], Iterable[tuple[str, str]]]) -> Completer:
    """Those offers that begin with what is typed; none when they cannot be made."""

    @wraps(made)
    def offered(incomplete: str) -> Offered:
        try:
            return [(name, _short(text)) for name, text in made(incomplete) if name.startswith(incomplete)]
        except Exception:
            return []  # a traceback in the middle of a prompt helps nobody

    return offered


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST_HELP else text[: _MOST_HELP - 3] + "..."


def _generations() -> Iterator[tuple[str, str]]:
    from stormctl.engine.generations import GENERATIONS

    for one in GENERATIONS.values():
        yield one.name, one.fixed


def _sweeps() -> Iterator[tuple[str, str]]:
    from stormctl.sweeps.listing import listed

    for one in listed():
        yield one.name, one.question


@_quiet
def generations(incomplete: str) -> Iterable[tuple[str, str]]:
    """The generations of the replay scheduler."""
    return _generations()


@_quiet
def engines(incomplete: str) -> Iterable[tuple[str, str]]:
    """What ``--engine`` takes: a generation, all of them, the real engine in its own or an installed version."""
    yield from _generations()
    yield "all", "every generation"
    yield "sdk:own", "the real engine, in the version that the log names"
    if incomplete.startswith("sdk:"):
        from stormctl.targets.sdk.projects import installed

        for one in installed():
            yield f"sdk:{one.version}", "the real engine, installed"


@_quiet
def sweeps(incomplete: str) -> Iterable[tuple[str, str]]:
    """The sweeps."""
    return _sweeps()


@_quiet
def sweep_list(incomplete: str) -> Iterable[tuple[str, str]]:
    """Sweeps behind commas: the last one is completed, those before it are not offered again."""
    from stormctl.sweeps.registered import in_order

    before, comma, _ = incomplete.rpartition(",")
    taken = before.split(",")
    for one in in_order():
        if one.name not in taken:
            yield f"{before}{comma}{one.name}", one.question


@_quiet
def conditions(incomplete: str) -> Iterable[tuple[str, str]]:
    """The storage conditions."""
    from stormctl.worlds import CONDITIONS

    for name, one in CONDITIONS.items():
        yield name, one.closes


@_quiet
def scenarios(incomplete: str) -> Iterable[tuple[str, str]]:
    """The scenarios that wrote a log, and the user's own files, which the shell completes."""
    from stormctl.workloads.registry import WORKLOADS

    for name in WORKLOADS:
        yield name, ""


@_quiet
def profiles(incomplete: str) -> Iterable[tuple[str, str]]:
    """The profiles of severities."""
    from stormctl.sweeps.profiles import AUTO, PROFILES

    yield AUTO, "by the release that the log names"
    for name in PROFILES:
        yield name, ""


@_quiet
def readers(incomplete: str) -> Iterable[tuple[str, str]]:
    """The readers of logs."""
    from stormctl.cli.options import READER_NAMES

    for name in READER_NAMES:
        yield name, ""


@_quiet
def maps(incomplete: str) -> Iterable[tuple[str, str]]:
    """The maps of other engines' tables."""
    from stormctl.readers.tables.shipped import shipped_maps

    for name in shipped_maps():
        yield name, ""


@_quiet
def overrides(incomplete: str) -> Iterable[tuple[str, str]]:
    """``key=`` for each key of a plan; behind ``scenario=``, ``world=``, ``condition=`` and ``generation=`` their
    names, also behind a comma."""
    key, sign, typed = incomplete.partition("=")
    if not sign:
        from stormctl.storm.plan import KEYS

        for name in KEYS:
            if name not in ("schema", "matrix"):
                yield f"{name}=", ""
        return
    if key not in _VALUES:
        return
    before, comma, _ = typed.rpartition(",")
    taken = before.split(",")
    for name, text in _named(key):
        if name not in taken:
            yield f"{key}={before}{comma}{name}", text


def _named(key: str) -> Iterable[tuple[str, str]]:
    if key == "world":
        return (("local", "a folder of files"), ("postgres", "a database"), ("memory", "one process"))
    return {"scenario": scenarios, "condition": conditions, "generation": generations}[key]("")


@_quiet
def drain_presets(incomplete: str) -> Iterable[tuple[str, str]]:
    """The loops of a drain."""
    from stormctl.drain.knobs import SUMMARIES

    return SUMMARIES.items()


@_quiet
def drain_scenarios(incomplete: str) -> Iterable[tuple[str, str]]:
    """The known failures of a drain."""
    from stormctl.drain.scenarios import SCENARIOS

    return ((one.id, one.title) for one in SCENARIOS)


@_quiet
def drain_situations(incomplete: str) -> Iterable[tuple[str, str]]:
    """The situations that a search of a drain plays."""
    from stormctl.drain.explored import SITUATIONS

    return ((name, "") for name in SITUATIONS)
