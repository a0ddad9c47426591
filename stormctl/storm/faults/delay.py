"""``{delay: publish, creates: {median: 31ms, p99: 1s, longest: 2s}, receipts: 0.4ms}``: mint to publication."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from stormctl.errors import PlanError
from stormctl.storm.faults.base import Fault, When
from stormctl.storm.faults.fields import Fields
from stormctl.storm.planfile import format_duration
from stormctl.worlds.delay import PRODUCTION, DelayShape

_CREATES = ("median", "p99", "longest")


@dataclass(frozen=True, slots=True)
class DelayPublish(Fault):
    """In force all the time. ``storage_scale`` multiplies it. ``fixed`` is one delay for every create."""

    given: DelayShape

    when: ClassVar[When | None] = None  # type: ignore[misc]
    verb: ClassVar[str] = "delay"
    object: ClassVar[str] = "publish"
    keys: ClassVar[tuple[str, ...]] = ("creates", "fixed", "receipts")

    @classmethod
    def parse(cls, fields: Fields, _object: str) -> DelayPublish:
        """PlanError names the field that cannot be meant."""
        receipt = fields.duration("receipts", PRODUCTION.receipt)
        if fields.has("fixed"):
            if fields.has("creates"):
                raise PlanError(f"{fields.where} has both fixed and creates", remedy="Keep one of them.")
            fixed = fields.duration("fixed")
            return cls(DelayShape(fixed, fixed, fixed, receipt))
        creates = fields.mapping("creates", _CREATES)
        median = creates.duration("median", PRODUCTION.create_median)
        p99 = creates.duration("p99", max(median, PRODUCTION.create_p99))
        longest = creates.duration("longest", max(p99, PRODUCTION.longest))
        if not median <= p99 <= longest:
            raise PlanError(
                f"{fields.where}.creates does not grow from median over p99 to longest",
                remedy="Write it as {median: 31ms, p99: 1s, longest: 2s}.",
            )
        return cls(DelayShape(median, p99, longest, receipt))

    def row(self) -> dict[str, Any]:
        shape = self.given
        creates = {"median": shape.create_median, "p99": shape.create_p99, "longest": shape.longest}
        return {
            "delay": "publish",
            "creates": {key: format_duration(ms) for key, ms in creates.items()},
            "receipts": format_duration(shape.receipt),
        }

    def shape(self, shape: DelayShape) -> DelayShape:
        return self.given
