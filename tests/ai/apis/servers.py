"""A server's reply for tests of adapters: what it is served as, and the events and message it becomes."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

from pi_notebook.ai.connection import Connection
from pi_notebook.ai.messages import AssistantMessage, UserMessage
from pi_notebook.ai.model import Context, Model, StreamOptions, stream
from pi_notebook.ai.stream import Done, Error, StreamEvent

KEY = "secret-key-0123456789"


@dataclass
class Spec:
    """A tool as an adapter sees it."""

    name: str
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    description: str = "does it"
    constrained_sampling: Literal["prefer", "require"] | None = None


@dataclass
class Reply:
    events: list[StreamEvent]
    requests: list[httpx.Request]

    @property
    def message(self) -> AssistantMessage:
        last = self.events[-1]
        assert isinstance(last, Done | Error)
        return last.message

    @property
    def kinds(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def error(self) -> str:
        return self.message.error_message or ""


def sse(*events: Any, named: bool = False) -> bytes:
    lines = []
    for event in events:
        kind = event.get("type") if isinstance(event, dict) else None
        name = f"event: {kind}\n" if named and isinstance(kind, str) else ""
        data = event if isinstance(event, str) else json.dumps(event)
        lines.append(f"{name}data: {data}\n\n")
    return "".join(lines).encode("utf-8", "replace")


def reply_to(
    model: Model,
    body: bytes,
    *,
    status: int = 200,
    content_type: str = "text/event-stream",
    pieces: Sequence[int] = (),
    context: Context | None = None,
    options: StreamOptions | None = None,
) -> Reply:
    """Ask `model`, whose server answers with `body`, cut at the positions `pieces`."""
    cuts = [0, *sorted(piece % (len(body) + 1) for piece in pieces), len(body)]
    requests: list[httpx.Request] = []

    class Body(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for start, end in itertools.pairwise(cuts):
                if end > start:
                    yield body[start:end]

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(status, headers={"content-type": content_type}, stream=Body())

    async def ask() -> list[StreamEvent]:
        asked = options or StreamOptions()
        asked.api_key = asked.api_key or KEY
        asked.connection = Connection(httpx.MockTransport(answer))
        asked.max_retries = 0
        try:
            return [event async for event in stream(model, context or Context(messages=[UserMessage("hi")]), asked)]
        finally:
            await asked.connection.aclose()

    return Reply(asyncio.run(ask()), requests)
