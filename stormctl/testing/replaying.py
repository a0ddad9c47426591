"""Replays of logs in tests: one pass, one per prefix, or the whole of many logs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, overload

from stormctl.engine.door import Outcome, Pass, Perturbation
from stormctl.engine.generations import NEWEST
from stormctl.history import Capture, EventLog, Evidence, kinds
from stormctl.readers import Unreadable, open_captures
from stormctl.testing.builder import LogBuilder
from stormctl.workloads.base import Workload
from stormctl.workloads.user import of_body
from stormctl.workloads.user_engine import UserEngine, user_engine
from stormctl.workloads.user_input import recorded_input

Body = Callable[[Any, Any], Coroutine[Any, Any, Any]]
#: what can be replayed: an ``async def body(wf, input)``, or a whole workload
Replayed = Body | Workload
#: what it can be replayed against
Log = LogBuilder | EventLog | Capture
#: today's engine: the newest generation that is known
TODAY = NEWEST.name


def replay(
    body: Replayed,
    log: Log,
    *,
    input: Any = None,
    generation: str = TODAY,
    hidden: Iterable[int] = (),
    perturbation: Perturbation | None = None,
) -> Pass:
    """One replay of the whole log: what the body drew, what it waits for, and how it ended.

    ``input`` is what the run recorded unless it is given, as a mapping or as what the body takes. ``generation`` is a
    name that ``stormctl engines`` lists; the newest by default. ``hidden`` are 0-based indices of events to leave out.

        built = LogBuilder().run_created().run_started().step(0, "reserveStock")
        assert replay(order, built).draws[1].label == "wait"
    """
    whole = log_of(log)
    engine = _engine(body, log, input, generation)
    (made,) = engine.passes(whole, [len(whole)], hidden=frozenset(hidden), perturbation=perturbation)
    return made


def replay_prefixes(
    body: Replayed,
    log: Log,
    *,
    prefixes: Iterable[int] | None = None,
    input: Any = None,
    generation: str = TODAY,
    hidden: Iterable[int] = (),
    perturbation: Perturbation | None = None,
) -> list[Pass]:
    """A replay for each prefix length, in the order given; by default for 1, 2, ... up to the whole log.

    Each is what a delivery that had read so far would have made of the run:

        tables = [made.draws for made in replay_prefixes(order, built, generation="nets")]
    """
    whole = log_of(log)
    lengths = range(1, len(whole) + 1) if prefixes is None else prefixes
    engine = _engine(body, log, input, generation)
    return list(engine.passes(whole, lengths, hidden=frozenset(hidden), perturbation=perturbation))


class ReplayFailure(AssertionError):
    """A log that a body does not replay. It is a value to look at and an error to raise; ``str`` says all of it.

    ``reason`` is a stable word: those of ``Divergence``, ``raised``, ``unfinished`` (the run returned and the body does
    not), or ``unreadable``. ``position`` is the event's, None where no event is to blame; ``expected`` is what the log
    holds there and ``actual`` what the body did.
    """

    def __init__(
        self,
        body: str,
        source: str,
        generation: str,
        reason: str,
        *,
        expected: str,
        actual: str,
        position: int | None = None,
        text: str = "",
    ) -> None:
        self.body = body
        self.source = source
        self.generation = generation
        self.reason = reason
        self.expected = expected
        self.actual = actual
        self.position = position
        self.text = text
        super().__init__(self._whole())

    def _whole(self) -> str:
        rows = [("position", self.position), ("expected", self.expected), ("actual", self.actual), ("", self.text)]
        lines = [f"  {word:<8}  {value}".rstrip() for word, value in rows if value not in (None, "")]
        return "\n".join([f"{self.body} does not replay {self.source} under {self.generation}", *lines])

    def __reduce__(self) -> tuple[Any, ...]:
        return _failure, (
            (self.body, self.source, self.generation, self.reason),
            {"expected": self.expected, "actual": self.actual, "position": self.position, "text": self.text},
        )


def _failure(parts: tuple[str, ...], fields: Mapping[str, Any]) -> ReplayFailure:
    return ReplayFailure(*parts, **fields)


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What became of one log. ``replay`` is None where there was none; ``failure`` is None when it replays."""

    source: str
    run_id: str
    generation: str
    replay: Pass | None
    failure: ReplayFailure | None = None


class ReplayResults(tuple[ReplayResult, ...]):
    """The results of many logs, in order. It is a tuple, and knows its failures."""

    __slots__ = ()

    @property
    def failures(self) -> dict[str, ReplayFailure]:
        """The failures by the log's source."""
        return {one.source: one.failure for one in self if one.failure is not None}

    def raise_failures(self) -> None:
        """Raise the failure when there is one, and a group of them when there are several."""
        failures = list(self.failures.values())
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise ExceptionGroup(f"{len(failures)} of {len(self)} logs do not replay", failures)


def replay_many(
    body: Replayed,
    logs: Iterable[Log | Path | str],
    *,
    input: Any = None,
    generation: str = TODAY,
    fail_fast: bool = False,
) -> ReplayResults:
    """Replay each log as a whole and say of each whether the body still follows it, as a check before a deployment.

    ``logs`` are built ones, captures, or paths of log files and folders of them. With ``fail_fast`` the first failure
    is raised; otherwise all are collected, the unreadable among them.

        replay_many(order, ["captured/production"]).raise_failures()
    """
    results = []
    for source, log in _opened(logs):
        result = _judge(body, source, log, input, generation)
        if fail_fast and result.failure is not None:
            raise result.failure
        results.append(result)
    return ReplayResults(results)


def judged(body: Replayed, log: Log, *, input: Any = None, generation: str = TODAY) -> ReplayResult:
    """The result of one log."""
    return _judge(body, _source(log), log, input, generation)


def workload_of(body: Replayed) -> Workload:
    """The body as a workload. UsageError when it is neither a workload nor an async function of two arguments."""
    if isinstance(body, Workload):
        return body
    return of_body(body, getattr(body, "__name__", "body"))


def _judge(body: Replayed, source: str, log: Log | Unreadable, input: Any, generation: str) -> ReplayResult:
    name = workload_of(body).name
    if isinstance(log, Unreadable):
        failure = ReplayFailure(
            name, source, generation, "unreadable", expected="an event log", actual=log.error, text=log.remedy
        )
        return ReplayResult(source, "", generation, None, failure)
    made = replay(body, log, input=input, generation=generation)
    whole = log_of(log)
    return ReplayResult(source, whole.run_id, generation, made, _failing(name, source, generation, whole, made))


def _failing(name: str, source: str, generation: str, log: EventLog, made: Pass) -> ReplayFailure | None:
    """Why a pass over a whole log is no replay of it, or None. A run that failed may well raise, and a run that failed
    for its log may well complete today."""
    end = next((index for index, event in enumerate(log) if event.is_terminal), None)
    ended = None if end is None else log[end].type
    if made.divergence is not None:
        lost = made.divergence
        actual = "the body asks for nothing that takes it" if lost.actual == "nothing" else lost.actual
        return ReplayFailure(
            name, source, generation, lost.reason,
            expected=f"{lost.event_type} of {lost.expected}", actual=actual, position=log.place(lost.index),
            text=lost.text,
        )  # fmt: skip
    position = None if end is None else log.place(end)
    if made.outcome is Outcome.FAILED and ended != kinds.RUN_FAILED:
        expected = f"the run goes on to {ended}" if ended else "the run goes on"
        return ReplayFailure(
            name, source, generation, "raised", expected=expected, actual=made.error or "it raised", position=position
        )
    if made.outcome is Outcome.SUSPENDED and ended == kinds.RUN_COMPLETED:
        waits = ", ".join(f"{one.kind}:{one.name}" if one.name else one.kind for one in made.pending[:5])
        actual = f"the body waits for {waits}" if waits else "the body does not return"
        return ReplayFailure(
            name, source, generation, "unfinished", expected=kinds.RUN_COMPLETED, actual=actual, position=position
        )
    return None


def _engine(body: Replayed, log: Log, input: Any, generation: str) -> UserEngine:
    workload = workload_of(body)
    given = _recorded(log) if input is None else input
    if workload.bare or isinstance(given, Mapping) or given is None:
        wanted = given if workload.bare else given or {}
        if not is_dataclass(wanted):
            wanted = workload.parse_input(wanted)
    else:
        wanted = given
    return user_engine(generation, workload, wanted)


def _recorded(log: Log) -> Any:
    if isinstance(log, LogBuilder):
        log = log.capture()
    return recorded_input(log if isinstance(log, Capture) else Capture("", log, Evidence("built")))


def log_of(log: Log) -> EventLog:
    """The events of whatever a test has."""
    if isinstance(log, LogBuilder):
        return log.log()
    return log.log if isinstance(log, Capture) else log


def _source(log: Log) -> str:
    return log.source if isinstance(log, Capture) else log_of(log).run_id


@overload
def _opened(logs: Iterable[Log]) -> Iterator[tuple[str, Log]]: ...
@overload
def _opened(logs: Iterable[Log | Path | str]) -> Iterator[tuple[str, Log | Unreadable]]: ...
def _opened(logs: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for one in logs:
        if isinstance(one, (str, Path)):
            for opened in open_captures([one]):
                yield opened.source, opened
        else:
            yield _source(one), one
