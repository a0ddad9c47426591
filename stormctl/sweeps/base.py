"""The registry of sweeps, and how one is run: evidence first, then the check, and never a crash.

A check is a generator over one capture that yields faults and what it could not see. It prints nothing, reads no file
and knows no profile. ``@sweep`` is for a check of the log alone, ``@scenario_sweep`` for one that also needs the
workload and its input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from stormctl.errors import StormctlError
from stormctl.history import COMMIT_CLOCK, Capture, Facet
from stormctl.sweeps.finding import Fault, Finding, Item, Noted, Severity, SweepResult, Unjudged, Verdict
from stormctl.sweeps.profiles import Profile
from stormctl.sweeps.witness import clean, witness
from stormctl.workloads.base import Workload


@dataclass(frozen=True, slots=True)
class Scenario:
    """A workload with the input that a run had."""

    workload: Workload
    input: Any


Check = Callable[[Capture], Iterator[Item]]
ScenarioCheck = Callable[[Capture, Scenario], Iterator[Item]]

NO_WORKLOAD = "a workload (name it with --workload)"


@dataclass(frozen=True, slots=True)
class Sweep:
    """One registered check.

    ``needs`` are the facets without which it answers unknown. ``kinds`` are the classes of fault that it can raise, the
    words that profiles use. An ``optional`` sweep is left out of the report where its evidence is absent: its question
    is about a kind of evidence that most captures cannot have. One that ``applies_to`` some workloads only is left out
    for the others, and one that has a place only ``where`` a capture is of some kind (``evidence`` says which in words)
    for other captures. ``whole`` is for a check of the capture itself: it is shown also what was captured twice.
    """

    name: str
    question: str
    needs: frozenset[Facet]
    kinds: tuple[str, ...]
    check: Check | None
    scenario_check: ScenarioCheck | None = None
    optional: bool = False
    applies_to: Callable[[Workload], bool] = field(default=lambda _workload: True)
    #: a check of a scenario that a user's body alone is enough for, without steps, driver and ledger
    of_bodies: bool = False
    where: Callable[[Capture], bool] = field(default=lambda _capture: True)
    evidence: str = ""
    whole: bool = False
    #: what a check needs that judges no captures at all: the words of what is missing
    unfit: str = ""

    def applies(self, capture: Capture, scenario: Scenario | None = None) -> bool:
        """Whether the sweep has a place in this capture's report."""
        if scenario is not None and not self.applies_to(scenario.workload):
            return False
        return self.where(capture) and not (self.optional and lacking(capture, self.needs))

    def judge(
        self, capture: Capture, scenario: Scenario | None, profile: Profile, why: str = NO_WORKLOAD
    ) -> SweepResult:
        """The sweep's answer. ``why`` is what is missing when there is no scenario and one is needed."""
        if self.unfit:
            return SweepResult(self.name, Verdict.UNKNOWN, missing=(self.unfit,))
        missing: tuple[str, ...] = tuple(map(str, lacking(capture, self.needs)))
        if self.check is None and scenario is None:
            missing = (*missing, why)
        if missing:
            return SweepResult(self.name, Verdict.UNKNOWN, missing=missing)
        try:
            items = list(self._items(capture, scenario))
        except StormctlError as error:
            return SweepResult(self.name, Verdict.UNKNOWN, missing=(f"{error}. {error.remedy}",))
        except Exception as error:
            # one broken check must not hide what the others see
            reason = f"the check itself failed: {type(error).__name__}: {clean(str(error))}"
            return SweepResult(self.name, Verdict.UNKNOWN, missing=(reason,))
        return settle(self.name, items, capture, profile)

    def _items(self, capture: Capture, scenario: Scenario | None) -> Iterable[Item]:
        if self.scenario_check is not None and scenario is not None:
            return self.scenario_check(capture, scenario)
        assert self.check is not None
        return self.check(capture)


SWEEPS: dict[str, Sweep] = {}


def sweep(
    name: str,
    *,
    needs: Iterable[Facet] = (),
    kinds: Iterable[str],
    optional: bool = False,
    where: Callable[[Capture], bool] = lambda _capture: True,
    evidence: str = "",
    whole: bool = False,
) -> Callable[[Check], Check]:
    """Register a check of the log alone. See :class:`Sweep` for what the words mean."""

    def register(check: Check) -> Check:
        SWEEPS[name] = Sweep(
            name,
            _question(check),
            frozenset(needs),
            tuple(kinds),
            check,
            optional=optional,
            where=where,
            evidence=evidence,
            whole=whole,
        )
        return check

    return register


def scenario_sweep(
    name: str,
    *,
    needs: Iterable[Facet] = (),
    kinds: Iterable[str],
    applies_to: Callable[[Workload], bool] = lambda _workload: True,
    of_bodies: bool = False,
) -> Callable[[ScenarioCheck], ScenarioCheck]:
    """Register a check that needs the workload and its input, and has something to ask of some workloads or all."""

    def register(check: ScenarioCheck) -> ScenarioCheck:
        SWEEPS[name] = Sweep(
            name,
            _question(check),
            frozenset(needs),
            tuple(kinds),
            None,
            check,
            applies_to=applies_to,
            of_bodies=of_bodies,
        )
        return check

    return register


def _question(check: Callable[..., Any]) -> str:
    return (check.__doc__ or "").strip().partition("\n")[0]


def lacking(capture: Capture, needs: frozenset[Facet]) -> tuple[Facet, ...]:
    """The needed facets that a capture lacks: those it declares, and what should lie beside it and does not.

    Commit times are there when an audit has them, or a server that keeps them."""
    declared = set(capture.lacks(needs))
    if Facet.COMMIT_STAMPS in needs:
        told = capture.audit is not None or capture.data.get(COMMIT_CLOCK) == "server"
        declared = declared - {Facet.COMMIT_STAMPS} | (set() if told else {Facet.COMMIT_STAMPS})
    beside = ((Facet.AUDIT, capture.audit), (Facet.READS, capture.reads), (Facet.EARLIER, capture.earlier))
    for facet, evidence in beside:
        if evidence is None and facet in needs:
            declared.add(facet)
    return tuple(facet for facet in Facet if facet in declared) if declared else ()


def settle(name: str, items: Iterable[Item], capture: Capture, profile: Profile) -> SweepResult:
    """Findings and verdict from what a check yielded."""
    findings: list[Finding] = []
    missing: list[int | str] = []
    blind = False
    for item in items:
        if isinstance(item, Fault):
            findings.append(_judged(name, item, capture, profile))
        else:
            blind = blind or isinstance(item, Unjudged)
            missing.append(item.what)
    if any(finding.severity is Severity.FATAL for finding in findings):
        verdict = Verdict.VIOLATED
    else:
        verdict = Verdict.UNKNOWN if blind else Verdict.CLEAN
    return SweepResult(name, verdict, tuple(findings), tuple(dict.fromkeys(missing)))


def _judged(name: str, fault: Fault, capture: Capture, profile: Profile) -> Finding:
    return Finding(
        sweep=name,
        severity=profile.severity(name, fault.kind),
        run=capture.log.run_id,
        positions=tuple(capture.log.place(index) for index in fault.at),
        message=clean(fault.message),
        witness=witness(capture.log, fault.at if fault.witness is None else fault.witness),
        key=clean(f"{name}/{fault.kind}/{fault.entity}"),
        about=clean(capture.log[fault.at[0]].type) if fault.at else "",
    )


__all__ = ["NO_WORKLOAD", "SWEEPS", "Noted", "Scenario", "Sweep", "lacking", "scenario_sweep", "settle", "sweep"]
