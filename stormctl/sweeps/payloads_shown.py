"""The payloads of the events that findings are about, as text, for whoever asked to see them (``--show-payloads``).

Nothing else in a report holds a payload: what a run was given and what it returned may be secret.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from stormctl.errors import StormctlError
from stormctl.history import Capture, Payload
from stormctl.sweeps.finding import Finding
from stormctl.sweeps.witness import clean

#: Longer texts are cut, and no more events than this are shown of one log.
MAX_TEXT, MAX_SHOWN = 400, 50


def payloads_of(capture: Capture, findings: Iterable[Finding]) -> tuple[tuple[int, str], ...]:
    """Position and payload of each event that a finding names, in the order of the log; those without one left out."""
    named = {position for finding in findings for position in finding.positions}
    shown: list[tuple[int, str]] = []
    for index, event in enumerate(capture.log):
        if len(shown) >= MAX_SHOWN:
            break
        if event.payload is not None and capture.log.place(index) in named:
            shown.append((capture.log.place(index), payload_text(event.payload)))
    return tuple(shown)


def payload_text(payload: Payload) -> str:
    """A payload as one line for a terminal: its value, or why that cannot be had."""
    try:
        text = json.dumps(payload.load(), ensure_ascii=False, default=str, separators=(",", ":"))
    except StormctlError as error:
        return clean(f"(not shown: {error})")
    except (ValueError, RecursionError):
        return "(not shown: its value cannot be written)"
    return clean(text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... ({len(text)} characters)")
