"""How a check of a drain trace is registered and run. It stands in the same registry as the checks of logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from stormctl.errors import StormctlError
from stormctl.history import Capture
from stormctl.sweeps.base import SWEEPS, Sweep
from stormctl.sweeps.drain.lines import line
from stormctl.sweeps.drain.records import DrainTrace
from stormctl.sweeps.finding import MAX_WITNESS, Fault, Finding, Severity, SweepResult, Verdict
from stormctl.sweeps.profiles import STRICT, Profile
from stormctl.sweeps.witness import clean

Check = Callable[[DrainTrace], Iterator[Fault]]

#: what a sweep of a trace needs, in words
NEEDS = "a drain trace"
#: what a sweep of logs needs of a trace, in words
NEEDS_LOG = "an event log"
#: how the names of those classes begin that are known of the last generation, or no fault of the drain: every profile
#: has them as legal, so that they are shown and do not fail
LEGAL = ("residual-", "inversion-by-")

_CHECKS: dict[str, Check] = {}


def drain_sweep(name: str, *, kinds: Iterable[str]) -> Callable[[Check], Check]:
    """Register a check of drain traces."""

    def register(check: Check) -> Check:
        question = (check.__doc__ or "").strip().partition("\n")[0]
        SWEEPS[name] = Sweep(
            name, question, frozenset(), tuple(kinds), None, optional=True, where=_never, evidence=NEEDS, unfit=NEEDS
        )
        _CHECKS[name] = check
        return check

    return register


def _never(_: Capture) -> bool:
    return False


def checks() -> dict[str, Check]:
    """The checks of traces by name, in the order of reports."""
    return dict(_CHECKS)


def faults(trace: DrainTrace) -> Iterator[tuple[str, Fault]]:
    """Everything that every check sees in a trace, residuals among it."""
    for name, check in _CHECKS.items():
        for fault in check(trace):
            yield name, fault


def judge(name: str, trace: DrainTrace, profile: Profile = STRICT) -> SweepResult:
    """What one check says of a trace. A check that fails itself answers unknown and hides no other."""
    check = _CHECKS.get(name)
    if check is None:
        return SweepResult(name, Verdict.UNKNOWN, missing=(NEEDS_LOG,))
    try:
        found = tuple(_finding(name, trace, fault, profile) for fault in check(trace))
    except StormctlError as error:
        return SweepResult(name, Verdict.UNKNOWN, missing=(f"{error}. {error.remedy}",))
    except Exception as error:
        reason = f"the check itself failed: {type(error).__name__}: {clean(str(error))}"
        return SweepResult(name, Verdict.UNKNOWN, missing=(reason,))
    fatal = any(one.severity is Severity.FATAL for one in found)
    return SweepResult(name, Verdict.VIOLATED if fatal else Verdict.CLEAN, found)


def _finding(name: str, trace: DrainTrace, fault: Fault, profile: Profile) -> Finding:
    shown = fault.at if fault.witness is None else fault.witness
    lines = dict.fromkeys(one if isinstance(one, str) else clean(line(trace.records[one])) for one in shown)
    return Finding(
        sweep=name,
        severity=profile.severity(name, fault.kind),
        run=clean(trace.name),
        positions=tuple(trace.records[index].n for index in fault.at),
        message=clean(fault.message),
        witness=tuple(lines)[:MAX_WITNESS],
        key=clean(f"{name}/{fault.kind}/{fault.entity}"),
    )
