"""Sweeps of a drain: what is wrong with a trace of a serving loop, one check per file. Importing registers them."""

from __future__ import annotations

from stormctl.sweeps.drain import (
    arrival,
    barrier,
    conservation,
    counters,
    coverage,
    floor,
    once,
    own_index,
    single_copy,
    tenure,
    wake,
)

#: the order of reports
NAMES = (
    "drain-once",
    "drain-own-index",
    "drain-coverage",
    "drain-arrival",
    "drain-barrier",
    "drain-floor",
    "drain-single-copy",
    "drain-wake",
    "drain-tenure",
    "drain-conservation",
    "drain-counters",
)
MODULES = (
    once,
    own_index,
    coverage,
    arrival,
    barrier,
    floor,
    single_copy,
    wake,
    tenure,
    conservation,
    counters,
)
