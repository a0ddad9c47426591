"""One replay of each prefix for all tests that ask the same of the same log.

Replaying every prefix of the production log takes seconds, and a command, a reconstruction and a sweep each ask for all
of them. A pass is a pure function of what is in its key here, so that whoever asks second is given the first one's
passes, in this test process and, through a file, in those beside it:

    def test_something(replayed_once, ...):
        with replayed_once():
            ran = stormctl("explain", log, ...)

What is hidden or perturbed is replayed anew, and so is a body that its name does not tell from others: a user's own, or
one made in a function. Tests of the replay itself do not use this.
"""

from __future__ import annotations

import fcntl
import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from stormctl.engine.door import CALM, Draw, Pass, Perturbation
from stormctl.engine.replay import ReplayEngine
from stormctl.history import EventLog

Once = Callable[[], AbstractContextManager[None]]
Passes = dict[int, Pass]
_replay = ReplayEngine.passes


class Replayed:
    """The passes that were asked for so far: in memory, and in a folder that all processes of a test run share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Passes] = {}

    @staticmethod
    def key(engine: ReplayEngine, log: EventLog) -> str:
        """Everything that a calm pass over a prefix depends on, but the prefix."""
        body = engine._body
        asked = (engine.generation, engine.workload, body.__module__, body.__qualname__, engine._input)
        told = repr((asked, log.run_id, log.base, list(log)))
        return hashlib.sha256(told.encode()).hexdigest()

    def passes(self, engine: ReplayEngine, log: EventLog, lengths: list[int]) -> Iterator[Pass]:
        key = self.key(engine, log)
        if not self._known.get(key, {}).keys() >= set(lengths):
            with (self._folder / f"{key}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._known[key] = self._filled(self._folder / f"{key}.passes", engine, log, lengths)
        yield from map(self._known[key].__getitem__, lengths)

    def _filled(self, file: Path, engine: ReplayEngine, log: EventLog, lengths: list[int]) -> Passes:
        known: Passes = pickle.loads(file.read_bytes()) if file.exists() else {}
        missing = sorted(set(lengths) - known.keys())
        last: tuple[Draw, ...] = ()
        for one in _replay(engine, log, missing):
            # most draws are those of the pass before: kept once, all prefixes take little memory
            last = (*(a if a == b else b for a, b in zip(last, one.draws, strict=False)), *one.draws[len(last) :])
            known[one.prefix] = replace(one, draws=last)
        if missing:
            file.write_bytes(pickle.dumps(known))
        return known

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let all calm passes over whole logs come from here."""

        def passes(
            engine: ReplayEngine,
            log: EventLog,
            prefixes: Iterable[int],
            *,
            hidden: frozenset[int] = frozenset(),
            perturbation: Perturbation | None = None,
        ) -> Iterator[Pass]:
            own = type(engine) is not ReplayEngine or "<locals>" in engine._body.__qualname__
            if own or hidden or perturbation not in (None, CALM):
                return _replay(engine, log, prefixes, hidden=hidden, perturbation=perturbation)
            return self.passes(engine, log, list(prefixes))

        with patch.object(ReplayEngine, "passes", passes):
            yield


@pytest.fixture(scope="session")
def replayed_once(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Once:
    """A context in which whole logs are replayed once for all tests: ``with replayed_once(): ...``."""
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):  # one of several processes: their folders lie side by side
        folder = folder.parent
    folder /= "replayed"
    folder.mkdir(exist_ok=True)
    return Replayed(folder).used
