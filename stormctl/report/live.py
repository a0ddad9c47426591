"""Handlers that follow a storm as it runs: a live table on a terminal, plain lines elsewhere, NDJSON for programs."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from stormctl.report.style import CORRUPTED, LOOKS, look
from stormctl.storm.attempt import Cell
from stormctl.storm.events import (
    AttemptLanded,
    AttemptStarted,
    Handler,
    LogSwept,
    StormEvent,
    StormFinished,
    StormNoted,
    StormStarted,
    WorkerDied,
)

BAR = 60


def follow(console: Console) -> Handler:
    """The handler that suits where the console writes to."""
    return LiveTable(console) if console.is_terminal and not console.is_dumb_terminal else PlainLines(console)


class LiveTable:
    """Progress and outcomes per cell, redrawn a few times a second."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._planned: Mapping[Cell, int] = {}
        self._landed: dict[Cell, Counter[str]] = {}
        self._running: Counter[Cell] = Counter()
        self._findings: Counter[str] = Counter()
        self._swept = 0
        self._died = 0
        self._before = 0
        self._finished = False
        self._title = ""
        self._began = time.monotonic()
        self._live = Live(console=console, get_renderable=self.render, refresh_per_second=4, transient=True)

    def handle(self, event: StormEvent) -> None:
        match event:
            case StormStarted():
                self._planned = event.planned
                self._before = event.landed
                self._title = f"{event.name}, seed {event.seed}"
                for warning in event.warnings:
                    self._console.print(Text(f"warning: {warning}", style="yellow"))
                self._live.start()
            case AttemptStarted():
                self._running[event.cell] += 1
            case AttemptLanded():
                cell = event.attempt.cell
                self._running[cell] = max(0, self._running[cell] - 1)
                self._landed.setdefault(cell, Counter())[look(event.attempt.outcome).word] += 1
            case WorkerDied():
                self._died += 1
            case StormNoted():
                self._console.print(Text(f"note: {event.text}", style="yellow"))
            case LogSwept():
                self._swept += 1
                self._findings.update(event.findings)
            case StormFinished():
                self._finished = True  # its logs are still to be swept

    def close(self) -> None:
        self._live.stop()

    def render(self) -> RenderableType:
        """The table as it stands."""
        total = sum(self._planned.values())
        landed = self._before + sum(counts.total() for counts in self._landed.values())
        seconds = int(time.monotonic() - self._began)
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column("cell", no_wrap=True)
        for header in ("running", *(one.word for one in LOOKS)):
            table.add_column(header, justify="right")
        for cell in self._planned:
            counts = self._landed.get(cell, Counter())
            table.add_row(
                Text(f"{cell.scenario}  {_arm(cell, self._planned)}"),
                str(self._running[cell]),
                *(Text(str(counts[one.word]), style=one.style if counts[one.word] else "dim") for one in LOOKS),
            )
        found = ", ".join(f"{sweep} {count}" for sweep, count in sorted(self._findings.items()) if count)
        doing = f"sweeping logs: {self._swept} of {landed}" if self._finished else f"{landed} of {total} landed"
        status = f"{self._title}   {doing}   {seconds // 60}:{seconds % 60:02d}"
        done, of = (self._swept, landed) if self._finished else (landed, total)
        filled = BAR * done // max(1, of)
        bar = Text.assemble(("━" * filled, "bold"), ("─" * (BAR - filled), "dim"))
        lines: list[RenderableType] = [Text(status, style="bold"), bar, table]
        if self._died:
            lines.append(Text(f"workers that died and were replaced: {self._died}"))
        if found:
            lines.append(Text(f"findings: {found}", style=CORRUPTED.style))
        return Group(*lines)


class PlainLines:
    """One line per landed attempt, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._total = 0
        self._landed = 0
        self._planned: Mapping[Cell, int] = {}

    def handle(self, event: StormEvent) -> None:
        match event:
            case StormStarted():
                self._planned = event.planned
                self._total = sum(event.planned.values())
                self._landed = event.landed
                cells = len(event.planned)
                where = f"{cells} cell{'s' if cells != 1 else ''}"
                self._say(f"{event.name}, seed {event.seed}: {self._total} attempts in {where}")
                for warning in event.warnings:
                    self._say(f"warning: {warning}")
            case AttemptLanded(attempt):
                self._landed += 1
                cell = attempt.cell
                flags = f" ({', '.join(attempt.flags)})" if attempt.flags else ""
                self._say(
                    f"[{self._landed}/{self._total}] {cell.scenario}, {_arm(cell, self._planned)}, "
                    f"attempt {attempt.number}: {attempt.outcome} after {attempt.duration_ms / 1000:.1f} s{flags}"
                )
            case WorkerDied():
                self._say(
                    f"worker {event.worker} {event.how}; {event.requeued} messages went back, "
                    f"worker {event.successor} took its place"
                )
            case StormNoted():
                self._say(f"note: {event.text}")
            case StormFinished():
                why = {
                    "done": "done",
                    "budget": "the launch budget ran out",
                    "interrupted": "interrupted",
                    "resolved": "the arms are told apart",
                }
                self._say(
                    f"{event.landed} of {event.planned} attempts landed in {event.seconds:.0f} s: "
                    f"{why.get(event.reason, event.reason)}"
                )
            case _:
                pass

    def close(self) -> None:
        """Nothing is held open."""

    def _say(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)


class NdjsonWriter:
    """Every event as one JSON line: ``{"event": "attempt-landed", ...}``. The stream stays the caller's to close."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def handle(self, event: StormEvent) -> None:
        self._stream.write(json.dumps(event_row(event), ensure_ascii=False) + "\n")
        self._stream.flush()

    def close(self) -> None:
        self._stream.flush()


def event_row(event: StormEvent) -> dict[str, Any]:
    """A storm event as JSON values."""
    match event:
        case StormStarted():
            planned = [{**asdict(cell), "attempts": count} for cell, count in event.planned.items()]
            body: dict[str, Any] = {
                "name": event.name,
                "seed": event.seed,
                "folder": str(event.folder),
                "planned": planned,
                "warnings": list(event.warnings),
            }
        case AttemptStarted():
            body = {**asdict(event.cell), "number": event.number, "run_id": event.run_id}
        case AttemptLanded():
            body = event.attempt.row()
        case LogSwept():
            body = {
                **asdict(event.cell),
                "run_id": event.run_id,
                "verdict": event.verdict,
                "findings": dict(event.findings),
                "unknown": list(event.unknown),
            }
        case WorkerDied() | StormNoted():
            body = asdict(event)
        case StormFinished():
            body = {**asdict(event), "folder": str(event.folder)}
    return {"event": _word(event), **body}


def _arm(cell: Cell, planned: Mapping[Cell, int]) -> str:
    """A cell without its scenario, and without its world when there is only one."""
    several = len({one.world for one in planned}) > 1
    return cell.arm if several else f"{cell.condition} + {cell.generation}"


def _word(event: StormEvent) -> str:
    """``AttemptLanded`` -> ``attempt-landed``."""
    name = type(event).__name__
    return "".join(f"-{char.lower()}" if char.isupper() else char for char in name).lstrip("-")
