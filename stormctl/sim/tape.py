"""A schedule in words: who runs, up to which operation. It is the language of scripted scenarios, and what a schedule
that was found is printed as.

    H: mint                              # the payload has its id, and is not readable yet
    O1: run to wait_completed committed  # the time-out is in the log
    O1: end
    H: commit

Each statement names an actor and how far it goes. It then stays where it is until it is named again; at the end of the
script everybody is let go. An actor that cannot go on is helped by those that nobody holds, in the ordinary order. What
a script does not say is left to whoever chooses for the rest, so a script may pin some of a schedule and leave the
rest to a strategy.

=====================================  =============================================================================
``run to OP DETAIL (n)``               until it has done that operation for the n-th time (DETAIL and n may be absent)
``run up to OP DETAIL (n)``            until that operation would be its next
``run to EVENT minted | committed``    ``run to mint EVENT``, ``run to publish EVENT``
``run to EVENT produced``              until the append of that event would begin: it has no place in the order yet
``mint``, ``commit``, any OP           ``run to OP``; ``mint`` is reached, too, where an id is nobody else's business
``go on``                              let it go on as it likes from here
``end``                                until it has ended, or waits for something that others must bring
``pick KIND = OPTION (n)``             its next pick of that kind, or the n-th from here, goes that way
=====================================  =============================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from stormctl.errors import StormctlError, UsageError
from stormctl.sim.kernel import Chooser, Label, Pick, Run, Stage, TapeChooser, Turn

MOST_STATEMENTS = 10_000
_OP = re.compile(r"[a-z][a-z-]*\Z")
_EVENT = re.compile(r"[a-z]+_[a-z_]+\Z")
_NTH = re.compile(r"(?P<rest>.*?)\s*\((?P<nth>[1-9][0-9]{0,5})\)\Z")
_PHASES = {"minted": "mint", "committed": "publish", "produced": "append"}
#: what an append may begin with; ``append`` in a statement stands for any of them
_APPEND = frozenset({"append", "mint", "lock", "row", "claim", "guard", "publish"})
_SHORT = {"commit": "publish"}


class Action(StrEnum):
    """What a statement lets its actor do."""

    TO = "run to"
    UP_TO = "run up to"
    GO_ON = "go on"
    END = "end"
    PICK = "pick"


@dataclass(frozen=True, slots=True)
class Statement:
    """One line of a script. ``soft`` is a ``mint`` that is also reached just before a publication. ``nth`` counts from
    where the statement begins. ``line`` is for messages."""

    actor: str
    action: Action
    op: str = ""
    detail: str = ""
    nth: int = 1
    soft: bool = False
    line: int = 0

    def __str__(self) -> str:
        match self.action:
            case Action.PICK:
                return f"{self.actor}: pick {self.op} = {self.detail}{self._times()}"
            case Action.GO_ON | Action.END:
                return f"{self.actor}: {self.action}"
        if self.soft:
            return f"{self.actor}: mint"
        detail = f" {self.detail}" if self.detail else ""
        return f"{self.actor}: {self.action} {self.op}{detail}{self._times()}"

    def _times(self) -> str:
        return f" ({self.nth})" if self.nth > 1 else ""

    def names(self, label: Label) -> bool:
        """Whether a turn is the operation of the statement: its detail may say more than the statement does."""
        detail = self.detail
        same = label.op in _APPEND if self.op == "append" else label.op == self.op
        return same and (not detail or label.detail == detail or label.detail.startswith(detail + " "))


class ScriptMismatch(StormctlError):
    """A script and a run that do not go together."""


_FIT = "Change the statement, or let the run pass over it (loosely)."


def parse(text: str) -> tuple[Statement, ...]:
    """A script from its text, a statement a line or between semicolons; ``#`` begins a comment.

    UsageError for what is no statement.
    """
    found = [
        _statement(part.strip(), number)
        for number, line in enumerate(text.splitlines(), 1)
        for part in line.split("#", 1)[0].split(";")
        if part.strip()
    ]
    if len(found) > MOST_STATEMENTS:
        raise UsageError(
            f"a script of {len(found)} statements", remedy=f"Keep it under {MOST_STATEMENTS}, or use a token."
        )
    return tuple(found)


def _statement(text: str, line: int) -> Statement:
    actor, colon, action = (part.strip() for part in _parted(text))
    if not colon or not actor or not action:
        raise _no_statement(text, line)
    if action in (Action.GO_ON, Action.END):
        return Statement(actor, Action(action), line=line)
    if action.startswith("pick "):
        kind, equals, option = (part.strip() for part in action.removeprefix("pick ").partition("="))
        if not equals or not kind or not option:
            raise _no_statement(text, line)
        option, nth = _counted(option)
        return Statement(actor, Action.PICK, kind, option, nth, line=line)
    for how in (Action.UP_TO, Action.TO):
        if action.startswith(how + " "):
            return _where(actor, how, action.removeprefix(how).strip(), text, line)
    if _OP.match(action):
        return Statement(actor, Action.TO, _SHORT.get(action, action), soft=action == "mint", line=line)
    raise _no_statement(text, line)


def _parted(text: str) -> tuple[str, str, str]:
    """Actor and action: the colon is the first that a space follows, since names such as ``S:settle`` have one."""
    actor, colon, action = text.partition(": ")
    return actor, colon, action


def _where(actor: str, how: Action, where: str, text: str, line: int) -> Statement:
    where, nth = _counted(where)
    words = where.split()
    if len(words) >= 2 and words[-1] in _PHASES and _EVENT.match(words[0]):
        op = _PHASES[words[-1]]
        return Statement(actor, Action.UP_TO if op == "append" else how, op, " ".join(words[:-1]), nth, line=line)
    if words and _EVENT.match(words[0]):
        return Statement(actor, how, "publish", " ".join(words), nth, line=line)
    if words and _OP.match(words[0]):
        return Statement(actor, how, _SHORT.get(words[0], words[0]), " ".join(words[1:]), nth, line=line)
    raise _no_statement(text, line)


def _counted(text: str) -> tuple[str, int]:
    """What stands before a count in brackets, and the count."""
    found = _NTH.match(text)
    return (text, 1) if found is None else (found["rest"], int(found["nth"]))


def _no_statement(text: str, line: int) -> UsageError:
    return UsageError(
        f"line {line}: {text[:80]!r} is no statement of a script",
        remedy="Write an actor and what it does, such as `O1: run to wait_completed committed`.",
    )


@dataclass(slots=True)
class _Armed:
    """A statement about a pick that has not come yet; ``left`` counts the picks of its kind down to it."""

    statement: Statement
    left: int


class ScriptChooser:
    """Chooses as a script says, and as ``rest`` does where it says nothing and behind its end.

    A statement that cannot be met is a ScriptMismatch; ``loosely`` it is passed over and written down in ``missed``.
    """

    sees_every_turn = True

    def __init__(self, script: Sequence[Statement], rest: Chooser | None = None, *, loosely: bool = False) -> None:
        self._script = list(script)
        self._rest = rest if rest is not None else TapeChooser()
        self._loosely = loosely
        self._at = 0
        self._seen = 0  # turns of the run that were looked at
        self._met = 0  # how often the operation of the present statement was done
        self._held: list[int] = []
        self._armed: list[_Armed] = []
        self.missed: list[Statement] = []

    @property
    def done(self) -> bool:
        """Whether every statement was met or passed over."""
        return self._at >= len(self._script)

    def turn(self, stage: Stage, options: Sequence[int]) -> int:
        """Whose turn it is by the script."""
        self._look(stage.run)
        while not self.done:
            statement = self._script[self._at]
            if statement.action is Action.PICK:
                self._arm()
                continue
            actor = _find(stage, statement.actor)
            if actor is not None and actor in self._held:
                self._held.remove(actor)
            if actor is not None and self._is_there(stage, statement, actor, options):
                self._next(actor if statement.action is not Action.GO_ON else None)
                continue
            if actor in options:
                return options.index(actor)
            free = [number for number in options if number not in self._held]
            if free and not (actor is not None and stage.ended(actor)):
                return options.index(free[0])
            self._miss(statement, stage, actor)
        return self._rest.turn(stage, options) if len(options) > 1 else 0

    def pick(self, stage: Stage, actor: int, pick: Pick) -> int:
        """An option that the script named, else what the rest says."""
        while not self.done and self._script[self._at].action is Action.PICK:
            self._arm()
        name = stage.name(actor)
        mine = (one for one in self._armed if (one.statement.actor, one.statement.op) == (name, pick.kind))
        armed = next(mine, None)  # those behind it count from where it was met
        if armed is not None and armed.statement.detail in pick.options:
            armed.left -= 1
            if not armed.left:
                self._armed.remove(armed)
                return pick.options.index(armed.statement.detail)
        return self._rest.pick(stage, actor, pick)

    def finish(self, run: Run) -> None:
        """Complain of what was never met, once the run is over."""
        self._look(run)
        while not self.done and self._script[self._at].action in (Action.END, Action.GO_ON):
            if self._script[self._at].actor not in run.names:
                break
            self._next()
        for statement in (*(armed.statement for armed in self._armed), *self._script[self._at :]):
            if not self._loosely:
                raise ScriptMismatch(f"line {statement.line}: the run ended before `{statement}`", remedy=_FIT)
            self.missed.append(statement)
        self._at = len(self._script)

    def _arm(self) -> None:
        statement = self._script[self._at]
        self._armed.append(_Armed(statement, statement.nth))
        self._next()

    def _look(self, run: Run) -> None:
        """Take in the turns since the last question: ours, and those that could not be otherwise."""
        for turn in run.turns[self._seen :]:
            self._seen += 1
            if self.done:
                continue
            statement = self._script[self._at]
            if statement.action is Action.TO and run.names[turn.actor] == statement.actor:
                self._met += statement.names(turn.label)
                if self._met >= statement.nth:
                    self._next(turn.actor)

    def _is_there(self, stage: Stage, statement: Statement, actor: int, options: Sequence[int]) -> bool:
        """Whether the actor is where the statement wants it, before its next turn."""
        match statement.action:
            case Action.GO_ON:
                return True
            case Action.END:
                return actor not in options
        if actor not in options:
            return False
        label = stage.label(actor)
        if statement.action is Action.TO:
            return statement.soft and label.op == "publish"
        if statement.names(label):
            self._met += 1
        return self._met >= statement.nth

    def _next(self, hold: int | None = None) -> None:
        self._at += 1
        self._met = 0
        if hold is not None:
            self._held.append(hold)
        if self.done:
            self._held.clear()

    def _miss(self, statement: Statement, stage: Stage, actor: int | None) -> None:
        if not self._loosely:
            if actor is None:
                why = f"there is no {statement.actor}"
            elif stage.ended(actor):
                why = f"{statement.actor} has ended"
            else:
                held = ", ".join(stage.name(number) for number in self._held)
                why = f"{statement.actor} cannot go on while {held} is held"
            raise ScriptMismatch(f"line {statement.line}: `{statement}` cannot be met: {why}", remedy=_FIT)
        self.missed.append(statement)
        self._next()


def _find(stage: Stage, name: str) -> int | None:
    """The actor of a name: the last of them that has not ended, else the last."""
    found = [number for number, known in enumerate(stage.run.names) if known == name]
    alive = [number for number in found if not stage.ended(number)]
    return alive[-1] if alive else found[-1] if found else None


# -- from a run to words ---------------------------------------------------------------------------------------------


def script_of(run: Run) -> tuple[Statement, ...]:
    """The statements that lead to the same schedule. What follows the last choice that was not 0 need not be said."""
    last = max((at for at, turn in enumerate(run.turns) if turn.choice), default=-1)
    found: list[Statement] = []
    end = 0
    for first, stretch in _stretches(run.turns[: last + 1]):
        end = first + len(stretch)
        found.extend(_picked(run, first, end))
        turn = stretch[-1]
        statement = Statement(run.names[turn.actor], Action.TO, turn.label.op, turn.label.detail)
        found.append(replace(statement, nth=sum(statement.names(one.label) for one in stretch)))
    found.extend(_picked(run, end, len(run.turns)))
    return tuple(replace(statement, line=number) for number, statement in enumerate(found, 1))


def _picked(run: Run, first: int, end: int) -> Iterator[Statement]:
    """What was picked in some turns and was not the ordinary option, each counted from the first of the turns."""
    seen: dict[tuple[int, str], int] = {}
    for at, actor, pick, choice in run.picks:
        if not (first < at <= end or at == first == 0):
            continue
        key = actor, pick.kind
        seen[key] = seen.get(key, 0) + 1
        if choice:
            yield Statement(run.names[actor], Action.PICK, pick.kind, pick.options[choice], seen[key])
            seen[key] = 0


def _stretches(turns: Sequence[Turn]) -> Iterator[tuple[int, list[Turn]]]:
    """The turns that one actor took one after another, with the index of the first."""
    first = 0
    for at in range(1, len(turns) + 1):
        if at == len(turns) or turns[at].actor != turns[first].actor:
            yield first, list(turns[first:at])
            first = at


def printed(script: Sequence[Statement]) -> str:
    """A script as text, a statement a line."""
    return "\n".join(map(str, script))
