"""The perturbation sweep as a part of a log's report: every engine of the plan, and never a crash."""

from __future__ import annotations

from collections.abc import Sequence

from stormctl.errors import StormctlError, UsageError
from stormctl.history import Capture
from stormctl.sweeps import perturbation
from stormctl.sweeps.base import Scenario, settle
from stormctl.sweeps.finding import Item, SweepResult, Unjudged
from stormctl.sweeps.perturbation import Perturbed
from stormctl.sweeps.plan import NeedsWorkload, Parallel, SweepPlan
from stormctl.sweeps.profiles import Profile
from stormctl.sweeps.rebinding import Rebinding
from stormctl.sweeps.witness import clean


def perturb(
    capture: Capture, scenario: Scenario | None, why: str, plan: SweepPlan, profile: Profile, found: Sequence[Rebinding]
) -> tuple[SweepResult, list[Perturbed]]:
    """The sweep's answer on one log. ``why`` is what is missing without a scenario, ``found`` the replays so far."""
    lengths = plan.prefixes.lengths(capture.log)
    items: list[Item] = []
    results: list[Perturbed] = []
    for name in plan.engines:
        try:
            engine = plan.open(name, capture, scenario)
        except NeedsWorkload:
            items.append(Unjudged(why))
            continue
        except UsageError:
            raise
        except StormctlError as error:
            items.append(Unjudged(f"a perturbed replay by {name}: {error}"))
            continue
        if isinstance(engine, Parallel):
            engine.jobs = plan.jobs
        try:
            result = perturbation.perturbed(
                capture.log,
                engine,
                lengths,
                plan.perturb,
                seed=plan.perturb_seed,
                workload=engine.workload or (scenario.workload.name if scenario is not None else ""),
                found=next((one for one in found if one.engine == engine.name), None),
            )
        except StormctlError as error:
            items.append(Unjudged(f"a perturbed replay by {name}: {error}"))
        except Exception as error:
            # a log may hold what no workflow expects; that must not hide the other sweeps
            reason = f"a perturbed replay by {name}, which failed: {type(error).__name__}: {clean(str(error))}"
            items.append(Unjudged(reason))
        else:
            results.append(result)
            items.extend(perturbation.faults(capture, result))
    return settle(perturbation.NAME, items, capture, profile), results
