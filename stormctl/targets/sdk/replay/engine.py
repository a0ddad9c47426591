"""The engine of a built bundle behind the door of our own: ``--engine sdk:...``.

Sweeps, reconstruction, explanations and pictures take it as they take a generation of ours. It needs no workload: the
application's own code is in the bundle. Before the first pass is believed, the first creates of the log are asked of
the bundle: one that does not bind them is not the application that wrote the log, or was not given what it had. A log
of another version of the protocol is given to the bundle under the ids that its own engine would have drawn.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from stormctl.engine.door import CALM, Outcome, Pass, Perturbation, Session
from stormctl.errors import StormctlError
from stormctl.history import Capture, Event, EventLog, ids, kinds
from stormctl.storm.real_name import SCHEME
from stormctl.sweeps.witness import clean
from stormctl.targets.sdk.replay import pools
from stormctl.targets.sdk.replay.answer import Answer
from stormctl.targets.sdk.replay.bundle import Bundle
from stormctl.targets.sdk.replay.record import RunRecord, record_of
from stormctl.targets.sdk.replay.translate import Translator
from stormctl.targets.sdk.replay.transplant import Transplant, spoken_by

#: single passes that are kept, because an explanation asks for some of them again and again
MOST_KEPT = 128
_NOTHING: Mapping[str, str] = {}


class BundleMismatch(StormctlError):
    """The bundle does not ask for what the log begins with."""


class NotOffered(StormctlError):
    """Something that our generations can and a bundle's engine cannot."""


class SdkEngine:
    """The engine in a bundle, for the logs of one run.

    ``name`` is what it was asked for by. ``jobs`` is how many worker processes may share the prefixes of a log, and
    ``environment`` are switches of the SDK that they run with. Its passes raise StormctlErrors: what the capture lacks
    for a replay, a bundle that is not the log's, a worker that had to be ended.

    Example::

        engine = SdkEngine(find_bundle(Path("app/.well-known/workflow/v1")), capture)
        (last,) = engine.passes(capture.log, [len(capture.log)])
    """

    workload: str | None = None

    def __init__(
        self,
        bundle: Bundle,
        capture: Capture,
        *,
        name: str | None = None,
        jobs: int = 1,
        environment: Mapping[str, str] = _NOTHING,
    ) -> None:
        self.name = name or f"{SCHEME}{bundle.label}"
        self.jobs = jobs
        self.environment = dict(environment)
        self.bundle = bundle
        self._capture = capture
        self._log: EventLog | None = None
        self._kept: OrderedDict[tuple[int, frozenset[int]], Pass] = OrderedDict()

    def passes(
        self,
        log: EventLog,
        prefixes: Iterable[int],
        *,
        hidden: frozenset[int] = frozenset(),
        perturbation: Perturbation | None = None,
    ) -> Iterator[Pass]:
        """One pass per prefix length, in the order asked. NotOffered for a perturbation: its timing is its own."""
        if perturbation is not None and perturbation != CALM:
            raise NotOffered(
                "the timing inside the real engine cannot be varied from outside",
                remedy="Leave --perturb to the generations of `stormctl engines`.",
            )
        lengths = list(prefixes)
        if log is not self._log:
            self._take(log)
        if len(lengths) == 1:
            yield self._once(log, lengths[0], hidden)
            return
        with closing(self._replayed(log, lengths, hidden)) as replayed:
            yield from replayed

    def hangs_on(self, log: EventLog) -> str:
        """What its passes over a log hang on, in one line: the record that a worker is given, the bundle, the switches.
        MissingEvidence as for a pass; no worker is started."""
        switches = ",".join(f"{name}={value}" for name, value in sorted(self.environment.items()))
        record = record_of(replace(self._capture, log=log))
        return f"record {record.digest} bundle {self.bundle.digest} {self.bundle.version} [{switches}]"

    def open(self, log: EventLog) -> Session:
        """NotOffered: each pass of the worker is a cold one."""
        raise NotOffered("a replay by a bundle keeps no session", remedy="Use a generation of `stormctl engines`.")

    def _take(self, log: EventLog) -> None:
        """Make ready for a log, and see that the bundle is the one that wrote it."""
        self._record: RunRecord = record_of(replace(self._capture, log=log))
        self._first = begins(log)
        self._become(log, None)
        self._log = log
        try:
            spec = spoken_by(self.bundle)
            if spec is not None and spec != self._record.spec:
                self._become(log, self._transplant(log, spec))
            self._believe(log)
        except BaseException:
            self._log = None
            raise

    def _become(self, log: EventLog, transplant: Transplant | None) -> None:
        """Give the log to the workers as it is, or under the ids of another version."""
        self._translator = Translator(log, transplant)
        self._given = self._record if transplant is None else transplant.record(self._record)
        self._kept.clear()

    def _transplant(self, log: EventLog, spec: int) -> Transplant:
        """How the bundle would have called the ids of the log: from what it asks for first."""
        if self._first > len(log):
            return Transplant(spec)
        self._become(log, Transplant(spec))
        answers = self._answers([self._first])
        with closing(answers):
            drawn = [ordinal for one in next(answers).asked if (ordinal := _ordinal(one.correlation_id)) is not None]
        return Transplant(spec, min(drawn) - log.base if drawn else 0)

    def _once(self, log: EventLog, length: int, hidden: frozenset[int]) -> Pass:
        key = (length, hidden)
        if key not in self._kept:
            with closing(self._replayed(log, [length], hidden)) as replayed:
                self._kept[key] = next(replayed)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return self._kept[key]

    def _replayed(self, log: EventLog, lengths: Sequence[int], hidden: frozenset[int]) -> Generator[Pass]:
        """The passes; those over prefixes in which the run has not begun cost nothing."""
        begun = [length for length in lengths if length >= self._first]
        with closing(self._answers(begun, hidden)) as answers:
            for length in lengths:
                if length < self._first:
                    yield self._translator.blank(length)
                else:
                    yield self._translator.pass_of(next(answers))

    def _answers(self, lengths: Sequence[int], hidden: frozenset[int] = frozenset()) -> Generator[Answer]:
        return pools.passes(
            self.bundle, self._given, lengths, hidden=hidden, jobs=self.jobs, environment=self.environment
        )

    def _believe(self, log: EventLog) -> None:
        """Replay up to the log's first create: what the bundle asks for there must be what the log begins with."""
        first = next((index for index, event in enumerate(log) if _is_create(log, event)), None)
        if first is None:
            return  # nothing to compare: whatever it asks for is as good as anything
        asked = self._once(log, max(first, self._first), frozenset())
        held = {event.correlation_id: event for event in log if _is_create(log, event)}
        shared = [(item, held[item.correlation_id]) for item in asked.pending if item.correlation_id in held]
        if asked.outcome is Outcome.FAILED:
            raise BundleMismatch(
                f"the bundle fails at the start of the run: {clean(asked.error or 'it failed')[:300]}",
                remedy="Give the bundle of the deployment that wrote the log.",
            )
        if not shared:
            raise BundleMismatch(
                "none of the ids that the bundle asks for at the start is in the log",
                remedy="Give the bundle of the deployment that wrote the log, and the run's own startedAt and "
                "workflowName: ids are seeded by them.",
            )
        for item, event in shared:
            if event.kind != item.kind or (item.kind == kinds.STEP and event.short_name not in (None, item.name)):
                has = f"{event.kind}:{event.short_name}" if event.kind == kinds.STEP else event.kind
                wants = f"{item.kind}:{item.name}" if item.name else item.kind
                raise BundleMismatch(
                    f"the log begins with {clean(has)} where the bundle asks for {clean(wants)}",
                    remedy="Give the bundle of the deployment that wrote the log: this one has other workflow code.",
                )


def begins(log: EventLog) -> int:
    """The length of the shortest prefix in which the run has been created and started; of the log, if it never was."""
    missing = {kinds.RUN_CREATED, kinds.RUN_STARTED}
    for index, event in enumerate(log):
        missing.discard(event.type)
        if not missing:
            return index + 1
    return len(log) + 1


def _ordinal(correlation_id: str | None) -> int | None:
    """The ordinal in an id of the run's sequence."""
    body = ids.split(correlation_id or "")[1]
    return ids.ordinal(body) if ids.is_body(body) and not ids.is_count(body) else None


def _is_create(log: EventLog, event: Event) -> bool:
    return event.type in (*kinds.CREATES, kinds.STEP_STARTED) and log.rank(event) is not None


__all__ = ["SCHEME", "BundleMismatch", "NotOffered", "SdkEngine", "begins"]
