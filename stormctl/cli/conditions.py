"""``stormctl conditions``: the storage conditions, what each closes and what it leaves open."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from stormctl.cli import complete
from stormctl.cli.options import Format, OutputFormat


class WorldName(StrEnum):
    """The kinds of world whose reading of a condition can be asked for."""

    LOCAL = "local"
    POSTGRES = "postgres"
    MEMORY = "memory"


def conditions(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Conditions to show with all their knobs. Default: a list of all.",
            autocompletion=complete.conditions,
        ),
    ] = None,
    world: Annotated[WorldName, typer.Option("--world", help="The world that follows them.")] = WorldName.LOCAL,
    format: OutputFormat = Format.TABLE,
) -> None:
    r"""List the storage conditions that a plan may name: what each closes and what it leaves open.

    A name may change knobs: seq-final\[stale_ms=2000].

    Example:  stormctl conditions seq-final --world postgres
    """
    from stormctl.cli.output import emit, width
    from stormctl.report.condition_table import condition_json, condition_text
    from stormctl.worlds import CONDITIONS, condition_named

    shown = [condition_named(name, world) for name in names or CONDITIONS]
    if format is Format.JSON:
        emit(condition_json(shown, world))
    else:
        emit(condition_text(shown, width=width(), knobs=bool(names)))
