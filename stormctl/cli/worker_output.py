"""What ``stormctl worker`` says, and what it exits with."""

from __future__ import annotations

from stormctl.cli.output import emit
from stormctl.errors import EXIT_CLEAN


def join(dsn: str, storm: str | None, name: str | None) -> int:
    """Serve a storm in a database until it ends."""
    from stormctl.storm.join import join as serve

    serve(dsn, storm, name, emit)
    return EXIT_CLEAN
