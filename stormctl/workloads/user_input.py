"""The input of a user's body: what a run recorded, made into the dataclass that the body asks for."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from stormctl.errors import PlanError, suggest
from stormctl.history import Capture, kinds
from stormctl.workloads.user_file import one_line

_PLAIN = (bool, int, float, str, list, dict)


def recorded_input(capture: Capture) -> Any:
    """The input that a run recorded, in its row or with the event that created it; None where neither tells."""
    if capture.run is not None and capture.run.input:
        return dict(capture.run.input)
    for event in capture.log:
        if event.type == kinds.RUN_CREATED and event.payload is not None:
            try:
                return event.payload.load()
            except Exception:  # sealed or damaged: not captured is what the caller has to deal with
                return None
    return None


def input_type(body: Any, signature: inspect.Signature) -> type[Any] | None:
    """The dataclass that annotates the second argument, alone or beside None."""
    annotation = list(signature.parameters.values())[1:2]
    if not annotation:
        return None
    wanted: Any = annotation[0].annotation
    if isinstance(wanted, str):
        inner = body
        while hasattr(inner, "func"):
            inner = inner.func
        # Only this one: the first is often imported for type checkers alone, and has no value at run time.
        wanted = _evaluated(wanted, getattr(inspect.unwrap(inner), "__globals__", {}))
    options = typing.get_args(wanted) or (wanted,)
    return next((one for one in options if isinstance(one, type) and is_dataclass(one)), None)


def _evaluated(annotation: str, names: dict[str, Any]) -> Any:
    try:
        return eval(annotation, names)
    except Exception:
        return None


def built(name: str, wanted: Any, given: Any) -> Any:
    """An instance of a user's dataclass; PlanError names what is unknown, missing or of another type."""
    if isinstance(given, wanted):
        return given
    if not isinstance(given, Mapping):
        raise PlanError(
            f"{name} takes a {wanted.__name__}, and the input is a {type(given).__name__}",
            remedy="Annotate its second argument as what the run recorded, or leave the annotation out.",
        )
    known = {one.name: one for one in fields(wanted) if one.init}
    for key in given:
        if key not in known:
            raise PlanError(f"{name} has no input {key!r}", remedy=suggest(str(key), known))
    for key, one in known.items():
        if key not in given and one.default is MISSING and one.default_factory is MISSING:
            raise PlanError(f"{name} needs an input {key!r}", remedy="Give it, or give the field a default.")
    types_ = _types(wanted)
    values = {key: _fitting(name, key, types_.get(key), value) for key, value in given.items()}
    try:
        return wanted(**values)
    except Exception as error:
        problem = one_line(f"{type(error).__name__}: {error}")
        raise PlanError(f"{name} does not take its input: {problem}", remedy="Correct the input.") from error


def _types(wanted: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(wanted)
    except Exception:  # a name that only type checkers see: then nothing is checked
        return {}


def _fitting(name: str, key: str, wanted: Any, value: Any) -> Any:
    """The value of a field, checked where its type is plain; a mapping becomes the dataclass that is wanted there."""
    if isinstance(wanted, type) and is_dataclass(wanted) and isinstance(value, Mapping):
        return built(f"{name}.{key}", wanted, value)
    if wanted not in _PLAIN:
        return value
    right = isinstance(value, wanted) or (wanted is float and isinstance(value, int))
    if not right or (isinstance(value, bool) and wanted is not bool):
        raise PlanError(f"input {key!r} of {name} is {value!r}", remedy=f"Give it a value of type {wanted.__name__}.")
    return value
