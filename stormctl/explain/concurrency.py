"""Classes of concurrent writers: the store admitted two decisions that could not both hold."""

from __future__ import annotations

from collections import defaultdict

from stormctl.explain.conflicts import Clash
from stormctl.explain.facts import Facts
from stormctl.explain.taxonomy import CorruptionClass, Group, Match, Signature, Weight
from stormctl.history import AuditRecord, kinds
from stormctl.sweeps.witness import line


def _one_snapshot(facts: Facts) -> Match | None:
    """Two writers that named the same snapshot and bound a rank, or a call, apart."""
    for conflict in facts.conflicts:
        if conflict.clash is Clash.INPUT or len(conflict.creates) < 2:
            continue
        one, other = (facts.known.get(create.index) for create in conflict.creates[:2])
        if one is None or other is None or one.snapshot is None:
            continue
        if one.snapshot == other.snapshot and one.writer != other.writer:
            text = f"{one.writer} and {other.writer} had both read {one.snapshot} events, and bound {conflict.clash}"
            return Match(tuple(create.index for create in conflict.creates[:2]), (text,))
    return None


def _refused(facts: Facts) -> list[AuditRecord]:
    return [
        record
        for record in facts.capture.audit or ()
        if not record.admitted and record.reason.startswith(("precondition", "stale"))
    ]


def _re_post(facts: Facts) -> Match | None:
    """The guilty create was refused for what its writer lacked, and then admitted from the same writer."""
    if facts.guilty is None or facts.guilty.known is None:
        return None
    create, writer = facts.guilty.create, facts.guilty.known.writer
    for record in _refused(facts):
        if record.writer == writer and record.correlation_id == create.correlation_id:
            text = f"{writer} was refused for {create.label} under rank {create.rank} and posted it again"
            return Match((create.index,), (text,))
    return None


def _sibling(facts: Facts) -> Match | None:
    """The guilty create's writer was refused another write of the same view before this one landed."""
    if facts.guilty is None or facts.guilty.known is None:
        return None
    create, known = facts.guilty.create, facts.guilty.known
    for record in _refused(facts):
        if record.writer == known.writer and record.snapshot == known.snapshot:
            text = (
                f"{known.writer} was refused a {record.type} from {known.snapshot} events, and this write of it landed"
            )
            return Match((create.index,), (text,))
    return None


def _swallowed(facts: Facts) -> Match | None:
    """Two writers asked for one step with two inputs; one won, and the other took its step for its own."""
    if facts.conflict(Clash.RANK, Clash.CALL) is not None:
        return None
    conflict = facts.conflict(Clash.INPUT)
    if conflict is None or not conflict.creates:
        return None
    rank, label = conflict.one.rank, conflict.one.label
    text = f"rank {rank} is {label} for both writers, with two inputs: the loser's 409 told it nothing"
    sure = facts.best is not None and bool(facts.best.compared) and not facts.unexplained
    return Match(tuple(one.index for one in conflict.creates), (text,), Weight.SHOWN if sure else Weight.FITS)


def _stale_prefix(facts: Facts) -> Match | None:
    """A conflict whose staler side wrote behind other writers' decisions, and no engine is to blame."""
    conflict = facts.conflict(Clash.RANK, Clash.CALL)
    if conflict is None or facts.closing is not None or facts.hidden is not None:
        return None
    if facts.flip is not None and facts.flips_under.get(facts.newest) is not True:
        return None
    stale = conflict.stale
    if stale.create is None:
        return None
    own = {create.index for batch in facts.batches if batch.writer == stale.writer for create in batch.creates}
    foreign = [
        index
        for index in range(stale.length, stale.create.index)
        if facts.log[index].type in kinds.CREATES and index not in own
    ]
    if not foreign:
        return None
    text = (
        f"{stale.writer} had read up to {facts.log.name_of_prefix(stale.length)} and wrote at "
        f"{stale.create.place}, behind "
        f"{len(foreign)} decisions of others (the first is {line(facts.log, foreign[0])})"
    )
    return Match((foreign[0], stale.create.index), (text,))


#: kinds of finding that speak of an entity which was created more than once
_AGAIN = (
    "moved-wait",
    *(f"{how}-{kind}-created" for how in ("repeat", "late") for kind in (kinds.STEP, kinds.WAIT, kinds.HOOK)),
)


def _created_twice(facts: Facts) -> Match | None:
    found = facts.findings("lifecycle", *_AGAIN)
    if not found:
        return None
    by_id: defaultdict[str, int] = defaultdict(int)
    for event in facts.log:
        if event.type in kinds.CREATES and event.correlation_id is not None:
            by_id[event.correlation_id] += 1
    most = max(by_id.values())
    texts = tuple(f"lifecycle: {one.message}" for one in found[:2])
    return Match(facts.indices(found[:2]), (*texts, f"one entity was created {most} times"))


def _two_names(facts: Facts) -> Match | None:
    found = facts.findings("one-body", "two-names", "wrong-kind")
    if not found:
        return None
    return Match(facts.indices(found[:1]), tuple(f"one-body: {one.message}" for one in found[:2]), Weight.FITS)


def _two_call_sites(facts: Facts) -> Match | None:
    """Nothing explains several creates, and all of them are of two calls: writers chose two winners of one race."""
    names = {origin.create.label for origin in facts.unexplained}
    if len(names) != 2 or len(facts.unexplained) < 2:
        return None
    at = tuple(origin.create.index for origin in facts.unexplained[:4])
    text = f"{len(facts.unexplained)} creates are explained by no prefix, all of {' and '.join(sorted(names))}"
    return Match(at, (text,), Weight.FITS)


def _role(facts: Facts) -> Match | None:
    """A role was played more often than the scenario allows."""
    found = facts.findings("roles", "excess", "count")
    if not found:
        return None
    return Match(facts.indices(found[:1]), tuple(f"roles: {one.message}" for one in found[:2]), Weight.FITS)


def _receipts_fenced(least: int = 20) -> Signature:
    def holds(facts: Facts) -> Match | None:
        facts_refused = [one for one in _refused(facts) if not kinds.is_decision(one.type)]
        if len(facts_refused) < least:
            return None
        text = f"{len(facts_refused)} writes that depend on no prefix were refused for what their writers had not read"
        return Match((), (text,), Weight.FITS)

    return holds


_W = Group.WRITERS
_AUDIT = "the appends' audit (who wrote, and how many events it had read), or each worker's own log of its view"

CLASSES: tuple[CorruptionClass, ...] = (
    CorruptionClass(
        "two-decisions-one-snapshot",
        "two decisions on one snapshot",
        _W,
        "two writers presented the same cursor and count, and the credit of one admitted the other",
        _one_snapshot,
        (3269,),
        "the credit is the writer's own (writerId)",
        _AUDIT,
    ),
    CorruptionClass(
        "re-post",
        "posted again after a refusal",
        _W,
        "a writer that was refused posted the same write again, with the ids of its old view",
        _re_post,
        (3145,),
        "a refused writer starts over from a reloaded log",
        _AUDIT,
    ),
    CorruptionClass(
        "sibling-escape",
        "a sibling of a refused write",
        _W,
        "one write of a batch was refused and the delivery went on, while another of the same view was still flying",
        _sibling,
        (3145,),
        "all writes of a phase settle before a refusal is looked at",
        _AUDIT,
    ),
    CorruptionClass(
        "stale-complete-prefix",
        "stale complete prefix",
        _W,
        "a view that is dense and shorter than the log passes a guard which only asks for holes",
        _stale_prefix,
        (3389,),
        "an append reports the events that its writer had not seen; spec version 9 counts in-band creates",
        _AUDIT,
    ),
    CorruptionClass(
        "swallowed-conflict",
        "swallowed 409",
        _W,
        "two writers asked for one step with different inputs; the loser is told that it exists and never compares",
        _swallowed,
        (),
        "open upstream (#4089, #4090): a conflict compares the name and the input",
        "the recorded input of the create",
    ),
    CorruptionClass(
        "created-twice",
        "one entity created twice",
        _W,
        "the store let two writers create one entity, instead of answering the second with a conflict (#2039)",
        _created_twice,
        (3381,),
        "engines step over a class of event that they have seen for the entity (#3381)",
        _AUDIT,
    ),
    CorruptionClass(
        "two-names",
        "one rank bound to two calls",
        _W,
        "two writers that saw different views gave one draw to two calls",
        _two_names,
        (3269, 3700),
        "stale decisions are refused, and passes bind alike",
        "a workload to replay with (--workload): which view asks for which call",
    ),
    CorruptionClass(
        "branch-divergence",
        "two winners of one race",
        _W,
        "writers chose different winners of one race, so that the log holds the follow-up calls of both",
        _two_call_sites,
        (3379,),
        "guards of the order in which results are delivered",
        _AUDIT,
    ),
    CorruptionClass(
        "facts-fenced",
        "facts fenced",
        _W,
        "the store refuses receipts for what their writers had not read, which protects nothing and restarts "
        "deliveries",
        _receipts_fenced(),
        (3269,),
        "only decisions are fenced",
        "restarts per run",
    ),
    CorruptionClass(
        "role-excess",
        "a call made once too often",
        _W,
        "the log holds a call more often than the workflow makes it, under ids of its own: two writers bound "
        "one call to "
        "two ranks",
        _role,
        (3554, 3700),
        "passes bind alike, whatever the length of the log",
        "the replay of this log by the generation that wrote it (--engine)",
    ),
)
