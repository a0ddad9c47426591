"""A capture without what was said in the run: digests in place of payloads and tokens, no values of the run's row.

What stays is what the checks go by: types, ids, positions, times, names, and which values are equal. Attributes stay,
for they are labels that every listing shows. Without the run's input nothing can be replayed with it, so the workload
that an input belongs to is not named either: with another input its replay would tell of faults that are none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stormctl.history import Capture, Event, EventLog, RunRow, digest_value
from stormctl.history.tokens import SEALED, seal
from stormctl.readers.payloads import bytes_of

INPUT_LEFT_OUT = "the run's input was left out; capture it --with-payloads to replay it"
#: Keys under which an event or a row says what was given, returned or thrown, whatever the version calls it.
_VALUES = frozenset({"error", "stack", "message", "cause", "input", "output", "result", "payload", "metadata"})
#: Shorter tokens are looked for as a whole only: as a part they are in every second word.
_LONG = 6
_DEEPEST = 60


def sealed(capture: Capture) -> Capture:
    """The capture as it may be kept without payloads. Those of its events stay: a log is written without them."""
    hide = _Hide({event.token for event in capture.log if event.token})
    events = [_event(event, hide) for event in capture.log]
    evidence, run = capture.evidence, capture.run
    if run is not None:
        if run.input:
            evidence = replace(evidence, notes=(*evidence.notes, INPUT_LEFT_OUT))
        run = RunRow(run.status, None if run.input else run.workload, error_code=run.error_code)
    return replace(
        capture,
        log=EventLog(events, capture.log.run_id),
        evidence=replace(evidence, notes=tuple(hide.text(note) for note in evidence.notes)),
        run=run,
        data=hide.mapping(capture.data),
    )


def _event(event: Event, hide: _Hide) -> Event:
    token = None if event.token is None else seal(event.token)
    return replace(event, token=token, data=hide.mapping(event.data)) if token or event.data else event


class _Hide:
    """Goes through JSON values and replaces what must not be seen."""

    def __init__(self, tokens: set[str]) -> None:
        self._tokens = {token: seal(token) for token in tokens}
        self._long = sorted((token for token in tokens if len(token) >= _LONG), key=len, reverse=True)

    def mapping(self, value: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
        """The mapping, key by key."""
        return {self.text(key): self._under(key, inner, depth + 1) for key, inner in value.items()}

    def text(self, text: str) -> str:
        """The text with the digests of tokens in their places."""
        if text in self._tokens:
            return self._tokens[text]
        for token in self._long:
            if token in text:
                text = text.replace(token, self._tokens[token])
        return text

    def _under(self, key: str, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if key.lower().endswith("token") and isinstance(value, str):
            return seal(value)
        return _digest(value) if key in _VALUES else self._value(value, depth)

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return _digest(value) if depth > _DEEPEST or _is_bytes(value) else self.mapping(value, depth)
        if isinstance(value, (list, tuple)):
            return _digest(value) if depth > _DEEPEST else [self._value(inner, depth + 1) for inner in value]
        return value


def _digest(value: Any) -> str:
    return f"{SEALED}{digest_value(value)}"


def _is_bytes(value: Mapping[str, Any]) -> bool:
    try:
        return bytes_of(value) is not None
    except ValueError:
        return True
