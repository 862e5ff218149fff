"""A model server that costs next to nothing: replies rendered ahead, requests never decoded.

    python -m tests.benchmarks.server      prints its port; ends with its standard input

The model's name is the workload; the step is the number of tool results behind the last user message, found by looking
for bytes. Each event is an HTTP chunk of its own, as real servers flush them.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from .workloads import FINAL, SLEEP_MS

_MODEL = re.compile(rb'"model": ?"([a-z]+)-(\d+)"')
_TOOL = re.compile(rb'"role": ?"tool"')
_USER = re.compile(rb'"role": ?"user"')
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_SLICE = 1 << 18
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_PIECE = 16


def _call(index: int, arguments: str, name: str | None = None) -> dict[str, Any]:
    call: dict[str, Any] = {"index": index, "function": {"arguments": arguments}}
    if name:
        call |= {"id": f"call_{name}_{index}", "type": "function"}
        call["function"]["name"] = name
    return {"tool_calls": [call]}


def _big_arguments(size: int) -> str:
    text = 'Nine quick foxes \\u00e9 jump; \\n they \\"quote\\" 13 dogs. '
    room = size - len('{"text": ""}')
    return '{"text": "' + (text * (room // len(text))).ljust(room, "x") + '"}'


def deltas(kind: str, size: int, step: int) -> Iterator[dict[str, Any]]:
    """The `delta` of each chunk of one reply."""
    yield {"role": "assistant", "content": None}
    if kind == "turns" and step < size:
        yield _call(0, "", "add")
        for piece in ('{"a": ', f'{step}, "b"', ": 2}"):
            yield _call(0, piece)
    elif kind == "fan" and step == 0:
        for index in range(size):
            yield _call(index, "", "sleep_ms")
            yield _call(index, f'{{"ms": {SLEEP_MS}}}')
    elif kind == "bigargs" and step == 0:
        yield _call(0, "", "put")
        arguments = _big_arguments(size)
        for start in range(0, size, _PIECE):
            yield _call(0, arguments[start : start + _PIECE])
    elif kind in ("stream", "paced"):
        for number in range(size):
            yield {"content": f"w{number % 1000:03d} "}
    else:
        for text in FINAL:
            yield {"content": text}


@cache
def chunks(kind: str, size: int, step: int) -> list[bytes]:
    """One reply as HTTP chunks."""
    common = {"id": f"reply-{step}", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": kind}
    events = list(deltas(kind, size, step))
    reason = "tool_calls" if "tool_calls" in events[-1] else "stop"
    told: list[dict[str, Any]] = [
        {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in events
    ]
    told.append({**common, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    usage = {"prompt_tokens": 100, "completion_tokens": len(events), "total_tokens": 100 + len(events)}
    told.append({**common, "choices": [], "usage": usage})
    lines = [b"data: %b\n\n" % json.dumps(event, separators=(",", ":")).encode() for event in told]
    return [b"%x\r\n%b\r\n" % (len(line), line) for line in (*lines, b"data: [DONE]\n\n")] + [b"0\r\n\r\n"]


@cache
def reply(kind: str, size: int, step: int) -> bytes:
    return _HEAD + b"".join(chunks(kind, size, step))


class _Connection(asyncio.Protocol):
    """One client: collects a request, writes a reply as fast as it is read (or a chunk per millisecond)."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=2 * _SLICE)
        self.transport = transport
        self.request = bytearray()
        self.wanted = 0
        self.slices: Iterator[memoryview] = iter(())
        self.open = self.flowing = True

    def data_received(self, data: bytes) -> None:
        self.request += data
        if not self.wanted and (end := self.request.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self.request, 0, end)
            self.wanted = end + 4 + (int(length[1]) if length else 0)
        if self.wanted and len(self.request) >= self.wanted:
            request, self.request, self.wanted = bytes(self.request), bytearray(), 0
            self.answer(request)

    def answer(self, request: bytes) -> None:
        model = _MODEL.search(request)
        if model is None:
            self.transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}")
            return
        kind, size = model[1].decode(), int(model[2])
        last_user = max((match.start() for match in _USER.finditer(request)), default=0)
        step = len(_TOOL.findall(request, last_user))
        step = step if kind == "turns" else min(step, 1)
        if kind == "paced":
            self.pace([_HEAD, *chunks(kind, size, step)], 0, asyncio.get_running_loop().time())
            return
        whole = memoryview(reply(kind, size, step))
        self.slices = (whole[start : start + _SLICE] for start in range(0, len(whole), _SLICE))
        self.resume_writing()

    def pace(self, parts: list[bytes], sent: int, began: float) -> None:
        loop = asyncio.get_running_loop()
        due = min(len(parts), int((loop.time() - began) * 1000) + 1)
        self.transport.write(b"".join(parts[sent:due]))
        if due < len(parts) and self.open:
            loop.call_later(0.001, self.pace, parts, due, began)

    def pause_writing(self) -> None:
        self.flowing = False

    def resume_writing(self) -> None:
        self.flowing = True
        while self.flowing and (part := next(self.slices, None)) is not None:
            self.transport.write(part)

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        self.slices = iter(())


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
