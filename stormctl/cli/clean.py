"""``stormctl clean``: parse, call, exit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormctl.cli.options import Dsn

Keep = Annotated[int, typer.Option("--keep", metavar="N", min=0, help="How many of the newest storms of a plan stay.")]
PlanName = Annotated[str | None, typer.Option("--plan", metavar="NAME", help="Only the storms of this plan.")]
Root = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where artefact folders are.")]
Dry = Annotated[bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")]


def clean(
    keep: Keep, plan: PlanName = None, out: Root = Path(".stormctl"), dsn: Dsn = None, dry_run: Dry = False
) -> None:
    """Remove the oldest artefact folders beyond N per plan: never one of a running storm, or that is not ours.

    Example:  stormctl clean --keep 5 --plan storm --dry-run
    """
    from stormctl.cli import clean_output

    raise typer.Exit(clean_output.clean(out, keep, plan, dsn, dry=dry_run))
