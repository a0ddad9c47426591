"""One HTTP request to the host on this machine, with a limit on its time and on what comes back.

The host is ours and speaks plain HTTP/1.1, so that a client of a page is enough; a connection serves one request, and
what is left of a request that was given up cannot answer the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

MOST_ANSWER = 16 * 1024 * 1024


class BadAnswer(ValueError):
    """What came back is no answer of a host."""


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
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=MOST_ANSWER)
        try:
            writer.write(_request(port, method, path, token, query, body))
            await writer.drain()
            return _answer(await _whole(reader))
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def _request(port: int, method: str, path: str, token: str, query: dict[str, str] | None, body: object) -> bytes:
    text = b"" if body is None else json.dumps(body, allow_nan=False).encode()
    where = f"{path}?{urlencode(query)}" if query else path
    head = (
        f"{method} {where} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\nx-stormctl-token: {token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n"
    )
    return head.encode("ascii") + text


async def _whole(reader: asyncio.StreamReader) -> bytes:
    parts, size = [], 0
    while part := await reader.read(65536):
        parts.append(part)
        size += len(part)
        if size > MOST_ANSWER:
            raise BadAnswer(f"an answer of more than {MOST_ANSWER} bytes")
    return b"".join(parts)


def _answer(raw: bytes) -> Answer:
    head, blank, body = raw.partition(b"\r\n\r\n")
    first = head.split(b"\r\n", 1)[0].split()
    if not blank or len(first) < 2 or not first[0].startswith(b"HTTP/1.") or not first[1].isdigit():
        raise BadAnswer(f"an answer that begins with {raw[:60]!r}")
    try:
        value = json.loads(body)
    except ValueError:
        raise BadAnswer(f"an answer that is no JSON: {body[:60]!r}") from None
    if not isinstance(value, dict):
        raise BadAnswer("an answer that is no object")
    return Answer(int(first[1]), value)
