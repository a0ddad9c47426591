"""Captures from stores that somebody is still writing to: read-only, a run at one moment, resumable."""

from stormctl.readers.live.capturing import Begun, Step, capture_runs
from stormctl.readers.live.database import DatabaseSource
from stormctl.readers.live.folder import AGAIN, FIRST, Asked, CaptureFolder, fresh, opened
from stormctl.readers.live.local import LocalSource
from stormctl.readers.live.since import parse_since
from stormctl.readers.live.source import Source, SourceLost, Taken

__all__ = [
    "AGAIN",
    "FIRST",
    "Asked",
    "Begun",
    "CaptureFolder",
    "DatabaseSource",
    "LocalSource",
    "Source",
    "SourceLost",
    "Step",
    "Taken",
    "capture_runs",
    "fresh",
    "opened",
    "parse_since",
]
