"""A storm's logs, replayed by the real engine too: which engines a plan asks for, and what they made of the runs.

A plan asks by ``sweeps: [all, sdk:own]``. Every landed log is replayed at the prefixes at which something is decided,
and as a whole; what comes of it is in ``sweeps.json``, and, beside what the SDK said of each run, in ``replays.json``
(schema ``stormctl.replays/1``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from stormctl.errors import PlanError, StormctlError
from stormctl.history import Capture, digest_value
from stormctl.readers import open_captures
from stormctl.storm.attempt import Attempt, Cell
from stormctl.storm.folder import StormFolder
from stormctl.storm.outcome import Outcome
from stormctl.storm.real_name import SCHEME, parse_real
from stormctl.sweeps import SweepPlan
from stormctl.sweeps.log_order import NAME as LOG_ORDER
from stormctl.sweeps.plan import PrefixRange
from stormctl.targets.sdk.replay.answer import divergence_in
from stormctl.targets.sdk.replay.kept import kept_replays
from stormctl.targets.sdk.replay.opener import open_engine, real_name

SCHEMA = "stormctl.replays/1"
FILE = "replays.json"
SWEEPS = "sweeps.json"
#: logs whose replay ends otherwise than their run that a person is told of; the file has all
MOST_TOLD = 10
_REPLAY = "Replay divergence: "
_NOTHING: Mapping[str, str] = {}

#: the engines that the logs of a cell are replayed by
EnginesOf = Callable[[Cell], Iterable[str]]


def real_engines(sweeps: Iterable[str]) -> tuple[str, ...]:
    """The real engines among what a plan asks for."""
    return tuple(name for name in sweeps if name.startswith(SCHEME))


def checked(sweeps: Iterable[str]) -> tuple[str, ...]:
    """The real engines that a plan asks for, each of which can be had. PlanError names the first that cannot; nothing
    is installed yet."""
    try:
        return tuple(real_name(name, install=False) for name in real_engines(sweeps))
    except StormctlError as error:
        raise PlanError(f"sweeps asks for a real engine that is not there: {error}", remedy=error.remedy) from None


def judges(engines: Iterable[str]) -> tuple[str, ...]:
    """The versions that are named as judges, which a storm installs before it begins."""
    return tuple(dict.fromkeys(found.named for found in map(parse_real, engines) if found.is_version))


def replayed_too(
    plan: SweepPlan, engines: Sequence[str], *, version: str | None = None, environment: Mapping[str, str] = _NOTHING
) -> SweepPlan:
    """The way of sweeping with real engines beside those that it has.

    ``version`` is what ``sdk:own`` stands for, where it is known before the log is read. ``environment`` is what the
    runs were made under: it holds for their own engine and for a bundle in a folder, while a version that is named is
    a judge of its own. Replays that were made before are taken from the cache.
    """
    if not engines:
        return plan
    names: list[str] = []
    for engine in engines:
        found = parse_real(engine)
        if found.is_own or found.is_path:
            found = found.within(environment)
        if found.is_own and version is not None:
            found = replace(found, named=version)
        names.append(str(found))
    return replace(
        plan,
        engines=tuple(dict.fromkeys((*plan.engines, *names))),
        prefixes_of={**plan.prefixes_of, **dict.fromkeys(names, PrefixRange(decisive=True))},
        open=open_engine,
        memory=kept_replays(),
    )


@dataclass(frozen=True, slots=True)
class Replayed:
    """One log beside one real engine.

    ``flips`` is how many ordinals went to another call, None where the engine could not replay the log (``why`` says
    what lacked); ``contradictions`` how many races the log-order sweep finds contradicted, None where it could not
    judge. ``as_recorded``: whether the replay of the whole log ends as the run did, a completed one with its output, a
    corrupted one with the very text that the SDK printed; None where the run ended in another way, or left neither.
    """

    cell: Cell
    engine: str
    run_id: str
    outcome: Outcome
    flips: int | None
    contradictions: int | None
    as_recorded: bool | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """One cell by one engine.

    Of its ``completed`` runs ``replayed`` could be; the engine finds flips in ``flips`` of them, the log-order sweep
    contradictions in ``log_order`` of the ``judged`` that it could judge, ``apart`` runs have the one and not the
    other, and ``output`` of ``outputs`` give their recorded output. Of its ``corrupted`` runs ``texts`` were replayed
    and left a printed divergence; ``text`` of them get the very same.
    """

    cell: Cell
    engine: str
    completed: int
    replayed: int
    flips: int
    judged: int
    log_order: int
    apart: int
    outputs: int
    output: int
    corrupted: int
    texts: int
    text: int


def account_of_replays(folder: StormFolder, attempts: Sequence[Attempt], engines_of: EnginesOf) -> Iterator[str]:
    """Write ``replays.json`` and tell what is not as it was recorded. Nothing where no real engine was asked for."""
    found = list(judge(folder, attempts, engines_of))
    if not found:
        return
    cells = [_row(one) for one in tallies(found)]
    folder.write_json(FILE, {"schema": SCHEMA, "cells": cells, "logs": [_row(one) for one in found]})
    told = [one for one in found if one.why]
    for one in told[:MOST_TOLD]:
        yield f"{one.engine} on {one.run_id} ({one.cell.label}): {one.why}"
    if len(told) > MOST_TOLD:
        yield f"{len(told) - MOST_TOLD} more logs are not replayed as they were recorded, in {FILE}"


def judge(folder: StormFolder, attempts: Sequence[Attempt], engines_of: EnginesOf) -> Iterator[Replayed]:
    """Every swept log of the storm beside every real engine that its cell's logs were to be replayed by."""
    reports = {row.get("run_id"): row for row in _reports(folder)}
    names = {cell: real_engines(engines_of(cell)) for cell in dict.fromkeys(one.cell for one in attempts)}
    for attempt in attempts:
        report = reports.get(attempt.run_id)
        if report is None or not names[attempt.cell]:
            continue
        capture = _capture(folder, attempt)
        for engine in names[attempt.cell]:
            replay = next((one for one in report.get("rebinding", ()) if one.get("engine") == engine), None)
            yield _replayed(attempt, engine, report, replay, capture)


def tallies(found: Iterable[Replayed]) -> Iterator[Tally]:
    """The logs counted by cell and engine, in the order in which they come."""
    groups: dict[tuple[Cell, str], list[Replayed]] = {}
    for one in found:
        groups.setdefault((one.cell, one.engine), []).append(one)
    for (cell, engine), group in groups.items():
        completed = [one for one in group if one.outcome is Outcome.COMPLETED]
        both = [one for one in completed if one.flips is not None and one.contradictions is not None]
        outputs = [one for one in completed if one.as_recorded is not None]
        corrupted = [one for one in group if one.outcome is Outcome.CORRUPTED]
        texts = [one for one in corrupted if one.as_recorded is not None]
        yield Tally(
            cell,
            engine,
            completed=len(completed),
            replayed=sum(one.flips is not None for one in completed),
            flips=sum(bool(one.flips) for one in completed),
            judged=sum(one.contradictions is not None for one in completed),
            log_order=sum(bool(one.contradictions) for one in completed),
            apart=sum(bool(one.flips) != bool(one.contradictions) for one in both),
            outputs=len(outputs),
            output=sum(bool(one.as_recorded) for one in outputs),
            corrupted=len(corrupted),
            texts=len(texts),
            text=sum(bool(one.as_recorded) for one in texts),
        )


def _row(one: Replayed | Tally) -> dict[str, Any]:
    """As JSON has it: the columns of the cell first."""
    row = asdict(one)
    return {**row.pop("cell"), **row}


def _replayed(
    attempt: Attempt, engine: str, report: Mapping[str, Any], replay: Mapping[str, Any] | None, capture: Capture | None
) -> Replayed:
    swept = next((one for one in report.get("sweeps", ()) if one.get("sweep") == LOG_ORDER), None)
    contradictions: int | None = None
    if swept is not None and swept.get("verdict") != "unknown":
        contradictions = sum(one.get("severity") == "fatal" for one in swept.get("findings", ()))
    flips = None if replay is None else len(replay["flips"])
    same, why = (None, _lacks(report, engine)) if replay is None else _as_recorded(attempt.outcome, replay, capture)
    return Replayed(
        attempt.cell, engine, str(attempt.run_id), attempt.outcome, flips, contradictions, same, "" if same else why
    )


def _as_recorded(outcome: Outcome, replay: Mapping[str, Any], capture: Capture | None) -> tuple[bool | None, str]:
    """Whether the replay of the whole log ends as its run did, and what is different, or cannot be compared."""
    whole, run = replay.get("whole"), capture.run if capture is not None else None
    if whole is None or run is None:
        return None, ""
    said = None if whole["divergence"] is None else f"{_REPLAY}{whole['divergence']}"
    if outcome is Outcome.COMPLETED and run.output is not None:
        if whole["output"] == digest_value(run.output):
            return True, ""
        ends = f"diverges ({said})" if said else "gives another output" if whole["output"] else "does not end"
        return False, f"the run completed, and its replay {ends}"
    if outcome is Outcome.CORRUPTED:
        event, text = divergence_in(run.error_message or "")
        if text is None:
            return None, "the SDK printed no divergence"
        if (whole["event_id"], said) == (event, text):
            return True, ""
        return False, f"the SDK printed {text!r}, and its replay has {said or 'no divergence'!r}"
    return None, ""


def _lacks(report: Mapping[str, Any], engine: str) -> str:
    """Why an engine did not replay a log, as the sweep said it."""
    begins = f"a replay by {engine}"
    for one in report.get("sweeps", ()):
        for what in one.get("missing", ()):
            if str(what).startswith(begins):
                return f"not replayed: {str(what).removeprefix(begins).lstrip(':, ')}"
    return "not replayed"


def _capture(folder: StormFolder, attempt: Attempt) -> Capture | None:
    path = folder.path / "logs" / f"{attempt.run_id}.ndjson"
    return next((one for one in open_captures([path]) if isinstance(one, Capture)), None)


def _reports(folder: StormFolder) -> Sequence[Mapping[str, Any]]:
    try:
        found = json.loads((folder.path / SWEEPS).read_bytes())["logs"]
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else ()
