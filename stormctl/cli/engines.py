"""``stormctl engines``: the generations of the replay scheduler, what each fixed and what it still broke."""

from __future__ import annotations

from typing import Annotated

import typer

from stormctl.cli.options import Format, OutputFormat


def engines(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Engines to show with all their strategies. Default: a list of all."),
    ] = None,
    format: OutputFormat = Format.TABLE,
) -> None:
    r"""List the engines that can replay a log: what each fixed and what it still broke.

    A name may be a pull request's number (#3554), and may change strategies: nets\[clock=delivered].

    Example:  stormctl engines dispenser "nets\[ids=call-site]"
    """
    from stormctl.cli.output import emit, width
    from stormctl.engine.generations import GENERATIONS, generation
    from stormctl.report.engine_table import engine_json, engine_text

    shown = [generation(name) for name in names or GENERATIONS]
    if format is Format.JSON:
        emit(engine_json(shown))
    else:
        emit(engine_text(shown, width=width(), strategies=bool(names)))
