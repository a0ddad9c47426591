"""The races of a body, as a log tells them: who may win, whose result came first, and which way the run went.

A scenario declares its races once, as a function over a :class:`Trail`. It says which two draws race and by which
create a winner shows; it replays nothing. What a log cannot tell (a racer that cannot be told from others, a branch
that has not gone on) is left out of the race, and a race of which nothing is told is not yielded.

The place of a result is the place in the log at which the body could first act on it. A result that lies before the
body began to race counts all the same; where the shape of the body then decides, and not the log, the declaration
leaves the racer that cannot win out of ``ends``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stormctl.history import EventLog, digest_value, kinds

_ENDS = frozenset({*kinds.STEP_TERMINAL, kinds.WAIT_COMPLETED})


class Untold(Exception):
    """Something that a race hangs on was not captured; the text names it."""


@dataclass(frozen=True, slots=True)
class Race:
    """One race. Racers are named by what the run does when they win.

    ``branch`` are the numbers that name the race to a person. ``ends`` is the index of each racer's result, for those
    that have one and may win by it. ``written`` are the creates that show a winner: the racer and the index.
    """

    branch: tuple[int, ...]
    ends: Mapping[str, int]
    written: tuple[tuple[str, int], ...]
    name: str = ""

    @property
    def first(self) -> str | None:
        """The racer whose result is first in the log; None while there is none."""
        return min(self.ends, key=lambda racer: self.ends[racer], default=None)

    @property
    def contradictions(self) -> tuple[tuple[str, int], ...]:
        """The creates that go on with a racer which was not first."""
        first = self.first
        return tuple((racer, index) for racer, index in self.written if racer != first)


@dataclass(frozen=True, slots=True)
class Drawn:
    """One entity of a log. ``end`` is the index of its first result; ``received`` are those of a hook's payloads."""

    id: str
    rank: int | None
    created: int
    end: int | None
    received: tuple[int, ...] = ()


class Trail:
    """A log, asked by what a body calls: steps by name and arguments, hooks by token, waits by rank."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.run_id = log.run_id
        self._steps: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._hooks: dict[str, str] = {}
        self._ranks: dict[tuple[str, int], str] = {}
        self._created: dict[str, int] = {}
        self._end: dict[str, int] = {}
        self._received: dict[str, list[int]] = defaultdict(list)
        for index, event in enumerate(log):
            entity = event.correlation_id
            if entity is None:
                continue
            if event.type in kinds.CREATES and entity not in self._created:
                self._note(index, entity)
            elif event.type in _ENDS:
                self._end.setdefault(entity, index)
            elif event.type == kinds.HOOK_RECEIVED:
                self._received[entity].append(index)

    def _note(self, index: int, entity: str) -> None:
        event = self.log[index]
        self._created[entity] = index
        rank = self.log.rank(event)
        if rank is not None:
            self._ranks.setdefault((event.kind, rank), entity)
        if event.kind == kinds.STEP and event.payload is not None:
            self._steps[event.short_name or "", event.payload.digest].append(entity)
        elif event.kind == kinds.HOOK and event.token is not None:
            self._hooks.setdefault(event.token, entity)

    def steps(self, name: str, *arguments: Any) -> list[Drawn]:
        """Every step that was created with this name and these arguments, told by the digest of its input."""
        # JavaScript has one kind of number: what is 2500.0 here may have been written as 2500 there
        digests = dict.fromkeys((digest_value(list(arguments)), digest_value(_as_written(list(arguments)))))
        return [self._drawn(entity) for digest in digests for entity in self._steps.get((name, digest), ())]

    def step(self, name: str, *arguments: Any) -> Drawn | None:
        """The first of :meth:`steps`."""
        return next(iter(self.steps(name, *arguments)), None)

    def hook(self, token: str) -> Drawn | None:
        """The first hook with this token."""
        entity = self._hooks.get(token)
        return None if entity is None else self._drawn(entity)

    def at(self, kind: str, rank: int | None) -> Drawn | None:
        """The entity of that kind and rank."""
        entity = None if rank is None else self._ranks.get((kind, rank))
        return None if entity is None else self._drawn(entity)

    def after(self, drawn: Drawn, steps: int = 1) -> Drawn | None:
        """The wait that was drawn so many draws after an entity."""
        return None if drawn.rank is None else self.at(kinds.WAIT, drawn.rank + steps)

    def waits(self, low: int, high: int | None) -> list[Drawn]:
        """The waits whose ranks lie above ``low`` and below ``high``."""
        return [
            self._drawn(entity)
            for (kind, rank), entity in self._ranks.items()
            if kind == kinds.WAIT and rank > low and (high is None or rank < high)
        ]

    def payload(self, index: int) -> Any:
        """The payload of an event; Untold when it was not captured."""
        payload = self.log[index].payload
        try:
            if payload is not None:
                return payload.load()
        except Exception:  # sealed, encrypted or damaged: all the same here
            pass
        raise Untold(f"the payload of the {self.log[index].type} at {self.log.place(index)}")

    def _drawn(self, entity: str) -> Drawn:
        created = self._created[entity]
        received = tuple(self._received.get(entity, ()))
        return Drawn(entity, self.log.rank(self.log[created]), created, self._end.get(entity), received)


def ends(**racers: int | None) -> dict[str, int]:
    """The results of those racers that have one."""
    return {racer: index for racer, index in racers.items() if index is not None}


def written(**shown: list[Drawn]) -> tuple[tuple[str, int], ...]:
    """The creates that show a winner, in the order of the log."""
    found = [(racer, drawn.created) for racer, made in shown.items() for drawn in made]
    return tuple(sorted(found, key=lambda one: one[1]))


def _as_written(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _as_written(inner) for key, inner in value.items()}
    return [_as_written(inner) for inner in value] if isinstance(value, list) else value


Races = Callable[[Any, Trail], Iterator[Race]]
"""A workload's declaration: ``races(input, trail)``. Untold stops it where the log does not tell enough."""
