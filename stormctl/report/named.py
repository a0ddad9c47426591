"""A list of names for a terminal, each with a few words of what it is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

#: letters that the words beside a name have at least
_LEAST = 20


def named(title: str, rows: Mapping[str, str], width: int) -> Iterator[str]:
    """The title, a line or more for each name, and an empty line. The words stand below each other."""
    yield title
    indent = max(map(len, rows)) + 4
    for name, text in rows.items():
        first, *rest = textwrap.wrap(text, max(_LEAST, width - indent)) or [""]
        yield f"  {name:<{indent - 4}}  {first}".rstrip()
        yield from (" " * indent + line for line in rest)
    yield ""
