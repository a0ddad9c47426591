"""The newest runs of a sticky comment, kept in the comment itself: hidden, and read back from its previous body.

Whoever may edit a comment may write into it, so that nothing of a previous body is taken on trust: sizes are bounded,
every field is checked, and what does not fit is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from stormctl.report.lane import LaneCounts

MARKER = "<!-- stormctl-report -->"
_OPEN, _CLOSE = "<!-- stormctl-history ", " -->"
MOST_RUNS, MOST_LANES = 5, 12
_MOST_PREVIOUS = 400_000
_MOST_COUNT = 10_000_000
_URL = re.compile(r"https://[A-Za-z0-9.-]{1,100}(?::\d{1,5})?(?:/[A-Za-z0-9._~%/-]{0,200})?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?Z")
_LANE = re.compile(r"[\w .,+()/-]{1,60}")


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run of the job: when (UTC, ``2026-12-01T04:05Z``), which attempt of it, where, and what its lanes counted."""

    timestamp: str
    attempt: int
    url: str
    lanes: Mapping[str, LaneCounts]

    @property
    def key(self) -> tuple[str, int]:
        """What a later report of the same run has in common with it, so that it replaces it."""
        return self.url or self.timestamp, self.attempt


def newest(run: RunEntry, previous: Iterable[RunEntry]) -> list[RunEntry]:
    """The run and the newest of the earlier ones, newest first, at most ``MOST_RUNS``."""
    earlier = [one for one in previous if one.key != run.key]
    earlier.sort(key=lambda one: (one.timestamp, one.attempt), reverse=True)
    return [run, *earlier][:MOST_RUNS]


def embed(runs: Sequence[RunEntry]) -> str:
    """The runs as a hidden comment that none of their texts can end."""
    document = {"schema": "stormctl.history/1", "runs": [asdict(run) for run in runs]}
    text = json.dumps(document, ensure_ascii=True, separators=(",", ":"))
    for mark, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("@", "\\u0040"), ("--", "-\\u002d")):
        text = text.replace(mark, code)
    return f"{_OPEN}{text}{_CLOSE}"


def parse_previous(body: str) -> list[RunEntry]:
    """The runs that a previous comment holds; none when it is not one of ours, or damaged."""
    body = body[:_MOST_PREVIOUS]
    if MARKER not in body:
        return []
    start = body.find(_OPEN)
    end = body.find(_CLOSE, start)
    if start < 0 or end < 0:
        return []
    try:
        document = json.loads(body[start + len(_OPEN) : end])
    except (ValueError, RecursionError):
        return []
    rows = document.get("runs") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        return []
    return [entry for row in rows[:MOST_RUNS] if (entry := _entry(row)) is not None]


def run_url(text: str | None) -> str:
    """An address that can stand in a link, or nothing."""
    return text if text is not None and _URL.fullmatch(text) else ""


def lane_name(text: str) -> str:
    """A lane's name, cut to what the history keeps."""
    return "".join(char for char in text if _LANE.fullmatch(char))[:60] or "storm"


def _entry(row: Any) -> RunEntry | None:
    if not isinstance(row, dict):
        return None
    time, url, lanes = row.get("timestamp"), row.get("url"), row.get("lanes")
    if not isinstance(time, str) or not _TIME.fullmatch(time) or not isinstance(lanes, dict):
        return None
    counted = {
        name: counts
        for name, value in list(lanes.items())[:MOST_LANES]
        if _LANE.fullmatch(name) and (counts := _counts(value)) is not None
    }
    if not counted:
        return None
    return RunEntry(time, _count(row.get("attempt")) or 1, run_url(url if isinstance(url, str) else None), counted)


def _counts(value: Any) -> LaneCounts | None:
    if not isinstance(value, dict):
        return None
    numbers = {
        name: _count(value.get(name)) or 0 for name in ("completed", "corrupted", "slow", "dormant", "other", "infra")
    }
    why = value.get("why")
    return LaneCounts(
        total=sum(numbers.values()),
        planned=_count(value.get("planned")),
        why=why if isinstance(why, str) and re.fullmatch(r"[a-z-]{0,20}", why) else "",
        missing=value.get("missing") is True,
        suspect=value.get("suspect") is True,
        **numbers,
    )


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _MOST_COUNT else None
