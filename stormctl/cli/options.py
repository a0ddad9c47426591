"""Options that commands share: each with its help beside its type."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How a report is printed."""

    TABLE = "table"
    JSON = "json"


Captures = Annotated[
    list[Path],
    typer.Argument(metavar="PATH", help="Log files, a storm's artefact folder, or a folder of logs."),
]
WorkloadName = Annotated[
    str | None,
    typer.Option("--workload", metavar="NAME", help="Workload that wrote the logs. Default: the one a log names."),
]
EngineNames = Annotated[
    list[str] | None,
    typer.Option("--engine", metavar="NAME", help="Replay every prefix with this engine. Give it again for more."),
]
ProfileName = Annotated[
    str,
    typer.Option("--profile", metavar="NAME", help="How to read severities: strict, workflow@4.8 or workflow@5."),
]
Prefixes = Annotated[
    str,
    typer.Option("--prefixes", metavar="all|A:B", help="Prefixes to replay, by the position of their last event."),
]
OutputFormat = Annotated[Format, typer.Option("--format", help="How to print the report.")]
ReportOnly = Annotated[
    bool,
    typer.Option("--report-only", help="Exit 0 on violations and unknowns; not on bad usage or unreadable files."),
]
Dsn = Annotated[
    str | None,
    typer.Option("--dsn", metavar="DSN", help="The PostgreSQL database. Default: STORMCTL_DSN, else one of our own."),
]
