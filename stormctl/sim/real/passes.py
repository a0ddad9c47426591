"""Replays that are made once: a pass hangs on the prefix, the body and the generation alone, and simulated runs replay
the same prefixes again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from stormctl.engine.door import CALM, Engine, Pass, Perturbation, Session
from stormctl.engine.engines import engine_for
from stormctl.history import Event, EventLog, digest_value
from stormctl.workloads.base import Workload

MOST_KEPT = 20_000
_Key = tuple[Any, ...]


class Passes:
    """The passes of one model, over all its runs. ``made`` and ``kept`` count how often one was made and found."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[_Key, Pass] = OrderedDict()
        self._engines: dict[str, Engine] = {}
        self.made = 0
        self.kept = 0

    def engine(self, generation: str, code: Workload, input: Any, told: Callable[[EventLog, Pass], None]) -> Engine:
        """An engine that tells of every pass, and makes only those that nobody has made."""
        if generation not in self._engines:
            self._engines[generation] = engine_for(generation, code, input)
        return _Remembering(self, self._engines[generation], told)

    def pass_of(self, engine: Engine, log: EventLog, length: int, perturbation: Perturbation | None) -> Pass:
        """The pass over a prefix."""
        key = (engine.name, perturbation or CALM, *(_key(event) for event in log[:length]))
        found = self._kept.get(key)
        if found is None:
            self.made += 1
            found = next(iter(engine.passes(log, (length,), perturbation=perturbation)))
            self._kept[key] = found
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        else:
            self.kept += 1
            self._kept.move_to_end(key)
        return found


class _Remembering:
    """One engine with a memory, for one run."""

    def __init__(self, passes: Passes, engine: Engine, told: Callable[[EventLog, Pass], None]) -> None:
        self._passes = passes
        self._engine = engine
        self._told = told
        self.name = engine.name
        self.workload = engine.workload

    def passes(
        self,
        log: EventLog,
        prefixes: Iterable[int],
        *,
        hidden: frozenset[int] = frozenset(),
        perturbation: Perturbation | None = None,
    ) -> Iterator[Pass]:
        """One pass per prefix length."""
        for length in prefixes:
            if hidden:
                yield from self._engine.passes(log, (length,), hidden=hidden, perturbation=perturbation)
                continue
            found = self._passes.pass_of(self._engine, log, length, perturbation)
            self._told(log, found)
            yield found

    def open(self, log: EventLog) -> Session:
        """As of the engine."""
        return self._engine.open(log)


def _key(event: Event) -> _Key:
    """What of an event a replay can see."""
    payload = event.payload
    return (
        event.type,
        event.event_id,
        event.position,
        event.correlation_id,
        event.created_at,
        event.name,
        event.token,
        event.resume_at,
        None if payload is None else payload.digest,
        digest_value(dict(event.data)) if event.data else None,
    )
