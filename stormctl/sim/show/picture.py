"""The picture of a run: lanes, what raced, the story, and the schedule beside it that goes well.

found = picture(model, run, shrunk=shrunk)
print("\\n".join(lines_of(found)))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stormctl.sim.kernel import Model, Problem, Run
from stormctl.sim.show.lanes import WIDTH, Lanes, Row, drawn
from stormctl.sim.show.neighbour import Neighbour, nearest_passing
from stormctl.sim.show.race import Race, racing_pair
from stormctl.sim.show.telling import sentences, told_at, wrapped
from stormctl.sim.show.trace import Step, lane_of, trace_of
from stormctl.sim.tape import printed, script_of
from stormctl.sim.token import Token

#: lines of a whole picture, the story and the line to paste included
MOST_LINES = 25
#: lines that the story may take of them
_MOST_STORY = 7
_BESIDE = 130


@dataclass(frozen=True, slots=True)
class Picture:
    """A run, ready to be drawn. ``story`` are sentences; ``replay`` is the line to paste; ``proof`` what is proved."""

    title: str
    model: str
    digest: str
    token: str
    script: str
    replay: str
    lanes: Lanes
    story: tuple[str, ...]
    problems: tuple[Problem, ...]
    preemptions: int
    faults: int
    turns: int
    proof: str = ""
    race: Race | None = None
    passing: Lanes | None = None
    passing_choice: int | None = None


def replay_line(token: str, extra: Sequence[str] = ()) -> str:
    """The command that plays a token again."""
    return " ".join(("stormctl sim replay", token, *extra))


def picture(
    model: Model,
    run: Run,
    *,
    proof: str = "",
    extra: Sequence[str] = (),
    neighbour: Neighbour | None = None,
    signature: str = "",
) -> Picture:
    """The picture of a run of a model. Of one that fails the nearest schedule that passes is looked for, unless it is
    given. ``extra`` are options that a replay needs; ``signature`` names the problem to tell of, else the first."""
    problems = tuple(sorted(run.problems, key=lambda one: one.signature != signature))
    if problems and neighbour is None:
        neighbour = nearest_passing(model, run)
    race = None if neighbour is None else _hole_pair(run) or racing_pair(run, neighbour.run)
    turned = _turned(run, neighbour.run, race) if neighbour is not None else None
    token = str(Token.of(model.name, model.digest, run.tape))
    verdict = problems[0].signature if problems else "gave up" if run.cut else "goes well"
    return Picture(
        f"{model.name}: {verdict}",
        model.name,
        model.digest,
        token,
        printed(script_of(run)),
        replay_line(token, extra),
        lanes_of(run, race, title=f"{model.name}: {verdict}", problems=problems),
        sentences(run, race, problems, None if neighbour is None else neighbour.run),
        problems,
        run.preemptions,
        run.faults,
        run.steps,
        proof,
        race,
        None if neighbour is None else lanes_of(neighbour.run, turned, title="the nearest schedule that goes well"),
        None if neighbour is None else neighbour.choice,
    )


def _hole_pair(run: Run) -> Race | None:
    """The first read that did not see an event which had its place, and the publication of that event: they raced."""
    steps = trace_of(run)
    for read in steps:
        late = next((one for one in steps if one.op == "publish" and one.position in read.missed), None)
        if late is not None:
            return Race(min(read.turn, late.turn), max(read.turn, late.turn))
    return None


def _turned(run: Run, other: Run, race: Race | None) -> Race | None:
    """The same two turns in the run that goes well: known by the actor's name and its number among that actor's."""
    if race is None:
        return None
    keys, there = _keys(run), {key: at for at, key in enumerate(_keys(other))}
    pair = there.get(keys[race.first]), there.get(keys[race.second])
    known = [at for at in pair if at is not None]
    return Race(min(known), max(known)) if known else None


def _keys(run: Run) -> list[tuple[str, int]]:
    counts: dict[int, int] = {}
    found = []
    for turn in run.turns:
        counts[turn.actor] = counts.get(turn.actor, 0) + 1
        found.append((run.names[turn.actor], counts[turn.actor]))
    return found


def lanes_of(run: Run, race: Race | None = None, *, title: str = "", problems: Sequence[Problem] = ()) -> Lanes:
    """The lanes of a run, the pair that raced in brackets."""
    pair = () if race is None else (race.first, race.second)
    places = {place for problem in problems for place in problem.positions}
    steps = trace_of(run)
    for turn in pair:
        if not any(step.turn == turn for step in steps):
            label = run.turns[turn].label
            at = next((at for at, step in enumerate(steps) if step.turn > turn), len(steps))
            text = f"{label.op} {label.detail}".rstrip()
            steps.insert(at, Step(turn, run.names[run.turns[turn].actor], label.op, text))
    boxed = {turn: told_at(steps, turn) for turn in pair}
    rows = tuple(
        Row(
            lane_of(step.actor),
            step.text,
            step.position,
            step.saw,
            step.missed,
            raced=any(step is one for one in boxed.values()),
            matters=step.matters or (step.position in places and step.op == "publish"),
        )
        for step in steps
    )
    return Lanes(title, tuple(dict.fromkeys(row.lane for row in rows)), rows)


def lines_of(found: Picture, *, width: int = WIDTH, most: int = MOST_LINES) -> list[str]:
    """The whole picture as lines: lanes, the story, and the line to paste (which alone may be longer than ``width``).

    Where the lines are wide enough the schedule that goes well stands beside it.
    """
    story = wrapped(" ".join(found.story), width, _MOST_STORY)
    below = [*([""] if story else []), *story, ""]
    if found.problems:
        below += wrapped("; ".join(part for part in (size_of(found), found.proof) if part), width, 2)
    below.append(f"replay: {found.replay}")
    room = most - len(below) - 2
    if found.passing is not None and width >= _BESIDE:
        half = width // 2 - 2
        left = drawn(found.lanes, width=half, most=room)
        right = drawn(found.passing, width=half, most=room)
        tall = max(len(left), len(right))
        pairs = zip(left + [""] * (tall - len(left)), right + [""] * (tall - len(right)), strict=True)
        lines = [f"{one:<{half}} | {other}".rstrip() for one, other in pairs]
    else:
        lines = drawn(found.lanes, width=width, most=room)
    return lines + below


def size_of(found: Picture) -> str:
    """How large a schedule is, in words."""
    parts = [f"{found.preemptions} preemption{'' if found.preemptions == 1 else 's'}"]
    if found.faults:
        parts.append(f"{found.faults} fault{'' if found.faults == 1 else 's'}")
    return f"{', '.join(parts)}, {found.turns} turns"
