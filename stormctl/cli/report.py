"""``stormctl report``: parse, call, exit."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stormctl.cli.options import ReportOnly

Lanes = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME=]DIR...",
        help="Artefact folders, or results files of upstream's harness, each a lane of the report. Default: the newest "
        "storm under .stormctl.",
        show_default=False,
    ),
]


class ReportFormat(StrEnum):
    """How a report is given."""

    TABLE = "table"
    MD = "md"
    JSON = "json"
    GITHUB = "github"
    JUNIT = "junit"
    HTML = "html"


Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Where the report goes. Default: junit.xml or report.html in the artefact folder, else standard output, "
        "and for github the file that GITHUB_STEP_SUMMARY names.",
        show_default=False,
    ),
]
Comment = Annotated[
    Path,
    typer.Option("--comment", metavar="FILE", help="With --format github: where the body of the sticky comment goes."),
]
Previous = Annotated[
    Path | None,
    typer.Option(
        "--previous",
        metavar="FILE",
        help="With --format github: the comment's last body, whose runs stay in it. It may be absent.",
        show_default=False,
    ),
]
RunUrl = Annotated[
    str | None,
    typer.Option(
        "--run-url",
        metavar="URL",
        help="With --format github: the job's address. Default: told by GitHub's variables.",
        show_default=False,
    ),
]
Annotate = Annotated[
    bool, typer.Option("--annotations", help="With --format github: print ::error and ::notice lines for the runner.")
]


def report(
    lanes: Lanes = None,
    format: Annotated[ReportFormat, typer.Option("--format", help="How to give it.")] = ReportFormat.TABLE,
    out: Out = None,
    comment: Comment = Path("stormctl-comment.md"),
    previous: Previous = None,
    run_url: RunUrl = None,
    annotations: Annotate = False,
    report_only: ReportOnly = False,
) -> None:
    """Show everything that a storm left: outcomes, findings, what failures say, latencies, what runs took.

    Example:  stormctl report .stormctl/storm/latest --format html
    """
    from stormctl.cli import report_output
    from stormctl.errors import UsageError

    if format is not ReportFormat.GITHUB and (previous or run_url or annotations):
        raise UsageError(
            "--previous, --run-url and --annotations belong to the lane of a CI", remedy="Add --format github."
        )
    found = report_output.opened(lanes or [])
    written = {
        ReportFormat.TABLE: report_output.as_table,
        ReportFormat.MD: report_output.as_markdown,
        ReportFormat.JSON: report_output.as_json,
        ReportFormat.JUNIT: report_output.as_junit,
        ReportFormat.HTML: report_output.as_html,
    }
    if format is ReportFormat.GITHUB:
        report_output.as_github(found, report_output.Posted(out, comment, previous, run_url, annotations=annotations))
    else:
        written[format](found, out)
    raise typer.Exit(report_output.exit_code(found, report_only=report_only))
