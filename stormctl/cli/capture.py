"""``stormctl capture``: parse, call, exit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormctl.cli.options import ReportOnly

Dsn = Annotated[
    str | None,
    typer.Option(
        "--dsn", metavar="DSN", help="The database of a Postgres world. Default, without --folder: STORMCTL_DSN."
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option("--folder", metavar="DIR", help="The store of a local world (.workflow-data), or its app."),
]
Runs = Annotated[
    list[str] | None, typer.Option("--run", metavar="ID", help="Capture this run, and again for more. Default: all.")
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME|DURATION",
        help="Only runs that changed since: 90m, 24h, 7d, or a time such as 2026-11-30T15:00:00Z.",
    ),
]
WithPayloads = Annotated[
    bool,
    typer.Option(
        "--with-payloads",
        help="Keep payloads, hook tokens and the run's values. They may be secret. Default: digests in their place.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Where to write. A capture that is there is gone on with. Default: .stormctl/captures/<UTC time>-<ULID>.",
        show_default=False,
    ),
]
Twice = Annotated[
    bool,
    typer.Option(
        "--twice",
        help="Capture each run again when all are captured, keep both, and tell whether the first is the beginning of "
        "the second.",
    ),
]
Parquet = Annotated[
    bool,
    typer.Option("--parquet", help="Write all logs of the capture into one table besides, logs.parquet."),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=1, max=1_000_000, help="Only the newest N runs.", show_default=False),
]


def capture(
    dsn: Dsn = None,
    folder: Folder = None,
    run: Runs = None,
    since: Since = None,
    with_payloads: WithPayloads = False,
    out: Out = None,
    twice: Twice = False,
    limit: Limit = None,
    parquet: Parquet = False,
    report_only: ReportOnly = False,
) -> None:
    """Write the event logs of a live store into a folder that can be swept. The store is only read.

    Example:  stormctl capture --folder .workflow-data --since 24h --twice
    """
    from stormctl.cli import capture_output

    with capture_output.source(dsn, folder) as found:
        raise typer.Exit(
            capture_output.capture(
                found,
                out,
                runs=run or (),
                since=since,
                with_payloads=with_payloads,
                twice=twice,
                limit=limit,
                parquet=parquet,
                report_only=report_only,
            )
        )
