"""``stormctl sweeps``: the checks, what each asks and needs, and how bad its findings are."""

from __future__ import annotations

from typing import Annotated

import typer

from stormctl.cli import complete
from stormctl.cli.options import Format, OutputFormat


def sweeps(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Sweeps to show with their severities by profile. Default: a list of all.",
            autocompletion=complete.sweeps,
        ),
    ] = None,
    format: OutputFormat = Format.TABLE,
) -> None:
    """List the sweeps: what each asks of a log, what it needs, and what it finds.

    Example:  stormctl sweeps dense lifecycle
    """
    from stormctl.cli.output import emit, width
    from stormctl.report.sweeps_list import sweeps_json, sweeps_text
    from stormctl.sweeps.listing import listed

    shown = listed(*(names or ()))
    if format is Format.JSON:
        emit(sweeps_json(shown))
    else:
        emit(sweeps_text(shown, width=width(), kinds=bool(names)))
