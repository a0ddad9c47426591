"""What the hosts wrote down about their worlds' calls and their deliveries, as the audit and the reads of a run.

The trace tells what the SDK asked its world for and what it was answered, by the host's own clock: an append from the
call to its answer, a read with the last event that it brought. When an append became readable, only the store knows:
the reader's commit time is put in where there is one, and else that time stays unknown. How many events a writer had
read, only later versions say.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stormctl.history import AuditRecord, ReadRecord, ids

#: a run that diverges is read again and again; beyond so many calls of one run the rest is only counted
MOST_CALLS = 100_000
_CHUNK = 1 << 20

CREATE, LIST, QUEUE, DELIVERY = "events.create", "events.list", "queue", "delivery"


@dataclass(slots=True)
class RunTrace:
    """The calls and deliveries of one run, in the order in which they ended. ``left_out`` were too many to keep."""

    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    left_out: int = 0


class Traces:
    """The trace files of a cell's hosts, read on as they grow. Safe to use from several threads."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._runs: defaultdict[str, RunTrace] = defaultdict(RunTrace)
        self._lock = threading.Lock()

    def follow(self, server: str, path: Path) -> None:
        """Read this file of the server of that name, too."""
        with self._lock:
            self._files[server] = _File(path)

    def next_life(self, server: str) -> None:
        """The server was started again: it counts its deliveries from one."""
        with self._lock:
            self._read_on(server, self._files[server])
            self._files[server].life += 1

    def take(self, run_id: str) -> RunTrace:
        """What is known of a run now. It is let go: whoever needs it again keeps it."""
        with self._lock:
            for server, file in self._files.items():
                self._read_on(server, file)
            return self._runs.pop(run_id, RunTrace())

    def _read_on(self, server: str, file: _File) -> None:
        name = server if file.life == 1 else f"{server} (life {file.life})"
        for line in file.fresh():
            try:
                call = json.loads(line)
                run_id = call["runId"]
            except (ValueError, KeyError, TypeError):
                continue  # torn by a kill
            if not isinstance(run_id, str) or not run_id:
                continue
            run = self._runs[run_id]
            if len(run.calls) < MOST_CALLS:
                run.calls.append((name, call))
            else:
                run.left_out += 1


@dataclass(slots=True)
class _File:
    path: Path
    life: int = 1
    _at: int = 0
    _rest: bytes = b""

    def fresh(self) -> Iterator[bytes]:
        """The whole lines that were written since the last look."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._at)
                while chunk := file.read(_CHUNK):
                    self._at += len(chunk)
                    *lines, self._rest = (self._rest + chunk).split(b"\n")
                    yield from lines
        except FileNotFoundError:
            return


def audit_of(trace: RunTrace, committed: Mapping[str, int]) -> tuple[AuditRecord, ...]:
    """Every append that was asked for. ``committed`` is when each event became readable (epoch microseconds by id)."""
    return tuple(
        AuditRecord(
            run_id=call["runId"],
            writer=_who(server, call),
            type=call.get("type") or "",
            correlation_id=call.get("correlationId"),
            admitted=call.get("error") is None,
            reason=call.get("error") or "",
            position=None if event_id is None else ids.slot_of(event_id),
            event_id=event_id,
            snapshot=call.get("snapshot") if isinstance(call.get("snapshot"), int) else None,
            entered=_ns(call["start"]),
            minted=0,
            published=0 if event_id is None else committed.get(event_id, 0) * 1000,
            returned=_ns(call["end"]),
        )
        for server, call in trace.calls
        if call.get("op") == CREATE
        for event_id in [call.get("result")]
    )


def reads_of(trace: RunTrace) -> tuple[ReadRecord, ...]:
    """Every read of the log that brought it forwards, also one that rode on an append's answer."""
    return tuple(
        ReadRecord(
            reader=_who(server, call),
            full=call.get("cursor") is None,
            last_event_id=call.get("last"),
            count=call["events"],
            began=_ns(call["start"]),
            returned=_ns(call["end"]),
        )
        for server, call in trace.calls
        if call.get("op") in (LIST, CREATE)
        and isinstance(call.get("events"), int)
        and call.get("order") in (None, "asc")
        and call.get("error") is None
    )


def work_of(trace: RunTrace) -> dict[str, int]:
    """What the host did for the run.

    ``deliveries``, ``duplicates`` (those that the host made a second time), ``overlap`` (the most that were under way
    at once), ``reads`` of the log, appends ``rejected`` by the store, ``divergences`` that led to a recovery replay.
    """
    counts: Counter[str] = Counter()
    overlap = 0
    for _, call in trace.calls:
        if call.get("op") == DELIVERY:
            counts["duplicates" if call.get("duplicate") else "deliveries"] += 1
            overlap = max(overlap, call.get("beside") or 0)
        elif call.get("op") == CREATE and call.get("error") is not None:
            counts["rejected"] += 1
        elif call.get("op") == QUEUE and call.get("divergences"):
            counts["divergences"] += 1
    counts["reads"] = sum(1 for _ in reads_of(trace))
    return {**counts, **({"overlap": overlap} if overlap else {})}


def _who(server: str, call: Mapping[str, Any]) -> str:
    """A delivery, or for a call of the control routes the server itself."""
    delivery = call.get("delivery")
    return server if delivery is None else f"{server} delivery {delivery}"


def _ns(ms: float) -> int:
    return round(ms * 1_000_000)
