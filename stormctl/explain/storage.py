"""Classes of storage order: the log is not what its readers saw, or not what a log may be."""

from __future__ import annotations

from stormctl.explain.facts import Facts
from stormctl.explain.taxonomy import CorruptionClass, Group, Match, Signature, Weight
from stormctl.history import ids, kinds
from stormctl.sweeps.witness import line


def _finding(sweep: str, *words: str, weight: Weight = Weight.SHOWN) -> Signature:
    """Holds where a sweep has findings of these kinds; their own words are the evidence."""

    def holds(facts: Facts) -> Match | None:
        found = facts.findings(sweep, *words)
        if not found:
            return None
        because = tuple(f"{sweep}: {finding.message}" for finding in found[:3])
        return Match(facts.indices(found[:3]), because, weight)

    return holds


def _hole_in_front(facts: Facts) -> Match | None:
    """A lost position whose neighbour is a payload: the staged file of a hook's resume."""
    for finding in facts.findings("dense", "gap"):
        at = facts.indices((finding,))
        near = {index + step for index in at for step in (-1, 0, 1)}
        if any(0 <= index < len(facts.log) and facts.log[index].type == kinds.HOOK_RECEIVED for index in near):
            return Match(at, (f"dense: {finding.message}", "a payload of a hook lies beside the lost position"))
    return None


def _sealed(facts: Facts) -> Match | None:
    log = facts.log
    for index, event in enumerate(log):
        if event.type != kinds.NOOP or index == 0:
            continue
        before, now = log[index - 1].created_at, event.created_at
        if before is not None and now is not None and now - before >= 1_000:
            text = f"position {log.place(index)} was sealed {(now - before) / 1000:.1f} s after the event before it"
            return Match((index,), (text,), Weight.FITS)
    return None


def _hidden(facts: Facts) -> int | None:
    """The event that was hidden from the guilty write, when that is what explains it."""
    return facts.hidden if facts.guilty is not None and facts.hidden is not None else None


def _why_hidden(facts: Facts, hidden: int) -> tuple[str, ...]:
    assert facts.guilty is not None
    create = facts.guilty.create
    view = facts.guilty.view
    assert view is not None
    text = (
        f"no prefix explains {create.place} {create.label}; the prefix {facts.log.name_of_prefix(view.length)} without "
        f"{line(facts.log, hidden)} does"
    )
    named = [finding for finding in facts.late_findings if hidden in facts.indices((finding,))]
    return (text, *(f"{finding.sweep}: {finding.message}" for finding in named or facts.late_findings))


def _insertion(facts: Facts) -> Match | None:
    hidden = _hidden(facts)
    if hidden is None or facts.log[hidden].type != kinds.HOOK_RECEIVED:
        return None
    assert facts.guilty is not None
    assert facts.guilty.view is not None
    used = next(
        (i for i in range(hidden + 1, facts.guilty.view.length) if facts.log[i].type == kinds.WAIT_COMPLETED), None
    )
    if used is None:
        return None
    text = f"{line(facts.log, used)} had been acted on when the payload appeared in front of it"
    because = (*_why_hidden(facts, hidden), text)
    return Match((hidden, used, facts.guilty.create.index), because, _weight(facts, hidden))


def _equal_ms(facts: Facts) -> Match | None:
    hidden = _hidden(facts)
    if hidden is None:
        return None
    assert facts.guilty is not None
    stamps = [ids.ulid_ms(event.event_id or "") for event in facts.log]
    mates = [
        index
        for index in (hidden - 1, hidden + 1)
        if 0 <= index < len(stamps) and stamps[hidden] is not None and stamps[index] == stamps[hidden]
    ]
    if not mates:
        return None
    text = f"{line(facts.log, mates[0])} carries the same millisecond, and a cursor by time cannot tell the two apart"
    because = (*_why_hidden(facts, hidden), text)
    return Match((hidden, facts.guilty.create.index), because, _weight(facts, hidden))


def _late_commit(facts: Facts) -> Match | None:
    hidden = _hidden(facts)
    if hidden is None:
        return None
    assert facts.guilty is not None
    return Match((hidden, facts.guilty.create.index), _why_hidden(facts, hidden), _weight(facts, hidden))


def _weight(facts: Facts, hidden: int) -> Weight:
    """Shown where the hidden event is known to have come late, or no other account of the create was found."""
    if facts.shaken is None or facts.was_late(hidden):
        return Weight.SHOWN
    return Weight.FITS


def _published_late(facts: Facts) -> Match | None:
    """Late publication that no guilty write proves to have mattered."""
    for sweep, words in (
        ("cursor-skip", ("missed-event",)),
        ("commit-order", ("late-publish", "late-position")),
        ("id-order", ("id-behind",)),
    ):
        found = facts.findings(sweep, *words)
        if found:
            return Match(facts.indices(found[:1]), tuple(f"{sweep}: {one.message}" for one in found[:2]), Weight.FITS)
    return None


_S = Group.STORAGE
_NO_VIEW = "the appends' audit with publication times and the deliveries' reads (storms of stormctl keep both)"

#: Explained by the guilty write first, then by what is wrong with the log itself; what may not have mattered is last.
CLASSES: tuple[CorruptionClass, ...] = (
    CorruptionClass(
        "insertion-before-used",
        "an event inserted before one that had been used",
        _S,
        "a payload was published in front of the end of a wait which readers had already acted on, so that every later "
        "replay takes the payload's branch and the log holds the wait's (#2228)",
        _insertion,
        (),
        "an append-only log: positions are given out as events become readable",
        "an earlier capture of the same run: it must be a prefix of this one, and is not",
    ),
    CorruptionClass(
        "equal-ms-hole",
        "a hole in an equal millisecond",
        _S,
        "the missing event carries the millisecond of the last one that the reader had seen, and a guard "
        "which compares "
        "times alone takes the view for complete",
        _equal_ms,
        (3145,),
        "the writer also says how many events it had read (stateEventCount)",
        _NO_VIEW,
    ),
    CorruptionClass(
        "late-commit-hole",
        "late-commit hole",
        _S,
        "an id was minted before its event was committed; a reader's cursor passed the place meanwhile, and every "
        "incremental read skips the event for good",
        _late_commit,
        (3145, 3269, 3389),
        "positions given at commit time (#3269, #3389); a whole reload after a refused precondition (#3145)",
        _NO_VIEW,
    ),
    CorruptionClass(
        "duplicate-positions",
        "one position twice",
        _S,
        "a holder of the run's lock was taken for dead while it was slow, so that two writers allocated from the same "
        'count (the loud form is "36 followed by 36")',
        _finding("dense", "repeat"),
        (3269,),
        "reads moved behind the release of the lock, and a late threshold for breaking it",
        "the store's lock files or lock log at that time: who held it, and who broke it",
    ),
    CorruptionClass(
        "staging-hole",
        "a staged payload's position is lost",
        _S,
        "the staged file of a payload is keyed by its event id; on a collision the writer moves on to the "
        "next position "
        "and nothing ever fills the one it had (#3492)",
        _hole_in_front,
        (),
        "staging keyed by a nonce; readers look again after 25, 50 and 100 ms",
        "the store's staging folder: a file for the lost position, or a writer that was killed there",
    ),
    CorruptionClass(
        "lost-position",
        "a position that nothing fills",
        _S,
        "a position was allocated and its event never published: the writer died, or the store reserves "
        "before it commits",
        _finding("dense", "gap", "open-gap"),
        (3269,),
        "positions allocated as part of the publication",
        "the appends' audit, or the log of the store's process around that time",
    ),
    CorruptionClass(
        "id-collision",
        "ids that cannot be one store's",
        _S,
        "events of two id schemes, or two events of one id, lie in one log: two stores or two releases wrote it "
        "(#3656)",
        _finding("id-order", "mixed-ids", "repeat-id", "slot-position"),
        (),
        "a run is pinned to the id scheme of the release that created it",
        "the release of every process that wrote to the store",
    ),
    CorruptionClass(
        "lifecycle-inversion",
        "a step started after its end",
        _S,
        "a start was given its place before the lock was taken and inserted after the step's end (#2331)",
        _finding("lifecycle", "start-after-step-end", "retry-after-step-end"),
        (2714,),
        "check and insert in one transaction",
        "commit times of the two events",
    ),
    CorruptionClass(
        "resume-after-dispose",
        "a payload accepted after its hook was given up",
        _S,
        "the resume was accepted while the hook lived and journalled after the disposal (#2781)",
        _finding("lifecycle", "receive-after-disposed"),
        (),
        "acceptance and journal in one order",
        "the time at which the resume was accepted",
    ),
    CorruptionClass(
        "duplicate-resume",
        "one resume written twice",
        _S,
        "a resume that came before its run was written down by two deliveries",
        _finding("lifecycle", "repeat-resume"),
        (),
        "a set of resume ids that were seen, and one row per run and resume id",
        "the resume ids of both events",
    ),
    CorruptionClass(
        "write-before-fence",
        "a write before the fence",
        _S,
        "a write that was refused had already changed an entity, so that an event refers to what was never created",
        _finding("lifecycle", "never-created", "use-before-create"),
        (3269,),
        "the fence is asked before any side effect",
        "the entity rows of the same run, captured at the same time",
    ),
    CorruptionClass(
        "unsealed-slot",
        "a position sealed late",
        _S,
        "positions are given out ahead and a writer died; readers wait less long than the store takes to "
        "seal the place",
        _sealed,
        (),
        "the sealed log of spec version 7",
        "the reader's waits for that position",
    ),
)

#: What may have been without consequence: told only where nothing else is.
LAST: tuple[CorruptionClass, ...] = (
    CorruptionClass(
        "late-publication",
        "events published behind others",
        _S,
        "events became readable after others that follow them in the log; whoever read in between may have missed them "
        "(#3147)",
        _published_late,
        (3145, 3269, 3389),
        "positions given at commit time",
        "a workload to replay with (--workload), or the deliveries' reads: whether anybody decided without "
        "these events",
    ),
)
