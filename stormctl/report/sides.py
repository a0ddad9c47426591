"""The two sides of a comparison: which cells of which storm stand against which, and what each holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stormctl.errors import UsageError
from stormctl.report.controls import is_control
from stormctl.report.load import FATAL, Artefact, load_artefact
from stormctl.stats import Rate
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.outcome import Counted, Outcome
from stormctl.storm.until import cells_of, full_name, pair_name

CONTRADICTING = "contradicting"
#: what can be compared; a log that contradicts itself is known after the sweep alone
OUTCOMES = (*(str(one) for one in Counted), CONTRADICTING)
#: the sweep that says of a completed run whether its branches went the way of its log
LOG_ORDER = "log-order"


@dataclass(frozen=True, slots=True)
class CellSide:
    """One cell of one side. ``hits`` are the judged attempts in the order of their start, infra left out.

    ``unjudged`` attempts are left out for want of a swept log, ``flagged`` ones count although they prove little,
    ``suspect`` says that a control of the arm failed.
    """

    cell: Cell
    hits: tuple[bool, ...]
    infra: int = 0
    unjudged: int = 0
    flagged: int = 0
    suspect: bool = False

    @property
    def rate(self) -> Rate:
        """How many of the judged attempts were hit."""
        return Rate(sum(self.hits), len(self.hits))


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two cells that are compared: one scenario, and one world unless worlds are what is compared."""

    scenario: str
    world: str
    arms: tuple[str, str]
    old: CellSide
    new: CellSide

    @property
    def control(self) -> bool:
        """Whether the scenario is not meant to fail: it vouches for the environment, and is not part of the verdict."""
        return is_control(self.scenario)


@dataclass(frozen=True, slots=True)
class Sides:
    """Old against new. ``one`` when both are of one storm; ``left`` names arms and cells that stand against none."""

    old: Artefact
    new: Artefact
    names: tuple[str, str]
    pairings: tuple[Pairing, ...]
    left: tuple[str, ...] = ()

    @property
    def one(self) -> bool:
        """Whether both sides are of one storm."""
        return self.old.folder == self.new.folder

    @property
    def took_turns(self) -> bool:
        """Whether attempts of the two sides alternated. Other people's software is run cell by cell."""
        return self.one and (self.old.plan is None or self.old.plan.target == "embedded")


def sides(folders: Sequence[Path], arms: tuple[str, str] | None, outcome: str) -> Sides:
    """The two sides that a person means by one folder or two. UsageError where nothing stands against anything."""
    old = load_artefact(folders[0])
    new = load_artefact(folders[1]) if len(folders) > 1 else old
    matches = [_named(old, new, arms)] if arms is not None else _matches(old, new)
    pairings = [
        Pairing(
            first.scenario,
            first.world if first.world == second.world else f"{first.world} | {second.world}",
            match,
            _side(old, first, outcome),
            _side(new, second, outcome),
        )
        for match in matches
        for first, second in _cells(old, new, match)
    ]
    if not pairings:
        raise UsageError(
            "the two have no scenario in common", remedy="Compare storms, or arms, that ran the same scenarios."
        )
    names = matches[0] if len(matches) == 1 and matches[0][0] != matches[0][1] else ("A", "B")
    return Sides(old, new, names, tuple(pairings), tuple(_left(old, new, matches, pairings)))


def arm_names(artefact: Artefact) -> tuple[str, ...]:
    """The arms of a storm in plan order, without their worlds."""
    return tuple(dict.fromkeys(pair_name(cell) for cell in artefact.cells))


def _named(old: Artefact, new: Artefact, arms: tuple[str, str]) -> tuple[str, str]:
    first, second = full_name(old.cells, arms[0]), full_name(new.cells, arms[1])
    if old.folder == new.folder and first == second:
        raise UsageError(f"{first!r} cannot differ from itself", remedy="Name two arms, or two folders.")
    return first, second


def _matches(old: Artefact, new: Artefact) -> list[tuple[str, str]]:
    """Which arm stands against which when nobody says so."""
    first, second = arm_names(old), arm_names(new)
    if old.folder == new.folder:
        if len(first) < 2:  # then worlds may be what differs
            first = tuple(dict.fromkeys(cell.arm for cell in old.cells))
        if len(first) < 2:
            raise UsageError(
                f"{old.folder} has one arm: there is nothing to compare it with", remedy="Name a second folder."
            )
        return [(first[0], first[-1])]
    if len(first) == len(second) == 1:
        return [(first[0], second[0])]
    common = [(arm, arm) for arm in first if arm in second]
    if not common:
        raise UsageError(
            "the two storms have no arm in common",
            remedy=f"Say which to compare: --arms '{first[0] if first else ''}' '{second[0] if second else ''}'.",
        )
    return common


def _cells(old: Artefact, new: Artefact, match: tuple[str, str]) -> Iterator[tuple[Cell, Cell]]:
    """The cells of two arms that stand against each other."""
    first, second = cells_of(old.cells, match[0]), cells_of(new.cells, match[1])
    worlds = [{cell.world for cell in cells} for cells in (first, second)]
    across = not worlds[0] & worlds[1] and all(len(one) == 1 for one in worlds)
    for cell in first:
        for other in second:
            if cell.scenario == other.scenario and (across or cell.world == other.world):
                yield cell, other


def _left(
    old: Artefact, new: Artefact, matches: Sequence[tuple[str, str]], pairings: Sequence[Pairing]
) -> Iterator[str]:
    for index, (artefact, letter) in enumerate(((old, "A"), (new, "B"))):
        where = "" if old.folder == new.folder else f" of {letter}"
        used = {side.cell for one in pairings for side in (one.old, one.new)}
        meant = {arm for match in matches for arm in (match if not where else (match[index],))}
        others = [arm for arm in arm_names(artefact) if not any(arm in one for one in meant)]
        if others:
            yield f"not compared: {', '.join(others)}{where}"
        alone = [cell for cell in artefact.cells if pair_name(cell) not in others and cell not in used]
        if alone:
            yield f"not compared, on one side only: {', '.join(cell.label for cell in alone)}{where}"
        if not where:
            return


def _side(artefact: Artefact, cell: Cell, outcome: str) -> CellSide:
    mine = sorted((one for one in artefact.attempts if one.cell == cell), key=lambda one: (one.started_at, one.number))
    judge = _contradicts(artefact) if outcome == CONTRADICTING else _hit(Counted(outcome))
    told = [one for one in mine if one.outcome is not Outcome.INFRA]
    judged = [(one, judge(one)) for one in told]
    return CellSide(
        cell,
        tuple(hit for _, hit in judged if hit is not None),
        infra=len(mine) - len(told),
        unjudged=sum(hit is None for _, hit in judged),
        flagged=sum(bool(one.flags) and one.outcome is Outcome.COMPLETED for one, hit in judged if hit is not None),
        suspect=artefact.suspect(cell),
    )


def _hit(counted: Counted) -> Callable[[Attempt], bool | None]:
    return lambda attempt: counted.hit(attempt.outcome)


def _contradicts(artefact: Artefact) -> Callable[[Attempt], bool | None]:
    """Whether a completed run's own log contradicts it; None for any other, and where no sweep could tell."""
    found = {
        log.run_id: bool(one.findings.get(FATAL))
        for log in artefact.logs
        for one in log.sweeps
        if one.sweep == LOG_ORDER and one.verdict != "unknown"
    }
    return lambda attempt: found.get(attempt.run_id or "") if attempt.outcome is Outcome.COMPLETED else None
