"""One HTTP request: whole bodies however they are framed, and nonsense told as such."""

from __future__ import annotations

import asyncio

import pytest

from stormctl.targets.http import Address, BadAnswer, Reply, exchange

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def ask(answer: bytes, *, most: int = 1000, timeout_s: float = 5.0, hang: bool = False) -> Reply:
    """What comes of an answer of these bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        if hang:
            await reader.read()
        writer.close()

    async def run() -> Reply:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        try:
            return await exchange(address, "GET", "/", headers={}, timeout_s=timeout_s, most=most)
        finally:
            server.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    "rest",
    [
        b'content-length: 7\r\n\r\n{"a":1}',
        b'content-length: 7\r\n\r\n{"a":1}more',
        b'\r\n{"a":1}',
        b'transfer-encoding: chunked\r\n\r\n3\r\n{"a\r\n4;x=y\r\n":1}\r\n0\r\n\r\n',
        b'Transfer-Encoding: Chunked\r\n\r\n7\r\n{"a":1}\r\n0\r\nx: y\r\n\r\n',
    ],
)
def test_a_body_is_whole_however_it_is_framed(rest: bytes) -> None:
    assert ask(OK + rest) == Reply(200, "application/json", b'{"a":1}')


def test_what_comes_before_an_answer_is_passed_over_and_204_has_no_body() -> None:
    assert ask(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 None\r\n\r\n", hang=True).status == 204


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "begins with b''"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "begins with b'SSH"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "begins with"),
        (OK + b"content-length: 9\r\n\r\nshort", "ends after 5 of 9 bytes"),
        (OK + b"content-length: many\r\n\r\n", "'many' bytes"),
        (OK + b"content-length: 5000\r\n\r\n", "more than 1000 bytes"),
        (OK + b"\r\n" + b"x" * 2000, "more than 1000 bytes"),
        (OK + b"transfer-encoding: chunked\r\n\r\nzz\r\n", "chunk of b'zz'"),
        (OK + b"transfer-encoding: chunked\r\n\r\n9\r\nshort", "cut off after"),
        (OK + b"transfer-encoding: chunked\r\n\r\nfff\r\n", "more than 1000 bytes"),
    ],
)
def test_nonsense_is_told_as_such(answer: bytes, said: str) -> None:
    with pytest.raises(BadAnswer, match=said):
        ask(answer)


def test_an_answer_that_does_not_end_is_given_up() -> None:
    with pytest.raises(TimeoutError):
        ask(OK + b"content-length: 9\r\n\r\nshort", timeout_s=0.2, hang=True)
