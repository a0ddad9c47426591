"""A user's own workflow, named on the command line as ``path/to/file.py:name``.

Loading executes that file, as Python executes a script that one names to it. Only a name that the user typed, or wrote
into a plan, is ever loaded: a captured log may name a file too, and that is never executed.

``name`` is an ``async def body(wf, input)`` of the module, or a whole :class:`Workload`. A body alone is enough to
replay logs: its input is what the run recorded, made into the dataclass with which the second argument is annotated,
or left as it is.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from stormctl.errors import UsageError, suggest
from stormctl.workloads.base import Driver, Pressure, Workload
from stormctl.workloads.user_file import ENDING, file_at, module_of
from stormctl.workloads.user_input import built, input_type
from stormctl.workloads.user_races import races_of

SHAPE = "async def {name}(wf, input)"


def names_a_file(text: str) -> bool:
    """Whether a person who writes this means a file of their own and none of our workloads."""
    return any(sign in text for sign in (ENDING, ":", "/", "\\"))


def absolute(text: str) -> str:
    """The same name for a process that has another current folder."""
    path, name = _parts(text)
    return f"{Path(path).absolute()}:{name}"


def load_workload(text: str) -> Workload:
    """The workload that ``path/to/file.py:name`` names. UsageError, one sentence and a remedy, for whatever is wrong.

    ``source`` of the workload is the file. A body alone is a workload named ``file.py:name``, with ``bare`` set.
    """
    path, name = _parts(text)
    file = file_at(path)
    module = module_of(file)
    known = {key: one for key, one in vars(module).items() if _is_workflow(one, module)}
    if not name:
        raise UsageError(f"{path} is a file, and not yet a workflow in it", remedy=_write_one(path, known))
    if name not in vars(module):
        raise UsageError(
            f"there is no {name!r} in {path}", remedy=suggest(name, known) if known else _write_one(path, known)
        )
    found = vars(module)[name]
    if isinstance(found, Workload):
        return _whole(found, f"{file.name}:{name}", str(file))
    return of_body(found, f"{file.name}:{name}", source=str(file))


def _whole(found: Workload, name: str, source: str) -> Workload:
    """A user's whole workload. What plans and sweeps take for granted of ours is checked of it."""
    of_body(found.body, name)
    kind = found.input_type
    plain = isinstance(kind, type) and is_dataclass(kind) and all(one.default is not MISSING for one in fields(kind))
    if not plain:
        raise UsageError(
            f"the input_type of {name} is no dataclass whose fields all have plain defaults",
            remedy="Give each field a default, as those of stormctl's own workloads have.",
        )
    return replace(found, source=source, races=found.races or races_of(found))


def of_body(body: Any, name: str, *, source: str | None = None) -> Workload:
    """A workload that is a body alone: it can be replayed, and not stormed. UsageError when it is no workflow."""
    what, _, short = name.rpartition(":")
    where = f"{short} in {what}" if what else short
    shape = SHAPE.format(name=short if short.isidentifier() else "body")
    if not callable(body) or isinstance(body, type):
        sort = "a class" if isinstance(body, type) else f"of type {type(body).__name__}"
        raise UsageError(f"{where} is {sort}, and no workflow", remedy=f"Name an `{shape}`, or a Workload.")
    if inspect.isasyncgenfunction(body):
        raise UsageError(f"{where} yields, and a workflow returns", remedy=f"Write it as `{shape}`.")
    if not inspect.iscoroutinefunction(body):
        raise UsageError(f"{where} is a plain function, and a workflow is an async one", remedy=f"Write `{shape}`.")
    signature = inspect.signature(body)
    try:
        signature.bind(None, None)
    except TypeError:
        raise UsageError(
            f"{where} takes {signature}, and a workflow two arguments", remedy=f"Write it as `{shape}`."
        ) from None
    found = UserBody(
        name=name,
        summary=(inspect.getdoc(body) or "a user's own body").partition("\n")[0],
        input_type=input_type(body, signature) or dict,
        body=body,
        source=source,
    )
    return replace(found, races=races_of(found))


def _no_driver(_input: Any, _pressure: Pressure) -> Driver:
    raise UsageError("a body alone cannot be stormed", remedy="Name a Workload, which has steps and a driver.")


@dataclass(frozen=True)
class UserBody(Workload):
    """A body without steps, driver or ledger. ``input_type`` is ``dict`` where no dataclass is asked for."""

    steps: Mapping[str, Any] = field(default_factory=dict)
    driver: Callable[[Any, Pressure], Driver] = _no_driver
    check: Callable[[Any, Any], str | None] = field(default=lambda _value, _input: None)
    stragglers: Callable[[Any], int] = field(default=lambda _value: 0)
    counts: Callable[[Any, int], Mapping[str, int]] = field(default=lambda _input, _stragglers: {})
    bare: bool = True

    def parse_input(self, given: Any) -> Any:
        """The recorded input as the dataclass that the body asks for, else as it is. PlanError says what is wrong."""
        if is_dataclass(self.input_type):
            return built(self.name, self.input_type, {} if given is None else given)
        return given


def _parts(text: str) -> tuple[str, str]:
    """Path and name; the name is empty where there is none."""
    path, colon, name = text.rpartition(":")
    if not colon or text.endswith(ENDING):
        return text, ""
    if path.endswith(":"):
        raise UsageError(f"{text!r} has two colons", remedy=f"Write {path.rstrip(':')}:{name or 'NAME'}.")
    return path, name


def _write_one(path: str, known: Mapping[str, object]) -> str:
    if not known:
        return f"Define `{SHAPE.format(name='body')}` in it and write {path}:body."
    return f"Write {' or '.join(f'{path}:{name}' for name in sorted(known)[:5])}."


def _is_workflow(found: object, module: types.ModuleType) -> bool:
    """Whether to offer it to somebody who named nothing, or mistyped. What the file only imports is not offered."""
    if isinstance(found, Workload):
        return True
    if not inspect.iscoroutinefunction(found) or getattr(found, "__module__", None) != module.__name__:
        return False
    try:
        inspect.signature(found).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True
