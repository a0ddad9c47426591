"""The Python file of a user's workflow: executed once per process, and what goes wrong there as one sentence."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from hashlib import sha256
from pathlib import Path

from stormctl.errors import UsageError

ENDING = ".py"

#: modules by the file that they were loaded from, and by the folder those that they imported from beside it
_LOADED: dict[str, types.ModuleType] = {}
_BESIDE: dict[str, dict[str, types.ModuleType]] = {}


def file_at(path: str) -> Path:
    """The file at a path; UsageError when there is none that could be loaded."""
    file = Path(path)
    if not path.isprintable():
        raise UsageError(f"{path!r} is no path", remedy="Write path/to/file.py:name.")
    try:
        there, regular = file.exists(), file.is_file()
    except (OSError, ValueError) as error:
        raise UsageError(f"{path!r} is no path: {error}", remedy="Write path/to/file.py:name.") from None
    if not there:
        remedy = "Write path/to/file.py:name, with the path from the current folder."
        if "\\" in path:
            remedy = f"Separate folders by /, as in {path.replace(chr(92), '/')}."
        raise UsageError(f"there is no file {path}", remedy=remedy)
    if not regular:
        if file.is_dir():
            raise UsageError(f"{path} is a folder", remedy="Name the Python file in it: path/to/file.py:name.")
        raise UsageError(f"{path} is no regular file", remedy="Name a Python file: path/to/file.py:name.")
    if file.suffix != ENDING:
        raise UsageError(f"{path} is no Python file by its name", remedy=f"Give it the ending {ENDING}.")
    return file.resolve()


def module_of(file: Path) -> types.ModuleType:
    """The module of a file, executed once per process. What it prints goes to standard error, out of the report."""
    key = str(file)
    if key in _LOADED:
        return _LOADED[key]
    name = f"stormctl_user_{file.stem}_{sha256(key.encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up while it is executed
    try:
        with _imports_from(str(file.parent)), redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _unloadable(file, error) from error
    except BaseException:
        del sys.modules[name]
        raise
    _LOADED[key] = module
    return module


def _unloadable(file: Path, error: BaseException) -> UsageError:
    if isinstance(error, SyntaxError) and error.filename in (str(file), None):
        at = f"line {error.lineno}: " if error.lineno else ""
        return UsageError(f"{file.name} is not Python ({at}{error.msg})", remedy="Correct it and try again.")
    line = _line_in(file, error)
    at = f" at line {line}" if line else ""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return UsageError(
            f"{file.name} imports {error.name!r}{at}, which is not there",
            remedy="Install it where stormctl is installed, or put it beside the file.",
        )
    said = "it exits" if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
    return UsageError(
        f"{file.name} cannot be loaded{at}: {one_line(said)}",
        remedy="Its top level must run without arguments; start it with python to see where it stops.",
    )


def _line_in(file: Path, error: BaseException) -> int | None:
    """The line of the file that led to the error."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def one_line(text: str, most: int = 300) -> str:
    """Somebody else's message as part of a sentence."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]} ..."


@contextmanager
def _imports_from(folder: str) -> Iterator[None]:
    """Let a file import what lies beside it, as a script may; nothing of it stays on the path.

    The modules beside it stay loaded, since instances of their classes do. Before a file of another folder is loaded
    they make way, for it may have neighbours of the same names.
    """
    for other, modules in _BESIDE.items():
        if other != folder:
            for name, module in modules.items():
                if sys.modules.get(name) is module:
                    del sys.modules[name]
    sys.modules.update({name: one for name, one in _BESIDE.get(folder, {}).items() if name not in sys.modules})
    before, path = set(sys.modules), list(sys.path)
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = path
        new = {name: sys.modules[name] for name in set(sys.modules) - before}
        beside = {name: one for name, one in new.items() if str(getattr(one, "__file__", "")).startswith(f"{folder}/")}
        _BESIDE.setdefault(folder, {}).update(beside)
