"""Gathering the facts of one log: sweeps, reconstructions, conflicts, the guilty write, and who else would write it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from stormctl.engine.door import Engine, Pass
from stormctl.errors import StormctlError
from stormctl.explain.batches import Batch, batches_of
from stormctl.explain.blame import guilty_of
from stormctl.explain.conflicts import Clash, Conflict, conflicts_of
from stormctl.explain.facts import NEVER_RELEASED, Facts
from stormctl.explain.hidden import asks_for
from stormctl.explain.known import known_writers
from stormctl.explain.plan import ExplainPlan, newest, order_with
from stormctl.explain.sessions import Kept, kept_session
from stormctl.explain.writers import Clock, Reconstruction, reconstruct
from stormctl.history import Capture, EventLog
from stormctl.sweeps.base import Scenario
from stormctl.sweeps.finding import Verdict
from stormctl.sweeps.plan import NeedsWorkload, Parallel
from stormctl.sweeps.rebinding import Flip
from stormctl.sweeps.run import scenario_of, sweep_log
from stormctl.sweeps.witness import clean


@dataclass(slots=True)
class Investigation:
    """The facts of one log, and what was left out of them. ``why`` says what a missing scenario lacks."""

    facts: Facts
    why: str = ""
    left_out: list[str] = field(default_factory=list)


class _Engines:
    """Engines by name, opened once. One that cannot be opened is left out and said so."""

    def __init__(self, plan: ExplainPlan, capture: Capture, scenario: Scenario | None) -> None:
        self._plan = plan
        self._capture = capture
        self._scenario = scenario
        self._open: dict[str, Engine | None] = {}
        self.failed: dict[str, str] = {}

    def get(self, name: str) -> Engine | None:
        """The engine of that name, or None."""
        if name not in self._open:
            try:
                engine = self._plan.open(name, self._capture, self._scenario)
            except NeedsWorkload:
                self._open[name] = None
            except StormctlError as error:
                self._open[name] = None
                self.failed[name] = f"{error}. {error.remedy}"
            else:
                if isinstance(engine, Parallel):
                    engine.jobs = self._plan.jobs
                self._open[name] = engine
        return self._open[name]


def investigate(capture: Capture, plan: ExplainPlan, *, clock: Clock = time.monotonic) -> Investigation:
    """Everything that is known of one log. UsageError for a profile that does not exist."""
    report = sweep_log(capture, plan.sweep())
    scenario, why = scenario_of(capture, plan.sweep())
    names = plan.names()
    facts = Facts(
        capture,
        report,
        order=order_with(names),
        newest=newest(),
        declared=_declared(capture),
        known=known_writers(capture),
    )
    found = Investigation(facts, why)
    if len(capture.log) > plan.max_events:
        found.left_out.append(
            f"all replays: the log has {len(capture.log)} events, and more than {plan.max_events} are not replayed"
        )
        return found
    engines = _Engines(plan, capture, scenario)
    deadline = clock() + plan.seconds
    found.facts = _replayed(found, engines, names, deadline, clock)
    found.left_out += [f"{name}: {text}" for name, text in engines.failed.items()]
    return found


def _declared(capture: Capture) -> str | None:
    """The generation that the capture says ran it, if it does."""
    named = capture.data.get("generation")
    return named if isinstance(named, str) else None


def _replayed(found: Investigation, engines: _Engines, names: tuple[str, ...], deadline: float, clock: Clock) -> Facts:
    facts = found.facts
    walks = _walks(found, engines, names, deadline, clock)
    writer = written_by(walks, facts.declared, facts.order)
    facts = replace(facts, found=walks, writer=writer)
    best = facts.best
    if writer is None or best is None:
        return facts
    engine = engines.get(writer)
    assert engine is not None
    today = engines.get(facts.newest)
    batches = batches_of(facts.log, best)
    conflicts = conflicts_of(facts.log, engine, best, batches)
    facts = replace(facts, batches=batches, conflicts=conflicts)
    others = [other for name in facts.order if name != writer and (other := engines.get(name)) is not None]
    guilty, searches, shaken = guilty_of(facts, engine, today, others)
    facts = replace(facts, guilty=guilty, searches=searches, shaken=shaken)
    facts = replace(facts, flip=_decisive(facts))
    facts = replace(facts, would=_would(facts, engines), flips_under=_flips_under(facts, engines))
    return replace(facts, kept=_kept(facts, engines, names, deadline, clock))


def _kept(
    facts: Facts, engines: _Engines, names: tuple[str, ...], deadline: float, clock: Clock
) -> dict[str, Kept | None]:
    """What sessions draw that a cold replay does not: looked for where a run failed and no cold replay says why."""
    best = facts.best
    if not facts.failed or facts.guilty is not None or best is None or best.divergence is not None:
        return {}
    found: dict[str, Kept | None] = {}
    likely = (facts.declared, "turnstile", facts.newest)
    for name in dict.fromkeys(name for name in likely if name is not None and name in names):
        engine = engines.get(name)
        if engine is None or clock() > deadline:
            continue
        try:
            found[name] = kept_session(facts.log, engine)
        except Exception:  # an engine without sessions has none that differ
            continue
    return found


def _walks(
    found: Investigation, engines: _Engines, names: tuple[str, ...], deadline: float, clock: Clock
) -> dict[str, Reconstruction]:
    """The reconstruction under each engine, the likeliest first, until the time is up or no question is left."""
    facts = found.facts
    walks: dict[str, Reconstruction] = {}
    order = _likeliest_first(names, facts)
    for place, name in enumerate(order):
        left = deadline - clock()
        engine = engines.get(name)
        if engine is None:
            continue
        if left <= 0:
            found.left_out.append(f"{', '.join(order[place:])}: the time for replays was up")
            break
        walks[name] = reconstruct(facts.log, engine, seconds=left, clock=clock)
        if _settled(facts, walks, names) and order[place + 1 :]:
            found.left_out.append(f"{', '.join(order[place + 1 :])}: not needed, the log is sound under {name}")
            break
    return {name: walks[name] for name in facts.order if name in walks}


def _likeliest_first(names: tuple[str, ...], facts: Facts) -> list[str]:
    known = [name for name in reversed(facts.order) if name in names]
    known.sort(key=lambda name: name in NEVER_RELEASED)  # those few can have written a log least of all
    rest = [name for name in names if name not in known]
    head = [name for name in (facts.newest, facts.declared) if name in names]
    return list(dict.fromkeys([*(name for name in head if name is not None), *known, *rest]))


def _settled(facts: Facts, walks: dict[str, Reconstruction], names: tuple[str, ...]) -> bool:
    """Whether the other generations have nothing to add: the log is sound, ended well, and these explain all of it."""
    if facts.report.verdict is Verdict.VIOLATED or not facts.log.ended or facts.log[-1].type == "run_failed":
        return False
    run = facts.capture.run
    if run is not None and run.status != "completed":
        return False
    if facts.declared in names and facts.declared not in walks:
        return False
    return all(_is_sound(one) for one in walks.values())


def _is_sound(one: Reconstruction) -> bool:
    return one.cut is None and one.divergence is None and not one.flips and not one.unexplained


def written_by(found: dict[str, Reconstruction], declared: str | None, order: Iterable[str]) -> str | None:
    """The generation that explains most creates. Of several the one that the capture names, else the one without a
    divergence, else the newest that was released."""
    whole = {name: one for name, one in found.items() if one.cut is None} or dict(found)
    if not whole:
        return None
    top = max(one.explained for one in whole.values())
    tied = [name for name, one in whole.items() if one.explained == top]
    if declared in tied:
        return declared
    places = {name: place for place, name in enumerate(order)}

    def rank(name: str) -> tuple[bool, bool, int]:
        return whole[name].divergence is None, name not in NEVER_RELEASED, places.get(name, -1)

    return max(tied, key=rank)


def _decisive(facts: Facts) -> Flip | None:
    """The flip that parts the two writers of the conflict; without one, the first that the log's writer makes."""
    best = facts.best
    if best is None or not best.flips:
        return None
    conflict = facts.conflict(Clash.RANK, Clash.CALL)
    if conflict is None:
        return _without_conflict(facts, best)
    low, high = (facts.log.name_of_prefix(side.length) for side in (conflict.stale, conflict.fresh))
    between = [flip for flip in best.flips if low < flip.after <= high]
    ranks = {conflict.one.rank, conflict.other.rank}
    return next((flip for flip in between if flip.rank in ranks), between[0] if between else None)


def _without_conflict(facts: Facts, best: Reconstruction) -> Flip | None:
    """The flip of the rank that the replay stops at; where it stops nowhere, the first."""
    if facts.guilty is None:
        return best.flips[0]
    ranks = {facts.guilty.create.rank}
    if best.divergence is not None:
        ranks.add(best.divergence.rank)
    return next((flip for flip in best.flips if flip.rank in ranks), None)


def _would(facts: Facts, engines: _Engines) -> dict[str, bool | None]:
    """Of each generation, whether it asks for the guilty write given the view it was derived from."""
    guilty = facts.guilty
    if guilty is None or guilty.view is None or facts.best is None or guilty.found_by == "perturbed pass":
        return {}
    told: dict[str, bool | None] = {}
    for name in facts.order:
        replay = _view(facts.log, engines.get(name), guilty.view.length, frozenset(guilty.view.hidden))
        if replay is None or replay.divergence is not None:
            told[name] = None
        else:
            told[name] = asks_for(replay, guilty.create, inputs=facts.best.compares(guilty.create))
    return told


def _flips_under(facts: Facts, engines: _Engines) -> dict[str, bool | None]:
    """Of each generation, whether the decisive flip happens under it."""
    flip = facts.flip
    if flip is None:
        return {}
    lengths = [facts.log.length_of_prefix(name) for name in (flip.before, flip.after)]
    told: dict[str, bool | None] = {}
    for name in facts.order:
        passes = [_view(facts.log, engines.get(name), length) for length in lengths]
        bound = [_binding(replay, flip.rank) for replay in passes]
        if any(replay is None or replay.divergence is not None for replay in passes):
            told[name] = None
        else:
            told[name] = None not in bound and bound[0] != bound[1]
    return told


def _view(log: EventLog, engine: Engine | None, length: int, hidden: frozenset[int] = frozenset()) -> Pass | None:
    """One pass over one view; None when the engine fails at it."""
    if engine is None:
        return None
    try:
        return next(iter(engine.passes(log, (length,), hidden=hidden)), None)
    except Exception:  # an engine that fails here was already said to fail by its walk
        return None


def _binding(replay: Pass | None, rank: int) -> str | None:
    if replay is None:
        return None
    return next((draw.label for draw in replay.draws if draw.rank == rank), None)


def tied_with(facts: Facts) -> Iterator[str]:
    """Other generations that explain as many creates as the one taken for the writer."""
    best = facts.best
    if best is not None:
        for name, one in facts.found.items():
            if name != facts.writer and one.cut is None and one.explained == best.explained:
                yield name


__all__ = ["Batch", "Conflict", "Investigation", "clean", "investigate", "tied_with", "written_by"]
