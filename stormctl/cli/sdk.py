"""``stormctl sdk``: the versions of the real Workflow SDK that storms can be run on."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from stormctl.cli.options import Format, OutputFormat


class SdkWorld(StrEnum):
    """The worlds of the SDK that a version can be installed with."""

    LOCAL = "local"
    POSTGRES = "postgres"


Version = Annotated[str, typer.Argument(metavar="VERSION", help="As it was published: 4.8.9, 5.0.0-beta.55.")]

sdk = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@sdk.callback()
def group() -> None:
    """Install, list, check and remove versions of the real Workflow SDK. Needs Node.js 20 or later, and npm.

    Example:  stormctl sdk install 4.8.9
    """


@sdk.command()
def install(
    version: Version,
    world: Annotated[SdkWorld, typer.Option("--world", help="The world to install it with.")] = SdkWorld.LOCAL,
) -> None:
    """Install a version, unless it is there. No package's scripts are run. A storm does this by itself.

    Example:  stormctl sdk install 4.8.9 --world postgres
    """
    from stormctl.cli import sdk_output
    from stormctl.targets.sdk import projects

    sdk_output.tell_installed(projects.ensure(version, world, tell=sdk_output.tell_progress))


@sdk.command("list")
def list_installed(format: OutputFormat = Format.TABLE) -> None:
    """List what is installed, with its world, the spec version that it declares and its size.

    Example:  stormctl sdk list
    """
    from stormctl.cli import sdk_output
    from stormctl.targets.sdk import projects

    sdk_output.tell_list(projects.installed(), as_json=format is Format.JSON)


@sdk.command()
def doctor(
    version: Annotated[
        str | None, typer.Argument(metavar="[VERSION]", help="Check only this one. Default: all that are installed.")
    ] = None,
) -> None:
    """Look whether node, npm, the registry and the cache are fit, and load what is installed. Exit code 2 if not.

    Example:  stormctl sdk doctor 4.8.9
    """
    from stormctl.cli import sdk_output
    from stormctl.targets.sdk.doctor import doctor

    raise typer.Exit(sdk_output.tell_checks(doctor(version)))


@sdk.command()
def remove(
    version: Version,
    world: Annotated[
        SdkWorld | None, typer.Option("--world", help="Only what was installed with this world. Default: both.")
    ] = None,
) -> None:
    """Remove a version from the cache.

    Example:  stormctl sdk remove 4.8.9
    """
    from stormctl.cli import sdk_output
    from stormctl.targets.sdk import projects

    sdk_output.tell_removed(projects.remove(version, world, tell=sdk_output.tell_progress))
