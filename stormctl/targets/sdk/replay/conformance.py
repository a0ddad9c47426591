"""Which of our generations is a published version: both replay every prefix of its logs, and must ask for the same.

Compared is what a delivery would do after the pass: the entities it would create (id, kind, name, and the input where
both tell it), the divergence (event, what it belongs to, what the workflow did instead), the value returned. In which
class a step would be created, and what a pass parked, is no part of it: the real engine does not tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stormctl.engine.door import Divergence, Engine, Outcome, Pass, Pending
from stormctl.errors import StormctlError
from stormctl.history import Capture, EventLog, digest_value
from stormctl.sweeps.witness import clean
from stormctl.targets.sdk.printed import core_version, judged
from stormctl.targets.sdk.replay.engine import begins

#: entities that a sentence names
MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The first prefix at which two engines part. ``real`` and ``ours`` are what either did there and the other not."""

    prefix: int
    real: str
    ours: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """One generation of ours beside the real engine on one log.

    ``version`` is that of the SDK which wrote the log, ``judge`` the real engine's name. ``prefixes`` is how many both
    replayed and ``agreed`` at how many of them they asked for the same. ``why`` says what kept a comparison from being
    made; then both are 0.
    """

    run_id: str
    source: str
    version: str | None
    judge: str
    generation: str
    prefixes: int
    agreed: int
    first: Disagreement | None = None
    why: str | None = None


def compare(capture: Capture, real: Engine, ours: Sequence[Engine]) -> Iterator[Agreement]:
    """Every generation beside the real engine, on every prefix from the run's start up to the event that ended it."""
    log = judged(capture.log)
    lengths = range(begins(log), len(log) + 1)
    version = core_version(capture.log)
    try:
        wanted = [_Done.of(log, one) for one in real.passes(log, lengths)]
    except StormctlError as error:
        for engine in ours:
            lacks = f"{error}. {error.remedy}"
            yield Agreement(log.run_id, capture.source, version, real.name, engine.name, 0, 0, why=lacks)
        return
    for engine in ours:
        agreed = 0
        first: Disagreement | None = None
        why: str | None = None
        try:
            for one, there in zip(engine.passes(log, lengths), wanted, strict=True):
                here = _Done.of(log, one)
                if here.as_(there):
                    agreed += 1
                elif first is None:
                    first = Disagreement(log.name_of_prefix(one.prefix), *_apart(there, here))
        except StormctlError as error:
            why = f"{error}. {error.remedy}"
        except Exception as error:
            # a log may hold what no workflow of ours expects; the other generations must still be compared
            why = f"the replay failed: {type(error).__name__}: {clean(str(error))}"
        total = 0 if why is not None else len(lengths)
        yield Agreement(
            log.run_id,
            capture.source,
            version,
            real.name,
            engine.name,
            total,
            0 if why is not None else agreed,
            first,
            why,
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One generation beside one version over all logs. ``first`` are the first disagreements by source, ``left_out``
    what could not be compared."""

    version: str
    judge: str
    generation: str
    logs: int
    prefixes: int
    agreed: int
    first: tuple[tuple[str, Disagreement], ...]
    left_out: tuple[tuple[str, str], ...]

    @property
    def share(self) -> float | None:
        """The share of prefixes at which both ask for the same; None when nothing was compared."""
        return self.agreed / self.prefixes if self.prefixes else None


def table(found: Iterable[Agreement]) -> tuple[Row, ...]:
    """One row per version and generation; within a version the generation that agrees best comes first."""
    groups: dict[tuple[str, str, str], list[Agreement]] = {}
    for one in found:
        groups.setdefault((one.version or "unknown", one.judge, one.generation), []).append(one)
    rows = [
        Row(
            version,
            judge,
            generation,
            logs=sum(one.why is None for one in group),
            prefixes=sum(one.prefixes for one in group),
            agreed=sum(one.agreed for one in group),
            first=tuple((one.source, one.first) for one in group if one.first is not None),
            left_out=tuple((one.source, one.why) for one in group if one.why is not None),
        )
        for (version, judge, generation), group in groups.items()
    ]
    versions = list(dict.fromkeys((row.version, row.judge) for row in rows))
    return tuple(sorted(rows, key=lambda row: (versions.index((row.version, row.judge)), -(row.share or 0.0))))


@dataclass(frozen=True, slots=True)
class _Done:
    """What one pass would do, comparable: each entity with the digest of its input, None where it is not told."""

    creates: dict[tuple[str, str, str | None], str | None]
    lost: tuple[str | None, str, str] | None
    value: str | None
    failed: bool

    @classmethod
    def of(cls, log: EventLog, replay: Pass) -> _Done:
        held = {event.correlation_id for event in log.events[: replay.prefix]}
        lost = replay.divergence
        wants = () if lost is not None else replay.pending
        return cls(
            creates=dict(_create(item) for item in wants if item.create and item.correlation_id not in held),
            lost=None if lost is None else _lost(lost),
            value=digest_value(replay.value) if replay.outcome is Outcome.COMPLETED else None,
            failed=replay.outcome is Outcome.FAILED,
        )

    def as_(self, other: _Done) -> bool:
        """Whether both do the same."""
        if (self.lost, self.value, self.failed) != (other.lost, other.value, other.failed):
            return False
        if self.creates.keys() != other.creates.keys():
            return False
        return all(one is None or other.creates[key] in (None, one) for key, one in self.creates.items())


def _create(item: Pending) -> tuple[tuple[str, str, str | None], str | None]:
    told = item.kind == "step" and item.arguments is not None
    return (item.correlation_id, item.kind, item.name), digest_value(item.arguments) if told else None


def _lost(lost: Divergence) -> tuple[str | None, str, str]:
    """The divergence without how each engine words it: for an event that nobody asked for, the event is all."""
    if lost.reason in ("unconsumed", "item", "stranded"):
        return lost.event_id, "", ""
    return lost.event_id, lost.expected, lost.actual


def _apart(real: _Done, ours: _Done) -> tuple[str, str]:
    return _told(real, ours), _told(ours, real)


def _told(one: _Done, other: _Done) -> str:
    """What one did that the other did not, in words."""
    if one.lost is not None:
        event, expected, actual = one.lost
        return f"diverges at {event}" + (f" ({expected}, where the workflow is at {actual})" if expected else "")
    if one.failed:
        return "fails"
    more = [key for key in one.creates if key not in other.creates]
    if more:
        named = ", ".join(f"{name or kind} {found}" for found, kind, name in more[:MOST_NAMED])
        return f"asks for {named}" + (f" and {len(more) - MOST_NAMED} more" if len(more) > MOST_NAMED else "")
    if one.value is not None:
        return f"returns a value with digest {one.value}"
    changed = [key for key, digest in one.creates.items() if digest not in (None, other.creates.get(key))]
    if changed:
        found, kind, name = changed[0]
        return f"calls {name or kind} {found} with digest {one.creates[changed[0]]}"
    return "asks for nothing else"


__all__ = ["Agreement", "Disagreement", "Row", "compare", "table"]
