"""What code that is scheduled must not use: whatever differs from one process to the next.

for found in banned(source): print(found)       # line 12: time.time
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

#: modules whose use is found at their import
MODULES = ("random", "secrets", "threading", "time", "datetime", "uuid", "asyncio", "multiprocessing")
_OS = ("urandom", "getpid", "environ", "listdir", "scandir")


@dataclass(frozen=True, slots=True)
class Banned:
    """Something of the list, by its name, in a line of a source."""

    line: int
    name: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.name}"


def banned(source: str) -> Iterator[Banned]:
    """What a source uses that it must not, in its order: modules, ``hash()``, ``id()``, walks over sets."""
    found = [one for node in ast.walk(ast.parse(source)) for one in _of(node)]
    yield from sorted(found, key=lambda one: (one.line, one.name))


def _of(node: ast.AST) -> Iterator[Banned]:
    match node:
        case ast.Import(names=names):
            for name in names:
                if name.name.partition(".")[0] in MODULES:
                    yield Banned(node.lineno, name.name)
        case ast.ImportFrom(module=str(module), level=0) if module.partition(".")[0] in MODULES:
            yield Banned(node.lineno, module)
        case ast.Call(func=ast.Name(id="hash" | "id" as name)):
            yield Banned(node.lineno, f"{name}()")
        case ast.Attribute(value=ast.Name(id="os"), attr=attr) if attr in _OS:
            yield Banned(node.lineno, f"os.{attr}")
        case ast.For(iter=walked) | ast.comprehension(iter=walked) | ast.Starred(value=walked) if _is_set(walked):
            yield Banned(walked.lineno, "the order of a set")
        case (
            ast.Call(func=ast.Name(id="list" | "tuple" | "iter" | "enumerate" | "zip" | "next"), args=args)
            | ast.Call(func=ast.Attribute(attr="join" | "extend"), args=args)
        ):
            for argument in args:
                if _is_set(argument):
                    yield Banned(argument.lineno, "the order of a set")


def _is_set(node: ast.expr) -> bool:
    match node:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.BinOp(left=left, right=right, op=ast.BitOr() | ast.BitAnd() | ast.Sub()):
            return _is_set(left) or _is_set(right)
    return False
