"""The floor: a blocking socket, chunks taken apart by hand. An asyncio program cannot quite reach it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from ..workloads import PROMPT, SYSTEM, TOOLS, Run

_HEAD = "POST {path}/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-length: {length}\r\n\r\n"
_RECEIVE = 1 << 18


def _events(connection: socket.socket) -> Iterator[dict[str, Any]]:
    """One chunk holds one event."""
    data = b""
    while (at := data.find(b"\r\n\r\n")) < 0:
        data += connection.recv(_RECEIVE)
    at += 4
    while True:
        line_end = data.find(b"\r\n", at)
        length = int(data[at:line_end], 16) if line_end >= 0 else 0
        end = line_end + 2 + length
        if line_end < 0 or len(data) < end + 2:
            data, at = data[at:] + connection.recv(_RECEIVE), 0
            continue
        if length == 0:
            return
        event = data[line_end + 8 : end - 2]
        at = end + 2
        if event != b"[DONE]":
            yield json.loads(event)


def make(base_url: str) -> Callable[[Run], Callable[[], Awaitable[None]]]:
    address = urlsplit(base_url)
    connection = socket.create_connection((address.hostname, address.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def prepare(run: Run) -> Callable[[], Awaitable[None]]:
        messages = [{"role": "system", "content": SYSTEM}, *run.history(), {"role": "user", "content": PROMPT}]

        async def one(call_id: str, name: str, pieces: list[str]) -> dict[str, Any]:
            content = await run.tool(name, json.loads("".join(pieces)))
            return {"role": "tool", "tool_call_id": call_id, "content": content}

        async def go() -> None:
            while True:
                body = json.dumps({"model": run.model, "stream": True, "messages": messages, "tools": TOOLS}).encode()
                connection.sendall(_HEAD.format(path=address.path, length=len(body)).encode() + body)
                texts: list[str] = []
                calls: dict[int, tuple[str, str, list[str]]] = {}
                for event in _events(connection):
                    if not event["choices"]:
                        continue
                    delta = event["choices"][0]["delta"]
                    if text := delta.get("content"):
                        texts.append(text)
                        run.delta(text)
                    for call in delta.get("tool_calls", ()):
                        function = call["function"]
                        if call["index"] not in calls:
                            calls[call["index"]] = (call["id"], function["name"], [])
                        calls[call["index"]][2].append(function["arguments"])
                message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) or None}
                messages.append(message)
                if not calls:
                    return
                message["tool_calls"] = [
                    {"id": call_id, "type": "function", "function": {"name": name, "arguments": "".join(pieces)}}
                    for call_id, name, pieces in calls.values()
                ]
                messages.extend(await asyncio.gather(*(one(*call) for call in calls.values())))

        return go

    return prepare
