"""The command line: every command by name, and what its errors look like.

A command lives in its own file and imports what is heavy inside its function, so that ``stormctl --help`` starts fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from stormctl import __version__
from stormctl.cli.capture import capture
from stormctl.cli.clean import clean
from stormctl.cli.conditions import conditions
from stormctl.cli.diff import diff
from stormctl.cli.drain import drain
from stormctl.cli.engines import engines
from stormctl.cli.explain import explain
from stormctl.cli.plan_size import plan_size
from stormctl.cli.report import report
from stormctl.cli.run import run
from stormctl.cli.sdk import sdk
from stormctl.cli.sim import sim
from stormctl.cli.sweep import sweep
from stormctl.cli.sweeps import sweeps
from stormctl.cli.worker import worker
from stormctl.cli.world import world
from stormctl.errors import EXIT_CLEAN, EXIT_INTERNAL, EXIT_INTERRUPTED, StormctlError

TRACEBACK = "STORMCTL_TRACEBACK"

app = typer.Typer(
    name="stormctl",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

# One line per command.
app.command("run")(run)
app.command("conditions")(conditions)
app.command("engines")(engines)
app.command("sweep")(sweep)
app.command("sweeps")(sweeps)
app.command("capture")(capture)
app.command("explain")(explain)
app.command("diff")(diff)
app.command("plan-size")(plan_size)
app.command("report")(report)
app.command("worker")(worker)
app.command("clean")(clean)
app.add_typer(world, name="world")
app.add_typer(sdk, name="sdk")
app.add_typer(sim, name="sim")
app.add_typer(drain, name="drain")


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if wanted:
        typer.echo(f"stormctl {__version__}")
        raise typer.Exit


@app.callback()
def stormctl(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Provoke, capture and explain event-log corruption in durable-execution engines.

    Example:  stormctl sweep capture.ndjson --workload step-storm --engine nets
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code. Errors that a user can mend are one sentence and a remedy."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="stormctl")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else EXIT_CLEAN
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except StormctlError as error:
        _say(f"{error}. {error.remedy}")
        return error.exit_code
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        _say(f"internal error: {type(error).__name__}: {error}. Set {TRACEBACK}=1 to see where, and report it.")
        return EXIT_INTERNAL
    return EXIT_CLEAN


def _say(text: str) -> None:
    sys.stderr.write(f"stormctl: {text}\n")
