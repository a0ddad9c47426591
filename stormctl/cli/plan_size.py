"""``stormctl plan-size``: parse, call, exit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stormctl.cli.options import Format, OutputFormat

PlanFile = Annotated[
    Path | None,
    typer.Argument(metavar="PLAN", help="A plan, to say how long it takes with so many attempts.", show_default=False),
]
First = Annotated[float, typer.Option("--from", metavar="RATE", min=0, max=1, help="The old rate, 0 to 1.")]
Second = Annotated[float, typer.Option("--to", metavar="RATE", min=0, max=1, help="The new rate, 0 to 1.")]
Power = Annotated[
    float, typer.Option("--power", metavar="SHARE", help="In how many storms the difference shall be found.")
]
Alpha = Annotated[
    float, typer.Option("--alpha", metavar="SHARE", help="In how many storms of equal arms one may be found.")
]
EarlierStorm = Annotated[
    Path | None,
    typer.Option(
        "--earlier",
        metavar="DIR",
        help="The artefact folder whose durations are used. Default: the newest storm of the plan under .stormctl.",
        show_default=False,
    ),
]


def plan_size(
    first: First,
    second: Second,
    plan: PlanFile = None,
    power: Power = 0.8,
    alpha: Alpha = 0.05,
    earlier: EarlierStorm = None,
    format: OutputFormat = Format.TABLE,
) -> None:
    """Say how many attempts in each arm tell two rates apart, before a storm is run.

    Example:  stormctl plan-size configs/storm.yaml --from 0.8 --to 0.2
    """
    import json
    import textwrap

    from stormctl.cli.output import emit, width
    from stormctl.errors import UsageError
    from stormctl.report.load import load_artefact
    from stormctl.report.planned import plan_size as size_of
    from stormctl.storm.plan import load_plan

    if first == second:
        raise UsageError("the two rates are equal: no number of attempts tells them apart", remedy="Name two rates.")
    if not 0 < alpha <= 0.5 or not alpha < power < 1:
        raise UsageError(
            f"a power of {power:g} at alpha {alpha:g} cannot be planned",
            remedy="Give alpha above 0 and up to 0.5, and a power between alpha and 1.",
        )
    if plan is None and earlier is not None:
        raise UsageError("--earlier tells how long a plan takes, and there is no plan", remedy="Name the plan, too.")
    loaded = None if plan is None else load_plan(plan)
    if loaded is not None and earlier is None:
        usual = Path(".stormctl") / loaded.name / "latest"
        earlier = usual if (usual / "attempts.ndjson").exists() else None
    size = size_of(first, second, power, alpha, loaded, None if earlier is None else load_artefact(earlier))
    if format is Format.JSON:
        emit(json.dumps(size.row(), indent=2))
    else:
        emit("\n".join(textwrap.fill(line, width(), break_on_hyphens=False) for line in size.lines()))
