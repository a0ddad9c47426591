"""What happened in a run, each thing once, in the order in which it happened: what pictures are drawn from.

The real runtime writes down what it did; the small model of a fork did what its turns say; of any other model the
turns themselves are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stormctl.history import kinds
from stormctl.sim.kernel import Run
from stormctl.sim.models.fork import Log as ForkLog
from stormctl.sim.real.machine import Machine
from stormctl.sim.real.record import Happened, Passed

#: what is not told of every run: that a message was taken or sent says little
_SILENT = frozenset({"take", "send", "mint", "pass"})
_PART = re.compile(r"(O\d+)\.\d+\Z")
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


@dataclass(frozen=True, slots=True)
class Step:
    """Something that an actor did. ``turn`` is its turn in the run (0-based; -1: before the first).

    ``position`` is the place in the log of what was published, or of what a mint drew an id for, where that was ever
    published. ``saw`` and ``missed`` are positions: what a read returned, and what it did not although it was there or
    had its place already. ``matters`` says that the run went another way here than it ordinarily does.
    """

    turn: int
    actor: str
    op: str
    text: str
    position: int | None = None
    saw: tuple[int, ...] = ()
    missed: tuple[int, ...] = ()
    matters: bool = False


def trace_of(run: Run) -> list[Step]:
    """What happened in a run."""
    instance = run.instance
    if isinstance(instance, Machine):
        return list(_real(run, instance))
    if isinstance(instance, ForkLog):
        return list(_fork(run, instance))
    return [
        Step(at, run.names[turn.actor], turn.label.op, f"{turn.label.op} {turn.label.detail}".rstrip())
        for at, turn in enumerate(run.turns)
    ]


def lane_of(actor: str) -> str:
    """In whose lane an actor is drawn: what a delivery does side by side is still that delivery's."""
    part = _PART.match(actor)
    return actor if part is None else part[1]


def later(ms: int) -> str:
    """A time since the start as a person says it."""
    for size, unit in _UNITS:
        if ms >= size:
            return f"+{ms / size:.3f}".rstrip("0").rstrip(".") + f" {unit}"
    return f"+{ms} ms"


# -- the real runtime ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A place in the order, drawn in one turn and published in another (None: never)."""

    turn: int
    actor: str
    detail: str
    published: int | None
    position: int | None


def _real(run: Run, machine: Machine) -> Iterator[Step]:
    places = {event.event_id or "": event.position or at for at, event in enumerate(machine.events, 1)}
    drawn = list(_drawn(run, machine, places))
    passed = _by_turn(machine.passed)
    ended = next((at for at, one in enumerate(machine.happened) if _ends(one)), len(machine.happened))
    happened = [one for at, one in enumerate(machine.happened) if at < ended or one.op != "refused"]
    steps = [step for at, one in enumerate(happened) for step in _told(at, one, places, drawn, passed)]
    for one in drawn:
        if one.published is not None and _met(machine, one):
            steps.append((one.turn, 0, Step(one.turn, one.actor, "mint", f"mints {one.position}", matters=True)))
    steps += [
        (picked.at - 1, 0, Step(picked.at - 1, run.names[picked.actor], picked.pick.kind, text, matters=True))
        for picked in run.picks
        if (text := _fault(picked.pick.kind, picked.pick.options[picked.choice], picked.choice))
    ]
    steps.sort(key=lambda found: found[:2])
    for _, _, step in steps:
        yield step


def _met(machine: Machine, drawn: _Drawn) -> bool:
    """Whether anybody else read or wrote the log while an event had its place and could not be read."""
    end = drawn.turn if drawn.published is None else drawn.published
    return any(
        drawn.turn < one.turn < end and one.actor != drawn.actor and (one.event is not None or one.op == "read")
        for one in machine.happened
    )


def _fault(kind: str, option: str, choice: int) -> str:
    """A pick that went another way than it ordinarily does; a hidden event is seen at the read itself."""
    return "" if not choice or kind in ("unseen", "crash") else f"{kind}: {option}"


def _by_turn(passed: list[Passed]) -> dict[tuple[int, str], Passed]:
    return {(one.turn, one.actor): one for one in passed}


def _drawn(run: Run, machine: Machine, places: dict[str, int]) -> Iterator[_Drawn]:
    """Each draw of an id that was a turn, with the publication that came of it."""
    published: dict[str, list[Happened]] = {}
    for one in machine.happened:
        if one.op == "publish" and one.event is not None:
            published.setdefault(one.actor, []).append(one)
    for at, turn in enumerate(run.turns):
        if turn.label.op != "mint":
            continue
        actor = run.names[turn.actor]
        mine = published.get(actor, [])
        found = next((one for one in mine if one.turn > at and _is_of(one, turn.label.detail)), None)
        position = None if found is None or found.event is None else places.get(found.event.event_id or "")
        yield _Drawn(at, actor, turn.label.detail, None if found is None else found.turn, position)


def _ends(one: Happened) -> bool:
    return one.event is not None and one.event.type in kinds.RUN_TERMINAL


def _is_of(one: Happened, detail: str) -> bool:
    return one.event is not None and one.event.type == detail.split(" ")[0]


def _told(
    at: int, one: Happened, places: dict[str, int], drawn: list[_Drawn], passed: dict[tuple[int, str], Passed]
) -> Iterator[tuple[int, int, Step]]:
    order = one.turn, at + 1
    if one.event is not None:
        place = places.get(one.event.event_id or "")
        yield *order, Step(one.turn, one.actor, one.op, one.text, place, matters=_ends(one))
    elif one.op == "read":
        yield *order, _read(one, places, drawn, passed.get((one.turn, one.actor)))
    elif one.op == "tick":
        text = later(int(one.text.removeprefix("+").removesuffix(" ms")))
        yield *order, Step(one.turn, one.actor, one.op, text)
    elif one.op == "send" and "loses" in one.text:
        yield *order, Step(one.turn, one.actor, one.op, one.text, matters=True)
    elif one.op not in _SILENT:
        yield *order, Step(one.turn, one.actor, one.op, one.text, matters=one.op in ("died", "failed"))


def _read(one: Happened, places: dict[str, int], drawn: list[_Drawn], passed: Passed | None) -> Step:
    saw = tuple(sorted(places[event] for event in one.saw if event in places))
    hidden = [places[event] for event in one.hidden if event in places]
    last = max(saw, default=0)
    flying = [
        draw.position
        for draw in drawn
        if draw.position is not None and draw.turn < one.turn and (draw.published or 0) > one.turn
    ]
    missed = tuple(sorted({*hidden, *(place for place in flying if place < last)}))
    wants = _wants(passed)
    text = "reads" + (" on" if "on" in one.text.split() else "") + ("" if saw or missed else " nothing")
    return Step(one.turn, one.actor, "read", text, None, saw, missed, matters=bool(wants) and bool(missed))


def _wants(passed: Passed | None) -> str:
    """What a replay asked to be written."""
    if passed is None:
        return ""
    return ", ".join(item.name or item.kind for item in passed.result.pending if item.create is not None)


def wanted_at(run: Run, turn: int, actor: str) -> str:
    """What the replay that an actor made at a turn asks for, where it made one: names of steps, kinds of others."""
    machine = run.instance
    if not isinstance(machine, Machine):
        return ""
    return _wants(_by_turn(machine.passed).get((turn, actor)))


# -- the model of a fork ---------------------------------------------------------------------------------------------


def _fork(run: Run, log: ForkLog) -> Iterator[Step]:
    drawn: dict[int, int] = {}  # by actor, what it minted last
    flying: dict[int, None] = {}
    there: list[int] = []
    minted = taken = 0
    final = dict(log.entries)
    order = [(event.type + (f" {event.name}" if event.name else "")) for _, event in log.entries]
    for at, turn in enumerate(run.turns):
        label, actor = turn.label, run.names[turn.actor]
        if label.op == "mint":
            minted += 1
            drawn[turn.actor] = minted
            if log.positions_at_mint:
                flying[minted] = None
                follows = at + 1 < len(run.turns) and run.turns[at + 1].actor == turn.actor
                if not follows:
                    yield Step(at, actor, "mint", f"mints {minted}", matters=True)
        elif label.op == "publish":
            place = drawn[turn.actor] if log.positions_at_mint else taken + 1
            flying.pop(place, None)
            refused = place not in final or (not log.positions_at_mint and order[taken : taken + 1] != [label.detail])
            if refused:
                yield Step(at, actor, "refused", f"{label.detail} refused")
                continue
            taken += 1
            there.append(place)
            yield Step(at, actor, "publish", label.detail, place, matters=label.detail in kinds.RUN_TERMINAL)
        elif label.op == "read":
            last = max(there, default=0)
            missed = tuple(sorted(place for place in flying if place < last))
            text = "reads" if there else "reads nothing"
            yield Step(at, actor, "read", text, None, tuple(sorted(there)), missed)
