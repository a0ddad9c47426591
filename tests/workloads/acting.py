"""Driving a driver by hand: its acts are recorded, and the answers are what a test says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stormctl.workloads import base as acts


def played(
    driver: acts.Driver,
    *,
    uniform: Iterator[float] | None = None,
    hooks: bool = True,
    ends_after: int | None = None,
    accepted: bool = True,
    now: int = 0,
    most: int = 1_000,
) -> list[acts.Act]:
    """Every act of a driver and of the drivers that it starts, one after another.

    The run ends after so many resumes. ``hooks`` says whether a hook is found, ``accepted`` what a resume replies.
    """
    seen: list[acts.Act] = []

    def resumes() -> int:
        return sum(isinstance(act, acts.Resume) for act in seen)

    def play(one: acts.Driver) -> None:
        reply: Any = None
        while len(seen) < most:
            try:
                act = one.send(reply)
            except StopIteration:
                return
            seen.append(act)
            match act:
                case acts.Uniform():
                    reply = next(uniform) if uniform is not None else 0.5
                case acts.RunEnded():
                    reply = ends_after is not None and resumes() >= ends_after
                case acts.WaitForHook(token, _):
                    reply = f"hook of {token}" if hooks else None
                case acts.Resume():
                    reply = accepted
                case acts.Now():
                    reply = now
                case acts.Together(drivers):
                    for child in drivers:
                        play(child)
                    reply = None
                case _:
                    reply = None

    play(driver)
    return seen


def sleeps(seen: list[acts.Act]) -> list[float]:
    """The sleeps among acts, in ms."""
    return [act.ms for act in seen if isinstance(act, acts.Sleep)]


def payloads(seen: list[acts.Act]) -> list[Any]:
    """What was resumed with, in order."""
    return [act.payload for act in seen if isinstance(act, acts.Resume)]


def work_of(body: Any, *, attempt: int = 1, now: int = 0) -> tuple[list[acts.Act], Any]:
    """The acts of a step body and what it returned; a killed one returned None."""
    seen: list[acts.Act] = []
    reply: Any = None
    while True:
        try:
            act = body.send(reply)
        except StopIteration as returned:
            return seen, returned.value
        seen.append(act)
        if isinstance(act, acts.KillWorker):
            return seen, None
        reply = attempt if isinstance(act, acts.StepAttempt) else now if isinstance(act, acts.Now) else None
