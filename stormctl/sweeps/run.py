"""Sweeping logs: every check over every capture, one report per log."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from stormctl.errors import PlanError, StormctlError
from stormctl.history import Capture
from stormctl.readers.open import Unreadable, files_at, open_file
from stormctl.sweeps import (
    acknowledged,
    commit_order,
    cursor_skip,
    dense,
    id_order,
    ledger,
    lifecycle,
    log_order,
    one_body,
    rebinding,
    roles,
)
from stormctl.sweeps.base import NO_WORKLOAD, SWEEPS, Scenario, settle
from stormctl.sweeps.bindings import BindingMap, BindingRecorder
from stormctl.sweeps.finding import Item, SweepResult, Unjudged, Verdict, worst
from stormctl.sweeps.perturb_run import perturb
from stormctl.sweeps.perturbation import Perturbed
from stormctl.sweeps.plan import Parallel, SweepPlan
from stormctl.sweeps.profiles import Profile, profile_named
from stormctl.sweeps.rebinding import Rebinding
from stormctl.sweeps.report import LogReport
from stormctl.sweeps.witness import clean
from stormctl.workloads.base import Workload
from stormctl.workloads.user import load_workload, names_a_file
from stormctl.workloads.user_input import recorded_input

#: The order in which a report lists sweeps. Importing a module registers its check.
ORDER = (
    "dense",
    "id-order",
    "commit-order",
    "cursor-skip",
    "acknowledged",
    "one-body",
    "lifecycle",
    "roles",
    "log-order",
    "ledger",
)
#: how long an interrupt may come after the news that the children have died of it
INTERRUPTED_S = 0.2
_ENDING = (signal.SIGINT, signal.SIGTERM)
_REGISTERED = (acknowledged, commit_order, cursor_skip, dense, id_order, ledger, lifecycle, log_order, one_body, roles)


def sweep_many(captures: Iterable[Capture], plan: SweepPlan) -> Iterator[LogReport]:
    """One report per capture, as they come."""
    for capture in captures:
        yield sweep_log(capture, plan)


def sweep_log(capture: Capture, plan: SweepPlan) -> LogReport:
    """Every sweep of the plan over one capture. UsageError for a profile or engine that does not exist."""
    profile = profile_named(plan.profile)
    scenario, why = scenario_of(capture, plan)
    ordered = sorted(SWEEPS.values(), key=lambda one: ORDER.index(one.name) if one.name in ORDER else len(ORDER))
    bare = scenario is not None and scenario.workload.bare
    applying = [
        one for one in ordered if one.applies(capture, scenario) and not (bare and one.scenario_check is not None)
    ]
    results = [one.judge(capture, scenario, profile, why) for one in applying]
    replays: list[Rebinding] = []
    perturbed: list[Perturbed] = []
    maps: list[BindingMap] = []
    if plan.engines:
        result, replays, maps = _rebind(capture, scenario, why, plan, profile)
        results.append(result)
        if plan.perturb:
            result, perturbed = perturb(capture, scenario, why, plan, profile, replays)
            results.append(result)
    verdict, reasons = overall(capture, results)
    return LogReport(
        source=capture.source,
        run_id=capture.log.run_id,
        events=len(capture.log),
        profile=profile.name,
        verdict=verdict,
        reasons=reasons,
        sweeps=tuple(results),
        rebinding=tuple(replays),
        perturbation=tuple(perturbed),
        maps=tuple(maps),
    )


def sweep_paths(
    paths: Sequence[Path | str], plan: SweepPlan, *, processes: int = 1
) -> Iterator[LogReport | Unreadable]:
    """Open and sweep what lies at the paths, in order, over several processes.

    Several files are spread over them; the engines share them over the prefixes of a file that has some to itself. The
    processes end with this one, and at once when whoever consumes the reports stops.
    """
    found = [file for path in paths for file in files_at(Path(path))]
    files = [file for file in found if not isinstance(file, Unreadable)]
    workers = min(processes, len(files))
    plan = replace(plan, jobs=max(plan.jobs, processes // max(1, workers)))
    if workers < 2:
        for item in found:
            yield from [item] if isinstance(item, Unreadable) else _sweep_file(item, plan)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(workers, initializer=_as_child) as pool:
        try:
            with _undisturbed():
                swept = pool.map(_sweep_whole_file, files, [plan] * len(files))
            for item in found:
                yield from [item] if isinstance(item, Unreadable) else next(swept)
        except BrokenProcessPool:
            # Ctrl-C in a terminal ends the children too, and theirs may be told first
            time.sleep(INTERRUPTED_S)
            raise StormctlError(
                "a process that swept some of the logs died",
                remedy="Look whether memory ran out, and sweep fewer logs at once.",
            ) from None
        except BaseException:
            for child in set(multiprocessing.active_children()) - others:
                child.kill()  # a stopped one would not end otherwise
            raise


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No interrupt while processes are forked: raised inside one of the hooks of a fork, it would be lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _as_child() -> None:
    """Before a process of the pool sweeps: it dies with its parent, and by a signal without a word."""
    from stormctl.engine.children import end_with_parent

    for number in _ENDING:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    end_with_parent()


def _sweep_file(path: Path, plan: SweepPlan) -> Iterator[LogReport | Unreadable]:
    for item in open_file(path):
        yield item if isinstance(item, Unreadable) else sweep_log(item, plan)


def _sweep_whole_file(path: Path, plan: SweepPlan) -> list[LogReport | Unreadable]:
    return list(_sweep_file(path, plan))


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
    if scenario is None:
        return SweepResult(rebinding.NAME, Verdict.UNKNOWN, missing=(why,)), [], []
    lengths = plan.prefixes.lengths(capture.log)
    items: list[Item] = []
    replays: list[Rebinding] = []
    maps: list[BindingMap] = []
    if not lengths:
        items.append(Unjudged("a prefix in the given range"))
    for name in plan.engines:
        engine = plan.open(name, scenario.workload, scenario.input)
        if isinstance(engine, Parallel):
            engine.jobs = plan.jobs
        recorder = BindingRecorder() if plan.maps else None
        try:
            replay = rebinding.rebinding(
                capture.log,
                engine,
                lengths,
                workload=scenario.workload.name,
                include_input_only=plan.include_input_only,
                observer=recorder,
            )
        except StormctlError as error:
            items.append(Unjudged(f"a replay by {name}: {error}"))
        except Exception as error:
            # a log may hold what no workflow expects; that must not hide the other sweeps
            items.append(Unjudged(f"a replay by {name}, which failed: {type(error).__name__}: {clean(str(error))}"))
        else:
            replays.append(replay)
            items.extend(rebinding.faults(capture, replay))
            if recorder is not None:
                maps.append(recorder.finish(engine.name, scenario.workload.name, capture.log))
    return settle(rebinding.NAME, items, capture, profile), replays, maps


def overall(capture: Capture, results: Sequence[SweepResult]) -> tuple[Verdict, tuple[str, ...]]:
    """A log's verdict from those of its sweeps, and the reasons for whatever stayed open.

    A log without a fatal finding is not clean when its run failed (the engine is the suspect then), when the run was
    still going, or when part of the log was not captured.
    """
    verdict = worst(result.verdict for result in results)
    reasons = [unknown_reason(result) for result in results if result.verdict is Verdict.UNKNOWN]
    if capture.evidence.truncated:
        reasons.append("the log was not captured to its end")
    if verdict is Verdict.VIOLATED:
        return verdict, tuple(reasons)
    if capture.evidence.live:
        reasons.append("the run was still going when it was captured")
    suspect = _engine_suspect(capture)
    if suspect is not None:
        reasons.insert(0, suspect)
    return (Verdict.UNKNOWN if reasons else verdict), tuple(reasons)


def unknown_reason(result: SweepResult) -> str:
    """Why a sweep could not judge, as one phrase."""
    return f"{result.sweep} is unknown: it lacks {'; '.join(map(str, result.missing))}"


def _engine_suspect(capture: Capture) -> str | None:
    run, end = capture.run, next((event for event in capture.log if event.is_terminal), None)
    if (run is None or run.status != "failed") and (end is None or end.type != "run_failed"):
        return None
    code = run.error_code if run is not None else None
    how = f" with {clean(code)}" if code else ""
    return f"engine suspect: the run failed{how} while no sweep found a fault in its log"
