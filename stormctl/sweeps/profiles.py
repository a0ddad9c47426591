"""Profiles: how bad each class of fault is for the engines and stores of one line of releases.

A sweep reports the fact; a profile sets its severity. The same log can be fatal at 4.8 and harmless at 5, because since
vercel/workflow #3381 an engine steps over an event whose class it has already seen for that entity. ``strict`` holds
every rule of a sound log against it, save what every release and every store allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stormctl.errors import UsageError
from stormctl.sweeps.finding import Severity

FATAL, INERT, LEGAL = Severity.FATAL, Severity.INERT, Severity.LEGAL


@dataclass(frozen=True, slots=True)
class Profile:
    """One reading. What ``severities`` does not name is fatal."""

    name: str
    summary: str
    severities: Mapping[tuple[str, str], Severity]

    def severity(self, sweep: str, kind: str) -> Severity:
        """How bad this class of fault is."""
        return self.severities.get((sweep, kind), FATAL)


def _lifecycle(**severities: Severity) -> dict[tuple[str, str], Severity]:
    return {("lifecycle", kind.replace("_", "-")): severity for kind, severity in severities.items()}


# Allowed by every release and store that was measured (reference: worlds, section 6.2).
_ALWAYS = {
    **_lifecycle(
        run_started_repeat=INERT,  # readers take the first
        run_cancelled_repeat=INERT,
        repeat_start=LEGAL,  # a step message is delivered at least once
        early_wait=LEGAL,  # a forced completion, or two clocks
    ),
    # Where canonical order is (createdAt, id), an id may be adopted or minted again for an end event.
    ("id-order", "listed-behind"): LEGAL,
}

STRICT = Profile("strict", "every rule of a sound log, whatever the release", _ALWAYS)

WORKFLOW_4_8 = Profile(
    "workflow@4.8",
    "Workflow SDK 4.x: ids minted before the write, no fence; a repeated event is fatal",
    {
        **_ALWAYS,
        **_lifecycle(
            run_created_late=LEGAL,  # a resilient start writes run_started first
            use_before_create=LEGAL,  # the row can be seen before its event
            end_without_start=LEGAL,  # a store takes an end from pending
            retry_without_start=LEGAL,
            start_after_end=LEGAL,
            receive_after_end=LEGAL,
            event_after_end=LEGAL,
            receive_after_disposed=LEGAL,
            repeat_resume=LEGAL,  # resumes are not claimed yet
        ),
        ("commit-order", "late-publish"): LEGAL,  # a ULID store publishes when it can
        ("cursor-skip", "missed-event"): LEGAL,  # and its readers miss what comes late
        ("dense", "open-gap"): LEGAL,
    },
)

WORKFLOW_5 = Profile(
    "workflow@5",
    "Workflow SDK 5.x: dense slots; an engine steps over a repeated class of event (#3381, #3849)",
    {
        **_ALWAYS,
        **_lifecycle(
            repeat_step_created=INERT,
            repeat_wait_created=INERT,
            repeat_hook_created=INERT,
            repeat_attr_set=INERT,
            repeat_start=INERT,
            start_after_step_end=INERT,
            second_step_end=INERT,
            second_wait_completed=INERT,
            second_disposed=INERT,
            repeat_resume=INERT,  # dropped by its resume id
            run_created_late=LEGAL,
            use_before_create=LEGAL,
            end_without_start=LEGAL,
            retry_without_start=LEGAL,
            start_after_end=LEGAL,
            event_after_end=LEGAL,
        ),
        ("dense", "open-gap"): LEGAL,  # a slot of a running run may still be published
    },
)

PROFILES: dict[str, Profile] = {profile.name: profile for profile in (STRICT, WORKFLOW_4_8, WORKFLOW_5)}


def profile_named(name: str) -> Profile:
    """The profile of that name; UsageError lists the known ones."""
    try:
        return PROFILES[name]
    except KeyError:
        raise UsageError(f"there is no profile {name!r}", remedy=f"The profiles are {', '.join(PROFILES)}.") from None
