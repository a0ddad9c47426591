"""A workload of nothing but a body, for tests of explanations."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from stormctl.engine.replay import Body
from stormctl.workloads.base import Act, Pressure, Workload


@dataclass(frozen=True)
class Input:
    """No input."""


def _drive(_input: Input, _pressure: Pressure) -> Generator[Act, Any, None]:
    yield from ()


def small(body: Body, name: str = "small") -> Workload:
    """The workload."""
    return Workload(
        name=name,
        summary="a body under test",
        input_type=Input,
        body=body,
        steps={},
        driver=_drive,
        check=lambda _value, _input: None,
        stragglers=lambda _value: 0,
        counts=lambda _input, _stragglers: {},
        roles=None,
    )
