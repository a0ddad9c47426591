"""File names for run ids. An id comes from a stranger's store: whatever it holds, its file stays in its folder."""

from __future__ import annotations

import hashlib
import re

#: An id that is a file name as it is. Nothing hidden, no separators, short enough for every file system.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\Z")
#: How the name of any other id ends; an id that ends so itself is named like these, so that no two ids share a name.
_MARKED = re.compile(r"-[0-9a-f]{16}\Z")
_UNFIT = re.compile(r"[^A-Za-z0-9_]+")
_SHOWN = 40


def stem_of(run_id: str) -> str:
    """The name of a run's files, without their endings. Different ids have different names."""
    if _PLAIN.match(run_id) and not _MARKED.search(run_id):
        return run_id
    digest = hashlib.sha256(run_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{_UNFIT.sub('-', run_id[: 2 * _SHOWN]).strip('-')[:_SHOWN] or 'run'}-{digest}"


def may_be_a_name(run_id: str) -> bool:
    """Whether a store that keeps runs as files can have a run of that id: it leads to no other folder."""
    return 0 < len(run_id) <= 255 and not run_id.startswith(".") and not set(run_id) & {"/", "\\", "\0"}
