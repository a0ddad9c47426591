"""One of our generations for a body that is not ours: whatever the body does, a pass ends, and an error names it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from typing import Any

from stormctl.engine.door import Pass, Perturbation
from stormctl.engine.generations import generation
from stormctl.engine.replay import ReplayEngine, RetainedSession
from stormctl.engine.watchdog import Endless, watched
from stormctl.errors import StormctlError
from stormctl.history import Event, EventLog
from stormctl.workloads.base import Workload


class BodyStuck(StormctlError):
    """A body that could not be replayed to an end: it looped for ever, or tried to end the process."""


class UserEngine(ReplayEngine):
    """The engine of a user's workload. What the body prints goes to standard error, out of the report."""

    def __init__(self, name: str, workload: Workload, input: Any) -> None:
        super().__init__(watched(workload.body), input, generation(name), workload=workload.name)

    def passes(
        self,
        log: EventLog,
        prefixes: Iterable[int],
        *,
        hidden: frozenset[int] = frozenset(),
        perturbation: Perturbation | None = None,
    ) -> Iterator[Pass]:
        """As those of the generation; BodyStuck names the body and the prefix where there is no pass."""
        asked = list(prefixes)
        made = super().passes(log, asked, hidden=hidden, perturbation=perturbation)
        with closing(made):  # type: ignore[type-var]
            for length in asked:
                with _ending(self.workload, log.name_of_prefix(length)):
                    replay = next(made)
                yield replay

    def open(self, log: EventLog, perturbation: Perturbation | None = None) -> UserSession:
        """As that of the generation; BodyStuck also when it is extended."""
        with _ending(self.workload, log.name_of_prefix(len(log))):
            return UserSession(super().open(log, perturbation), self.workload, log.name_of_prefix(len(log)))


class UserSession(RetainedSession):
    """A retained session over a user's body."""

    def __init__(self, inner: RetainedSession, workload: str | None, prefix: int) -> None:
        self._inner = inner
        self._workload = workload
        self._prefix = prefix
        self.first = inner.first

    def extend(self, events: Sequence[Event]) -> Pass:
        """Offer a strict extension of the log that was read so far."""
        last = events[-1].position if events else None
        self._prefix = last if last is not None else self._prefix + len(events)
        with _ending(self._workload, self._prefix):
            return self._inner.extend(events)

    def close(self) -> None:
        """End the workflow; the session cannot be extended afterwards."""
        self._inner.close()


@contextmanager
def _ending(workload: str | None, prefix: int) -> Iterator[None]:
    """Run a pass of a body: its prints are redirected, and what would end the process is BodyStuck."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        where = f"replayed from prefix {prefix}"
        if isinstance(error, Endless):
            raise BodyStuck(
                f"{workload} {error}, {where}",
                remedy="Look for a loop in it that awaits nothing, or nothing that still has to come.",
            ) from None
        raise BodyStuck(
            f"{workload} raised {type(error).__name__}, {where}", remedy="A workflow returns, or raises an Exception."
        ) from None


def user_engine(name: str, workload: Workload, input: Any) -> UserEngine:
    """The engine that replays a user's workload with an input under the named generation."""
    return UserEngine(name, workload, input)
