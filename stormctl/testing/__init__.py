"""For your own tests: build logs, replay your workflow against them, and assert that nothing moves.

    from stormctl.testing import LogBuilder, assert_binds_stably, assert_replays, replay

``docs/workflows.md`` shows how, from a body to the test.
"""

from stormctl.testing.asserting import BindingFailure, assert_binds_stably, assert_replays
from stormctl.testing.builder import RUN_ID, START_MS, LogBuilder
from stormctl.testing.quiet import run_serially
from stormctl.testing.replaying import (
    TODAY,
    ReplayFailure,
    ReplayResult,
    ReplayResults,
    replay,
    replay_many,
    replay_prefixes,
)

__all__ = [
    "RUN_ID",
    "START_MS",
    "TODAY",
    "BindingFailure",
    "LogBuilder",
    "ReplayFailure",
    "ReplayResult",
    "ReplayResults",
    "assert_binds_stably",
    "assert_replays",
    "replay",
    "replay_many",
    "replay_prefixes",
    "run_serially",
]
