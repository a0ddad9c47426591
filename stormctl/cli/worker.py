"""``stormctl worker``: one worker process of a storm. A storm starts its own; nobody needs to type it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def worker(
    storm: Annotated[Path, typer.Option("--storm", metavar="DIR", help="The artefact folder of the storm.")],
    index: Annotated[int, typer.Option("--index", help="The number of this worker, counted from 0.")] = 0,
) -> None:
    """Serve the queues of a running storm until standard input ends.

    Example:  stormctl worker --storm .stormctl/storm/latest --index 2
    """
    from stormctl.storm import worker as process

    process.main(storm, index)
