"""Every scenario by name. A new scenario is one file and one line here."""

from __future__ import annotations

from stormctl.errors import UsageError
from stormctl.workloads.base import Workload
from stormctl.workloads.capture_storms import CAPTURE_HOOK_STORM, CAPTURE_STEP_STORM
from stormctl.workloads.hook_storm import HOOK_STORM
from stormctl.workloads.step_storm import STEP_STORM

WORKLOADS: dict[str, Workload] = {
    workload.name: workload for workload in (STEP_STORM, HOOK_STORM, CAPTURE_STEP_STORM, CAPTURE_HOOK_STORM)
}


def workload(name: str) -> Workload:
    """The scenario of that name; UsageError lists the known ones."""
    try:
        return WORKLOADS[name]
    except KeyError:
        raise UsageError(
            f"there is no scenario {name!r}",
            remedy=f"The scenarios are {', '.join(WORKLOADS)}.",
        ) from None
