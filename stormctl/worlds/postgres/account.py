"""As whom a private PostgreSQL server runs: it refuses to run as root, so root lends it an existing account."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from typing import Any

from stormctl.errors import UsageError

#: the accounts that a server started by root may run as, the preferred one first; none is ever created
LENT = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this machine. ``lent`` when it is not the one that stormctl itself runs as."""

    name: str
    uid: int
    gid: int
    lent: bool

    def spawn(self) -> dict[str, Any]:
        """The arguments of ``subprocess.Popen`` that start a process as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.lent else {}

    def give(self, path: str | os.PathLike[str]) -> None:
        """Make this user the owner of a path."""
        if self.lent:
            os.chown(path, self.uid, self.gid)


def server_account() -> Account:
    """Whom a server started here runs as. UsageError when root finds no account to lend, or the user has no name."""
    uid = os.geteuid()
    if uid != 0:
        try:
            own = pwd.getpwuid(uid)
        except KeyError:
            raise UsageError(
                f"PostgreSQL cannot be started by user {uid}, which has no name on this machine",
                remedy="Run stormctl as a user that has one, or name a server with --dsn or STORMCTL_DSN.",
            ) from None
        return Account(own.pw_name, uid, own.pw_gid, lent=False)
    for name in LENT:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(found.pw_name, found.pw_uid, found.pw_gid, lent=True)
    raise UsageError(
        "PostgreSQL does not run as root, and this machine has neither a user postgres nor a user nobody",
        remedy="Run stormctl as an ordinary user, or name a server with --dsn or STORMCTL_DSN.",
    )


def own_name() -> str:
    """The name of the user that stormctl runs as."""
    return pwd.getpwuid(os.geteuid()).pw_name
