"""The conditions that history knew, by name. What each was and when: the reference on worlds, storage conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stormctl.worlds.condition import (
    Breaking,
    Condition,
    Credit,
    Fence,
    Gate,
    Guard,
    Ids,
    Lock,
    Point,
    PostReads,
    Release,
    Rescan,
    Semantics,
    SlotMode,
    Staging,
    Tells,
)

MAIN = Condition(
    "main",
    closes="nothing",
    leaves="late commits behind a reader's cursor, stale decisions, one entity created twice, a run ended twice",
)
"""world-local 4.x: ids at entry, no lock, files checked and then written."""

MAIN_PG = Condition(
    "main-pg",
    closes="one entity created twice, a run ended twice (unique indexes)",
    leaves="late commits behind a reader's cursor, stale decisions, an entity without its event after a kill, tokens "
    "with several owners",
    mint_at=Point.ALLOCATE,
    semantics=Semantics.PG4,
    unique_creates=True,
    unique_tokens=False,
    unique_ends=True,
    atomic=frozenset({"run_created", "step_started", "hook_received", "hook_disposed"}),
)
"""world-postgres 4.3.7: ids just before the INSERT, entity and event mostly in two autocommits."""

SEQ_FINAL = Condition(
    "seq-final",
    closes="late commits, stale decisions, two writers with one snapshot",
    leaves="wake order inside a pass (vercel/workflow #3554), draws of a branch that a shorter log hides (#3700)",
    mint_at=Point.ALLOCATE,
    lock=Lock.RUN,
    fence=Fence.DECISION,
    ids=Ids.ULID_SEQ,
    unique_creates=True,
)
"""vercel/workflow #3269 in its last form: commit-ordered seq, decision fence, credit by writer."""

SEQ_TAIL = replace(
    SEQ_FINAL,
    name="seq-tail",
    closes="late commits, every stale write",
    leaves="progress: each receipt refuses the writers that had not read it, and runs livelock",
    fence=Fence.TAIL,
    credit_key=Credit.SNAPSHOT,
    gate=Gate.ALL,
)

SEQ_DECISION_SNAP = replace(
    SEQ_FINAL,
    name="seq-decision-snap",
    closes="late commits, decisions behind a foreign decision",
    leaves="two writers with one snapshot, whose batches interleave; facts refused for nothing",
    credit_key=Credit.SNAPSHOT,
    gate=Gate.ALL,
)

SEQ_UPSTREAM = replace(
    SEQ_FINAL,
    name="seq-upstream",
    closes="as seq-final, while no lock outlives its limit and no writer dies",
    leaves="a slow holder's lock broken under it, a lock released blindly, fence and credit forgotten by a rescan",
    breaking=Breaking.EARLY,
    release=Release.BLIND,
    rescan=Rescan.FORGETS,
)

SEQ_BUGGY_30S = replace(
    SEQ_UPSTREAM,
    name="seq-buggy-30s",
    closes="as seq-upstream",
    leaves="one seq given twice ('36 followed by 36'): reads under the lock outlast its 30 s",
    stale_ms=30_000,
    post_reads=PostReads.INSIDE,
)

SEQ_BUGGY_ADMIT = replace(
    SEQ_FINAL,
    name="seq-buggy-admit",
    closes="as seq-final, in a store that rolls back",
    leaves="in a folder: a refused step or end whose row or claim stays (stranded step, wedged run)",
    admit_at=Point.ADMIT_LATE,
)

SLOTS_LINK = Condition(
    "slots-link",
    closes="late commits: an event's position is the next free one when it is published",
    leaves="stale decisions (the writer is told what it skipped); a claim whose writer was killed; a run ended twice",
    ids=Ids.SLOT,
    slot_mode=SlotMode.LINK,
    semantics=Semantics.LOCAL5,
    unique_creates=True,
)
"""vercel/workflow #3389 on files: the id is the position, the loser of a slot takes the next."""

SLOTS_SQL = replace(SLOTS_LINK, name="slots-sql", slot_mode=SlotMode.SQL_MAX)

SLOTS_STAGE_SHARED = replace(
    SLOTS_LINK,
    name="slots-stage-shared",
    leaves="a permanent hole where a writer dies between staging and publishing (vercel/workflow #3492)",
    staging=Staging.SHARED,
)

SLOTS_RESERVE = replace(
    SLOTS_LINK,
    name="slots-reserve",
    closes="two events with one position",
    leaves="a permanent hole where an append fails, a passing one where it is slow: late commits again",
    slot_mode=SlotMode.RESERVE,
    mint_at=Point.ALLOCATE,
)

MINT_SLOT = replace(
    SLOTS_RESERVE,
    name="mint-slot",
    leaves="late commits of every kind: the position is drawn at entry, long before the event is readable",
    mint_at=Point.MINT_EARLY,
)

GUARD = Condition(
    "guard",
    closes="decisions of a writer that lacks an outside event, or any event below what it has read, as seen at entry",
    leaves="what lands between the check and the publication; order; a livelock while a late commit is on its way",
    guard=Guard.WATERMARK_COUNT,
    gate=Gate.ALL,
    tells=frozenset({Tells.DELTA, Tells.COUNTS}),
    semantics=Semantics.LOCAL5,
    unique_creates=True,
)
"""vercel/workflow #3145: watermark and count, checked without a lock."""

IN_BAND = Condition(
    "in-band",
    closes="late commits, every decision that another decision outran",
    leaves="several orchestrators of one run, which refuse one another",
    mint_at=Point.ALLOCATE,
    lock=Lock.RUN,
    guard=Guard.IN_BAND,
    ids=Ids.SLOT,
    semantics=Semantics.LOCAL5,
    unique_creates=True,
)
"""The unreleased in-band count: each decision names how many decisions the log holds."""

CONDITIONS: Mapping[str, Condition] = {
    one.name: one
    for one in (
        MAIN,
        replace(MAIN, name="main-local"),
        MAIN_PG,
        SEQ_TAIL,
        SEQ_DECISION_SNAP,
        SEQ_FINAL,
        SEQ_UPSTREAM,
        SEQ_BUGGY_30S,
        SEQ_BUGGY_ADMIT,
        SLOTS_LINK,
        SLOTS_SQL,
        SLOTS_STAGE_SHARED,
        SLOTS_RESERVE,
        MINT_SLOT,
        GUARD,
        IN_BAND,
    )
}
"""Every preset by name, as a folder follows it; ``worlds.conditions`` says what a name means to each world."""
