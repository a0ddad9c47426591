"""One HTTP/1.1 request, with a limit on its time and on what comes back.

A connection serves one request: what is left of a request that was given up cannot answer the next one. Redirects are
not followed, and are answered as they come.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

MOST_ANSWER = 16 * 1024 * 1024
_LINE = b"\r\n"
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;.*)?")
#: statuses whose answers never have a body
_BARE = (204, 304)


class BadAnswer(ValueError):
    """What came back is no HTTP answer, or is too large."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where an app listens. ``tls`` for https."""

    host: str
    port: int
    tls: bool = False

    @property
    def authority(self) -> str:
        """Host and port, as a request names them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it came: its status, the value of its content-type header, and its body, no longer chunked."""

    status: int
    content_type: str
    body: bytes


async def exchange(
    address: Address,
    method: str,
    target: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    timeout_s: float,
    most: int = MOST_ANSWER,
) -> Reply:
    """Ask once. TimeoutError after ``timeout_s``, OSError when nobody listens, BadAnswer for nonsense.

    ``target`` is the path with its query, already quoted; ``headers`` are those beside host, length and connection.
    """
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_connection(address.host, address.port, limit=most, ssl=address.tls or None)
        try:
            writer.write(_request(address, method, target, headers, body))
            await writer.drain()
            return await _answer(reader, method, most)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def listens(address: Address, timeout_s: float) -> None:
    """Whether somebody takes connections there: OSError or TimeoutError when nobody does."""
    async with asyncio.timeout(timeout_s):
        _reader, writer = await asyncio.open_connection(address.host, address.port, ssl=address.tls or None)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _request(address: Address, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    text = b"" if body is None else body
    lines = [f"{method} {target} HTTP/1.1", f"host: {address.authority}", "connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"content-length: {len(text)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + text


async def _answer(reader: asyncio.StreamReader, method: str, most: int) -> Reply:
    while True:
        status, headers = await _head(reader)
        if status >= 200:  # what comes before is a word that the answer is being made
            break
    if method == "HEAD" or status in _BARE:
        body = b""
    elif "chunked" in headers.get("transfer-encoding", "").lower():
        body = await _chunks(reader, most)
    else:
        body = await _plain(reader, headers.get("content-length"), most)
    return Reply(status, headers.get("content-type", ""), body)


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    try:
        head = await reader.readuntil(_LINE * 2)
    except asyncio.IncompleteReadError as cut:
        raise BadAnswer(f"an answer that begins with {cut.partial[:60]!r}") from None
    except asyncio.LimitOverrunError:
        raise BadAnswer("an answer whose headers do not end") from None
    first, *lines = head.split(_LINE)
    words = first.split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not re.fullmatch(rb"[1-9]\d\d", words[1]):
        raise BadAnswer(f"an answer that begins with {head[:60]!r}")
    pairs = (line.decode("latin-1").partition(":") for line in lines if line)
    return int(words[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _plain(reader: asyncio.StreamReader, length: str | None, most: int) -> bytes:
    """A body of the length that was told, else all that comes until the connection is closed."""
    wanted = None
    if length is not None:
        if not length.isdecimal():
            raise BadAnswer(f"an answer of {length!r} bytes")
        wanted = int(length)
    if wanted is not None and wanted > most:
        raise BadAnswer(f"an answer of more than {most} bytes")
    parts, size = [], 0
    while (wanted is None or size < wanted) and (part := await reader.read(65536)):
        parts.append(part)
        size += len(part)
        if size > most:
            raise BadAnswer(f"an answer of more than {most} bytes")
    if wanted is not None and size < wanted:
        raise BadAnswer(f"an answer that ends after {size} of {wanted} bytes")
    return b"".join(parts)[:wanted]


async def _chunks(reader: asyncio.StreamReader, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        while True:
            line = (await reader.readuntil(_LINE))[:-2]
            found = _SIZE.fullmatch(line)
            if found is None:
                raise BadAnswer(f"an answer with a chunk of {line[:20]!r} bytes")
            length = int(found[1], 16)
            if not length:
                return b"".join(parts)
            size += length
            if size > most:
                raise BadAnswer(f"an answer of more than {most} bytes")
            parts.append((await reader.readexactly(length + 2))[:-2])
    except asyncio.IncompleteReadError:
        raise BadAnswer(f"an answer that is cut off after {size} bytes") from None
    except asyncio.LimitOverrunError:
        raise BadAnswer("an answer whose chunks do not end") from None
