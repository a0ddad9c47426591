"""From a captured log to what happened: the class, the guilty write, and what stays open."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from stormctl.explain.conflicts import Clash, Conflict, Side
from stormctl.explain.explanation import (
    Answer,
    Binding,
    BindingPair,
    Explanation,
    GenerationRow,
    GuiltyWrite,
    Named,
    Today,
    WriterView,
)
from stormctl.explain.facts import Facts
from stormctl.explain.investigate import Investigation, investigate, tied_with
from stormctl.explain.plan import ExplainPlan
from stormctl.explain.story import story_of, witness_of
from stormctl.explain.taxonomy import CorruptionClass, Group, Match, Weight, classes
from stormctl.explain.words import WRITTEN_AS, count, named_ranges, pulls
from stormctl.explain.writers import Clock, Reconstruction
from stormctl.history import Capture
from stormctl.sweeps.base import SWEEPS
from stormctl.sweeps.finding import Severity, Verdict
from stormctl.sweeps.run import overall

#: pairs of bindings that a report shows
MAX_PAIRS = 4
#: fatal findings that a report repeats; ``stormctl sweep`` lists them all
MAX_FINDINGS = 12
#: below this share of explained creates the workload is doubted before the log is
FITTING = 0.5


def explain(capture: Capture, plan: ExplainPlan | None = None, *, clock: Clock = time.monotonic) -> Explanation:
    """What is wrong with one log, and which write is to blame.

    Example::

        found = explain(capture, ExplainPlan(workload="step-storm"))
        print(found.headline)
    """
    plan = plan or ExplainPlan()
    found = investigate(capture, plan, clock=clock)
    facts = found.facts
    doubted = _doubt(facts)
    if doubted:
        facts = found.facts = _log_only(facts)
    matches = sorted(_matches(facts), key=lambda pair: _order(facts, pair[1]))
    answer = _answer(found, matches, doubted)
    named = matches[0] if matches and answer is not Answer.CLEAN else None
    match = None if named is None else named[1]
    return Explanation(
        source=capture.source,
        run_id=capture.log.run_id,
        events=len(capture.log),
        profile=facts.report.profile,
        answer=answer,
        headline=_headline(found, answer, named, doubted),
        workload=_workload(found, plan),
        named=None if named is None else _named(facts, *named),
        also=tuple(_named(facts, *pair) for pair in matches[1:]) if named is not None else (),
        story=story_of(facts, match) if answer is not Answer.CLEAN and not doubted else (),
        witness=witness_of(facts, match) if answer is not Answer.CLEAN and not doubted else (),
        guilty=None if doubted else _guilty(facts),
        bindings=() if doubted else tuple(_pair(facts, one) for one in _shown(facts)),
        written_by=facts.writer,
        written_by_sure=_sure(facts, plan),
        written_by_why=_why_written(facts),
        generations=tuple(_row(facts, one) for one in facts.found.values()),
        today=None if doubted else _today(facts, None if named is None else named[0]),
        findings=tuple(_findings(facts)),
        open=tuple(dict.fromkeys(_open(found, answer, matches, doubted))),
        left_out=tuple(found.left_out),
    )


# -- the class --------------------------------------------------------------------------------------------------------


def _matches(facts: Facts) -> Iterator[tuple[CorruptionClass, Match]]:
    for row in classes():
        match = row.signature(facts)
        if match is not None:
            yield row, match


def _findings(facts: Facts) -> Iterator[str]:
    for finding in [one for one in facts.report.findings if one.severity is Severity.FATAL][:MAX_FINDINGS]:
        at = f" at {', '.join(map(str, finding.positions[:3]))}" if finding.positions else ""
        yield f"{finding.sweep}{at}: {finding.message}"


def _order(facts: Facts, match: Match) -> tuple[bool, bool]:
    """What is shown comes before what fits, and what is about the guilty write before the rest. Ties keep the table's
    order."""
    guilty = facts.guilty is not None and facts.guilty.create.index in match.at
    return match.weight is not Weight.SHOWN, not guilty


def _named(facts: Facts, row: CorruptionClass, match: Match) -> Named:
    return Named(
        name=row.name,
        title=row.title,
        group=str(row.group),
        weight=str(match.weight),
        mechanism=row.mechanism,
        evidence=match.because,
        positions=tuple(facts.log.place(index) for index in match.at),
        closed_by=row.closed_by,
        closed=row.closed,
        question=row.question,
    )


def _doubt(facts: Facts) -> str | None:
    """Why the replays say nothing about the log: no engine explains even half of its creates."""
    best = facts.best
    if best is None or not best.counted() or best.cut is not None:
        return None
    total = len(best.counted())
    if best.explained >= FITTING * total:
        return None
    return (
        f"no engine explains more than {best.explained} of the {count(total, 'create')}: is it the right workload, "
        "with the right input?"
    )


def _log_only(facts: Facts) -> Facts:
    """The facts without whatever rests on the workload, which is doubted. What the replays came to stays visible."""
    judged = {name for name, sweep in SWEEPS.items() if sweep.scenario_check is not None}
    sweeps = tuple(result for result in facts.report.sweeps if result.sweep not in judged)
    verdict, reasons = overall(facts.capture, sweeps)
    report = replace(facts.report, sweeps=sweeps, verdict=verdict, reasons=reasons)
    return replace(
        facts, report=report, batches=(), conflicts=(), guilty=None, flip=None, searches=(), shaken=None, would={}
    )


# -- the answer -------------------------------------------------------------------------------------------------------


def _corrupted(facts: Facts, doubted: str | None) -> bool:
    if facts.report.verdict is Verdict.VIOLATED:
        return True
    best = facts.best
    if best is None or doubted:
        return False
    return best.divergence is not None or bool(best.unexplained) or bool(best.flips) or facts.guilty is not None


def _answer(found: Investigation, matches: list[tuple[CorruptionClass, Match]], doubted: str | None) -> Answer:
    facts = found.facts
    shown = any(match.weight is Weight.SHOWN for _, match in matches)
    if _corrupted(facts, doubted):
        return Answer.EXPLAINED if matches else Answer.UNCLASSIFIED
    if shown and not doubted:
        return Answer.EXPLAINED
    if facts.best is None and found.why:
        return Answer.NEEDS_WORKLOAD
    best = facts.best
    if doubted or facts.report.verdict is Verdict.UNKNOWN or best is None or best.cut is not None:
        return Answer.OPEN
    return Answer.CLEAN


def _headline(
    found: Investigation, answer: Answer, named: tuple[CorruptionClass, Match] | None, doubted: str | None
) -> str:
    facts = found.facts
    if answer is Answer.CLEAN:
        best = facts.best
        assert best is not None
        told = f"{best.engine} explains {best.explained} of {count(len(best.counted()), 'create')}"
        return f"nothing wrong found: {told}, and no sweep found a fault"
    if answer is Answer.NEEDS_WORKLOAD:
        return f"nothing wrong found in the log alone; a replay needs {found.why}"
    if answer is Answer.OPEN:
        return doubted or "nothing wrong found in what the capture shows, and not everything could be judged"
    if answer is Answer.UNCLASSIFIED or named is None:
        return "the log is corrupted, and no class that is known fits"
    row = named[0]
    closed = f", closed by {pulls(row.closed_by)}" if row.closed_by else ""
    guilty = facts.guilty
    if guilty is None or doubted:
        latent = facts.flip is not None and row.group is Group.ENGINE and facts.closing is not None
        return f"{row.title}{closed}" + (_latent(facts) if latent else "")
    create = guilty.create
    rank = "" if create.rank is None else f", rank {create.rank}"
    return f"{row.title}{closed}: the guilty write is position {create.place}{rank}, {create.name or create.kind}"


def _latent(facts: Facts) -> str:
    """What a flip did to a run whose log has no guilty write."""
    wrong = facts.report.fatal_by_sweep().get("log-order", 0)
    if wrong:
        return f"; no two writers met it, and {wrong} of the run's branches contradict its log"
    return "; no two writers met it, and this run was not harmed by it"


def _workload(found: Investigation, plan: ExplainPlan) -> str | None:
    run = found.facts.capture.run
    return plan.workload or (run.workload if run is not None else None)


# -- who wrote what ---------------------------------------------------------------------------------------------------


def _guilty(facts: Facts) -> GuiltyWrite | None:
    guilty = facts.guilty
    if guilty is None:
        return None
    create = guilty.create
    view = guilty.view
    return GuiltyWrite(
        position=create.place,
        rank=create.rank,
        label=create.label,
        written_as=WRITTEN_AS[create.footprint],
        staleness=None if view is None else create.place - facts.log.name_of_prefix(view.length),
        writer=None if view is None else _view(facts, _name_of(facts), view.length, view.hidden, create.index),
        found_by=guilty.found_by,
    )


def _name_of(facts: Facts) -> str:
    guilty = facts.guilty
    return "its writer" if guilty is None or guilty.batch is None else guilty.batch.writer


def _view(facts: Facts, name: str, length: int, hidden: tuple[int, ...], index: int | None) -> WriterView:
    log = facts.log
    ends: tuple[tuple[int, int], ...] = ((log.name_of_prefix(length), log.name_of_prefix(length)),)
    if not hidden:
        ends = next((named_ranges(log, one.prefixes) for one in facts.batches if one.writer == name), ends)
    known = None if index is None else facts.known.get(index)
    return WriterView(
        name=name,
        prefixes=ends,
        hidden=tuple(log.place(one) for one in hidden),
        audit=None if known is None else known.writer,
        snapshot=None if known is None else known.snapshot,
    )


def _shown(facts: Facts) -> list[Conflict]:
    """The conflicts that a report shows: those of the two writers at odds, calls and ranks before inputs."""
    main = facts.conflict(Clash.CALL, Clash.RANK) or facts.conflict()
    if main is None:
        return []
    pair = {main.one.writer, main.other.writer}
    ordered = [one for one in facts.conflicts if {one.one.writer, one.other.writer} == pair]
    return ordered[:MAX_PAIRS]


def _pair(facts: Facts, conflict: Conflict) -> BindingPair:
    return BindingPair(str(conflict.clash), _binding(facts, conflict.one), _binding(facts, conflict.other))


def _binding(facts: Facts, side: Side) -> Binding:
    index = None if side.create is None else side.create.index
    guilty = facts.guilty
    hidden: tuple[int, ...] = ()
    length = side.length
    if guilty is not None and guilty.view is not None and side.create is guilty.create:
        hidden, length = guilty.view.hidden, guilty.view.length
    writer = _view(facts, side.writer, length, hidden, index)
    return Binding(writer, side.rank, side.label, None if side.create is None else side.create.place)


def _sure(facts: Facts, plan: ExplainPlan) -> bool:
    """Whether the capture names the generation, or the others were all tried and explain less."""
    if facts.writer is None or facts.declared == facts.writer:
        return facts.writer is not None
    tried = len(facts.found) > 1 and all(name in facts.found for name in plan.names())
    return tried and not any(tied_with(facts))


def _why_written(facts: Facts) -> str:
    best = facts.best
    if best is None:
        return ""
    told = f"it explains {best.explained} of {count(len(best.counted()), 'step and wait create')}"
    tied = list(tied_with(facts))
    if facts.declared == facts.writer:
        told = f"the capture says so, and {told}"
    elif facts.declared is not None:
        told += f"; the capture names {facts.declared}"
    if tied:
        every = len(tied) > 1 and len(tied) == len(facts.found) - 1
        told += f", as {'does' if len(tied) == 1 else 'do'} {'all the others' if every else ', '.join(tied)}"
    return told


def _row(facts: Facts, one: Reconstruction) -> GenerationRow:
    log = facts.log
    return GenerationRow(
        engine=one.engine,
        creates=len(one.counted()),
        explained=one.explained,
        unexplained=tuple(origin.create.place for origin in one.unexplained),
        flips=len(one.flips),
        clean_through=None if one.clean_through is None else log.name_of_prefix(one.clean_through),
        diverges_at=None if one.diverges_at is None else log.name_of_prefix(one.diverges_at),
        replayed=one.replayed,
        cut=one.cut,
    )


# -- today, and what stays open ---------------------------------------------------------------------------------------


def _today(facts: Facts, row: CorruptionClass | None) -> Today | None:
    engine = facts.newest
    guilty, flip = facts.guilty, facts.flip
    if guilty is not None and engine in facts.would:
        would = facts.would[engine]
        where = f"from the view of its writer, {engine}"
        if would is None:
            return Today(engine, "unknown", f"{engine} cannot follow the log up to the view of the guilty write")
        if not would:
            rest = _still_broken(facts)
            return Today(engine, "no", f"{where} does not ask for {guilty.create.label} there{rest}")
        if flip is not None and facts.flips_under.get(engine) is False:
            text = f"{engine} asks for this write too, and never for the other: under it rank {flip.rank} does not flip"
            return Today(engine, "no", text)
        store = row is not None and row.group is not Group.ENGINE
        why = ": the view is at fault, not the engine" if store else ""
        return Today(engine, "yes", f"{where} asks for the same{why}")
    if flip is not None and engine in facts.flips_under:
        would = facts.flips_under[engine]
        if would is None:
            return Today(engine, "unknown", f"{engine} cannot follow the log up to the flip")
        text = f"under {engine} rank {flip.rank} {'flips' if would else 'does not flip'} at prefix {flip.after}"
        return Today(engine, "yes" if would else "no", text)
    best, newest = facts.best, facts.found.get(engine)
    if best is not None and newest is not None and best.divergence is None and newest.divergence is not None:
        stops = facts.log.place(newest.divergence.index)
        return Today(engine, "no", f"{engine} would not have written this log, and cannot read it past {stops}")
    if row is not None and row.group is not Group.ENGINE:
        return Today(engine, "unknown", "the store is at fault: what the engine does makes no difference")
    return None


def _still_broken(facts: Facts) -> str:
    whole = [one for one in facts.found.values() if one.cut is None]
    if whole and all(one.divergence is not None for one in whole):
        return ", but no generation can read this log to its end: only new runs are protected"
    return ""


def _open(
    found: Investigation, answer: Answer, matches: list[tuple[CorruptionClass, Match]], doubted: str | None
) -> Iterator[str]:
    facts = found.facts
    if doubted:
        yield doubted
    if facts.best is None and found.why:
        yield f"which write is to blame: that needs {found.why}"
    if answer is not Answer.CLEAN:
        for row, match in matches[:1]:
            if match.weight is Weight.FITS or not facts.known:
                yield f"to settle the class: {row.question}"
    for search in facts.searches:
        if search.view is None and search.tried < search.facts:
            yield (
                f"whether one of the {search.facts - search.tried} facts that were not tried was hidden from the "
                f"writer of "
                f"{search.create.place}"
            )
    if answer is Answer.UNCLASSIFIED:
        yield "whether the workflow's code was changed while the run was alive, or another program wrote to the log"
    if answer in (Answer.OPEN, Answer.NEEDS_WORKLOAD, Answer.UNCLASSIFIED):
        yield from facts.report.reasons
    best = facts.best
    if best is not None and best.cut is not None:
        yield f"the prefixes from {facts.log.name_of_prefix(best.replayed)} on were not replayed: {best.cut}"
    if best is not None and not best.compared and any(origin.create.kind == "step" for origin in best.origins):
        yield "the inputs of steps: the log holds none that a replay can be compared with"
