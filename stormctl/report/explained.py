"""Explanations of a storm's failed runs, as many as a time allows, and kept: the next report goes on where this ended.

A log takes from a second to minutes to explain, because it is replayed at every prefix. So one run of each kind of
failure comes first, and each is replayed by the generations that its sweep used and by today's engine only.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stormctl
from stormctl.errors import StormctlError
from stormctl.explain import ExplainPlan, explain
from stormctl.explain.plan import newest
from stormctl.readers.ndjson import NdjsonReader, audit_path, meta_path
from stormctl.report.explain_text import explain_text
from stormctl.report.harmless import redact
from stormctl.report.lag import log_path
from stormctl.report.load import Artefact
from stormctl.report.pictures import known_engine
from stormctl.storm.attempt import Attempt
from stormctl.sweeps.witness import clean

FILE, SCHEMA = "explained.ndjson", "stormctl.explained/1"
#: seconds of wall time for all runs of a report together, and at most for one
SECONDS, SECONDS_EACH = 15.0, 8.0
#: longer logs are left to `stormctl explain`
MOST_EVENTS = 2_000
#: characters of one text in the page
MOST_TEXT = 9_000
_WIDTH = 88

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Explained:
    """What is said of one run: the answer's word, its headline, the whole text. ``why`` is set instead where nothing is
    said, and tells why."""

    answer: str = ""
    headline: str = ""
    text: str = ""
    why: str = ""


def explained(
    artefact: Artefact, attempts: Sequence[Attempt], *, seconds: float = SECONDS, clock: Clock = time.monotonic
) -> dict[str, Explained]:
    """The explanation of each run by its id, or why there is none. What was worked out is added to the folder."""
    kept = dict(_kept(artefact.folder / FILE))
    found: dict[str, Explained] = {}
    fresh: list[dict[str, Any]] = []
    deadline = clock() + seconds
    for attempt in _in_turn(attempts):
        run = attempt.run_id or ""
        log = log_path(artefact, run)
        if log is None:
            found[run] = Explained(why="its log is not in the artefact")
            continue
        engines = _engines(artefact, run)
        key = _key(log, engines)
        if key in kept:
            found[run] = kept[key]
        elif (left := deadline - clock()) <= 0:
            found[run] = Explained(why="the report's time for explanations was up")
        elif attempt.events > MOST_EVENTS:
            found[run] = Explained(why=f"its log is longer than {MOST_EVENTS} events")
        else:
            made = found[run] = _explain(log, engines, min(left, SECONDS_EACH))
            if made.text:
                said = {"answer": made.answer, "headline": made.headline, "text": made.text}
                fresh.append({"schema": SCHEMA, "run_id": run, "key": key, **said})
    with suppress(OSError):  # an artefact that nobody may write to is reported all the same
        if fresh:
            with (artefact.folder / FILE).open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in fresh)
    return found


def _explain(log: Path, engines: tuple[str, ...], seconds: float) -> Explained:
    try:
        capture = next(NdjsonReader().read(log))
        # the name and not the path: a page that is passed on tells nothing of the machine
        said = explain(capture, ExplainPlan(engines=engines, seconds=seconds, max_events=MOST_EVENTS))
        text = explain_text([said], width=_WIDTH).replace(clean(capture.source), f"logs/{log.name}")
    except (StormctlError, OSError) as bad:
        return Explained(why=clean(str(bad)))
    tokens = [event.token for event in capture.log if event.token]
    tokens += [token.partition(":")[0] for token in tokens if ":" in token]
    if len(text) > MOST_TEXT:
        text = text[:MOST_TEXT].rpartition("\n")[0] + f"\n  ... cut here; stormctl explain logs/{log.name} says all"
    return Explained(str(said.answer), clean(redact(said.headline, tokens)), redact(text, tokens))


def _engines(artefact: Artefact, run: str) -> tuple[str, ...]:
    """Those that the log's sweep used and today's; none, which means all of them, where its sweep used none of ours."""
    swept = next((log.engines for log in artefact.logs if log.run_id == run), ())
    known = tuple(name for name in swept if known_engine(name))
    return tuple(dict.fromkeys((*known, newest()))) if known else ()


def _in_turn(attempts: Iterable[Attempt]) -> Iterator[Attempt]:
    """The first of each cell and kind of failure, then the second of each, and so on; short logs first."""
    groups: dict[object, list[Attempt]] = {}
    for attempt in sorted(attempts, key=lambda one: one.events):
        groups.setdefault((attempt.cell, attempt.outcome), []).append(attempt)
    for turn in range(max(map(len, groups.values()), default=0)):
        yield from (group[turn] for group in groups.values() if turn < len(group))


def _key(log: Path, engines: tuple[str, ...]) -> str:
    """What an explanation depends on: this version of ours, the engines, and the bytes of the log and its evidence."""
    told = hashlib.sha256(f"{stormctl.__version__} {engines}".encode())
    for path in (log, meta_path(log), audit_path(log)):
        with suppress(OSError):
            told.update(path.read_bytes())
    return told.hexdigest()[:32]


def _kept(path: Path) -> Iterator[tuple[str, Explained]]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            row = json.loads(line)
            if row["schema"] == SCHEMA:
                yield (
                    str(row["key"]),
                    Explained(*(str(row[name])[: MOST_TEXT + 200] for name in ("answer", "headline", "text"))),
                )
