"""GitHub's markdown, with whatever names and messages hold made harmless."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stormctl.report.harmless import markdown as escape


def table(header: Sequence[str], rows: Iterable[Sequence[object]], words: int) -> str:
    """A markdown table whose first ``words`` columns are words (left) and the others numbers (right)."""
    marks = [":--" if index < words else "--:" for index in range(len(header))]
    lines = [header, marks, *rows]
    return "\n".join(f"| {' | '.join(escape(str(cell)) for cell in line)} |" for line in lines)


__all__ = ["escape", "table"]
