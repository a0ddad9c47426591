"""Ending the connections of a storm's workers from outside, as an administrator or a failing network does."""

from __future__ import annotations

import os

from stormctl.worlds.postgres.inspect import APPLICATION
from stormctl.worlds.postgres.pipe import Sql
from stormctl.worlds.process import STORM_VARIABLE

_LONGEST = 63

#: Replies how many connections there were. The role must be the workers' own, or a superuser's.
END_CONNECTIONS = Sql("""
select count(pg_terminate_backend(pid)) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and application_name = $1::text
""")


def application(storm: str | None = None) -> str:
    """What connections of a storm's workers are called; without a storm, what those of this process are."""
    storm = storm if storm is not None else os.environ.get(STORM_VARIABLE)
    return f"{APPLICATION} {storm}"[:_LONGEST] if storm else APPLICATION
