"""The story of a race in a few sentences: what came first, what came then, and what follows however."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from stormctl.sim.kernel import Problem, Run
from stormctl.sim.real.machine import Machine
from stormctl.sim.show.lanes import extent
from stormctl.sim.show.race import Race
from stormctl.sim.show.trace import Step, trace_of, wanted_at

_EVENT_ID = re.compile(r"evnt_[0-9A-Za-z]+")
#: what an operation is called where it left no row of its own
_DOES = {
    "publish": "publishes {}",
    "mint": "draws the place of {}",
    "lock": "takes the lock for {}",
    "row": "writes the row of {}",
    "guard": "is looked at for {}",
    "read": "reads the log",
    "resume": "finds the hook {}",
    "take": "takes a message ({})",
    "send": "sends a message ({})",
    "tick": "moves time on",
}


def told_at(steps: Sequence[Step], turn: int) -> Step | None:
    """What a turn is shown by: its publication or read before anything else that came with it."""
    found = [step for step in steps if step.turn == turn]
    first = [step for step in found if step.op in ("publish", "read", "refused")]
    kept = first or found
    return kept[0] if kept else None


def sentences(run: Run, race: Race | None, problems: Sequence[Problem], passing: Run | None) -> tuple[str, ...]:
    """The story of a run that fails; nothing of one that goes well. Without a race the problem alone is told."""
    if not problems:
        return ()
    steps = trace_of(run)
    told: list[str] = []
    hole = next((one for one in steps if one.op == "read" and one.missed), None)
    by = None if hole is None else _published(steps, hole.missed[0])
    if hole is not None:
        told.append(_hole(run, hole, by))
    if race is not None and not (
        hole is not None and by is not None and {hole.turn, by.turn} == {race.first, race.second}
    ):
        told.append(f"{_does(run, steps, race.first)}, then {_does(run, steps, race.second)}.")
    elif by is not None and hole is not None and by.turn > hole.turn:
        told.append(f"Then {by.actor} publishes {by.text} as {by.position}{_before(steps, by)}.")
    told.append(f"However, {_lower(named(run, problems[0].text))}.")
    if race is not None and passing is not None:
        told.append("With these two the other way round it goes well.")
    elif passing is not None:
        told.append("One choice made otherwise, and it goes well.")
    return tuple(_upper(one) for one in told)


def _published(steps: Sequence[Step], position: int) -> Step | None:
    return next((one for one in steps if one.op == "publish" and one.position == position), None)


def _hole(run: Run, read: Step, by: Step | None) -> str:
    """What a read did not see, and what was decided on it."""
    place = read.missed[0]
    hidden = f"{place} ({by.text})" if by is not None else str(place)
    why = f"which {by.actor} has not published yet" if by is not None and by.turn > read.turn else "which is there"
    wants = next((found for turn in range(read.turn, read.turn + 2) if (found := wanted_at(run, turn, read.actor))), "")
    then = f", and its replay asks for {wants}" if wants else ""
    return f"{read.actor} reads {extent(read.saw, read.missed)}: without {hidden}, {why}{then}."


def _before(steps: Sequence[Step], late: Step) -> str:
    """In front of which event one lands that was published after it: the first in the log."""
    at = steps.index(late)
    behind = [
        one
        for one in steps[:at]
        if one.op == "publish" and one.position is not None and one.position > (late.position or 0)
    ]
    first = min(behind, key=lambda one: one.position or 0, default=None)
    return "" if first is None else f", in front of {first.text} at {first.position}"


def named(run: Run, text: str) -> str:
    """A message with the places of events for their ids."""
    if not isinstance(run.instance, Machine):
        return text
    places = {event.event_id: event.position or at for at, event in enumerate(run.instance.events, 1)}
    return _EVENT_ID.sub(lambda found: f"#{places[found[0]]}" if found[0] in places else found[0], text)


def _does(run: Run, steps: Sequence[Step], turn: int) -> str:
    """Who does what in a turn."""
    taken = run.turns[turn]
    actor, label = run.names[taken.actor], taken.label
    step = told_at(steps, turn)
    if step is not None and step.op == "publish":
        place = "" if step.position is None else f" as {step.position}{_before(steps, step)}"
        return f"{actor} publishes {step.text}{place}"
    if step is not None and step.op == "read":
        return f"{actor} reads {extent(step.saw, step.missed) or 'nothing'}"
    return f"{actor} {_DOES.get(label.op, label.op + ' {}').format(label.detail)}".rstrip().replace(" ()", "")


def wrapped(text: str, width: int, most: int) -> list[str]:
    """A text in lines; what is beyond ``most`` lines is cut off, and that is shown."""
    lines = textwrap.wrap(text, width, break_long_words=True, break_on_hyphens=False)
    if len(lines) > most:
        lines = lines[:most]
        lines[-1] = lines[-1][: width - 4] + " ..."
    return lines


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".") if text[1:2].islower() or text[1:2] == " " else text.rstrip(".")


def _upper(text: str) -> str:
    """A sentence begins with a capital, an event's name and an actor's do not change."""
    word = text.split(" ", 1)[0]
    return text if "_" in word or not word.isalpha() else text[:1].upper() + text[1:]
