"""Stores that refuse: answers for a Stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stormctl.history import Event, kinds
from stormctl.worlds.base import AppendRequest, Refusal, Refused
from tests.runtime.driving import RUN, Answer, Stage


def refuse(refusal: Refusal, *types: str, times: int = 10_000, then: Callable[[], Any] = lambda: None) -> Answer:
    """Refuse the first so many appends of these types; ``then`` happens in the store at each refusal."""
    left = [times]

    def answer(request: AppendRequest) -> Refused | None:
        if request.type in types and left[0] > 0:
            left[0] -= 1
            then()
            return Refused(refusal, "refused by the test")
        return None

    return answer


def behind(
    stage: Stage,
    *types: str,
    times: int = 10_000,
    moves: bool = True,
    body: Callable[[], Mapping[str, Any]] = dict,
) -> None:
    """Let the stage's store refuse the first so many appends of these types for what their writer had not read.

    Something really lands at each refusal where it ``moves``; ``body`` is asked for after that.
    """
    left = [times]

    def answer(request: AppendRequest) -> Refused | None:
        if request.type not in types or left[0] <= 0:
            return None
        left[0] -= 1
        if moves:
            outside(stage)
        return Refused(Refusal.PRECONDITION, "behind", body=body())

    stage.answer = answer


def outside(stage: Stage) -> Event:
    """Something that happens outside of any replay, and that every workflow can follow: another start of the run."""
    return stage.land(AppendRequest(RUN, kinds.RUN_STARTED, "somebody")).events[0]
