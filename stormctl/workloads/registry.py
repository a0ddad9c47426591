"""Every scenario by name. A new scenario is one file and one line here."""

from __future__ import annotations

from stormctl.errors import UsageError
from stormctl.workloads.base import Workload
from stormctl.workloads.blocked_branch import BLOCKED_BRANCH
from stormctl.workloads.capture_storms import CAPTURE_HOOK_STORM, CAPTURE_STEP_STORM
from stormctl.workloads.dag_runner import DAG_RUNNER
from stormctl.workloads.hook_sleep import HOOK_SLEEP
from stormctl.workloads.hook_storm import HOOK_STORM
from stormctl.workloads.inline_hang import INLINE_HANG
from stormctl.workloads.step_storm import STEP_STORM
from stormctl.workloads.wake_loop import WAKE_LOOP

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        STEP_STORM,
        HOOK_STORM,
        BLOCKED_BRANCH,
        WAKE_LOOP,
        INLINE_HANG,
        DAG_RUNNER,
        HOOK_SLEEP,
        CAPTURE_STEP_STORM,
        CAPTURE_HOOK_STORM,
    )
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
