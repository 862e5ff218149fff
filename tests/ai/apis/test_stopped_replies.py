"""A person stops a reply in the middle: it ends at once, as `aborted`, and what had come stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from pi_notebook.ai.abort import AbortController
from pi_notebook.ai.connection import Connection
from pi_notebook.ai.messages import AssistantMessage, TextContent, ToolCall, UserMessage
from pi_notebook.ai.model import Context, Model, StreamOptions, stream

from .servers import KEY, sse


def chat(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def item(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": fields}


def block(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": fields}


def piece(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


HALF = '{"path": "a'
ARGUMENTS = "response.function_call_arguments.delta"
BODIES = {
    "openai-completions": sse(
        chat(content="Let me"),
        chat(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "read", "arguments": HALF}}]),
    ),
    "openai-responses": sse(
        item(0, type="message", id="m1", content=[]),
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Let me"},
        item(1, type="function_call", id="f1", call_id="c1", name="read", arguments=""),
        {"type": ARGUMENTS, "output_index": 1, "delta": HALF},
        named=True,
    ),
    "anthropic-messages": sse(
        {"type": "message_start", "message": {"id": "m1", "usage": {}}},
        block(0, type="text", text=""),
        piece(0, type="text_delta", text="Let me"),
        block(1, type="tool_use", id="c1", name="read", input={}),
        piece(1, type="input_json_delta", partial_json=HALF),
        named=True,
    ),
}


async def stopped(api: str, body: bytes, at: str) -> tuple[list[str], AssistantMessage]:
    """The reply to a request that is stopped at the first event of the kind `at`; its server goes on for ever."""

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield body
            await asyncio.Event().wait()

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Endless())

    controller = AbortController()
    connection = Connection(httpx.MockTransport(answer))
    options = StreamOptions(api_key=KEY, signal=controller.signal, connection=connection)
    kinds = []
    message = AssistantMessage()
    async for event in stream(
        Model("m", api, "p", "http://server.test"), Context(messages=[UserMessage("hi")]), options
    ):
        kinds.append(event.type)
        if event.type == at:
            controller.abort()
        if event.type in ("done", "error"):
            message = event.message  # type: ignore[union-attr]
    await connection.aclose()
    return kinds, message


@pytest.mark.parametrize("api", BODIES)
def test_what_had_come_stays_and_half_a_call_is_no_call_to_run(api: str) -> None:
    kinds, message = asyncio.run(stopped(api, BODIES[api], "toolcall_delta"))
    assert kinds.count("error") == 1 and kinds[-1] == "error"
    assert (message.stop_reason, message.text) == ("aborted", "Let me")
    assert message.error_message == "Stopped before the reply was complete."
    [call] = message.tool_calls
    assert (call.name, call.arguments) == ("read", {"path": "a"})


def test_gemini() -> None:
    chunk = {"candidates": [{"content": {"parts": [{"text": "Let me"}], "role": "model"}, "index": 0}]}
    kinds, message = asyncio.run(stopped("google-generative-ai", sse(chunk), "text_delta"))
    assert kinds == ["start", "text_start", "text_delta", "error"]
    assert (message.stop_reason, message.content) == ("aborted", (TextContent("Let me"),))


def test_a_protocol_without_ends_of_blocks_ends_them_all() -> None:
    kinds, message = asyncio.run(stopped("openai-completions", BODIES["openai-completions"], "toolcall_delta"))
    assert kinds == [
        "start", "text_start", "text_delta", "toolcall_start", "toolcall_delta", "text_end", "toolcall_end", "error",
    ]  # fmt: skip
    assert message.content == (TextContent("Let me"), ToolCall("c1", "read", {"path": "a"}))
