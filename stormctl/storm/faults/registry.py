"""Every family of faults by verb and object, and how a plan's list of them is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stormctl.errors import PlanError, suggest
from stormctl.storm.faults.base import Fault
from stormctl.storm.faults.delay import DelayPublish
from stormctl.storm.faults.disconnect import Disconnect
from stormctl.storm.faults.fields import Fields
from stormctl.storm.faults.kill import Kill
from stormctl.storm.faults.messages import Drop, Duplicate, Late
from stormctl.storm.faults.stop import Stop
from stormctl.worlds.open import WORLDS

MOST_FAULTS = 64

#: One line per family: what is done, to what -> who reads it. What can be disconnected is every world with a server.
FAMILIES: Mapping[tuple[str, str], type[Any]] = {
    ("kill", "worker"): Kill,
    ("stop", "holder"): Stop,
    ("delay", "publish"): DelayPublish,
    ("delay", "message"): Late,
    ("drop", "message"): Drop,
    ("duplicate", "message"): Duplicate,
    **{("disconnect", name): Disconnect for name, kind in WORLDS.items() if kind.needs_server},
}
VERBS = tuple(dict.fromkeys(verb for verb, _ in FAMILIES))


def parse_faults(value: Any) -> tuple[Fault, ...]:
    """The faults of a plan's list; PlanError names the first that cannot be meant."""
    if not isinstance(value, list):
        raise PlanError(f"faults is {value!r}, not a list", remedy="Write `faults: [{kill: worker, at: publish}]`.")
    if len(value) > MOST_FAULTS:
        raise PlanError(f"the plan has {len(value)} faults", remedy=f"Keep it to {MOST_FAULTS}.")
    return tuple(_fault(item, f"faults[{number}]") for number, item in enumerate(value, start=1))


def _fault(item: Any, where: str) -> Fault:
    if not isinstance(item, dict) or not item or not all(isinstance(key, str) for key in item):
        raise PlanError(f"{where} is {item!r}, not a fault", remedy="Write it as {kill: worker, at: publish}.")
    verbs = [key for key in item if key in VERBS]
    if len(verbs) != 1:
        what = f"is both {verbs[0]} and {verbs[1]}" if verbs else f"names no fault: {next(iter(item))!r}"
        remedy = "Make two faults of it." if verbs else suggest(next(iter(item)), VERBS)
        raise PlanError(f"{where} {what}", remedy=remedy)
    verb, object = verbs[0], item[verbs[0]]
    objects = {known: family for (done, known), family in FAMILIES.items() if done == verb}
    if not isinstance(object, str) or object not in objects:
        raise PlanError(f"{where} cannot {verb} {object!r}", remedy=suggest(str(object), objects))
    family = objects[object]
    for key in item:
        if key not in (verb, *family.keys):
            raise PlanError(f"{where} has an unknown key {key!r}", remedy=suggest(key, family.keys))
    parse: Callable[[Fields, str], Fault] = family.parse
    return parse(Fields({key: value for key, value in item.items() if key != verb}, where), object)
