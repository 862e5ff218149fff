"""Raw replies recorded from a llama.cpp server with three small models: each has one right outcome, however cut."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pi_notebook.ai.connection import Connection
from pi_notebook.ai.messages import AssistantMessage, TextContent, ToolCall
from pi_notebook.ai.model import Context, Model, StreamOptions, stream
from pi_notebook.ai.stream import Done, Error, StreamEvent

FOLDER = Path(__file__).parent / "transcripts"
MEAN = ("mean_of_column", {"table": "sales", "column": "price"})
ADD = ("add", {"a": 12, "b": 30})

# name: (stop reason, input + cached tokens, output tokens, content: texts as they are, calls as (name, arguments))
WHOLE: dict[str, tuple[str, int, int, list[Any]]] = {
    "qwen-0.5b-invented-call-as-text": ("stop", 447, 19, ['{"name": "print", "arguments": {"value": "2**10"}}']),
    "qwen-0.5b-tool-call": ("tool_use", 447, 28, [MEAN]),
    "qwen-0.5b-two-calls": ("tool_use", 452, 40, [("list_tables", {}), MEAN]),
    # Half a call: its text stays as it came, so that nothing can run it.
    "qwen-1.5b-call-cut-by-max-tokens": ("length", 447, 14, [("mean_of_column", "{")]),
    "qwen-1.5b-final-answer": ("stop", 518, 16, ["The sum of 12 and 30 is 42."]),
    "qwen-1.5b-invented-call-as-text": ("tool_use", 447, 27, [("run_code", {"code": "print(2**10)"})]),
    "qwen-1.5b-json-schema": ("stop", 322, 24, ['{"name": "add", "arguments": {"a": 12, "b": 30}}']),
    "qwen-1.5b-non-stream-tool-call": ("tool_use", 447, 28, [MEAN]),
    "qwen-1.5b-required-runaway": (
        "length",
        438,
        40,
        [
            "Hello! How can I assist you today? Do you have any questions or need help with something? I'm here to "
            "help. How can I assist you? Do you have any questions or need help"
        ],
    ),
    "qwen-1.5b-specific-ignored": ("tool_use", 446, 28, [ADD]),
    "qwen-1.5b-text-then-call": (
        "tool_use",
        457,
        51,
        [
            "To calculate the total amount of water, you need to add the initial amount to the additional amount:\n\n",
            ("add", {"a": 3.5, "b": 2.25}),
        ],
    ),
    "qwen-1.5b-text": ("stop", 25, 10, ["Hello! How can I assist you today?"]),
    "qwen-1.5b-tool-call": ("tool_use", 447, 28, [MEAN]),
    "qwen-1.5b-two-calls": ("tool_use", 452, 17, [("list_tables", {})]),  # the model made one of the two
    "smollm2-json-schema": (
        "stop",
        358,
        41,
        ['{\n  "name": "run_code",\n  "arguments": {\n    "code": "12 + 30 = 32"\n  }\n}'],
    ),
    "smollm2-text": (
        "stop",
        26,
        22,
        ["Hello! I'm here to help with any math or science topic. What can I assist you with?"],
    ),
    "smollm2-tool-call": ("stop", 35, 98, [...]),  # it only talks about a mean, at length
}
FAILED = {
    "qwen-1.5b-error-bad-request": (
        "local:qwen-1.5b answered with HTTP 400: Expected 'messages' to be an array [invalid_request_error]."
    ),
    "qwen-1.5b-error-context-overflow": (
        "local:qwen-1.5b answered with HTTP 400: request (9030 tokens) exceeds the available context size (8192 "
        "tokens), try increasing it [exceed_context_size_error]. The conversation does not fit into the model's "
        "context window: start a new one, shorten what tools return, or use a model with a larger window."
    ),
}


class Pieces(httpx.AsyncByteStream):
    def __init__(self, body: bytes, size: int) -> None:
        self.body, self.size = body, size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for i in range(0, len(self.body), self.size):
            yield self.body[i : i + self.size]


def replay(name: str, size: int) -> list[StreamEvent]:
    """The events of a recorded reply that comes in pieces of `size` bytes."""
    asked, _, answer = (FOLDER / f"{name}.txt").read_bytes().partition(b"### RESPONSE\n")
    model_id = json.loads(asked.partition(b"\n")[2])["model"]
    blank = b"\r\n\r\n" if b"\r\n\r\n" in answer else b"\n\n"
    head, _, body = answer.partition(blank)
    status, *lines = head.decode().splitlines()
    headers = [line.split(":", 1) for line in lines if line.lower().startswith("content-type:")]

    def answer_it(request: httpx.Request) -> httpx.Response:
        return httpx.Response(
            int(status.split()[1]), headers=[(k, v.strip()) for k, v in headers], stream=Pieces(body, size)
        )

    async def collect() -> list[StreamEvent]:
        model = Model(model_id, "openai-completions", "local", "http://recorded.test/v1")
        options = StreamOptions(api_key="key", connection=Connection(httpx.MockTransport(answer_it)))
        return [event async for event in stream(model, Context("", []), options)]

    return asyncio.run(collect())


def content_of(message: AssistantMessage) -> list[Any]:
    shown: list[Any] = []
    for block in message.content:
        if isinstance(block, ToolCall):
            assert block.id
            shown.append((block.name, block.arguments))
        else:
            assert isinstance(block, TextContent)
            shown.append(block.text)
    return shown


def test_every_transcript_has_its_outcome() -> None:
    assert {file.stem for file in FOLDER.glob("*.txt")} == WHOLE.keys() | FAILED.keys()


@pytest.mark.parametrize("size", [1, 997, 1 << 20])
@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_reply(name: str, size: int) -> None:
    *events, last = replay(name, size)
    assert isinstance(last, Done)
    stop_reason, asked, answered, content = WHOLE[name]
    message = last.message
    assert message.stop_reason == stop_reason
    assert message.usage.input + message.usage.cache_read == asked
    assert message.usage.output == answered
    said = content_of(message)
    if content == [...]:
        assert len(said) == 1 and "mean of column price" in said[0]
    else:
        assert said == content
    streamed = "".join(event.delta for event in events if event.type == "text_delta")
    assert streamed == message.text


@pytest.mark.parametrize("name", FAILED)
def test_a_refusal(name: str) -> None:
    (event,) = replay(name, 1 << 20)
    assert isinstance(event, Error)
    assert event.message.error_message == FAILED[name]
