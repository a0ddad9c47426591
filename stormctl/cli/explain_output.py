"""What ``stormctl explain`` gathers, prints and exits with."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stormctl.cli.exit_code import combine
from stormctl.cli.explain import ExplainFormat
from stormctl.cli.output import emit, width
from stormctl.errors import EXIT_CLEAN, EXIT_INTERNAL, EXIT_UNKNOWN, EXIT_VIOLATIONS
from stormctl.explain import Answer, ExplainPlan, Explanation, explain, explain_report
from stormctl.readers import Unreadable
from stormctl.readers.open import open_captures

_CODES = {
    Answer.EXPLAINED: EXIT_VIOLATIONS,
    Answer.UNCLASSIFIED: EXIT_VIOLATIONS,
    Answer.OPEN: EXIT_UNKNOWN,
    Answer.NEEDS_WORKLOAD: EXIT_UNKNOWN,
    Answer.CLEAN: EXIT_CLEAN,
}


@dataclass(frozen=True, slots=True)
class Explained:
    """The explanations of every log that could be read, and what could not."""

    logs: tuple[Explanation, ...]
    unreadable: tuple[Unreadable, ...]

    def exit_code(self, *, report_only: bool) -> int:
        """The command's exit code; an unreadable file outranks a corruption, because it may hide one."""
        codes = [_CODES[log.answer] for log in self.logs]
        if self.unreadable:
            codes.append(EXIT_INTERNAL)
        return combine(codes, report_only=report_only)


def collect(paths: Sequence[Path | str], plan: ExplainPlan) -> Explained:
    """Explain everything at the paths, one log after the other."""
    plan = replace(plan, jobs=os.cpu_count() or 1)
    logs: list[Explanation] = []
    unreadable: list[Unreadable] = []
    for capture in open_captures(paths, plan.read_as):
        if isinstance(capture, Unreadable):
            unreadable.append(capture)
        else:
            logs.append(explain(capture, plan))
    return Explained(tuple(logs), tuple(unreadable))


def show(explained: Explained, format: ExplainFormat) -> None:
    """Print the explanations."""
    if format is ExplainFormat.JSON:
        emit(json.dumps(explain_report(explained.logs, explained.unreadable), indent=2, allow_nan=False))
    elif format is ExplainFormat.MD:
        from stormctl.report.explain_markdown import explain_markdown

        emit(explain_markdown(explained.logs, explained.unreadable))
    else:
        from stormctl.report.explain_text import explain_text

        emit(explain_text(explained.logs, explained.unreadable, width=width(), color=sys.stdout.isatty()))
