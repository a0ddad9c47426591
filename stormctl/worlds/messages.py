"""Queue messages as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from stormctl.worlds.base import Message

_decode = msgspec.json.Decoder().decode


def message_bytes(message: Message) -> bytes:
    """The file of a message; fields that say nothing are left out."""
    body: dict[str, Any] = {"runId": message.run_id}
    if message.step_id is not None:
        body["stepId"] = message.step_id
    if message.step_name is not None:
        body["stepName"] = message.step_name
    if message.divergences or message.divergent_event is not None:
        body["replayDivergence"] = {"count": message.divergences, "eventId": message.divergent_event}
    if message.reinvocations:
        body["preconditionReinvocations"] = message.reinvocations
    if message.data:
        body["data"] = dict(message.data)
    return msgspec.json.encode(body)


def message_of(raw: bytes) -> Message:
    """The inverse of :func:`message_bytes`; ValueError, KeyError or TypeError for anything else."""
    body = _decode(raw)
    divergence = body.get("replayDivergence") or {}
    return Message(
        run_id=body["runId"],
        step_id=body.get("stepId"),
        step_name=body.get("stepName"),
        divergences=divergence.get("count", 0),
        divergent_event=divergence.get("eventId"),
        reinvocations=body.get("preconditionReinvocations", 0),
        data=body.get("data") or {},
    )
