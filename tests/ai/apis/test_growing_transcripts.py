"""A run's requests keep what they encoded: the bytes sent are those of a request made from nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai.connection import Connection
from pi_notebook.ai.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pi_notebook.ai.model import Context, Model, StreamOptions, adapter, stream

from .servers import KEY, Spec

APIS = ["anthropic-messages", "google-generative-ai", "openai-completions", "openai-responses"]


def model(api: str) -> Model:
    compat = {"supports_tool_references": True} if api == "anthropic-messages" else {}
    return Model("gemini-3-x", api, "p", "http://server.test", compat=compat)


@st.composite
def transcripts(draw: st.DrawFn) -> list[Message]:
    messages: list[Message] = [UserMessage("go")]
    for turn in range(draw(st.integers(1, 6))):
        match draw(st.sampled_from(["user", "blank", "reply", "call", "failed", "image", "lost"])):
            case "user":
                messages.append(UserMessage(draw(st.text(max_size=5))))
            case "blank":
                messages.append(UserMessage(" "))
            case "image":
                messages.append(UserMessage([TextContent("see"), ImageContent("AA==", "image/png")]))
            case "reply":
                text = [ThinkingContent("hm"), TextContent(draw(st.text(max_size=5)))]
                messages.append(AssistantMessage(text, "other", "other", "other"))
            case "failed":
                messages.append(AssistantMessage([TextContent("x")], stop_reason="error"))
            case "lost":
                messages.append(AssistantMessage([ToolCall(f"lost{turn}|x", "add", {"a": turn})]))
            case _:
                calls = [ToolCall(f"c{turn}|{i}", "add", {"a": i}) for i in range(draw(st.integers(1, 3)))]
                messages.append(AssistantMessage(calls, stop_reason="tool_use"))
                added = draw(st.sampled_from([(), (), ("sub",)]))
                messages += [ToolResultMessage(c.id, "add", [TextContent("3")], added_tool_names=added) for c in calls]
    # The same object may stand in several places, also in the first and the last one.
    again = draw(st.sampled_from([[], [], [0], [0, len(messages) - 1, 0]]))
    return messages + [messages[place] for place in again]


@pytest.mark.parametrize("api", APIS)
@given(transcripts(), st.lists(st.integers(1, 12), max_size=3))
def test_requests_of_a_growing_transcript_equal_those_made_from_nothing(
    api: str, messages: list[Message], steps: list[int]
) -> None:
    bodies: list[Any] = []

    def record(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(400)

    async def ask_at_each_step() -> None:
        connection = Connection(httpx.MockTransport(record))
        for length in (*sorted(steps), len(messages)):
            context = Context("SYS", messages[:length], tools)
            async for _ in stream(asked, context, StreamOptions(api_key=KEY, connection=connection)):
                pass
        await connection.aclose()

    asked = model(api)
    tools = [Spec("add"), Spec("sub")]
    asyncio.run(ask_at_each_step())
    for length, body in zip((*sorted(steps), len(messages)), bodies, strict=True):
        context = Context("SYS", messages[:length], tools)
        assert body == json.loads(json.dumps(adapter(api).request_body(asked, context, StreamOptions())))


@pytest.mark.parametrize("api", APIS)
def test_payload_hook_sees_and_replaces_the_body(api: str) -> None:
    seen: list[Any] = []

    def record(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content))
        return httpx.Response(400)

    async def ask() -> None:
        connection = Connection(httpx.MockTransport(record))
        options = StreamOptions(api_key=KEY, connection=connection, on_payload=lambda body: {**body, "extra": 1})
        async for _ in stream(model(api), Context(messages=[UserMessage("hi")]), options):
            pass
        await connection.aclose()

    asyncio.run(ask())
    assert seen[0]["extra"] == 1
