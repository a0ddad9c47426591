"""``stormctl worker``: one worker of a storm, beside those that the storm starts itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from stormctl.cli.options import Dsn

Storm = Annotated[
    str | None,
    typer.Option("--storm", metavar="ID", help="The storm, when several run there. Its folder, on its own machine."),
]
Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="This worker's name. Default: host and pid.")]


def worker(dsn: Dsn = None, storm: Storm = None, name: Name = None) -> None:
    """Join a running storm from any host: serve its cells that lie in this database until it ends, or until Ctrl-C.

    Example:  stormctl worker --dsn postgresql://db.example/storms
    """
    from stormctl.errors import UsageError

    if dsn is None and storm is not None and Path(storm).is_dir():
        from stormctl.storm import worker as process

        process.main(Path(storm), name or f"pid-{os.getpid()}")
        return
    from stormctl.cli import worker_output

    database = dsn or os.environ.get("STORMCTL_DSN")
    if database is None:
        raise UsageError(
            "no database was named", remedy="Name the one that the storm uses with --dsn, or set STORMCTL_DSN."
        )
    raise typer.Exit(worker_output.join(database, storm, name))
