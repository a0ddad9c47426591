"""What the sweeps are, as values: the question each asks, what it needs, and how bad its findings are by profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stormctl.errors import UsageError, suggest
from stormctl.history import Facet
from stormctl.sweeps import perturbation, rebinding
from stormctl.sweeps.base import Sweep
from stormctl.sweeps.finding import Severity
from stormctl.sweeps.profiles import PROFILES
from stormctl.sweeps.registered import in_order

WORKLOAD = "the workload and its input (--workload)"
ENGINE = "an engine (--engine)"


@dataclass(frozen=True, slots=True)
class Listed:
    """One sweep. ``needs`` is the evidence it needs, in words. ``always`` says that without it the answer is unknown;
    otherwise the sweep is left out of the report. ``kinds`` are its classes of finding, each with its severity by
    profile name."""

    name: str
    question: str
    needs: tuple[str, ...]
    always: bool
    kinds: Mapping[str, Mapping[str, Severity]]


def listed(*names: str) -> list[Listed]:
    """The sweeps of those names, or all, in the order of reports. UsageError for a name that no sweep has."""
    found = {one.name: one for one in _all()}
    for name in names:
        if name not in found:
            raise UsageError(f"there is no sweep {name!r}", remedy=suggest(name, found))
    return [one for one in found.values() if not names or one.name in names]


def _all() -> Iterator[Listed]:
    for one in in_order():
        yield Listed(one.name, one.question, _needs(one), not one.optional, _severities(one.name, one.kinds))
    for name, question, kinds in (
        (rebinding.NAME, "Does every draw keep its meaning, whatever part of the log is replayed?", rebinding.KINDS),
        (perturbation.NAME, "Does a replay answer the same when it reads at another pace?", perturbation.KINDS),
    ):
        needs = (str(Facet.CORRELATION_IDS), WORKLOAD, ENGINE)
        yield Listed(name, question, needs, always=False, kinds=_severities(name, kinds))


def _needs(one: Sweep) -> tuple[str, ...]:
    needs = [str(facet) for facet in Facet if facet in one.needs]
    if one.evidence:
        needs.append(one.evidence)
    if one.scenario_check is not None:
        needs.append(WORKLOAD)
    return tuple(needs)


def _severities(name: str, kinds: tuple[str, ...]) -> dict[str, dict[str, Severity]]:
    return {
        kind: {profile: found.severity(name, kind) for profile, found in PROFILES.items()} for kind in sorted(kinds)
    }
