"""What removed storms left in a database goes too: on a server of ours, or in one that was named for it."""

from __future__ import annotations

from collections.abc import Sequence

from stormctl.worlds.open import WORLDS


def clean_database(dsn: str | None, storms: Sequence[str], *, dry: bool) -> int | None:
    """Delete the stores of these storms from the database that was named, else from the standing server of ours.

    Replies how many stores they were; None where there is no such server. Another's database is never touched unless it
    was named.
    """
    for kind in WORLDS.values():
        if kind.server is None or kind.standing is None or kind.forget is None:
            continue
        server = kind.server(dsn) if dsn is not None else kind.standing()
        if server is None:
            return None
        try:
            return kind.forget(server.dsn, storms, dry)
        finally:
            server.close()
    return None
