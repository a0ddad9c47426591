"""The real engine as a replayer: a built flow bundle, one captured log, and what the engine asks for at any prefix.

A worker is a Node process that holds one bundle and plays the world for it: it serves the first events of a log and
writes down what the engine would create next. Nothing is installed, no server runs, no step body is executed.
"""

from __future__ import annotations

from stormctl.targets.sdk.replay.answer import Answer, Asked, Failure, Queued
from stormctl.targets.sdk.replay.bundle import Bundle, BundleFault, bundle_of_version, find_bundle
from stormctl.targets.sdk.replay.pool import LIMITS, Limits, Pool
from stormctl.targets.sdk.replay.record import MissingEvidence, RunRecord, record_of

__all__ = [
    "LIMITS",
    "Answer",
    "Asked",
    "Bundle",
    "BundleFault",
    "Failure",
    "Limits",
    "MissingEvidence",
    "Pool",
    "Queued",
    "RunRecord",
    "bundle_of_version",
    "find_bundle",
    "record_of",
]
