"""Whether a schedule is the same each time: a hash over everything that happened, turn by turn.

Each link holds the one before, who took the turn, its label, who could have taken it, and what the model shows of
itself (``observed()`` of its instance, where it has that). Two chains that end alike are of the same schedule with the
same results; of two that do not, the first link that differs names the turn where something leaked in: the order of a
set, the clock, an address, another's random numbers.

``same_twice`` plays a tape twice in this process, ``fresh_chains`` in a new one, with another seed of the hashes or
another Python. The program for that is this module: ``python -m stormctl.sim.chain``, tapes on its standard input.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from stormctl.errors import StormctlError
from stormctl.sim.kernel import MOST_STEPS, Chooser, Model, Pick, Run, Stage, TapeChooser, play

#: seconds that a fresh process may take
PATIENCE_S = 600.0


@dataclass(slots=True)
class Chain:
    """The links of one schedule as hexadecimal digits, the last one of its end; ``texts`` says what each is of."""

    links: list[str]
    texts: list[str] = field(default_factory=list)
    choices: int = 0
    run: Run | None = None

    @property
    def end(self) -> str:
        """The hash of the whole."""
        return self.links[-1]


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first turn (from 1) where two plays of one tape differ, and what each had there."""

    tape: tuple[int, ...]
    turn: int
    one: str
    other: str

    def __str__(self) -> str:
        return f"turn {self.turn} is not the same each time: {self.one} / {self.other}"


class Chained:
    """A chooser that does what another one does, and links what it sees."""

    sees_every_turn = True

    def __init__(self, chooser: Chooser, *, texts: bool = False) -> None:
        self._chooser = chooser
        self._all = bool(getattr(chooser, "sees_every_turn", False))
        self._last = b""
        self._keep = texts
        self.links: list[str] = []
        self.texts: list[str] = []

    def turn(self, stage: Stage, options: Sequence[int]) -> int:
        """What the other one says."""
        choice = self._chooser.turn(stage, options) if self._all or len(options) > 1 else 0
        choice = min(choice, len(options) - 1)
        able = "; ".join(f"{stage.name(actor)} {_text(stage, actor)}" for actor in options)
        actor = options[choice]
        self._link(f"{stage.name(actor)} {_text(stage, actor)}", able, _observed(stage.run))
        return choice

    def pick(self, stage: Stage, actor: int, pick: Pick) -> int:
        """What the other one says."""
        choice = min(self._chooser.pick(stage, actor, pick), len(pick.options) - 1)
        self._link(f"{stage.name(actor)} picks {pick.kind} = {pick.options[choice]}", ", ".join(pick.options), "")
        return choice

    def finish(self, run: Run) -> None:
        """The end: what the judge said, who waits for what, and what the model shows of itself."""
        wrong = "; ".join(f"{one.oracle}: {one.signature}: {one.text}" for one in run.problems)
        self._link(f"the end ({wrong or 'nothing wrong'})", "; ".join(run.missing), _observed(run))

    def _link(self, what: str, able: str, observed: str) -> None:
        text = f"{what} | {able} | {observed}"
        self._last = blake2b(self._last + text.encode(), digest_size=8).digest()
        self.links.append(self._last.hex())
        if self._keep:
            self.texts.append(f"{what}, of: {able}" + (f", on {observed}" if observed else ""))


def _text(stage: Stage, actor: int) -> str:
    op, resource, writes, detail = stage.label(actor)
    return " ".join(part for part in (op, resource, "w" if writes else "r", detail) if part)


def _observed(run: Run) -> str:
    observed = getattr(run.instance, "observed", None)
    return "" if observed is None else str(observed())


def chain_of(
    model: Model, tape: Sequence[int] | Chooser, *, texts: bool = False, most_steps: int = MOST_STEPS
) -> Chain:
    """Play a schedule and link it."""
    chained = Chained(TapeChooser(tape) if isinstance(tape, Sequence) else tape, texts=texts)
    run = play(model, chained, most=most_steps)
    chained.finish(run)
    return Chain(chained.links, chained.texts, run.choices, run)


def divergence(tape: Sequence[int], one: Chain, other: Chain) -> Divergence | None:
    """Where two chains of one tape part; they must have their texts to be named."""
    for at, (mine, yours) in enumerate(zip(one.links, other.links, strict=False)):
        if mine != yours:
            return Divergence(tuple(tape), at + 1, _of(one, at), _of(other, at))
    if len(one.links) != len(other.links):
        at = min(len(one.links), len(other.links))
        return Divergence(tuple(tape), at + 1, _of(one, at), _of(other, at))
    return None


def _of(chain: Chain, at: int) -> str:
    if at >= len(chain.links):
        return "nothing any more"
    return chain.texts[at] if at < len(chain.texts) else chain.links[at]


def same_twice(model: Model, tape: Sequence[int], *, most_steps: int = MOST_STEPS) -> Divergence | None:
    """Play a tape twice. What the first play has made is kept alive, so that no address comes again."""
    one = chain_of(model, tape, texts=True, most_steps=most_steps)
    other = chain_of(model, tape, texts=True, most_steps=most_steps)
    return divergence(tape, one, other)


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check of determinism came to. ``choices`` is the highest number of choices in a schedule: a check in which
    there was none has shown nothing."""

    tapes: int
    choices: int
    divergence: Divergence | None = None

    @property
    def verdict(self) -> str:
        """``violation``, ``vacuous`` or ``pass``."""
        if self.divergence is not None:
            return "violation"
        return "pass" if self.choices else "vacuous"


def check(model: Model, tapes: Iterable[Sequence[int]]) -> Checked:
    """Play each tape twice in this process, up to the first that is not the same."""
    count = choices = 0
    for tape in tapes:
        count += 1
        one = chain_of(model, tape, texts=True)
        found = divergence(tape, one, chain_of(model, tape, texts=True))
        choices = max(choices, one.choices)
        if found is not None:
            return Checked(count, choices, found)
    return Checked(count, choices)


# -- in another process -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Named:
    """A model by the name of what makes it, so that another process can: ``module:callable`` and keywords for it, which
    JSON can hold."""

    made_by: str
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def model(self) -> Model:
        """The model."""
        module, _, name = self.made_by.partition(":")
        made: Model = getattr(importlib.import_module(module), name)(**self.keywords)
        return made


def fresh_chains(
    named: Named,
    tapes: Sequence[Sequence[int]],
    *,
    python: str = sys.executable,
    hash_seed: str = "random",
    texts: bool = False,
    path: Sequence[str] = (),
) -> list[Chain]:
    """The chains of some tapes as a new process makes them. ``hash_seed`` is its PYTHONHASHSEED, ``path`` what its
    imports may come from besides this package. A StormctlError when the process fails."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment["PYTHONHASHSEED"] = hash_seed
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).resolve().parents[2]), *path])
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    question = {
        "made_by": named.made_by,
        "keywords": dict(named.keywords),
        "texts": texts,
        "tapes": [list(t) for t in tapes],
    }
    try:
        done = subprocess.run(
            [python, "-m", "stormctl.sim.chain"],
            input=json.dumps(question),
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StormctlError(
            f"{python} does not play schedules: {type(error).__name__}", remedy="Name a Python of 3.11 or later."
        ) from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise StormctlError(f"{python} does not play schedules: {last[:200]}", remedy="Name a Python of 3.11 or later.")
    return [Chain(one["links"], one["texts"], one["choices"]) for one in json.loads(done.stdout)]


def check_fresh(named: Named, tapes: Sequence[Sequence[int]], **how: Any) -> Checked:
    """Compare the chains of this process with those of a new one (``how`` as for :func:`fresh_chains`)."""
    model = named.model()
    choices = 0
    for tape, other in zip(tapes, fresh_chains(named, tapes, **how), strict=True):
        mine = chain_of(model, tape)
        choices = max(choices, mine.choices)
        if mine.links != other.links:
            (other,) = fresh_chains(named, [tape], **{**how, "texts": True})
            found = divergence(tape, chain_of(model, tape, texts=True), other)
            at = 0 if found is None else found.turn  # the second time it may have been the same
            unlike = found or Divergence(tuple(tape), at, mine.end, other.end)
            return Checked(len(tapes), choices, unlike)
    return Checked(len(tapes), choices)


def _answers(question: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    model = Named(question["made_by"], question["keywords"]).model()
    for tape in question["tapes"]:
        chain = chain_of(model, tape, texts=question["texts"])
        yield {"links": chain.links, "texts": chain.texts, "choices": chain.choices}


if __name__ == "__main__":
    json.dump(list(_answers(json.load(sys.stdin))), sys.stdout)
