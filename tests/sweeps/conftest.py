"""Shared by the tests of sweeps: judge one sweep of one built log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stormctl.history import Capture
from stormctl.sweeps import SweepPlan, SweepResult, sweep_log
from stormctl.testing import LogBuilder, run_serially
from stormctl.workloads.registry import WORKLOADS

Judge = Callable[..., SweepResult]


@pytest.fixture
def judge() -> Judge:
    """The answer of one sweep: ``judge("dense", builder, profile="workflow@5", live=True)``."""

    def ask(name: str, subject: LogBuilder | Capture, *, profile: str = "strict", **evidence: Any) -> SweepResult:
        capture = subject.capture(**evidence) if isinstance(subject, LogBuilder) else subject
        report = sweep_log(capture, SweepPlan(profile=profile))
        return next(result for result in report.sweeps if result.sweep == name)

    return ask


@pytest.fixture(scope="session")
def storm() -> LogBuilder:
    """A small step-storm that ran to its end without a fault. One branch of its first round straggled."""
    step_storm = WORKLOADS["step-storm"]
    return run_serially(step_storm, step_storm.input_type(token="t", rounds=2, width=3), late=[2])
