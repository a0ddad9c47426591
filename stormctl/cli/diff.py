"""``stormctl diff``: parse, call, exit."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stormctl.cli.options import ReportOnly

Folders = Annotated[
    list[Path],
    typer.Argument(
        metavar="A [B]", help="The artefact folder of the old storm and of the new one, or one that holds both arms."
    ),
]
ArmNames = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--arms",
        metavar="OLD NEW",
        help="The arms to compare, as tables print them: 'main + nets'. Default: of one folder the first and the last, "
        "of two folders each arm that both have.",
        show_default=False,
    ),
]


class Compared(StrEnum):
    """What is compared; a test holds it equal to what the report knows."""

    CORRUPTED = "corrupted"
    STUCK = "stuck"
    COMPLETED = "completed"
    ANY_FAILURE = "any-failure"
    CONTRADICTING = "contradicting"


class DiffFormat(StrEnum):
    """How a comparison is printed."""

    TABLE = "table"
    JSON = "json"
    MD = "md"


def diff(
    folders: Folders,
    arms: ArmNames = None,
    outcome: Annotated[
        Compared,
        typer.Option(
            "--outcome", help="What to compare. Contradicting: completed runs whose own log contradicts them."
        ),
    ] = Compared.CORRUPTED,
    format: Annotated[DiffFormat, typer.Option("--format", help="How to print the comparison.")] = DiffFormat.TABLE,
    report_only: ReportOnly = False,
) -> None:
    """Say whether a new arm, or a new storm, is better than the old: by how much, and how sure that is.

    Exits 0 when the new one is better, 1 when it is worse, 3 when they are not told apart.

    Example:  stormctl diff .stormctl/storm/latest --outcome any-failure
    """
    from stormctl.cli.exit_code import combine
    from stormctl.cli.output import emit, width
    from stormctl.errors import EXIT_CLEAN, EXIT_UNKNOWN, EXIT_VIOLATIONS, UsageError
    from stormctl.report.contrast import Verdict, contrast
    from stormctl.report.contrast_text import contrast_json, contrast_markdown, contrast_text
    from stormctl.report.sides import sides

    if len(folders) > 2:
        raise UsageError(f"{len(folders)} folders cannot be compared", remedy="Name one or two.")
    found = contrast(sides(folders, arms, str(outcome)), str(outcome))
    if format is DiffFormat.JSON:
        emit(contrast_json(found))
    elif format is DiffFormat.MD:
        emit(contrast_markdown(found))
    else:
        emit(contrast_text(found, width()))
    codes = {Verdict.BETTER: EXIT_CLEAN, Verdict.WORSE: EXIT_VIOLATIONS, Verdict.UNRESOLVED: EXIT_UNKNOWN}
    raise typer.Exit(combine([codes[found.verdict]], report_only=report_only))
