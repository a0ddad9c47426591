"""Lifecycle: every rule has a log that breaks it and a twin that does not, and a reading by release."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stormctl.history import Facet
from stormctl.sweeps import PROFILES, SWEEPS, Severity, SweepResult, Verdict
from stormctl.testing import LogBuilder

Judge = Callable[..., SweepResult]
FATAL, INERT, LEGAL = Severity.FATAL, Severity.INERT, Severity.LEGAL


def run() -> LogBuilder:
    return LogBuilder().run_created().run_started()


def whole() -> LogBuilder:
    return run().hook_created(0).step(1, "settle").wait_created(2).wait_completed(2).hook_received(0).hook_disposed(0)


# kind, the log that breaks the rule, (strict, 4.8, 5)
BROKEN = [
    ("run-created-absent", LogBuilder().run_started(), (FATAL, FATAL, FATAL)),
    ("run-created-late", LogBuilder().run_started().run_created(), (FATAL, LEGAL, LEGAL)),
    ("run-created-behind", LogBuilder().hook_created(0).run_created(), (FATAL, FATAL, FATAL)),
    ("run-created-repeat", run().run_created(), (FATAL, FATAL, FATAL)),
    ("run-started-repeat", run().run_started(), (INERT, INERT, INERT)),
    ("second-run-end", run().run_completed().run_failed(), (FATAL, FATAL, FATAL)),
    ("run-end-repeat", run().run_completed().run_completed(), (FATAL, INERT, INERT)),
    ("run-cancelled-repeat", run().run_cancelled().run_cancelled(), (INERT, INERT, INERT)),
    ("start-after-end", run().step_created(0, "a").run_completed().step_started(0), (FATAL, LEGAL, LEGAL)),
    ("receive-after-end", run().hook_created(0).run_completed().hook_received(0), (FATAL, LEGAL, FATAL)),
    ("event-after-end", run().run_completed().step_created(0, "a"), (FATAL, LEGAL, LEGAL)),
    ("repeat-step-created", run().step_created(0, "a").step_created(0, "a"), (FATAL, INERT, INERT)),
    ("repeat-wait-created", run().wait_created(0, 1000).wait_created(0, 990), (FATAL, INERT, INERT)),
    ("repeat-hook-created", run().hook_created(0).hook_created(0), (FATAL, FATAL, INERT)),
    ("late-step-created", run().step(0, "a").step_created(0, "a"), (FATAL, FATAL, INERT)),
    ("late-wait-created", run().wait_created(0, 1000).wait_completed(0).wait_created(0, 980), (FATAL, FATAL, INERT)),
    (
        "late-hook-created",
        run().hook_created(0).event("noop").hook_disposed(0).hook_created(0).hook_created(0),
        (FATAL, FATAL, INERT),
    ),
    ("repeat-attr-set", run().attr_set(0, a=1).attr_set(0, a=1), (FATAL, FATAL, INERT)),
    ("never-created", run().step_completed(0), (FATAL, FATAL, FATAL)),
    ("use-before-create", run().step_started(0).step_created(0, "a"), (FATAL, LEGAL, LEGAL)),
    ("end-before-create", run().hook_disposed(0).hook_created(0), (FATAL, FATAL, FATAL)),
    ("repeat-start", run().step_created(0, "a").step_started(0).step_started(0), (LEGAL, LEGAL, INERT)),
    (
        "abandoned-start",
        run().step_created(0, "a").step_started(0).step_started(0).run_failed(),
        (FATAL, FATAL, FATAL),
    ),
    (
        "attempt-back",
        run().step_created(0, "a").step_started(0, 2).step_retrying(0).step_started(0, 1),
        (FATAL, FATAL, FATAL),
    ),
    ("end-without-start", run().step_created(0, "a").step_completed(0), (FATAL, LEGAL, LEGAL)),
    ("retry-without-start", run().step_created(0, "a").step_retrying(0), (FATAL, LEGAL, LEGAL)),
    ("second-step-end", run().step(0, "a").step_completed(0), (FATAL, FATAL, INERT)),
    ("opposite-step-end", run().step(0, "a").step_failed(0), (FATAL, FATAL, FATAL)),
    ("start-after-step-end", run().step(0, "a").step_started(0), (FATAL, FATAL, INERT)),
    ("retry-after-step-end", run().step(0, "a").step_retrying(0), (FATAL, FATAL, FATAL)),
    ("second-wait-completed", run().wait_created(0).wait_completed(0).wait_completed(0), (FATAL, FATAL, INERT)),
    ("early-wait", run().wait_created(0, 9000).wait_completed(0, created_at=0), (LEGAL, LEGAL, LEGAL)),
    ("resume-at", run().wait_created(0).wait_completed(0, resume_at=1), (FATAL, FATAL, FATAL)),
    ("second-disposed", run().hook_created(0).hook_disposed(0).hook_disposed(0), (FATAL, FATAL, INERT)),
    ("receive-after-disposed", run().hook_created(0).hook_disposed(0).hook_received(0), (FATAL, LEGAL, FATAL)),
    ("conflict-and-created", run().hook_created(0).event("hook_conflict", 0), (FATAL, FATAL, FATAL)),
    (
        "repeat-resume",
        run().hook_created(0).hook_received(0, resumeId="r").hook_received(0, resumeId="r"),
        (FATAL, LEGAL, INERT),
    ),
    ("token-overlap", run().hook_created(0, "t").hook_created(1, "t"), (FATAL, FATAL, FATAL)),
]

# what looks like a broken rule and is none
SOUND = {
    "a whole run": whole().run_completed(),
    "work that ends after its run": run().step_created(0, "a").step_started(0).run_completed().step_completed(0),
    "a hook that outlives its run": run()
    .event("hook_created", 0, token="t", data={"tokenRetentionUntil": "2027"})
    .run_completed()
    .hook_received(0),
    "a retry": run().step_created(0, "a").step_started(0, 1).step_retrying(0).step_started(0, 2).step_completed(0),
    "a refused token": run().event("hook_conflict", 0, token="t"),
    "a token that was given back": run().hook_created(0, "t").hook_disposed(0).hook_created(1, "t"),
    "a hook made anew": run().hook_created(0).hook_disposed(0).hook_created(0).hook_received(0),
    "two resumes": run().hook_created(0).hook_received(0, resumeId="r").hook_received(0, resumeId="s"),
    "attributes of two steps": run().attr_set(a=1).attr_set(a=1),
    "a wait that was forced a little early": run().wait_created(0).wait_completed(0, created_at=1_767_355_200_600),
    "nothing at all": LogBuilder().run_created(),
}


@pytest.mark.parametrize(("kind", "log", "severities"), BROKEN, ids=[case[0] for case in BROKEN])
def test_a_broken_rule_is_found_and_read_by_release(
    judge: Judge, kind: str, log: LogBuilder, severities: tuple[Severity, ...]
) -> None:
    for profile, severity in zip(("strict", "workflow@4.8", "workflow@5"), severities, strict=True):
        result = judge("lifecycle", log, profile=profile)
        found = {finding.key.split("/")[1]: finding for finding in result.findings}
        assert set(found) == {kind}, "this fault and no other"
        assert found[kind].severity is severity
        assert result.verdict is (Verdict.VIOLATED if severity is FATAL else Verdict.CLEAN)
        assert 0 < len(found[kind].witness) <= 6


EARLY_ENDS = {
    "a step's": (run().step_started(0).step_completed(0).step_created(0, "a"), "end-before-create"),
    "a wait's, long before": (
        run().event("wait_completed", 0, created_at=1_767_355_209_000).wait_created(0),
        "end-before-create",
    ),
    "a wait's, by a writer that saw it a moment before its event": (
        run().wait_completed(0, created_at=1_767_355_200_060).wait_created(0),
        "use-before-create",
    ),
}


@pytest.mark.parametrize("name", EARLY_ENDS)
def test_an_end_before_its_create_is_more_than_two_writers_side_by_side(judge: Judge, name: str) -> None:
    log, kind = EARLY_ENDS[name]
    found = {finding.key.split("/")[1]: finding for finding in judge("lifecycle", log, profile="workflow@5").findings}
    assert kind in found
    assert found[kind].severity is (FATAL if kind == "end-before-create" else LEGAL)


def test_a_wait_that_is_created_twice_tells_how_far_its_resume_times_are_apart(judge: Judge) -> None:
    log = run().wait_created(0, 1000).wait_created(0, 2000)
    for profile in PROFILES:
        result = judge("lifecycle", log, profile=profile)
        moved, repeat = result.findings
        assert moved.message.endswith("was created 2 times, for resume times up to 1010 ms apart")
        assert (moved.key.split("/")[1], moved.severity) == ("moved-wait", FATAL), profile
        assert repeat.key.split("/")[1] == "repeat-wait-created"


def test_one_resume_is_received_by_one_hook(judge: Judge) -> None:
    log = run().hook_created(0, "a").hook_created(1, "b").hook_received(0, resumeId="r").hook_received(1, resumeId="r")
    (finding,) = judge("lifecycle", log).findings
    assert finding.key.startswith("lifecycle/repeat-resume/")


@pytest.mark.parametrize("name", SOUND)
def test_what_is_allowed_raises_nothing(judge: Judge, name: str) -> None:
    result = judge("lifecycle", SOUND[name])
    assert (result.verdict, result.findings) == (Verdict.CLEAN, ())


def test_every_kind_of_fault_has_a_log_that_raises_it() -> None:
    assert {kind for kind, _, _ in BROKEN} | {"moved-wait"} == set(SWEEPS["lifecycle"].kinds)


def test_a_live_step_that_was_started_twice_may_still_end(judge: Judge) -> None:
    log = run().step_created(0, "a").step_started(0).step_started(0)
    (finding,) = judge("lifecycle", log, live=True).findings
    assert finding.key.startswith("lifecycle/repeat-start/")


def test_a_truncated_log_cannot_show_that_something_was_never_created(judge: Judge) -> None:
    assert judge("lifecycle", LogBuilder().step_completed(0), truncated=True).findings == ()


def test_a_capture_that_leaves_the_opening_out_is_not_blamed_for_it(judge: Judge) -> None:
    result = judge("lifecycle", LogBuilder().step(0, "a"), missing=[Facet.RUN_BOUNDS])
    assert (result.verdict, result.missing) == (Verdict.CLEAN, (str(Facet.RUN_BOUNDS),))


def test_a_fault_keeps_its_key_when_the_log_grows(judge: Judge) -> None:
    short = run().step(0, "a").step_started(0)
    longer = run().hook_created(5).step(0, "a").step_started(0).wait_created(6)
    keys = [judge("lifecycle", log).findings[0].key for log in (short, longer)]
    assert keys[0] == keys[1]


def test_the_message_names_the_step_and_its_rank(judge: Judge) -> None:
    (finding,) = judge("lifecycle", run().step(3, "step//./flows//settle").step_started(3)).findings
    assert finding.message == "step:settle (rank 3) was started after its end"
    assert finding.witness == ("5 step_completed rank 3 step:settle", "6 step_started rank 3 step:settle")


def test_a_hook_that_lost_its_token_to_another_gives_back_only_its_own(judge: Judge) -> None:
    log = run().hook_created(0, "t").hook_created(1, "t").hook_disposed(0).hook_created(2, "t")
    log.hook_disposed(2).hook_disposed(1)
    found = [finding.witness for finding in judge("lifecycle", log).findings if "/token-overlap/" in finding.key]
    assert found == [
        ("3 hook_created rank 0 hook", "4 hook_created rank 1 hook"),
        ("4 hook_created rank 1 hook", "6 hook_created rank 2 hook"),
    ]


def test_a_log_that_repeats_one_thing_for_ever_costs_no_more_than_its_length(judge: Judge) -> None:
    """A hook that is made, used and given up again and again: every rule is asked of every event."""
    log = run()
    for number in range(3000):
        log.hook_created(0, str(number)).hook_received(0).hook_disposed(0).hook_created(number + 1, f"t{number}")
    assert judge("lifecycle", log).findings == ()
