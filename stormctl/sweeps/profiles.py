"""Profiles: how bad each class of fault is for the engines and stores of one line of releases.

A sweep reports the fact; a profile sets its severity. The same log can be fatal at 4.8 and harmless at 5, because since
vercel/workflow #3381 an engine steps over an event whose class it has seen for an entity that has ended. ``strict``
holds every rule of a sound log against it, save what every release and every store allows.

A name such as ``workflow@5`` is a line of releases on any store; ``workflow@5-local`` and ``workflow@5-postgres``
differ from it where the stores do. What a profile does not name is fatal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stormctl.errors import UsageError
from stormctl.sweeps.finding import Severity

FATAL, INERT, LEGAL = Severity.FATAL, Severity.INERT, Severity.LEGAL

Severities = dict[tuple[str, str], Severity]

#: The name that stands for the profile which the log itself asks for (see ``reading``).
AUTO = "auto"
LOCAL, POSTGRES = "local", "postgres"


@dataclass(frozen=True, slots=True)
class Profile:
    """One reading. What ``severities`` does not name is fatal."""

    name: str
    summary: str
    severities: Mapping[tuple[str, str], Severity]

    def severity(self, sweep: str, kind: str) -> Severity:
        """How bad this class of fault is."""
        return self.severities.get((sweep, kind), FATAL)

    @property
    def line(self) -> str:
        """The name without the store."""
        return self.name.removesuffix(f"-{LOCAL}").removesuffix(f"-{POSTGRES}")


def _of(sweep: str, **severities: Severity) -> Severities:
    return {(sweep, kind.replace("_", "-")): severity for kind, severity in severities.items()}


# Allowed by every release and store that was measured (reference: worlds, section 6), or a measure and no fault.
_ALWAYS: Severities = {
    **_of(
        "lifecycle",
        run_started_repeat=INERT,  # readers take the first
        run_cancelled_repeat=INERT,
        repeat_start=LEGAL,  # a step message is delivered at least once
        early_wait=LEGAL,  # a forced completion, or two clocks
    ),
    # Where canonical order is (createdAt, id), an id may be adopted or minted again for an end event.
    **_of("id-order", listed_behind=LEGAL),
    # A transaction's time is that of its begin; a slot is taken after the event was stamped.
    **_of("time-order", created_behind=LEGAL, id_time_apart=LEGAL),
    **_of("cursor-exposure", window=LEGAL),
    **_of("ranks", undrawn=LEGAL),  # draws of a pass that was given up
    **_of("twins", same_step=LEGAL),  # a body may ask for one step twice
    **_of("cap", over_cap=INERT),
    # A row that ended before its event: two writes, or a log that lost its tail. Either way the log is not clean.
    **_of("rows", run_row_ended=INERT),
    **_of("credit", stale_decision=LEGAL),  # no released store fences decisions
    # Known of the last generation of the drain, or no fault of its own.
    **_of("drain-coverage", residual_queue=LEGAL, residual_load=LEGAL, residual_requeue=LEGAL),
    **_of("drain-arrival", inversion_by_requeue=LEGAL),
}

# An entity's row and its event are two writes; a writer may die between them.
_TWO_WRITES: Severities = {
    **_of(
        "rows",
        run_row_ended=LEGAL,
        run_row_open=LEGAL,
        row_without_create=LEGAL,
        create_without_row=LEGAL,
        row_status=LEGAL,
        row_attempt=LEGAL,
    ),
    **_of("claims", claim_without_event=LEGAL, staged_left=LEGAL),
}

# Allowed by every release of the SDK, and not by a store that appends under one lock.
_RELEASED: Severities = {
    **_of(
        "lifecycle",
        run_created_late=LEGAL,  # a resilient start writes run_started first
        use_before_create=LEGAL,  # the row can be seen before its event
        end_without_start=LEGAL,  # a store takes an end from pending
        retry_without_start=LEGAL,
        start_after_end=LEGAL,
        event_after_end=LEGAL,
        run_end_repeat=INERT,  # the row is read and written in two steps; readers take the first
    ),
    **_of("hook-conflicts", unjustified_conflict=LEGAL),  # a claim on a token is taken before its event is there
    **_of("attributes", writer_not_running=LEGAL, writer_unknown=LEGAL),
    **_of("spec", mixed_spec=LEGAL),  # two deployments, or an event that the store made itself
    **_of("twins", skewed_batch=INERT),
    **_TWO_WRITES,
}

# A store whose ids are ULIDs, minted before the write.
_ULID: Severities = {
    **_of("lifecycle", receive_after_end=LEGAL, receive_after_disposed=LEGAL),
    **_of("lifecycle", repeat_resume=LEGAL),  # resumes are not claimed yet
    **_of("commit-order", late_publish=LEGAL),  # it publishes when it can
    **_of("cursor-skip", missed_event=LEGAL),  # and its readers miss what comes late
    **_of("append-only", inserted=LEGAL),
    **_of("dense", open_gap=LEGAL),
}

# Since #3381 and #3849 an engine steps over an event whose class it has seen for that entity.
_STEPPED_OVER: Severities = _of(
    "lifecycle",
    repeat_step_created=INERT,
    repeat_wait_created=INERT,
    repeat_hook_created=INERT,
    late_step_created=INERT,
    late_wait_created=INERT,
    late_hook_created=INERT,
    repeat_attr_set=INERT,
    repeat_start=INERT,
    start_after_step_end=INERT,
    second_step_end=INERT,
    second_wait_completed=INERT,
    second_disposed=INERT,
    repeat_resume=INERT,  # dropped by its resume id
)

# While an entity is open its consumer takes a create for the first again: runs of 4.6.1 and 4.8.9 with dozens of such
# repeats completed, and a replay of their logs gives the same answer. A wait's with another resume time is not taken.
_TAKEN: Severities = _of("lifecycle", repeat_step_created=INERT, repeat_wait_created=INERT)

_FOUR: Severities = {**_ALWAYS, **_RELEASED, **_ULID, **_TAKEN}
_FIVE_ULID: Severities = {**_ALWAYS, **_RELEASED, **_ULID, **_TAKEN}
_FIVE: Severities = {
    **_ALWAYS,
    **_RELEASED,
    **_STEPPED_OVER,
    **_of("dense", open_gap=LEGAL),  # a slot of a running run may still be published
    **_of("append-only", inserted=LEGAL),
}
_SEQ: Severities = {**_ALWAYS, **_of("credit", stale_decision=FATAL), **_of("rows", run_row_ended=FATAL)}

# What one kind of store forbids or allows, beside its line of releases.
_BY_TIME = _of("time-order", created_behind=FATAL)  # the order is made from these times
_ONE_END = _of("lifecycle", run_end_repeat=FATAL)  # one conditional update
_SHARED_TOKENS = _of("lifecycle", token_overlap=LEGAL)  # the index on tokens is not unique
_BY_ID = _of("id-order", listed_behind=FATAL)  # the order is that of the ids

_STORES: dict[str, tuple[str, Severities, Severities, Severities]] = {
    "workflow@4.6": (
        "Workflow SDK 4.0 to 4.6: ids minted before the write, no fence; an event after its entity's end is fatal",
        _FOUR,
        _BY_TIME,
        {**_ONE_END, **_SHARED_TOKENS, **_BY_ID},
    ),
    "workflow@4.8": (
        "Workflow SDK 4.7 and later: ids minted before the write, no fence; an event after its entity's end is fatal",
        _FOUR,
        _BY_TIME,
        {**_ONE_END, **_SHARED_TOKENS, **_BY_ID},
    ),
    "workflow@5-ulid": (
        "Workflow SDK 5.0 betas whose runs have ULID ids (to beta.35, and on world-postgres)",
        _FIVE_ULID,
        _BY_TIME,
        {**_ONE_END, **_SHARED_TOKENS, **_BY_ID},
    ),
    "workflow@5": (
        "Workflow SDK 5.x with slot ids: dense; an engine steps over a repeated class of event (#3381, #3849)",
        _FIVE,
        {},
        {**_ONE_END, **_SHARED_TOKENS, **dict.fromkeys(_TWO_WRITES, FATAL), **_of("append-only", inserted=FATAL)},
    ),
    "workflow@seq": (
        "a store that appends under one lock of the run and counts (#3269): whole appends, fenced decisions",
        _SEQ,
        _BY_TIME,
        {},
    ),
}


def _all() -> Iterator[Profile]:
    yield Profile("strict", "every rule of a sound log, whatever the release", _ALWAYS)
    for name, (summary, severities, local, postgres) in _STORES.items():
        yield Profile(name, summary, severities)
        for world, own in ((LOCAL, local), (POSTGRES, postgres)):
            yield Profile(f"{name}-{world}", f"{name} on a {world} world", {**severities, **own})


PROFILES: dict[str, Profile] = {profile.name: profile for profile in _all()}
STRICT = PROFILES["strict"]
WORKFLOW_4_8 = PROFILES["workflow@4.8"]
WORKFLOW_5_ULID = PROFILES["workflow@5-ulid"]
WORKFLOW_5 = PROFILES["workflow@5"]
#: One profile per line of releases, as tables show them.
LINES: tuple[Profile, ...] = (STRICT, *(PROFILES[name] for name in _STORES))


def profile_named(name: str) -> Profile:
    """The profile of that name; UsageError lists the known ones."""
    try:
        return PROFILES[name]
    except KeyError:
        raise UsageError(
            f"there is no profile {name!r}", remedy=f"The profiles are {AUTO}, {', '.join(PROFILES)}."
        ) from None
