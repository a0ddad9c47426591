"""``stormctl engines``: the generations of the replay scheduler, what each fixed and what it still broke."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormctl.cli import complete
from stormctl.cli.options import Format, OutputFormat


def engines(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Engines to show with all their strategies. Default: a list of all.",
            autocompletion=complete.generations,
        ),
    ] = None,
    conformance: Annotated[
        list[Path] | None,
        typer.Option(
            "--conformance",
            metavar="PATH",
            help="Compare them with the real SDK on these captured logs, at every prefix. Again for more paths.",
        ),
    ] = None,
    judge: Annotated[
        str,
        typer.Option("--judge", metavar="sdk:NAME", help="The real engine to compare with: a version, or a folder."),
    ] = "sdk:own",
    format: OutputFormat = Format.TABLE,
) -> None:
    r"""List the engines that can replay a log: what each fixed and what it still broke.

    A name may be a pull request's number (#3554), and may change strategies: nets\[clock=delivered].

    Example:  stormctl engines dispenser "nets\[ids=call-site]"
    """
    if conformance:
        from stormctl.cli import conformance_output
        from stormctl.cli.names import ALL, engine_names

        (real,) = engine_names([judge])
        compared = engine_names(names or [ALL])
        raise typer.Exit(conformance_output.conformance(conformance, compared, real, format))
    from stormctl.cli.output import emit, width
    from stormctl.engine.generations import GENERATIONS, generation
    from stormctl.report.engine_table import engine_json, engine_text

    shown = [generation(name) for name in names or GENERATIONS]
    if format is Format.JSON:
        emit(engine_json(shown))
    else:
        emit(engine_text(shown, width=width(), strategies=bool(names)))
