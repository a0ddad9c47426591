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
    typer.Option(
        "--workload",
        metavar="NAME|FILE:NAME",
        help="Workload that wrote the logs, or your own, which is executed. Default: the one a log names.",
    ),
]
EngineNames = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Replay every prefix with this engine: a name of `stormctl engines`, a pull request such as #3554, or "
        "all. Give it again for more.",
    ),
]
ProfileName = Annotated[
    str,
    typer.Option("--profile", metavar="NAME", help="How to read severities: strict, workflow@4.8 or workflow@5."),
]
Prefixes = Annotated[
    str,
    typer.Option("--prefixes", metavar="all|A:B", help="Prefixes to replay, by the position of their last event."),
]
Perturb = Annotated[
    int,
    typer.Option(
        "--perturb",
        metavar="N",
        min=0,
        max=10_000,
        help="Replay prefixes in N other ways too (cost of reading, cache, timers), and tell what differs.",
        show_default=False,
    ),
]
PerturbSeed = Annotated[int, typer.Option("--perturb-seed", metavar="S", min=0, help="Which N ways are drawn.")]
Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", help="Draw what each rank is bound to, as FILE.png or FILE.svg."),
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
