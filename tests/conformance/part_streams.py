"""Part `streams`: a recorded reply, byte by byte as the server sent it, and the events and message it becomes."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pi_notebook.ai import model as ai
from pi_notebook.ai.abort import AbortController
from pi_notebook.ai.message_json import block_to_json, message_to_json
from pi_notebook.ai.stream import Done, Error, StreamEvent, ToolCallDelta, ToolCallEnd

from . import wire
from .case import PUBLIC_DATA, Case, Outcome

SCRATCH = {"partialJson", "partialArgs", "index", "streamIndex", "customInput"}  # of the reference's own blocks
NO_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}


def cases(data: Path) -> Iterable[Case]:
    return wire.cases(data / "wire" / "streams")


def run(case: Case) -> Outcome:
    data = case.data
    actual = asyncio.run(replay(data))
    expected = expected_of(data["golden"], actual)
    if actual["requests"] != expected["requests"]:
        found = f"{expected['requests']} requests expected, got {actual['requests']}"
        return wire.outcome(found, "RETRY_RULES", data)
    found = wire.wire_difference(expected, actual, wire.reference_texts(PUBLIC_DATA))
    return wire.outcome(found, "STREAM_RULES", data)


def expected_of(golden: dict[str, Any], actual: dict[str, Any]) -> dict[str, Any]:
    """The golden without scratch fields, and with our text where the reference's own words stand."""
    events = []
    for event in golden["events"]:
        event = {key: without_scratch(value) for key, value in event.items()}
        # How far an unfinished text of arguments is read is each side's own business.
        if "partialArguments" in event and not is_complete(event, golden["events"]):
            event.pop("partialArguments")
        events.append(event)
    final = without_scratch(golden["final"])
    if "errorMessage" in final and actual["final"].get("errorMessage"):
        final["errorMessage"] = actual["final"]["errorMessage"]
    for event, ours in zip(events, actual["events"], strict=False):
        if "partialArguments" not in event:
            ours.pop("partialArguments", None)
    return {"requests": golden["requests"], "events": events, "final": final}


def without_scratch(value: Any) -> Any:
    if isinstance(value, dict):
        is_block = value.get("type") in ("text", "thinking", "toolCall")
        return {
            key: item if key == "arguments" else without_scratch(item)
            for key, item in value.items()
            if not (is_block and key in SCRATCH)
        }
    return [without_scratch(item) for item in value] if isinstance(value, list) else value


def is_complete(event: dict[str, Any], events: list[dict[str, Any]]) -> bool:
    """Whether the deltas up to `event` are a whole JSON text."""
    text = ""
    for other in events:
        if other["type"] == "toolcall_delta" and other["contentIndex"] == event["contentIndex"]:
            text += other["delta"] if isinstance(other.get("delta"), str) else ""
            if other["partialArguments"] == event["partialArguments"]:
                break
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


async def replay(data: dict[str, Any]) -> dict[str, Any]:
    """Serve the recorded responses, ask, and return requests, events and message in the golden's form."""
    served = Served(data["responses"])
    server = await asyncio.start_server(served.answer, "127.0.0.1", 0)
    host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    controller = AbortController()
    options = wire.options_from(data["options"])
    options.signal = controller.signal
    model = wire.model_from(data["model"], "stream", data["options"], host)
    events: list[dict[str, Any]] = []
    final: dict[str, Any] = {}
    try:
        async for event in ai.stream(model, wire.context_from(data["context"]), options):
            events.append(event_json(event))
            if isinstance(event, Done | Error):
                final = message_to_json(event.message)
            if len(events) == data.get("abort_after_events"):
                asyncio.get_running_loop().call_later(0.005, controller.abort)
    finally:
        served.over.set()
        server.close()
        if served.answering:
            await asyncio.wait(served.answering)
    final.pop("timestamp")
    final["usage"].setdefault("cost", NO_COST)
    return {"requests": served.requests, "events": events, "final": final}


def event_json(event: StreamEvent) -> dict[str, Any]:
    if isinstance(event, Done | Error):
        reason = event.reason
        return {"type": event.type, "reason": "toolUse" if reason == "tool_use" else reason}
    shown: dict[str, Any] = {"type": event.type}
    for ours, theirs in (("content_index", "contentIndex"), ("delta", "delta"), ("content", "content")):
        if hasattr(event, ours):
            shown[theirs] = getattr(event, ours)
    if isinstance(event, ToolCallEnd):
        shown["toolCall"] = block_to_json(event.tool_call)
    if isinstance(event, ToolCallDelta):
        call = event.partial.content[event.content_index]
        shown["partialArguments"] = call.arguments  # type: ignore[union-attr]
    return shown


class Served:
    """Answers request n with the n-th response; the last one is repeated."""

    def __init__(self, responses: list[dict[str, Any]]) -> None:
        self.responses = responses
        self.requests = 0
        self.over = asyncio.Event()
        self.answering: set[asyncio.Task[Any]] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.answering.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
            response = self.responses[min(self.requests, len(self.responses) - 1)]
            self.requests += 1
            await self.send(response, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.answering.discard(task)
            writer.close()

    async def send(self, response: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        headers = {"content-type": "text/event-stream", **(response.get("headers") or {})}
        lines = [f"HTTP/1.1 {response.get('status', 200)} X", "transfer-encoding: chunked", "connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        chunks = body_chunks(response)
        if response.get("cut") and not chunks:  # the recorder sends its head with the first chunk
            writer.transport.abort()
            return
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for chunk in chunks:
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await writer.drain()
            await asyncio.sleep(0)
        if response.get("hang"):
            await self.over.wait()
        elif not response.get("cut"):
            writer.write(b"0\r\n\r\n")
        await writer.drain()


def body_chunks(response: dict[str, Any]) -> list[bytes]:
    if "chunks_b64" in response:
        chunks = [base64.b64decode(chunk) for chunk in response["chunks_b64"]]
    else:
        chunks = [chunk.encode() for chunk in response.get("chunks") or ()]
    return [chunk for chunk in chunks if chunk]
