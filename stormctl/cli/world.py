"""``stormctl world``: the PostgreSQL server of the Postgres world, for as long as a user wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from stormctl.worlds.postgres.server import Server

Dsn = Annotated[
    str | None,
    typer.Option("--dsn", metavar="DSN", help="The server. Default: STORMCTL_DSN, else the one that `up` started."),
]
Remove = Annotated[bool, typer.Option("--remove", help="Delete its data too.")]
Force = Annotated[bool, typer.Option("--force", help="Do it also while others are connected.")]
Arguments = Annotated[list[str] | None, typer.Argument(metavar="[-- ARGUMENT...]", help="What psql is given besides.")]

world = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@world.callback()
def group() -> None:
    """Start, look at and stop a PostgreSQL server for storms. `run` and `worker` find it by themselves.

    Example:  stormctl world up
    """


@world.command()
def up() -> None:
    """Start a server, unless one is up or named by STORMCTL_DSN. It stays until `down`, on the data of last time.

    Example:  stormctl world up
    """
    from stormctl.cli import world_output
    from stormctl.worlds.postgres.server import VARIABLE, resolve_server

    server = resolve_server(None, lifetime="standing")
    world_output.tell_up(server, named=server.origin == VARIABLE)


@world.command()
def status(dsn: Dsn = None) -> None:
    """Say whether a server is up, its version, the size of the database, who is connected, and the schema's version.

    Example:  stormctl world status
    """
    from stormctl.cli import world_output

    world_output.tell_status(_found(dsn))


@world.command()
def psql(dsn: Dsn = None, arguments: Arguments = None) -> None:
    """Open psql on the server.

    Example:  stormctl world psql -- -c 'select version()'
    """
    from stormctl.cli import world_output

    world_output.become_psql(_found(dsn), arguments or ())


@world.command()
def reset(force: Force = False) -> None:
    """Drop the database of the server that `up` started, and make it anew, empty.

    Example:  stormctl world reset
    """
    from stormctl.cli import world_output
    from stormctl.worlds.postgres.server import reset_database

    world_output.tell_reset(reset_database(force=force))


@world.command()
def down(remove: Remove = False) -> None:
    """Stop the server that `up` started. Its data stay for the next `up`.

    Example:  stormctl world down --remove
    """
    from stormctl.cli import world_output
    from stormctl.worlds.postgres import standing

    world_output.tell_down(standing.down(remove=remove))


def _found(dsn: str | None) -> Server | None:
    from stormctl.worlds.postgres.server import find_server

    return find_server(dsn)
