"""Which of the known failures a class of violation is, by the loop and the situation in which it was found."""

from __future__ import annotations

#: class of violation: the failures of the reference that show so, the likeliest first
BY_CLASS: dict[str, tuple[str, ...]] = {
    "drain-arrival/order-in-wave": ("F5",),
    "drain-arrival/overtaken": ("F5",),
    "drain-arrival/queued-behind": ("F5",),
    "drain-arrival/inversion-by-requeue": ("requeue",),
    "drain-barrier/unseen": ("F1",),
    "drain-barrier/other-seq": ("F3",),
    "drain-coverage/view": ("F6",),
    "drain-coverage/sync": ("F6", "F7"),
    "drain-coverage/unmarked": ("F3", "F1"),
    "drain-coverage/residual-queue": ("F13a",),
    "drain-coverage/residual-load": ("F13a",),
    "drain-coverage/residual-requeue": ("F13b",),
    "drain-floor/missing": ("F6",),
    "drain-floor/passed": ("F6",),
    "drain-floor/settled-past": ("F7",),
    "drain-own-index/ghost": ("F1", "F2"),
    "drain-own-index/wrong-index": ("F1", "F2"),
    "drain-own-index/others-changed": ("F1", "F2"),
    "drain-once/double-mark": ("F1", "F11"),
    "drain-once/double-effect": ("F4", "F9", "F11", "F3", "F1"),
    "drain-once/effect-without-mark": ("F9", "F11", "F3", "F1"),
    "drain-single-copy/second-copy": ("F4", "F9"),
    "drain-tenure/queued-after-park": ("F9",),
    "drain-tenure/ran-after-park": ("F9",),
    "drain-tenure/armed-after-park": ("F10",),
    "drain-wake/stuck": ("F8",),
    "drain-wake/left": ("F8",),
    "drain-wake/late": ("F8",),
    "deadlock/its own sealed writes": ("F12",),
}
#: what each situation brings about, where more than one failure shows in a class
_BY_SITUATION: dict[str, tuple[str, ...]] = {
    "park": ("F9", "F10"),
    "park-one": ("F9", "F10"),
    "park-throw": ("F9", "F10"),
    "compact": ("F3", "F2"),
    "compact-again": ("F3", "F2"),
    "consequence": ("F11",),
}
_WORDS = {"requeue": "a conflict threw it back: no fault of the drain"}


def explained(signature: str, situation: str = "", loop: str = "") -> str:
    """The failure's number, or an empty string for one that nobody knows. Without a look at the view (G-1) it is F1
    that lies behind what else could be several."""
    known = BY_CLASS.get(signature, ())
    if loop.startswith("G-1") and "F1" in known:
        return "F1"
    there = [one for one in known if one in _BY_SITUATION.get(situation, ())]
    found = there[0] if there else known[0] if known else ""
    return _WORDS.get(found, found)
