"""Sweeping logs: every check over every capture, one report per log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from stormctl.engine.door import Engine
from stormctl.errors import PlanError, StormctlError, UsageError
from stormctl.history import Capture, Facet
from stormctl.sweeps import rebinding
from stormctl.sweeps.base import NO_WORKLOAD, Scenario, settle
from stormctl.sweeps.bindings import BindingMap, BindingRecorder
from stormctl.sweeps.captured_twice import taken_once
from stormctl.sweeps.entity_rows import ENDED
from stormctl.sweeps.finding import Item, SweepResult, Unjudged, Verdict, worst
from stormctl.sweeps.memory import Kept, key_of
from stormctl.sweeps.payloads_shown import payloads_of
from stormctl.sweeps.perturb_run import perturb
from stormctl.sweeps.perturbation import Perturbed
from stormctl.sweeps.plan import NeedsWorkload, Parallel, SweepPlan
from stormctl.sweeps.profiles import Profile
from stormctl.sweeps.reading import Reading, kind_of_world, reading_of
from stormctl.sweeps.rebinding import Rebinding
from stormctl.sweeps.registered import in_order
from stormctl.sweeps.report import LogReport
from stormctl.sweeps.witness import clean
from stormctl.workloads.base import Workload
from stormctl.workloads.user import load_workload, names_a_file
from stormctl.workloads.user_input import recorded_input

_NO_PREFIX = Unjudged("a prefix in the given range")


def sweep_many(captures: Iterable[Capture], plan: SweepPlan) -> Iterator[LogReport]:
    """One report per capture, as they come."""
    for capture in captures:
        yield sweep_log(capture, plan)


def sweep_log(capture: Capture, plan: SweepPlan) -> LogReport:
    """Every sweep of the plan over one capture. UsageError for a profile or engine that does not exist."""
    reading = reading_of(capture, plan.profile)
    profile = reading.profile
    scenario, why = scenario_of(capture, plan)
    bare = scenario is not None and scenario.workload.bare
    read, capture = capture, taken_once(capture)
    results = [
        one.judge(read if one.whole else capture, scenario, profile, why)
        for one in in_order()
        if one.name in plan.only
        or (
            not plan.only
            and one.applies(capture, scenario)
            and not (bare and one.scenario_check is not None and not one.of_bodies)
        )
    ]
    replays: list[Rebinding] = []
    perturbed: list[Perturbed] = []
    maps: list[BindingMap] = []
    if plan.engines:
        result, replays, maps = _rebind(capture, scenario, why, plan, profile)
        results.append(result)
        if plan.perturb:
            result, perturbed = perturb(capture, scenario, why, plan, profile, replays)
            results.append(result)
    report = report_of(capture, len(read.log), reading, results)
    return replace(
        report,
        rebinding=tuple(replays),
        perturbation=tuple(perturbed),
        maps=tuple(maps),
        payloads=payloads_of(capture, report.findings) if plan.show_payloads else (),
    )


def report_of(capture: Capture, events: int, reading: Reading, results: Sequence[SweepResult]) -> LogReport:
    """The report of a log of so many events, from what its sweeps answered."""
    verdict, reasons = overall(capture, results)
    return LogReport(
        source=capture.source,
        run_id=capture.log.run_id,
        world=kind_of_world(capture),
        events=events,
        profile=reading.profile.name,
        profile_from=reading.source,
        told=reading.told,
        verdict=verdict,
        reasons=reasons,
        sweeps=tuple(results),
    )


def scenario_of(capture: Capture, plan: SweepPlan) -> tuple[Scenario | None, str]:
    """The workload and input to judge a capture by, or None and what is missing.

    The plan's workload comes first, then the one that the capture names. The input is the capture's where it is known,
    else the workload's defaults.
    """
    named = plan.workload or (capture.run.workload if capture.run is not None else None)
    if named is None:
        return None, NO_WORKLOAD
    workload = _of_a_file(plan) or plan.find(named)
    if workload is None:
        return None, f"a workload named {clean(named)!r}"
    given = capture.run.input if capture.run is not None else {}
    if workload.bare:
        given = recorded_input(capture)
    try:
        return Scenario(workload, workload.parse_input(given)), ""
    except PlanError as error:
        return None, f"an input that {workload.name} takes ({clean(str(error))})"


def _of_a_file(plan: SweepPlan) -> Workload | None:
    """The workload in the file that the person who sweeps has named. A file that only a log names is not executed."""
    if plan.workload is None or not names_a_file(plan.workload):
        return None
    return load_workload(plan.workload)


def _rebind(
    capture: Capture, scenario: Scenario | None, why: str, plan: SweepPlan, profile: Profile
) -> tuple[SweepResult, list[Rebinding], list[BindingMap]]:
    items: list[Item] = []
    replays: list[Rebinding] = []
    maps: list[BindingMap] = []
    for name in plan.engines:
        try:
            engine = plan.open(name, capture, scenario)
        except NeedsWorkload:
            items.append(Unjudged(why))
            continue
        except UsageError:
            raise
        except StormctlError as error:
            items.append(Unjudged(f"a replay by {name}: {error}"))
            continue
        if isinstance(engine, Parallel):
            engine.jobs = plan.jobs
        lengths = plan.lengths(name, capture.log)
        if not lengths and _NO_PREFIX not in items:
            items.append(_NO_PREFIX)
        try:
            kept = _replayed(capture, engine, lengths, _workload_of(engine, scenario), plan)
        except StormctlError as error:
            items.append(Unjudged(f"a replay by {name}: {error}"))
        except Exception as error:
            # a log may hold what no workflow expects; that must not hide the other sweeps
            items.append(Unjudged(f"a replay by {name}, which failed: {type(error).__name__}: {clean(str(error))}"))
        else:
            replay, drawn = kept
            replays.append(replay)
            items.extend(rebinding.faults(capture, replay))
            if drawn is not None and plan.maps:
                maps.append(drawn)
    return settle(rebinding.NAME, items, capture, profile), replays, maps


def _replayed(
    capture: Capture, engine: Engine, lengths: Sequence[int], workload: str, plan: SweepPlan
) -> tuple[Rebinding, BindingMap | None]:
    """The replay, from the plan's memory where it is there, and its map where one is wanted or can be kept."""
    key: str | None = None
    if plan.memory is not None:
        key = key_of(engine, capture.log, lengths, include_input_only=plan.include_input_only)
        kept = None if key is None else plan.memory.recall(key)
        if kept is not None:
            kept = kept.as_(engine.name, workload)
            return kept.replay, kept.map
    recorder = BindingRecorder() if plan.maps or key is not None else None
    replay = rebinding.rebinding(
        capture.log,
        engine,
        lengths,
        workload=workload,
        include_input_only=plan.include_input_only,
        observer=recorder,
    )
    if recorder is None:
        return replay, None
    drawn = recorder.finish(engine.name, workload, capture.log)
    if plan.memory is not None and key is not None:
        plan.memory.keep(key, Kept(replay, drawn))
    return replay, drawn


def _workload_of(engine: Engine, scenario: Scenario | None) -> str:
    """What the engine replayed, for a report."""
    if engine.workload is not None or scenario is None:
        return engine.workload or ""
    return scenario.workload.name


def overall(capture: Capture, results: Sequence[SweepResult]) -> tuple[Verdict, tuple[str, ...]]:
    """A log's verdict from those of its sweeps, and the reasons for whatever stayed open.

    A log without a fatal finding is not clean when its run failed (the engine is the suspect then), when the run was
    still going, when part of the log was not captured, or when its run has ended and it has no end.
    """
    verdict = worst(result.verdict for result in results)
    reasons = [unknown_reason(result) for result in results if result.verdict is Verdict.UNKNOWN]
    if capture.evidence.truncated:
        reasons.append("the log was not captured to its end")
    if verdict is Verdict.VIOLATED:
        return verdict, tuple(reasons)
    if capture.evidence.live:
        reasons.append("the run was still going when it was captured")
    run = capture.run
    bounded = Facet.ROWS not in capture.evidence.missing and Facet.RUN_BOUNDS not in capture.evidence.missing
    if run is not None and run.status in ENDED and bounded and not capture.log.ended:
        reasons.append(f"the run's row says {run.status} and the log has no end")
    suspect = _engine_suspect(capture)
    if suspect is not None:
        reasons.insert(0, suspect)
    return (Verdict.UNKNOWN if reasons else verdict), tuple(reasons)


def unknown_reason(result: SweepResult) -> str:
    """Why a sweep could not judge, as one phrase."""
    return f"{result.sweep} is unknown: it lacks {'; '.join(map(str, result.missing))}"


def _engine_suspect(capture: Capture) -> str | None:
    run, end = capture.run, next((capture.log[index] for index in capture.log.ends), None)
    if (run is None or run.status != "failed") and (end is None or end.type != "run_failed"):
        return None
    code = run.error_code if run is not None else None
    how = f" with {clean(code)}" if code else ""
    return f"engine suspect: the run failed{how} while no sweep found a fault in its log"
