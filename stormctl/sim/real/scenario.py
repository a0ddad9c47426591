"""What is simulated: a workflow, its rules, and what comes from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stormctl.runtime.rules import Rules
from stormctl.workloads.base import Workload


@dataclass(frozen=True, slots=True)
class Sent:
    """A payload for a hook: by whom (the actor's name), to which token, and not before ``at_ms`` after the start."""

    actor: str
    token: str
    payload: Any = None
    at_ms: int = 0


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Somebody cancels the run."""

    actor: str = "X"
    at_ms: int = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """A workflow with its input, and what comes from outside. ``name`` is what tokens and tables call it.

    ``rests`` says that the run may end waiting for a hook that nobody answers.
    """

    name: str
    workload: Workload
    input: Mapping[str, Any] = field(default_factory=dict)
    outside: tuple[Sent | Cancelled, ...] = ()
    rules: Rules = field(default_factory=Rules)
    rests: bool = False
