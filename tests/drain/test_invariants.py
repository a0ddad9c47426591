"""Each sweep of a trace: a seeded violation that it sees, and a twin that must not fire."""

from __future__ import annotations

import pytest

from stormctl.drain.explored import residual
from stormctl.sweeps import SWEEPS, Severity, Verdict
from stormctl.sweeps.drain import NAMES
from stormctl.sweeps.drain.base import checks, judge
from stormctl.sweeps.drain.records import (
    Activate,
    Admit,
    Compact,
    Consequence,
    Counters,
    Dispatch,
    DrainTrace,
    Effects,
    Flush,
    Park,
    PassBegin,
    PassEnd,
    Pull,
    Rest,
    Timer,
)
from tests.drain.traces import changed, entry, one_event, seen, trace, wave

DONE = (("a", 2, (("x", 2, True),)),)
OPEN = (("a", 0, (("x", 2, False),)),)
TWO_OPEN = (("a", 0, (("x", 2, False),)), ("b", 0, (("y", 3, False),)))
ADMITTED = (Activate((), 1), (0, Admit("a", "x", 2)), (0, Admit("b", "y", 3)))
X, Y = ("a", 0, "x", 2), ("b", 0, "y", 3)


def both(x: bool, y: bool) -> tuple[object, ...]:
    return (("a", 2 if x else 0, (("x", 2, x),)), ("b", 3 if y else 0, (("y", 3, y),)))


def test_a_clean_run_passes_every_sweep() -> None:
    assert seen(trace(*one_event())) == set()
    assert set(checks()) == set(NAMES) <= set(SWEEPS)


#: (what is seen, the trace that shows it); a trace may show more than that
VIOLATING: dict[str, DrainTrace] = {
    "drain-once/double-mark": trace(*one_event(), (0, Consequence("a", "x", 2))),
    "drain-once/double-effect": trace(*one_event()[:5], Effects(3, "x", 2), *one_event()[5:]),
    "drain-once/effect-without-mark": changed(6, wave(3, (1, 1), effects=(("x", 2),), sidecars=OPEN)),
    "drain-once/mark-without-effect": changed(6, wave(3, (1, 2), [X], effects=(), sidecars=DONE)),
    "drain-own-index/ghost": changed(
        6, wave(3, (1, 1), [X], sidecars=(("a", 0, ((None, None, True), ("x", 2, False))),))
    ),
    "drain-own-index/wrong-index": changed(6, wave(3, (1, 2), [("a", 1, "x", 2)], sidecars=DONE)),
    "drain-own-index/others-changed": trace(
        *ADMITTED,
        PassBegin(2, 1, None),
        entry("queue"),
        PassEnd(1, None),
        wave(4, (1, 1), [X], sidecars=both(True, True)),
    ),
    "drain-coverage/view": trace(
        *ADMITTED,
        PassBegin(2, 1, None),
        entry("defer_view", view=None),
        PassEnd(0, 2),
        wave(4, (1, 3), sidecars=TWO_OPEN),
    ),
    "drain-coverage/sync": trace(
        *ADMITTED,
        PassBegin(2, 1, None),
        entry("defer_sync", at=-1, view=None),
        PassEnd(0, 2),
        wave(4, (1, 2), sidecars=TWO_OPEN),
    ),
    "drain-coverage/residual-queue": trace(
        *ADMITTED, PassBegin(2, 1, None), entry("defer_queue"), PassEnd(0, None), wave(4, (1, 3), sidecars=TWO_OPEN)
    ),
    "drain-coverage/residual-load": trace(
        *ADMITTED, PassBegin(2, 1, None), entry("defer_loadpark"), PassEnd(0, None), wave(4, (1, 3), sidecars=TWO_OPEN)
    ),
    "drain-coverage/residual-requeue": trace(
        *ADMITTED,
        PassBegin(2, 1, None),
        entry("queue"),
        PassEnd(1, None),
        wave(4, (1, 2), requeued=(("x", 2),), sidecars=TWO_OPEN),
    ),
    "drain-coverage/unmarked": changed(6, wave(3, (1, 2), effects=(("x", 2),), sidecars=OPEN)),
    "drain-coverage/unscanned": trace(*ADMITTED, wave(4, (1, 3), sidecars=TWO_OPEN)),
    "drain-coverage/watermark-back": trace(*one_event(), wave(4, (2, 1), sidecars=DONE)),
    "drain-coverage/exhausted-advance": changed(6, wave(3, (1, 2), [X], exhausted=True, sidecars=DONE)),
    "drain-arrival/overtaken": trace(
        *ADMITTED,
        PassBegin(2, 1, None),
        entry("queue", ("y", 3), "b"),
        PassEnd(1, None),
        wave(4, (1, 1), [Y], sidecars=both(False, True)),
    ),
    "drain-arrival/inversion-by-requeue": trace(
        *ADMITTED,
        PassBegin(2, 1, None),
        entry("queue"),
        entry("queue", ("y", 3), "b"),
        PassEnd(2, None),
        wave(4, (1, 1), [Y], requeued=(("x", 2),), sidecars=both(False, True)),
    ),
    "drain-arrival/order-in-wave": trace(
        *ADMITTED,
        PassBegin(2, 1, None),
        entry("queue"),
        entry("queue", ("y", 3), "b"),
        PassEnd(2, None),
        wave(4, (1, 3), [Y, X], sidecars=both(True, True)),
    ),
    "drain-arrival/queued-behind": trace(
        *ADMITTED, PassBegin(2, 1, None), entry("defer_view", view=None), entry("queue", ("y", 3), "b"), PassEnd(1, 2)
    ),
    "drain-barrier/second-flush": trace(PassBegin(1, 1, None), Flush("begin"), Flush("end"), Flush("begin")),
    "drain-barrier/second-pull": trace(
        PassBegin(1, 1, None), Flush("begin"), Flush("end"), Pull("begin"), Pull("begin")
    ),
    "drain-barrier/pull-first": trace(PassBegin(1, 1, None), Flush("begin"), Flush("fail"), Pull("begin")),
    "drain-barrier/unseen": changed(3, entry("queue", view=None)),
    "drain-barrier/other-seq": changed(3, entry("queue", view=("x", 102))),
    "drain-floor/missing": trace(*ADMITTED, PassBegin(2, 1, None), entry("defer_view", view=None), PassEnd(0, None)),
    "drain-floor/stale": changed(4, PassEnd(1, 2)),
    "drain-floor/passed": trace(
        *ADMITTED,
        PassBegin(2, 1, None),
        entry("defer_sync", view=None),
        PassEnd(0, 2),
        wave(4, (1, 2), sidecars=TWO_OPEN),
    ),
    "drain-floor/settled-past": trace(
        *ADMITTED,
        PassBegin(2, 1, None),
        entry("defer_sync", view=None),
        PassEnd(0, 2),
        wave(4, (1, 2), settled=True, sidecars=TWO_OPEN),
    ),
    "drain-single-copy/second-copy": trace(*one_event()[:5], PassBegin(1, 1, None), entry("queue"), PassEnd(1, None)),
    "drain-wake/stuck": trace(*ADMITTED, Rest(scan_owed=False, timer=False, feed=0, pending=(("a", "x", 2),))),
    "drain-wake/left": trace(
        *ADMITTED, Rest(scan_owed=False, timer=False, feed=0, pending=()), (0, Admit("a", "z", 4)), Counters(())
    ),
    "drain-wake/late": trace(Timer("arm"), (251, 1, Timer("fire"))),
    "drain-tenure/queued-after-park": trace(*ADMITTED, PassBegin(2, 1, None), Park("begin"), entry("queue")),
    "drain-tenure/ran-after-park": trace(*ADMITTED, Park("begin"), Dispatch("x", 2)),
    "drain-tenure/committed-after-park": trace(*ADMITTED, Park("begin"), wave(4, (1, 1), sidecars=TWO_OPEN)),
    "drain-tenure/armed-after-park": trace(*ADMITTED, Park("begin"), Timer("arm")),
    "drain-tenure/floor-after-park": trace(*ADMITTED, PassBegin(2, 1, None), Park("begin"), PassEnd(0, 2)),
    "drain-tenure/lost": trace(*ADMITTED, Park("begin"), (2, Activate((("a", "x", 2),), 1))),
    "drain-tenure/found-again": trace(*one_event(), Park("begin"), (2, Activate((("a", "x", 2),), 1))),
    "drain-conservation/missing": changed(6, wave(3, (1, 2), sidecars=(("a", 0, ()),))),
    "drain-conservation/unknown": changed(
        6, wave(3, (1, 2), [X], sidecars=(("a", 2, (("x", 2, True), ("z", 1, True))),))
    ),
    "drain-conservation/repeated": changed(
        6, wave(3, (1, 2), [X], sidecars=(("a", 2, (("x", 2, True), ("x", 2, True))),))
    ),
    "drain-conservation/compacted": trace(*ADMITTED, (0, Compact("a", (("x", 2),)))),
    "drain-conservation/frontier": changed(6, wave(3, (1, 2), [X], sidecars=(("a", 0, (("x", 2, True),)),))),
    "drain-counters/mismatch": trace(*one_event(), Counters((("processed", 2),))),
    "drain-counters/identity": trace(Counters((("visibilityBarriers", 0), ("visibilityRecoveries", 1)))),
    "drain-counters/back": trace(Counters((("exhausted", 2),)), Counters((("exhausted", 1),))),
}

#: what is near to a violation and none: the name says why
SOUND: dict[str, DrainTrace] = {
    "a skip notice marks without effects": changed(
        6, wave(3, (1, 2), [X], effects=(), skips=(("x", 2),), sidecars=DONE)
    ),
    "another writer consequenced it, and the loop skipped it": trace(
        *ADMITTED[:2], (0, Consequence("a", "x", 2)), PassBegin(0, 1, None), entry("skip_consumed"), PassEnd(0, None)
    ),
    "W stays below what the view hides": trace(
        *ADMITTED,
        PassBegin(2, 1, None),
        entry("defer_view", view=None),
        PassEnd(0, 2),
        wave(4, (1, 1), sidecars=TWO_OPEN),
    ),
    "a legacy entry has no seq that W could cover": trace(
        Activate((), 1), (0, Admit("a", "x", None)), wave(4, (1, 3), sidecars=(("a", 0, (("x", None, False),)),))
    ),
    "a legacy entry that is held back holds W at 0": trace(
        Activate((), 1),
        (0, Admit("a", "x", None)),
        PassBegin(1, 1, None),
        entry("defer_view", ("x", None), view=None),
        PassEnd(0, 1),
    ),
    "both in arrival order": trace(
        *ADMITTED,
        PassBegin(2, 1, None),
        entry("queue"),
        entry("queue", ("y", 3), "b"),
        PassEnd(2, None),
        wave(4, (1, 3), [X, Y], sidecars=both(True, True)),
    ),
    "one barrier in each of two passes": trace(
        PassBegin(1, 1, None),
        Flush("begin"),
        Flush("end"),
        Pull("begin"),
        Pull("end"),
        PassEnd(0, None),
        PassBegin(1, 1, None),
        Flush("begin"),
        Flush("end"),
        Pull("begin"),
        Pull("end"),
        PassEnd(0, None),
    ),
    "a pass that was cancelled by its park": trace(
        *ADMITTED,
        PassBegin(2, 1, None),
        Flush("begin"),
        Park("begin"),
        Flush("end"),
        PassEnd(None, None),
        Park("end"),
        (2, Activate((("a", "x", 2), ("b", "y", 3)), 1)),
    ),
    "a conflict threw it back, and it is queued again": trace(
        *one_event()[:6],
        wave(4, (1, 1), requeued=(("x", 2),), sidecars=OPEN),
        PassBegin(1, 1, None),
        entry("queue"),
        PassEnd(1, None),
    ),
    "a rest with a timer": trace(
        *ADMITTED, Timer("arm"), Rest(scan_owed=False, timer=True, feed=0, pending=(("a", "x", 2),))
    ),
    "a run that ended while a timer was armed": trace(
        *ADMITTED, Timer("arm"), Rest(scan_owed=False, timer=True, feed=0, pending=()), Counters(())
    ),
    "a timer that goes off in time": trace(Timer("arm"), (250, 1, Timer("fire"))),
    "consumed history is compacted": trace(
        *one_event(), (0, Compact("a", (("x", 2),))), wave(5, (2, 2), sidecars=(("a", 2, ()),))
    ),
    "the counters of one event": trace(*one_event(), Counters((("processed", 1), ("waves", 1), ("appended", 1)))),
    "a barrier that recovered": trace(
        *ADMITTED,
        PassBegin(2, 1, None),
        Flush("begin"),
        Flush("end"),
        Pull("begin"),
        Pull("end"),
        entry("queue"),
        PassEnd(1, None),
        Counters((("visibilityBarriers", 1), ("visibilityRecoveries", 1), ("visibilityDeferrals", 0))),
    ),
}


@pytest.mark.parametrize("signature", VIOLATING)
def test_a_seeded_violation_is_seen(signature: str) -> None:
    assert signature in seen(VIOLATING[signature])


def test_every_class_of_every_sweep_has_a_seeded_violation() -> None:
    known = {f"{name}/{kind}" for name in NAMES for kind in SWEEPS[name].kinds}
    assert known == set(VIOLATING)


@pytest.mark.parametrize("why", SOUND)
def test_what_is_near_to_a_violation_is_clean(why: str) -> None:
    assert seen(SOUND[why]) == set()


@pytest.mark.parametrize("signature", VIOLATING)
def test_the_residual_is_legal_and_everything_else_is_fatal(signature: str) -> None:
    name, _, kind = signature.partition("/")
    result = judge(name, VIOLATING[signature])
    severities = {one.severity for one in result.findings if one.key.split("/")[1] == kind}
    assert severities == {Severity.LEGAL if residual(signature) else Severity.FATAL}
    assert residual(signature) == kind.startswith(("residual-", "inversion-by-"))
    if not residual(signature):
        assert result.verdict is Verdict.VIOLATED
        assert all(len(one.witness) <= 6 for one in result.findings)


def test_a_stuck_streak_counts_once_at_exactly_eight_passes() -> None:
    passes = [one for _ in range(9) for one in (PassBegin(1, 1, None), entry("defer_view", view=None), PassEnd(0, 2))]
    stuck = [("preQueueDeferralStuck", 1), ("visibilityDeferrals", 9)]
    assert "drain-counters/mismatch" not in seen(trace(*ADMITTED, *passes, Counters(tuple(stuck))))
    assert "drain-counters/mismatch" in seen(trace(*ADMITTED, *passes[:21], Counters((("preQueueDeferralStuck", 1),))))


def test_a_check_that_fails_itself_answers_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: DrainTrace) -> object:
        raise ValueError("odd")

    monkeypatch.setitem(__import__("stormctl.sweeps.drain.base", fromlist=["_CHECKS"])._CHECKS, "drain-once", broken)
    result = judge("drain-once", trace(*one_event()))
    assert result.verdict is Verdict.UNKNOWN
    assert "ValueError" in str(result.missing[0])
