"""Every sweep, registered: importing this module imports each of their files."""

from __future__ import annotations

from stormctl.sweeps import (
    acknowledged,
    append_only,
    attributes,
    cap,
    claims,
    commit_order,
    counter,
    credit,
    cursor_exposure,
    cursor_skip,
    dense,
    drain,
    entity_rows,
    hook_conflicts,
    id_order,
    ledger,
    lifecycle,
    liveness,
    log_order,
    one_body,
    ranks,
    roles,
    spec_versions,
    time_order,
    twins,
)
from stormctl.sweeps.base import SWEEPS, Sweep

#: The order in which reports list sweeps: how the store kept the log, what the log says of entities, what it means.
ORDER = (
    "dense",
    "id-order",
    "time-order",
    "commit-order",
    "cursor-exposure",
    "cursor-skip",
    "acknowledged",
    "append-only",
    "spec",
    "cap",
    "one-body",
    "ranks",
    "twins",
    "lifecycle",
    "hook-conflicts",
    "attributes",
    "rows",
    "claims",
    "counter",
    "liveness",
    "credit",
    "roles",
    "log-order",
    "ledger",
    *drain.NAMES,
)
_PLACE = {name: place for place, name in enumerate(ORDER)}

MODULES = (
    acknowledged,
    append_only,
    attributes,
    cap,
    claims,
    commit_order,
    counter,
    credit,
    cursor_exposure,
    cursor_skip,
    dense,
    entity_rows,
    hook_conflicts,
    id_order,
    ledger,
    lifecycle,
    liveness,
    log_order,
    one_body,
    ranks,
    roles,
    spec_versions,
    time_order,
    twins,
    *drain.MODULES,
)


def in_order() -> list[Sweep]:
    """Every registered sweep in the order of reports; one that somebody else has registered comes last."""
    return sorted(SWEEPS.values(), key=lambda one: _PLACE.get(one.name, len(_PLACE)))
