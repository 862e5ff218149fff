"""Both sides of each wire come from someone else: the providers' own packages check what we send and make what we read.

Requests: the body for every recorded context, against the request types, with no key that they do not know. Streams:
events built from the packages' event types, served and read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, ValidationError

from pi_notebook.ai.connection import Connection
from pi_notebook.ai.messages import AssistantMessage, TextContent, ThinkingContent, ToolCall, UserMessage
from pi_notebook.ai.model import Context, CostRates, Model, StreamOptions, adapter, stream
from tests.conformance import wire
from tests.conformance.case import PUBLIC_DATA

from .official import check_request

CASES = {case.name: case.data for case in wire.cases(PUBLIC_DATA / "wire" / "requests")}


def body_of(name: str) -> dict[str, Any]:
    data = CASES[name]
    model = wire.model_from(data["model"], data["call"], data["options"], "server.test")
    options = wire.options_from(data["options"])
    body: dict[str, Any] = adapter(model.api).request_body(model, wire.context_from(data["context"]), options)
    return json.loads(json.dumps(body))


@pytest.mark.parametrize("name", [name for name, data in CASES.items() if "no_request" not in data])
def test_the_provider_takes_the_request(name: str) -> None:
    check_request(CASES[name]["api"], body_of(name))


def test_the_check_notices_an_unknown_key() -> None:
    body = body_of("anthropic-messages--roundtrip")
    body["messages"][0]["content"] = [{"type": "text", "text": "x", "colour": "red"}]
    with pytest.raises(ValidationError, match="colour"):
        check_request("anthropic-messages", body)


# Replies


def reply_to(api: str, body: bytes, **model: Any) -> AssistantMessage:
    """What the adapter makes of a reply with this body, sent in pieces of seven bytes."""
    return asyncio.run(_reply_to(api, body, **model))


async def _reply_to(api: str, body: bytes, **model: Any) -> AssistantMessage:

    class Pieces(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for start in range(0, len(body), 7):
                yield body[start : start + 7]

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Pieces())

    connection = Connection(httpx.MockTransport(answer))
    options = StreamOptions(api_key="k" * 20, connection=connection)
    asked = Model("m", api, "p", "http://server.test", cost=CostRates(1, 2, 0.1, 1.25), **model)
    events = [event async for event in stream(asked, Context(messages=[UserMessage("hi")]), options)]
    await connection.aclose()
    last: Any = events[-1]
    assert last.type == "done", last.message.error_message
    message: AssistantMessage = last.message
    return message


def sse(events: Iterable[BaseModel], *, named: bool = False, end: str = "") -> bytes:
    lines = []
    for event in events:
        data = event.model_dump_json(by_alias=True, exclude_none=True)
        name = f"event: {json.loads(data)['type']}\n" if named else ""
        lines.append(f"{name}data: {data}\n\n")
    return ("".join(lines) + end).encode()


def test_anthropic_reply_built_from_its_event_types() -> None:
    from anthropic import types as t

    usage = t.Usage(input_tokens=10, output_tokens=1, cache_read_input_tokens=4, cache_creation_input_tokens=2)
    message = t.Message(
        id="msg_1",
        content=[],
        model="m",
        role="assistant",
        type="message",
        usage=usage,
        stop_reason=None,
        stop_sequence=None,
    )

    def delta(index: int, value: Any) -> BaseModel:
        return t.RawContentBlockDeltaEvent(index=index, type="content_block_delta", delta=value)

    def start(index: int, block: Any) -> BaseModel:
        return t.RawContentBlockStartEvent(index=index, type="content_block_start", content_block=block)

    def stop(index: int) -> BaseModel:
        return t.RawContentBlockStopEvent(index=index, type="content_block_stop")

    end = t.RawMessageDeltaEvent.model_validate(
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 30}}
    )
    body = sse(
        [
            t.RawMessageStartEvent(type="message_start", message=message),
            start(0, t.ThinkingBlock(type="thinking", thinking="", signature="")),
            delta(0, t.ThinkingDelta(type="thinking_delta", thinking="hm")),
            delta(0, t.SignatureDelta(type="signature_delta", signature="SIG")),
            stop(0),
            start(1, t.RedactedThinkingBlock(type="redacted_thinking", data="b3BhcXVl")),
            stop(1),
            start(2, t.TextBlock(type="text", text="")),
            delta(2, t.TextDelta(type="text_delta", text="Grüße \u2028 ")),
            stop(2),
            start(3, t.ToolUseBlock(type="tool_use", id="toolu_1", name="add", input={})),
            delta(3, t.InputJSONDelta(type="input_json_delta", partial_json='{"a":')),
            delta(3, t.InputJSONDelta(type="input_json_delta", partial_json=' 1, "b": "\\u00e9"}')),
            stop(3),
            end,
            t.RawMessageStopEvent(type="message_stop"),
        ],
        named=True,
    )
    reply = reply_to("anthropic-messages", body)
    assert reply.content == (
        ThinkingContent("hm", "SIG"),
        ThinkingContent("[Reasoning redacted]", "b3BhcXVl", redacted=True),
        TextContent("Grüße \u2028 "),
        ToolCall("toolu_1", "add", {"a": 1, "b": "é"}),
    )
    assert (reply.stop_reason, reply.response_id) == ("tool_use", "msg_1")
    usage_read = reply.usage
    assert (usage_read.input, usage_read.output, usage_read.cache_read, usage_read.cache_write) == (10, 30, 4, 2)
    assert usage_read.cost is not None
    assert usage_read.cost.total == pytest.approx((10 * 1 + 30 * 2 + 4 * 0.1 + 2 * 1.25) / 1e6)


def test_gemini_reply_built_from_its_response_type() -> None:
    from google.genai import types as t

    def chunk(*parts: t.Part, finish: t.FinishReason | None = None, usage: Any = None) -> BaseModel:
        content = t.Content(parts=list(parts), role="model")
        candidate = t.Candidate(content=content, finish_reason=finish, index=0)
        return t.GenerateContentResponse(candidates=[candidate], response_id="r1", usage_metadata=usage)

    usage = t.GenerateContentResponseUsageMetadata(
        prompt_token_count=10,
        cached_content_token_count=4,
        candidates_token_count=5,
        thoughts_token_count=3,
        total_token_count=18,
    )
    body = sse(
        [
            chunk(t.Part(text="hm", thought=True)),
            chunk(t.Part(text="So: ", thought_signature=b"one")),
            chunk(
                t.Part(function_call=t.FunctionCall(name="add", args={"a": 1}, id="c1"), thought_signature=b"two"),
                t.Part(function_call=t.FunctionCall(name="add", args={"a": 2}), thought_signature=b"three"),
                finish=t.FinishReason.STOP,
                usage=usage,
            ),
        ]
    )
    reply = reply_to("google-generative-ai", body)
    first, second = reply.tool_calls
    assert reply.content[:2] == (ThinkingContent("hm"), TextContent("So: ", "b25l"))
    assert first == ToolCall("c1", "add", {"a": 1}, "dHdv")
    assert (second.name, second.arguments, second.thought_signature) == ("add", {"a": 2}, "dGhyZWU=")
    assert second.id not in ("", "c1")
    assert (reply.stop_reason, reply.response_id) == ("tool_use", "r1")
    assert (reply.usage.input, reply.usage.cache_read, reply.usage.output, reply.usage.reasoning) == (6, 4, 8, 3)


def test_openai_chat_reply_built_from_its_chunk_type() -> None:
    from openai.types.chat import ChatCompletionChunk

    def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> BaseModel:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        data = {"id": "c1", "created": 1, "model": "m", "object": "chat.completion.chunk", "choices": choices}
        return ChatCompletionChunk.model_validate({**data, **more})

    def piece(index: int, arguments: str, **more: Any) -> dict[str, Any]:
        return {
            "tool_calls": [{"index": index, "function": {"arguments": arguments, **more.pop("function", {})}, **more}]
        }

    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    body = sse(
        [
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": "So: "}),
            chunk(piece(0, "", id="call_1", type="function", function={"name": "add"})),
            chunk(piece(0, '{"a":')),
            chunk(piece(0, " 1}")),
            chunk(piece(1, '{"a": 2}', id="call_2", type="function", function={"name": "add"})),
            chunk({}, "tool_calls"),
            chunk(usage=usage),
        ],
        end="data: [DONE]\n\n",
    )
    reply = reply_to("openai-completions", body)
    assert reply.content == (
        TextContent("So: "),
        ToolCall("call_1", "add", {"a": 1}),
        ToolCall("call_2", "add", {"a": 2}),
    )
    assert (reply.stop_reason, reply.response_id) == ("tool_use", "c1")
    assert (reply.usage.input, reply.usage.cache_read, reply.usage.output, reply.usage.reasoning) == (6, 4, 5, 3)


def test_openai_response_built_from_its_event_types() -> None:
    from openai.types import responses as r

    def response(status: str, **more: Any) -> dict[str, Any]:
        base = {"id": "resp_1", "created_at": 1.0, "model": "m", "object": "response", "output": [], "tools": []}
        return {**base, "parallel_tool_calls": True, "tool_choice": "auto", "status": status, **more}

    def added(index: int, item: dict[str, Any]) -> BaseModel:
        return event(r.ResponseOutputItemAddedEvent, "response.output_item.added", output_index=index, item=item)

    def done(index: int, item: dict[str, Any]) -> BaseModel:
        return event(r.ResponseOutputItemDoneEvent, "response.output_item.done", output_index=index, item=item)

    def event(kind: Any, name: str, **fields: Any) -> BaseModel:
        made: BaseModel = kind.model_validate({"type": name, "sequence_number": 0, **fields})
        return made

    said = {"type": "output_text", "text": "So: ", "annotations": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    call = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "add", "arguments": ""}
    thought = {"id": "rs_1", "type": "reasoning", "summary": []}
    summary = {"type": "summary_text", "text": "hm"}
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 15,
    }
    place = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    text_place = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    body = sse(
        [
            event(r.ResponseCreatedEvent, "response.created", response=response("in_progress")),
            added(0, thought),
            event(
                r.ResponseReasoningSummaryPartAddedEvent,
                "response.reasoning_summary_part.added",
                **place,
                part={**summary, "text": ""},
            ),
            event(
                r.ResponseReasoningSummaryTextDeltaEvent, "response.reasoning_summary_text.delta", **place, delta="hm"
            ),
            done(0, {**thought, "summary": [summary], "encrypted_content": "SIG"}),
            added(1, message),
            event(
                r.ResponseContentPartAddedEvent,
                "response.content_part.added",
                **text_place,
                part={**said, "text": ""},
            ),
            event(r.ResponseTextDeltaEvent, "response.output_text.delta", **text_place, delta="So: ", logprobs=[]),
            done(1, {**message, "status": "completed", "content": [said]}),
            added(2, call),
            event(
                r.ResponseFunctionCallArgumentsDeltaEvent,
                "response.function_call_arguments.delta",
                item_id="fc_1",
                output_index=2,
                delta='{"a": 1}',
            ),
            done(2, {**call, "arguments": '{"a": 1}', "status": "completed"}),
            event(r.ResponseCompletedEvent, "response.completed", response=response("completed", usage=usage)),
        ],
        named=True,
    )
    reply = reply_to("openai-responses", body)
    thinking, text, tool_call = reply.content
    assert isinstance(thinking, ThinkingContent)
    assert thinking.thinking == "hm"
    assert "SIG" in (thinking.thinking_signature or "")
    assert isinstance(text, TextContent)
    assert text.text == "So: "
    assert isinstance(tool_call, ToolCall)
    assert (tool_call.name, tool_call.arguments) == ("add", {"a": 1})
    assert tool_call.id.startswith("call_1")
    assert (reply.stop_reason, reply.response_id) == ("tool_use", "resp_1")
    assert (reply.usage.input, reply.usage.cache_read, reply.usage.output, reply.usage.reasoning) == (6, 4, 5, 3)
