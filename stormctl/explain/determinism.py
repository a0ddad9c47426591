"""Classes of engine determinism: the log is sound, and two passes of one engine over it disagree."""

from __future__ import annotations

from stormctl.explain.conflicts import Clash
from stormctl.explain.facts import Facts
from stormctl.explain.taxonomy import CorruptionClass, Group, Match, Signature, Weight
from stormctl.history import kinds
from stormctl.sweeps.witness import line


def _at(facts: Facts) -> tuple[int, ...]:
    """The event that flips a rank, and the guilty write."""
    found: list[int] = []
    if facts.flip is not None:
        found.append(facts.log.length_of_prefix(facts.flip.after) - 1)
    if facts.guilty is not None:
        found.append(facts.guilty.create.index)
    return tuple(found)


def _why(facts: Facts, closing: str) -> tuple[str, ...]:
    texts: list[str] = []
    flip = facts.flip
    if flip is not None:
        texts.append(
            f"under {facts.writer}, rank {flip.rank} is {flip.was} up to prefix {flip.before} and {flip.now} from "
            f"{flip.after} on; under {closing} it is not"
        )
    if facts.guilty is not None and facts.would.get(closing) is False:
        create = facts.guilty.create
        texts.append(f"from the same view {closing} does not ask for {create.label} under rank {create.rank}")
    return tuple(texts)


def _closed_by(*names: str, flip: bool = False) -> Signature:
    """Holds where the fault ends with one of these generations."""

    def holds(facts: Facts) -> Match | None:
        closing = facts.closing
        if closing not in names or (flip and facts.flip is None):
            return None
        return Match(_at(facts), _why(facts, closing))

    return holds


def _net_order(facts: Facts) -> Match | None:
    found = _closed_by("dispenser", flip=True)(facts)
    if found is None or facts.flip is None:
        return found
    end = facts.log.length_of_prefix(facts.flip.after)
    payloads = sum(1 for event in facts.log[:end] if event.type == kinds.HOOK_RECEIVED)
    text = f"{payloads} payloads of hooks precede the flip"
    return Match(found.at, (*found.because, text), found.weight if payloads else Weight.FITS)


def _cold_or_warm(facts: Facts) -> Match | None:
    shaken = facts.shaken
    if shaken is None:
        return None
    text = f"{shaken.engine} asks for {shaken.create.label} under rank {shaken.create.rank} from the prefix "
    text += f"{facts.log.name_of_prefix(shaken.length)} only when {shaken.how}"
    sure = facts.hidden is None or (facts.declared == shaken.engine and not facts.was_late(facts.hidden))
    return Match((shaken.create.index,), (text,), Weight.SHOWN if sure else Weight.FITS)


def _other_generation(facts: Facts) -> Match | None:
    """The run failed, one generation explains its log to the end, and today's cannot follow it."""
    best, newest = facts.best, facts.found.get(facts.newest)
    if best is None or newest is None or facts.guilty is not None or not facts.failed:
        return None
    if best.divergence is not None or best.unexplained or newest.divergence is None:
        return None
    text = (
        f"{best.engine} explains every create, and {newest.engine} stops at "
        f"{facts.log.place(newest.divergence.index)}: {newest.divergence.text}"
    )
    return Match((newest.divergence.index,), (text,))


def _two_kinds(facts: Facts) -> Match | None:
    found = facts.findings("one-body", "two-kinds")
    if not found:
        return None
    weight = Weight.FITS if facts.closing is None else Weight.SHOWN
    return Match(facts.indices(found[:1]), tuple(f"one-body: {one.message}" for one in found[:2]), weight)


def _clean_but_failed(*diverging: str, clean: str) -> Signature:
    """Holds where the run failed although its log is sound, and these generations diverge over it where ``clean`` does
    not."""

    def holds(facts: Facts) -> Match | None:
        if facts.guilty is not None or not facts.failed:
            return None
        sound = facts.found.get(clean)
        if sound is None or sound.divergence is not None or sound.unexplained:
            return None
        if facts.declared is not None and facts.declared not in diverging:
            return None  # the engine that ran it reads it
        for name in diverging if facts.declared is None else (facts.declared,):
            found = facts.found.get(name)
            if found is not None and found.divergence is not None:
                sure = facts.declared == name
                text = f"{name} diverges over the log ({found.divergence.text}); {clean} reads it to its end"
                told = (
                    f"the capture says that {name} ran it" if sure else "the capture does not say which engine ran it"
                )
                return Match((found.divergence.index,), (text, told), Weight.SHOWN if sure else Weight.FITS)
        return None

    return holds


def _kept_session(facts: Facts) -> Match | None:
    """A session of some generation draws otherwise than every cold replay, and today's does not."""
    if facts.kept.get(facts.newest) is not None:
        return None
    for name, kept in facts.kept.items():
        if kept is None or facts.declared not in (None, name):
            continue
        told = "nothing" if kept.drew is None else kept.drew
        text = (
            f"a session of {name} that was kept from prefix {facts.log.name_of_prefix(kept.length)} on draws "
            f"{told} under "
            f"rank {kept.rank}, and a cold replay of the same log {kept.cold or 'nothing'}"
        )
        return Match((kept.length,), (text,), Weight.SHOWN if facts.declared == name else Weight.FITS)
    return None


def _early_suspension(facts: Facts) -> Match | None:
    """The run stands still, and some generation's last pass left results undelivered that the newest delivers."""
    if facts.log.ended or facts.capture.evidence.truncated:
        return None
    newest = facts.found.get(facts.newest)
    if newest is None or newest.divergence is not None or not newest.wants:
        return None
    for name in facts.order:
        found = facts.found.get(name)
        if found is None or name == facts.newest or not found.undelivered or found.divergence is not None:
            continue
        if facts.declared not in (None, name) or len(found.wants) != len(newest.wants):
            continue
        if len(found.wants[-1]) < len(newest.wants[-1]):
            text = (
                f"over the whole log {name} suspends with {found.undelivered} results undelivered and asks for "
                f"{len(found.wants[-1])} creates, where {facts.newest} asks for {len(newest.wants[-1])}"
            )
            weight = Weight.SHOWN if facts.declared == name else Weight.FITS
            return Match((len(facts.log) - 1,), (text,), weight)
    return None


def _starvation(facts: Facts) -> Match | None:
    """A stream of payloads behind the last decision of a run that never ended."""
    log = facts.log
    if log.ended or facts.capture.evidence.truncated:
        return None
    last = max((index for index, event in enumerate(log) if event.type in kinds.CREATES), default=-1)
    after = [index for index in range(last + 1, len(log)) if log[index].type == kinds.HOOK_RECEIVED]
    settled = [i for i in range(last + 1, len(log)) if log[i].type in (kinds.STEP_COMPLETED, kinds.WAIT_COMPLETED)]
    if len(after) < 16 or not settled:
        return None
    text = f"{len(after)} payloads and {len(settled)} results follow {line(log, last)}, and nothing was asked for since"
    return Match((last, after[-1]), (text,), Weight.FITS)


def _lifecycle(*words: str) -> Signature:
    def holds(facts: Facts) -> Match | None:
        found = facts.findings("lifecycle", *words)
        if not found:
            return None
        return Match(facts.indices(found[:2]), tuple(f"lifecycle: {one.message}" for one in found[:2]))

    return holds


def _residue(facts: Facts) -> Match | None:
    """A flip that the newest generation still makes."""
    if facts.flip is None or facts.flips_under.get(facts.newest) is not True:
        return None
    rank = facts.conflict(Clash.RANK)
    text = f"rank {facts.flip.rank} still flips at prefix {facts.flip.after} under {facts.newest}"
    return Match(_at(facts), (text,), Weight.FITS if rank is None else Weight.SHOWN)


def _own_flip(facts: Facts) -> Match | None:
    """A flip of the log's own generation, where no other can follow the log so far."""
    if facts.flip is None or facts.closing is not None or facts.flips_under.get(facts.newest) is True:
        return None
    flip = facts.flip
    text = f"under {facts.writer}, rank {flip.rank} is {flip.was} up to prefix {flip.before} and {flip.now} from "
    text += f"{flip.after} on; no later generation can follow the log so far"
    return Match(_at(facts), (text,))


_E = Group.ENGINE
_SAME_CACHE = "the worker's version, and whether the passes of one delivery shared a cache of payloads"
_WHICH = "the version of the engine on every worker that served the run"

CLASSES: tuple[CorruptionClass, ...] = (
    CorruptionClass(
        "net-order-flip",
        "net-order flip",
        _E,
        "every barrier has a net of its own; with several segments parked behind a hook that nobody reads, "
        "the order in "
        "which the nets fire depends on the length of the log, so that readers of two lengths give one rank "
        "to two calls",
        _net_order,
        (3554,),
        "one dispenser retires barriers lowest first, whatever the length of the log",
        _WHICH,
    ),
    CorruptionClass(
        "blocked-branch",
        "blocked branch",
        _E,
        "a branch that a shorter log leaves blocked draws nothing, and its sibling takes the rank which a longer log "
        "gives to it",
        _closed_by("turnstile"),
        (3700,),
        "a result reaches the workflow only after what every earlier one set off has drawn all its ids (#3700; #3179 "
        "proposed ids by call site instead)",
        _WHICH,
    ),
    CorruptionClass(
        "buffered-claim",
        "buffered hook claim",
        _E,
        "a step skips every entry that does not resolve on its own, and so overtakes the end of a wait that is parked "
        "behind a payload which was not read yet",
        _closed_by("nets"),
        (3406, 3196),
        "a step skips unread payloads only, and nothing that is parked behind them",
        _WHICH,
    ),
    CorruptionClass(
        "idle-collapse",
        "idle collapse",
        _E,
        "a pass counts as idle while a delivery is parked, and one idle turn retires every barrier at once",
        _closed_by("parked-idle"),
        (3198,),
        "a pass is not idle while a delivery is parked that resolves on its own",
        _WHICH,
    ),
    CorruptionClass(
        "cold-or-warm",
        "cold or warm cache",
        _E,
        "steps keep to no order, and a result that lies in the cache of the delivery overtakes what the log "
        "holds before "
        "it: two passes over one prefix draw differently",
        _cold_or_warm,
        (3139,),
        "step outcomes keep to the order of the log as well",
        _SAME_CACHE,
    ),
    CorruptionClass(
        "step-order",
        "steps in no order",
        _E,
        "hooks and waits keep to the order of the log and steps do not, so that which branch draws first is decided by "
        "how long reading takes",
        _closed_by("transitive"),
        (3139,),
        "step outcomes keep to the order of the log, asked for as the event is consumed",
        _SAME_CACHE,
    ),
    CorruptionClass(
        "hop-race",
        "wake order by hops",
        _E,
        "which of two results reaches its branch first is decided by microtask hops and not by the log",
        _closed_by("opposite"),
        (2171, 2185),
        "payloads of hooks and ends of waits reach the workflow in the order of the log",
        _WHICH,
    ),
    CorruptionClass(
        "late-claim",
        "late claim",
        _E,
        "a payload was read after its barrier had been retired, so that a later result overtook it",
        _closed_by("rearm"),
        (3879,),
        "reading such a payload installs the barrier again",
        _WHICH,
    ),
    CorruptionClass(
        "hook-registration",
        "order of a hook's registration",
        _E,
        "the news that a hook was registered reaches the workflow outside the order of the log",
        _closed_by("registered"),
        (4215,),
        "a registration is delivered through a barrier of its own",
        _WHICH,
    ),
    CorruptionClass(
        "own-flip",
        "a flip of the generation that wrote the log",
        _E,
        "the binding of a rank depends on the length of the log under the generation that wrote it",
        _own_flip,
        (),
        "by a later generation; which one this log cannot tell",
        "another log of the same workflow with the same flip, from an earlier point of the run",
    ),
    CorruptionClass(
        "engine-residue",
        "a flip that no generation closes",
        _E,
        "the binding of a rank depends on the length of the log under every generation that is known",
        _residue,
        (),
        "nothing that is known",
        "the workflow's own code: whether it reads a clock, a random number or a variable that outlives the pass",
    ),
    CorruptionClass(
        "two-kinds",
        "one rank bound to a step and to a wait",
        _E,
        "two replays that saw different prefixes gave one draw to calls of two kinds: what a blocked branch leaves",
        _two_kinds,
        (3700,),
        "a result reaches the workflow only after what every earlier one set off has drawn all its ids",
        "a workload to replay with (--workload): whether the flip is there, and under which generation",
    ),
    CorruptionClass(
        "other-generation",
        "read by another generation than wrote it",
        _E,
        "the log is sound for the generation that wrote it, and a later one delivers its results in another order: the "
        "engine was changed while the run was alive",
        _other_generation,
        (),
        "a run stays with the release that it was started on",
        _WHICH,
    ),
    CorruptionClass(
        "buffered-claim-on-replay",
        "buffered hook claim, on replay",
        _E,
        "the log is sound, and an engine that lets a step overtake a parked wait cannot follow it",
        _clean_but_failed("transitive", "parked-idle", clean="nets"),
        (3406, 3196),
        "a step skips unread payloads only, and nothing that is parked behind them",
        _WHICH,
    ),
    CorruptionClass(
        "late-claim-on-replay",
        "late claim, on replay",
        _E,
        "the log is sound, and a payload read after its barrier was retired is overtaken as it is replayed",
        _clean_but_failed("turnstile", clean="rearm"),
        (3879,),
        "reading such a payload installs the barrier again",
        _WHICH,
    ),
    CorruptionClass(
        "late-claim-in-session",
        "late claim in a session that was kept",
        _E,
        "the log is sound and every cold replay reads it; a workflow that was kept alive between passes "
        "reads a payload "
        "whose barrier is gone, and a later result overtakes it (#4017)",
        _kept_session,
        (3879,),
        "reading such a payload installs the barrier again",
        _WHICH,
    ),
    CorruptionClass(
        "net-order-on-replay",
        "barriers in no fixed order, on replay",
        _E,
        "the log is sound, and an engine whose barriers retire in an order of their own cannot follow it",
        _clean_but_failed("nets", "opposite", "queue", clean="dispenser"),
        (3554,),
        "one dispenser retires barriers lowest first",
        _WHICH,
    ),
    CorruptionClass(
        "early-suspension",
        "early suspension",
        _E,
        "a pass suspended while results were still on their way to the workflow: it asked for too little, and nothing "
        "wakes the run again",
        _early_suspension,
        (3198, 3554),
        "a pass suspends only when no barrier is registered",
        "the deliveries of the run after its last event: whether any came",
    ),
    CorruptionClass(
        "starvation",
        "starvation by an unread hook",
        _E,
        "payloads kept coming faster than a pass became idle, and the pass never suspended",
        _starvation,
        (3198, 3554),
        "retirement is bounded, and does not wait for the traffic to end",
        "the duration of the last delivery",
    ),
    CorruptionClass(
        "reused-resume-time",
        "a wait's end with another resume time",
        _E,
        "the resume time was computed again on replay and compared with the recorded one, or leaked from a clock that "
        "depends on what was consumed",
        _lifecycle("resume-at"),
        (2177, 2186, 2206, 4213),
        "the recorded time is taken over; the clock moves with deliveries",
        "the clock of each worker",
    ),
    CorruptionClass(
        "inline-hang",
        "a step lost with its delivery",
        _E,
        "a step that ran inside its delivery was started again after a time-out and never ended",
        _lifecycle("abandoned-start"),
        (),
        "open upstream (#4199)",
        "the deliveries that owned the step: when each was killed",
    ),
)
