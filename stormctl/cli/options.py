"""Options that commands share: each with its help beside its type."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stormctl.cli import complete

#: The readers by name, written down here so that help does not load them; a test holds the two equal.
READER_NAMES = (
    "stormctl", "stormctl-parquet", "temporal-history", "world-local", "workflow-postgres", "workflow-csv",
    "workflow-dump", "workflow-harness", "workflow-inspect", "workflow-json", "compact", "table", "archive",
)  # fmt: skip


class Format(StrEnum):
    """How a report is printed."""

    TABLE = "table"
    JSON = "json"


class PictureFormat(StrEnum):
    """How a schedule is shown."""

    TABLE = "table"
    JSON = "json"
    HTML = "html"


class SweepFormat(StrEnum):
    """How the report of a sweep is printed."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"
    MD = "md"
    JUNIT = "junit"


Captures = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Log files, archives, folders of logs, a storm's artefact folder, the store of a local world, or the DSN "
        "of a Postgres world (postgres://...).",
    ),
]
ReaderName = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="READER",
        autocompletion=complete.readers,
        help=f"Read every PATH as this, whatever it looks like: {', '.join(READER_NAMES)}. Default: told by content.",
    ),
]
MapName = Annotated[
    str | None,
    typer.Option(
        "--map",
        metavar="NAME|FILE.yaml",
        autocompletion=complete.maps,
        help="Read every PATH as a table (CSV, JSON, NDJSON, Parquet) by this map: one of your own, or temporal, dbos, "
        "restate-journal, azure-durable-task, dapr-durable-task, inngest.",
    ),
]
WorkloadName = Annotated[
    str | None,
    typer.Option(
        "--workload",
        metavar="NAME|FILE:NAME",
        autocompletion=complete.scenarios,
        help="Workload that wrote the logs, or your own, which is executed. Default: the one a log names.",
    ),
]
EngineNames = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        autocompletion=complete.engines,
        help="Replay every prefix with this engine: a name of `stormctl engines`, a pull request such as #3554, all, "
        "or the real SDK: sdk:FOLDER (a built bundle), sdk:4.8.9, sdk:own (the log's version). Again for more.",
    ),
]
ProfileName = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="NAME",
        autocompletion=complete.profiles,
        help="How to read severities: auto (the release that the log names, else strict), strict, workflow@4.6, "
        "workflow@4.8, workflow@5-ulid, workflow@5, workflow@seq; with -local or -postgres for one kind of store.",
    ),
]
Earlier = Annotated[
    str | None,
    typer.Option(
        "--earlier",
        metavar="PATH",
        help="Captures of the same runs that were made before: they must be the beginning of these.",
    ),
]
Prefixes = Annotated[
    str,
    typer.Option(
        "--prefixes",
        metavar="all|decisions|last|A:B",
        help="Prefixes to replay: all, those at which a binding can change, the whole log, or a range of positions.",
    ),
]
Inputs = Annotated[
    bool,
    typer.Option("--inputs", help="Tell of an ordinal, too, that keeps its call and changes what it is called with."),
]
NoCache = Annotated[
    bool,
    typer.Option("--no-cache", help="Replay by the real engine also what it has replayed before, and keep nothing."),
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
ShowPayloads = Annotated[
    bool,
    typer.Option("--show-payloads", help="Print the payloads of the events that findings name. They may be secret."),
]
Only = Annotated[
    str | None,
    typer.Option(
        "--only",
        metavar="NAME,...",
        autocompletion=complete.sweep_list,
        help="Make these sweeps alone (`stormctl sweeps` lists them). Of many large logs dense, id-order and lifecycle "
        "are answered fastest.",
    ),
]
OutputFormat = Annotated[Format, typer.Option("--format", help="How to print the report.")]
SweepOutput = Annotated[
    SweepFormat,
    typer.Option(
        "--format",
        help="How to print the report: for a terminal, as JSON, as a line of JSON for each log, as markdown for a pull "
        "request, or as JUnit XML.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        max=1024,
        help="Sweep with so many processes. Default: one, and one for each core where something is replayed.",
        show_default=False,
    ),
]
DaskAddress = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Sweep with the workers of this Dask scheduler (tcp://host:8786), which see the same files. Needs "
        "stormctl\\[dask].",
    ),
]
ReportOnly = Annotated[
    bool,
    typer.Option("--report-only", help="Exit 0 on violations and unknowns; not on bad usage or unreadable files."),
]
Dsn = Annotated[
    str | None,
    typer.Option("--dsn", metavar="DSN", help="The PostgreSQL database. Default: STORMCTL_DSN, else one of our own."),
]
