"""``stormctl explain``: parse, call, exit."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from stormctl.cli import complete
from stormctl.cli.options import Captures, MapName, ProfileName, ReaderName, ReportOnly, WorkloadName


class ExplainFormat(StrEnum):
    """How an explanation is printed."""

    TEXT = "text"
    JSON = "json"
    MD = "md"


Engines = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        autocompletion=complete.engines,
        help="Replay with this engine only (sdk:FOLDER: the real one), and again for more. Default: all.",
    ),
]
Seconds = Annotated[
    float,
    typer.Option("--seconds", metavar="S", min=0.1, help="Time for the replays of one log; the rest is left out."),
]
ExplainOutput = Annotated[ExplainFormat, typer.Option("--format", help="How to print the explanation.")]


def explain(
    paths: Captures,
    reader: ReaderName = None,
    table_map: MapName = None,
    workload: WorkloadName = None,
    engine: Engines = None,
    profile: ProfileName = "auto",
    seconds: Seconds = 120.0,
    format: ExplainOutput = ExplainFormat.TEXT,
    report_only: ReportOnly = False,
) -> None:
    """Say which class of corruption a log shows, which write is to blame, and what its writer had read.

    Example:  stormctl explain capture.ndjson --workload step-storm
    """
    from stormctl.cli import explain_output, names
    from stormctl.explain import ExplainPlan

    engines = names.engine_names(engine)
    plan = ExplainPlan(
        read_as=names.reading(reader, table_map),
        profile=names.profile_name(profile),
        workload=names.workload_name(workload),
        engines=engines,
        seconds=seconds,
        open=names.opener(engines),
    )
    explained = explain_output.collect(paths, plan)
    explain_output.show(explained, format)
    raise typer.Exit(explained.exit_code(report_only=report_only))
