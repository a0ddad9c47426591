"""One request to the host on this machine, which answers every one with a JSON object."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from stormctl.targets.http import Address, BadAnswer, exchange

__all__ = ["Answer", "BadAnswer", "request"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The status of an answer, and its JSON."""

    status: int
    value: dict[str, Any]


async def request(
    port: int,
    method: str,
    path: str,
    *,
    token: str,
    timeout_s: float,
    query: dict[str, str] | None = None,
    body: object = None,
) -> Answer:
    """Ask the host once. TimeoutError after ``timeout_s``, OSError when nobody listens, BadAnswer for nonsense."""
    reply = await exchange(
        Address("127.0.0.1", port),
        method,
        f"{path}?{urlencode(query)}" if query else path,
        headers={"x-stormctl-token": token, "content-type": "application/json"},
        body=None if body is None else json.dumps(body, allow_nan=False).encode(),
        timeout_s=timeout_s,
    )
    try:
        value = json.loads(reply.body)
    except ValueError:
        raise BadAnswer(f"an answer that is no JSON: {reply.body[:60]!r}") from None
    if not isinstance(value, dict):
        raise BadAnswer("an answer that is no object")
    return Answer(reply.status, value)
