"""The lifecycle rules of one step, wait, hook or attribute."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from stormctl.history import Capture, EventLog, Facet, kinds
from stormctl.sweeps.finding import Fault, Item, Unjudged
from stormctl.sweeps.witness import label, ranked

KINDS = (
    "repeat-step-created",
    "repeat-wait-created",
    "repeat-hook-created",
    "late-step-created",
    "late-wait-created",
    "late-hook-created",
    "moved-wait",
    "repeat-attr-set",
    "never-created",
    "use-before-create",
    "end-before-create",
    "repeat-start",
    "abandoned-start",
    "attempt-back",
    "end-without-start",
    "retry-without-start",
    "second-step-end",
    "opposite-step-end",
    "start-after-step-end",
    "retry-after-step-end",
    "second-wait-completed",
    "early-wait",
    "resume-at",
    "second-disposed",
    "receive-after-disposed",
    "conflict-and-created",
    "repeat-resume",
    "token-overlap",
)

#: How early a wait may complete before it is worth a word: two machines' clocks differ by less.
CLOCK_SKEW_MS = 1000

_CREATES = {
    kinds.STEP: kinds.STEP_CREATED,
    kinds.WAIT: kinds.WAIT_CREATED,
    kinds.HOOK: kinds.HOOK_CREATED,
    kinds.ATTR: kinds.ATTR_SET,
}


class Entity:
    """The events of one correlation id, by type, as 0-based indices in log order."""

    def __init__(self, log: EventLog, correlation_id: str, at: tuple[int, ...]) -> None:
        self.log = log
        self.id = correlation_id
        self.at = at
        self.kind = log[at[0]].kind
        self.by_type: Mapping[str, tuple[int, ...]] = _by_type(log, at)

    def of(self, *types: str) -> tuple[int, ...]:
        """The indices of events of these types, in log order."""
        if len(types) == 1:
            return self.by_type.get(types[0], ())
        return tuple(index for index in self.at if self.log[index].type in types)

    @property
    def made(self) -> tuple[int, ...]:
        """Its creates."""
        return self.of(_CREATES[self.kind])

    @property
    def begun(self) -> tuple[int, ...]:
        """What began it: its creates, or the conflict that a store records in place of one when a token is taken."""
        return self.made or self.of(kinds.HOOK_CONFLICT)

    @property
    def who(self) -> str:
        """How a message names it: ``step:settleStep (rank 7)``."""
        named = next((self.log[index] for index in self.at if self.log[index].name), self.log[self.at[0]])
        return f"{label(named)} ({ranked(self.log, named)})"

    def fault(self, kind: str, what: str, *at: int, witness: tuple[int, ...] | None = None) -> Fault:
        """A fault of this entity."""
        return Fault(kind, f"{self.who} {what}", at, self.id, witness)


def faults(capture: Capture) -> Iterator[Item]:
    """Every fault of every entity, in the order in which entities first appear, and then those of tokens."""
    grouped: dict[str, list[int]] = defaultdict(list)
    stories: dict[str, str] = {}
    for index, event in enumerate(capture.log.events):
        correlation_id, event_type = event.correlation_id, event.type
        if correlation_id is not None and event_type in _RULED:
            grouped[correlation_id].append(index)
            stories[correlation_id] = _NEXT.get((stories.get(correlation_id, ""), event_type), _OTHER)
    for correlation_id, at in grouped.items():
        story = stories[correlation_id]
        if story != _OTHER and (story != _WOKEN or _on_time(capture.log, *at)):
            continue
        entity = Entity(capture.log, correlation_id, tuple(at))
        if entity.begun:
            yield from _creation(entity)
            yield from _RULES.get(entity.kind, _no_rules)(entity, capture)
        elif not capture.evidence.truncated:
            yield entity.fault("never-created", "was never created", entity.at[0])
    yield from _tokens(capture.log)
    yield from _shared_resumes(capture.log)


def _creation(entity: Entity) -> Iterator[Item]:
    made = entity.made
    if entity.kind == kinds.ATTR:
        if len(made) > 1:
            yield entity.fault("repeat-attr-set", f"was set {len(made)} times", *made[1:], witness=made)
        return
    used, begun = entity.at[0], entity.begun[0]
    if used < begun:
        ended = _ended_before(entity, begun)
        if ended is None:
            yield entity.fault("use-before-create", "is used before its create", used, witness=(used, begun))
            if entity.of(kinds.WAIT_COMPLETED)[:1] == (used,):
                # close together in time, two writers side by side and two events that were exchanged look the same
                yield Unjudged(f"which came first, the create of {entity.who} or its end")
        else:
            yield entity.fault("end-before-create", "ends before its create", ended, witness=(ended, begun))
    if len(made) > 1 and not (entity.kind == kinds.HOOK and _separated(entity, made)):
        yield from _again(entity, made)


def _again(entity: Entity, made: tuple[int, ...]) -> Iterator[Fault]:
    """Creates behind the first. Whoever replays the log takes one that comes while the entity is open for the first
    again; nobody is left to take one that comes after its end. A wait's must agree on its resume time, which engines
    compare."""
    ended = next(iter(entity.of(*kinds.STEP_TERMINAL, kinds.WAIT_COMPLETED, kinds.HOOK_DISPOSED)), None)
    late = [index for index in made[1:] if ended is not None and index > ended]
    early = [index for index in made[1:] if ended is None or index < ended]
    due = [at for index in made if (at := entity.log[index].resume_at) is not None]
    apart = max(due, default=0) - min(due, default=0)
    if apart:
        what = f"was created {len(made)} times, for resume times up to {apart} ms apart"
        yield entity.fault("moved-wait", what, *made[1:], witness=made)
    if early:
        kind = f"repeat-{entity.kind}-created"
        yield entity.fault(kind, f"was created {len(early) + 1} times", *early, witness=(made[0], *early))
    if late and ended is not None:
        what = "was created again after its end"
        yield entity.fault(f"late-{entity.kind}-created", what, *late, witness=(made[0], ended, *late))


def _ended_before(entity: Entity, begun: int) -> int | None:
    """The end of an entity that lies before its create and cannot be a writer's that saw the entity a moment before its
    event: a step's or hook's, which takes another event in between, and a wait's that is apart in time as well."""
    for index in entity.of(*kinds.STEP_TERMINAL, kinds.HOOK_DISPOSED, kinds.WAIT_COMPLETED):
        if index > begun:
            return None
        end, create = entity.log[index].created_at, entity.log[begun].created_at
        if entity.kind != kinds.WAIT or (end is not None and create is not None and end - create > CLOCK_SKEW_MS):
            return index
    return None


def _separated(entity: Entity, made: tuple[int, ...]) -> bool:
    """Whether each further create of a hook follows its disposal: the same hook, made anew."""
    disposed = entity.of(kinds.HOOK_DISPOSED)
    return all(bisect(disposed, first) < bisect(disposed, second) for first, second in pairwise(made))


def _step(entity: Entity, capture: Capture) -> Iterator[Fault]:
    starts = entity.of(kinds.STEP_STARTED)
    retries = entity.of(kinds.STEP_RETRYING)
    ends = entity.of(*kinds.STEP_TERMINAL)
    early = [index for index in starts if not ends or index < ends[0]]
    if len(early) > len(retries) + 1:
        alive = capture.evidence.live or capture.evidence.truncated or not capture.log.ended
        kind = "repeat-start" if ends or retries or alive else "abandoned-start"
        after = "" if kind == "repeat-start" else " and never ended"
        yield entity.fault(kind, f"was started {len(early)} times{after}", *early[1:], witness=(*early, *retries))
    if len(retries) > len(starts) and Facet.STARTS not in capture.evidence.missing:
        yield entity.fault("retry-without-start", "was retried more often than started", retries[-1])
    yield from _attempts(entity, starts)
    if not ends:
        return
    end = ends[0]
    if not any(start < end for start in starts) and Facet.STARTS not in capture.evidence.missing:
        yield entity.fault("end-without-start", "ended without a start", end)
    for again in ends[1:]:
        same = entity.log[again].type == entity.log[end].type
        kind = "second-step-end" if same else "opposite-step-end"
        what = f"ended as {entity.log[end].type} and again as {entity.log[again].type}"
        yield entity.fault(kind, what, again, witness=(end, again))
    for late in (index for index in starts if index > end):
        yield entity.fault("start-after-step-end", "was started after its end", late, witness=(end, late))
    for late in (index for index in retries if index > end):
        yield entity.fault("retry-after-step-end", "was retried after its end", late, witness=(end, late))


def _attempts(entity: Entity, starts: tuple[int, ...]) -> Iterator[Fault]:
    last: tuple[int, int] | None = None
    for index in starts:
        attempt = entity.log[index].data.get("attempt")
        if not isinstance(attempt, int):
            continue
        if last is not None and attempt < last[0]:
            what = f"starts attempt {attempt} after attempt {last[0]}"
            yield entity.fault("attempt-back", what, index, witness=(last[1], index))
        last = (attempt, index)


def _wait(entity: Entity, capture: Capture) -> Iterator[Fault]:
    ends = entity.of(kinds.WAIT_COMPLETED)
    if len(ends) > 1:
        what = f"completed {len(ends)} times"
        yield entity.fault("second-wait-completed", what, *ends[1:], witness=ends)
    made = entity.made
    if not made or not ends:
        return
    create, end = entity.log[made[0]], entity.log[ends[0]]
    due = create.resume_at
    if due is None:
        return
    if end.resume_at is not None and end.resume_at != due:
        what = f"completed for a resume time that differs by {end.resume_at - due} ms from that of its create"
        yield entity.fault("resume-at", what, ends[0], witness=(*made, ends[0]))
    if end.created_at is not None and end.created_at < due - CLOCK_SKEW_MS:
        what = f"completed {due - end.created_at} ms before its resume time"
        yield entity.fault("early-wait", what, ends[0], witness=(made[0], ends[0]))


def _hook(entity: Entity, capture: Capture) -> Iterator[Fault]:
    made, gone = entity.made, entity.of(kinds.HOOK_DISPOSED)
    conflicts = entity.of(kinds.HOOK_CONFLICT)
    if made and conflicts:
        what = "was created and also refused for its token"
        yield entity.fault("conflict-and-created", what, conflicts[0], witness=(made[0], conflicts[0]))
    if len(gone) > max(1, len(made)):
        what = f"was disposed of {len(gone)} times"
        yield entity.fault("second-disposed", what, *gone[1:], witness=gone)
    for index in entity.of(kinds.HOOK_RECEIVED):
        given_up = bisect(gone, index)
        if given_up and bisect(made, gone[given_up - 1]) == bisect(made, index):
            what = "received after it was disposed of"
            yield entity.fault("receive-after-disposed", what, index, witness=(gone[given_up - 1], index))
    yield from _resumes(entity)


def _resumes(entity: Entity) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for index in entity.of(kinds.HOOK_RECEIVED):
        resume = entity.log[index].data.get("resumeId")
        if not isinstance(resume, str):
            continue
        before = first.setdefault(resume, index)
        if before != index:
            yield entity.fault("repeat-resume", f"received resume {resume} twice", index, witness=(before, index))


def _shared_resumes(log: EventLog) -> Iterator[Fault]:
    """One resume of the run that two hooks received."""
    first: dict[str, int] = {}
    for index, event in enumerate(log):
        if event.type != kinds.HOOK_RECEIVED:
            continue
        resume = event.data.get("resumeId")
        if not isinstance(resume, str):
            continue
        before = first.setdefault(resume, index)
        if log[before].correlation_id != event.correlation_id:
            what = f"{ranked(log, event)} and {ranked(log, log[before])} received one resume, {resume}"
            yield Fault("repeat-resume", what, (index,), event.correlation_id or "", (before, index))


def _tokens(log: EventLog) -> Iterator[Fault]:
    """Two live hooks of the run that own one token."""
    owners: dict[str, int] = {}
    held: dict[str, set[str]] = defaultdict(set)
    for index, event in enumerate(log):
        if event.type == kinds.HOOK_CREATED and event.token is not None:
            owner = owners.get(event.token)
            if owner is not None and log[owner].correlation_id != event.correlation_id:
                what = f"{ranked(log, event)} and {ranked(log, log[owner])} own one hook token at the same time"
                yield Fault("token-overlap", what, (index,), event.correlation_id or "", (owner, index))
            owners[event.token] = index
            held[event.correlation_id or ""].add(event.token)
        elif event.type == kinds.HOOK_DISPOSED:
            for token in held.pop(event.correlation_id or "", ()):
                owner = owners.get(token)
                if owner is not None and log[owner].correlation_id == event.correlation_id:
                    del owners[token]


def _by_type(log: EventLog, at: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = defaultdict(list)
    for index in at:
        found[log[index].type].append(index)
    return {event_type: tuple(indices) for event_type, indices in found.items()}


def _no_rules(entity: Entity, capture: Capture) -> Iterator[Fault]:
    yield from ()


def _on_time(log: EventLog, made: int, ended: int) -> bool:
    """Whether a wait that was created and completed once has nothing to be said of its times."""
    due, end = log.events[made].resume_at, log.events[ended]
    if due is None:
        return True
    return end.resume_at in (None, due) and (end.created_at is None or end.created_at >= due - CLOCK_SKEW_MS)


#: The lives that nearly every step, wait and hook has, event by event. One that follows them breaks no rule of its own,
#: and need not be looked at more closely, but for the times of a wait.
_OTHER, _WOKEN = "other", "woken"
_NEXT: Mapping[tuple[str, str], str] = {
    ("", kinds.STEP_CREATED): "created",
    ("created", kinds.STEP_STARTED): "started",
    ("started", kinds.STEP_COMPLETED): "ended",
    ("started", kinds.STEP_FAILED): "ended",
    ("", kinds.WAIT_CREATED): "waiting",
    ("waiting", kinds.WAIT_COMPLETED): _WOKEN,
    ("", kinds.HOOK_CREATED): "hooked",
    ("hooked", kinds.HOOK_RECEIVED): "received",
    ("hooked", kinds.HOOK_DISPOSED): "disposed",
    ("received", kinds.HOOK_DISPOSED): "disposed",
    ("", kinds.ATTR_SET): "set",
}

_RULES: Mapping[str, Callable[[Entity, Capture], Iterator[Fault]]] = {
    kinds.STEP: _step,
    kinds.WAIT: _wait,
    kinds.HOOK: _hook,
}
_RULED = kinds.STEP_TYPES | kinds.WAIT_TYPES | kinds.HOOK_TYPES | {kinds.ATTR_SET}
