"""A real HTTP server for one test: what it answers is written down byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

Write = Callable[[bytes], Awaitable[None]]
Handler = Callable[[Write], Awaitable[None]]


@dataclass
class Server:
    """`base_url`, and what came: the heads and JSON bodies of the requests, and the number of connections."""

    base_url: str
    heads: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    connections: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)


def head(status: int = 200, content_type: str = "text/event-stream", *more: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", "connection: close", *more]
    return "\r\n".join([*lines, "", ""]).encode()


def sse(*events: Any) -> bytes:
    """Events as JSON, and `[DONE]`."""
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events) + b"data: [DONE]\n\n"


def replies(*answers: bytes) -> list[Handler]:
    """Handlers that write one answer each and close."""

    def handler(answer: bytes) -> Handler:
        async def write_it(write: Write) -> None:
            await write(answer)

        return write_it

    return [handler(answer) for answer in answers]


@contextlib.asynccontextmanager
async def serving(handlers: Iterable[Handler], tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Serve request n with the n-th handler; the last one is repeated. `closed` is set when a client hangs up.

    With `tls` the address is https://localhost.
    """
    rest = list(handlers)
    server = Server("")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1

        async def write(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        try:
            text = (await reader.readuntil(b"\r\n\r\n")).decode()
            server.heads.append(text)
            _, _, after = text.lower().partition("content-length:")
            if after:
                server.bodies.append(json.loads(await reader.readexactly(int(after.split()[0]))))
            handler = rest.pop(0) if len(rest) > 1 else rest[0]
            watcher = asyncio.ensure_future(reader.read(1))
            watcher.add_done_callback(lambda _: server.closed.set())
            await handler(write)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    origin = "https://localhost" if tls else "http://127.0.0.1"
    server.base_url = f"{origin}:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listener.close()
