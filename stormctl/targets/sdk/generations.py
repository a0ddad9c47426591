"""Which of our generations of the replay scheduler stands for a published version."""

from __future__ import annotations

from collections.abc import Mapping

from stormctl.targets.sdk.versions import Version, parse

#: From which 5.x version on it is which generation: when the change was first published (#3139 in 5.0.0-beta.37,
#: #3700 in beta.44, #3879 in beta.47).
SINCE: tuple[tuple[Version, str], ...] = (
    (parse("5.0.0-beta.47"), "rearm"),
    (parse("5.0.0-beta.44"), "turnstile"),
    (parse("5.0.0-beta.37"), "transitive"),
)
BEFORE = "opposite"
#: 4.x
MAINTAINED = "opposite"


def generation_of(version: str, environment: Mapping[str, str] | None = None) -> str:
    """The generation of ours that predicts a version best, with the switches that it was run with."""
    found = parse(version)
    if found.major == 4:
        return MAINTAINED
    named = next((name for since, name in SINCE if found >= since), BEFORE)
    if (environment or {}).get("WORKFLOW_LOG_ORDER_DRAWS") == "0" and named in ("rearm", "turnstile"):
        return "dispenser"  # without the draws in log order, which is what #3700 brought
    return named
