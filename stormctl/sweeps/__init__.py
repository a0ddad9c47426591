"""What is wrong with a captured log: one check per file, run over captures, judged by a profile."""

from stormctl.sweeps.base import SWEEPS, Scenario, scenario_sweep, sweep
from stormctl.sweeps.files import sweep_paths
from stormctl.sweeps.finding import Fault, Finding, Noted, Severity, SweepResult, Unjudged, Verdict, worst
from stormctl.sweeps.plan import PrefixRange, SweepPlan
from stormctl.sweeps.profiles import PROFILES, Profile, profile_named
from stormctl.sweeps.report import SCHEMA, LogReport, sweep_report
from stormctl.sweeps.run import sweep_log, sweep_many

__all__ = [
    "PROFILES",
    "SCHEMA",
    "SWEEPS",
    "Fault",
    "Finding",
    "LogReport",
    "Noted",
    "PrefixRange",
    "Profile",
    "Scenario",
    "Severity",
    "SweepPlan",
    "SweepResult",
    "Unjudged",
    "Verdict",
    "profile_named",
    "scenario_sweep",
    "sweep",
    "sweep_log",
    "sweep_many",
    "sweep_paths",
    "sweep_report",
    "worst",
]
