"""anthropic-messages: replies that bend the rules, and what a request says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai.apis.anthropic_messages import describe_tool, request_body
from pi_notebook.ai.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pi_notebook.ai.model import Context, Model, StreamOptions
from pi_notebook.errors import ModelError

from .servers import KEY, Spec, reply_to, sse

MODEL = Model("claude-x", "anthropic-messages", "anthropic", "http://server.test", max_tokens=32000)
START = {"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 10, "output_tokens": 1}}}
STOP = {"type": "message_stop"}


def end(reason: str = "end_turn", **more: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, **more}, "usage": {"output_tokens": 5}}


def block(index: int, *deltas: dict[str, Any], **content: Any) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(index: int, *pieces: str) -> list[dict[str, Any]]:
    return block(index, *({"type": "text_delta", "text": piece} for piece in pieces), type="text", text="")


def call(index: int, *pieces: str, call_id: str = "toolu_1", **start: Any) -> list[dict[str, Any]]:
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    return block(index, *deltas, type="tool_use", id=call_id, name="add", **start)


def read(*events: Any, reason: str = "tool_use", **more: Any) -> Any:
    flat = [event for part in events for event in (part if isinstance(part, list) else [part])]
    return reply_to(MODEL, sse(START, *flat, end(reason), STOP, named=True), **more)


def test_empty_argument_piece_is_no_arguments() -> None:
    assert read(call(0, "", input={})).message.tool_calls == (ToolCall("toolu_1", "add", {}),)


def test_input_of_the_block_start_is_used() -> None:
    reply = read(call(0, input={"a": 1}))
    assert reply.message.tool_calls == (ToolCall("toolu_1", "add", {"a": 1}),)
    assert reply.kinds == ["start", "toolcall_start", "toolcall_delta", "toolcall_end", "done"]


def test_streamed_input_wins_over_that_of_the_block_start() -> None:
    assert read(call(0, '{"a": 2}', input={"a": 1})).message.tool_calls[0].arguments == {"a": 2}


def test_arguments_that_are_no_json_are_kept_as_they_came() -> None:
    assert read(call(0, "a = 1")).message.tool_calls == (ToolCall("toolu_1", "add", "a = 1"),)


def test_several_objects_in_a_row_are_several_calls() -> None:
    first, second = read(call(0, '{"a": 1}', '{"a": 2}')).message.tool_calls
    assert (first.id, first.arguments, second.arguments) == ("toolu_1", {"a": 1}, {"a": 2})
    assert second.id not in ("", first.id)
    assert second.name == "add"


def test_call_without_id_gets_one() -> None:
    first, second = read(call(0, "{}", call_id=""), call(1, "{}", call_id="")).message.tool_calls
    assert first.id and second.id and first.id != second.id


def test_block_that_begins_where_another_is_open_ends_that() -> None:
    first, second = call(0, '{"a": 1}'), call(0, '{"a": 2}', call_id="toolu_2")
    message = read(first[:-1], second).message
    assert [(c.id, c.arguments) for c in message.tool_calls] == [("toolu_1", {"a": 1}), ("toolu_2", {"a": 2})]


def test_order_of_text_and_calls_is_kept() -> None:
    kinds = [part.type for part in read(text(0, "a"), call(1, "{}"), text(2, "b")).message.content]
    assert kinds == ["text", "tool_call", "text"]


def test_lone_surrogates_are_removed_from_arguments() -> None:
    assert read(call(0, r'{"a": "x\ud83dy"}')).message.tool_calls[0].arguments == {"a": "xy"}


def test_a_block_whose_end_was_not_sent_counts() -> None:
    assert read(call(0, '{"a": 1}')[:-1]).message.tool_calls[0].arguments == {"a": 1}


def test_reply_cut_by_the_limit_keeps_its_half_call_as_text() -> None:
    message = read(call(0, '{"a": [1'), reason="max_tokens").message
    assert (message.stop_reason, message.tool_calls[0].arguments) == ("length", '{"a": [1')


def test_refusal_is_shown_with_its_explanation() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "This looks like an attack."}
    body = sse(START, *text(0, "I"), end("refusal", stop_details=details), STOP, named=True)
    reply = reply_to(MODEL, body)
    assert reply.error == ("anthropic:claude-x: the model refused to answer (cyber): This looks like an attack.")
    assert (reply.message.stop_reason, reply.message.text) == ("error", "I")


def test_error_in_the_stream_is_shown() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    reply = reply_to(MODEL, sse(START, *text(0, "par"), error, named=True))
    assert reply.error == "anthropic:claude-x: Overloaded [overloaded_error]."
    assert reply.message.text == "par"


def test_error_as_json_with_status_200_is_shown() -> None:
    body = b'{"type": "error", "error": {"type": "api_error", "message": "out of order"}}'
    reply = reply_to(MODEL, body, content_type="application/json")
    assert reply.error == "anthropic:claude-x: out of order [api_error]."


def test_whole_message_instead_of_a_stream_is_read() -> None:
    content = [{"type": "text", "text": "So."}, {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 1}}]
    body = {"type": "message", "id": "m", "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 3}}
    message = reply_to(MODEL, json.dumps(body).encode(), content_type="application/json").message
    assert message.content == (TextContent("So."), ToolCall("t", "add", {"a": 1}))
    assert (message.stop_reason, message.usage.input) == ("tool_use", 3)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([START, *text(0, "x")], "ended before it was complete"),
        ([START, *text(0, "x"), STOP], "ended without a stop reason"),
        ([START, end("new_reason"), STOP], "stopped for a reason that is not known here: new_reason"),
    ],
)
def test_reply_that_is_not_whole_is_an_error(events: list[Any], said: str) -> None:
    reply = reply_to(MODEL, sse(*events, named=True))
    assert said in reply.error
    assert reply.message.stop_reason == "error"


def test_pings_comments_and_unknown_events_are_ignored() -> None:
    noise = (
        b': hi\r\n\r\nevent: ping\r\ndata: {"type": "ping"}\r\n\r\nevent: news\r\ndata: {}\r\n\r\ndata: {"a": 1}\n\n'
    )
    body = noise + sse(START, *text(0, "x\u2028y"), named=True) + noise + sse(end(), STOP, named=True)
    assert reply_to(MODEL, body).message.text == "x\u2028y"


@given(st.lists(st.integers(0, 10_000), max_size=12))
def test_events_do_not_depend_on_where_the_bytes_are_cut(pieces: list[int]) -> None:
    body = sse(
        START, *text(0, "Grüße", " 😀\u2028"), *call(1, '{"a": "\u00e9', '😀"}'), end("tool_use"), STOP, named=True
    )
    whole, cut = reply_to(MODEL, body), reply_to(MODEL, body, pieces=pieces)
    assert [repr(e) for e in strip(cut.events)] == [repr(e) for e in strip(whole.events)]
    assert cut.message == whole.message


def strip(events: list[Any]) -> list[Any]:
    return [(e.type, getattr(e, "content_index", None), getattr(e, "delta", None)) for e in events]


def test_no_part_of_a_key_is_in_an_error() -> None:
    body = json.dumps({"error": {"message": f"bad key {KEY}"}}).encode()
    reply = reply_to(MODEL, body, status=401, content_type="application/json")
    assert not any(KEY[i : i + 6] in reply.error for i in range(len(KEY) - 5))
    assert "HTTP 401" in reply.error


# Requests

CALL = AssistantMessage(
    [ToolCall("c1", "add", {"a": 1})], "anthropic-messages", "anthropic", "claude-x", stop_reason="tool_use"
)
RESULT = ToolResultMessage("c1", "add", [TextContent("3")])


def body(*messages: Any, model: Model = MODEL, tools: Any = (), **options: Any) -> dict[str, Any]:
    made: dict[str, Any] = request_body(model, Context("SYS", messages, tools), StreamOptions(**options))
    return made


def variant(**changes: Any) -> Model:
    from dataclasses import replace

    return replace(MODEL, **changes)


def test_caching_marks_stand_on_system_last_tool_and_last_user_message() -> None:
    made = body(UserMessage("a"), CALL, RESULT, tools=[Spec("add"), Spec("sub")])
    mark = {"type": "ephemeral"}
    assert made["system"] == [{"type": "text", "text": "SYS", "cache_control": mark}]
    assert [tool.get("cache_control") for tool in made["tools"]] == [None, mark]
    assert made["messages"][-1]["content"][-1]["cache_control"] == mark
    assert "cache_control" not in json.dumps(made["messages"][:-1])


def test_caching_can_be_long_or_none() -> None:
    assert body(UserMessage("a"), cache_retention="long")["system"][0]["cache_control"]["ttl"] == "1h"
    assert "cache_control" not in json.dumps(body(UserMessage("a"), cache_retention="none", tools=[Spec("add")]))


def test_signed_thinking_goes_back_to_its_model_only() -> None:
    thoughts = [ThinkingContent("hm", "SIG"), ThinkingContent("", "opaque", redacted=True), TextContent("x")]
    own = AssistantMessage(thoughts, "anthropic-messages", "anthropic", "claude-x")
    other = AssistantMessage(thoughts, "anthropic-messages", "anthropic", "claude-y")
    assert body(UserMessage("a"), own)["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "SIG"},
        {"type": "redacted_thinking", "data": "opaque"},
        {"type": "text", "text": "x"},
    ]
    assert body(UserMessage("a"), other)["messages"][1]["content"] == [
        {"type": "text", "text": "hm"},
        {"type": "text", "text": "x"},
    ]


def test_thinking_without_signature_becomes_text() -> None:
    cut = AssistantMessage([ThinkingContent("hm")], "anthropic-messages", "anthropic", "claude-x")
    assert body(UserMessage("a"), cut)["messages"][1]["content"] == [{"type": "text", "text": "hm"}]
    lenient = variant(compat={"allow_empty_signature": True})
    assert body(UserMessage("a"), cut, model=lenient)["messages"][1]["content"][0]["signature"] == ""


@pytest.mark.parametrize(
    ("level", "options", "thinking", "max_tokens"),
    [
        ("high", {}, {"type": "enabled", "budget_tokens": 16384, "display": "summarized"}, 32000),
        ("low", {"max_tokens": 100}, {"type": "enabled", "budget_tokens": 2048 - 924, "display": "summarized"}, 2148),
        (
            "low",
            {"thinking_budgets": {"low": 500}},
            {"type": "enabled", "budget_tokens": 500, "display": "summarized"},
            32000,
        ),
        ("off", {}, {"type": "disabled"}, 32000),
    ],
)
def test_thinking_gets_a_budget_within_the_limit(level: Any, options: Any, thinking: Any, max_tokens: int) -> None:
    made = body(UserMessage("a"), model=variant(reasoning=True), thinking=level, **options)
    assert (made["thinking"], made["max_tokens"]) == (thinking, max_tokens)


def test_adaptive_thinking_gets_an_effort() -> None:
    model = variant(reasoning=True, compat={"force_adaptive_thinking": True}, thinking_levels={"max": "max"})
    made = body(UserMessage("a"), model=model, thinking="max", temperature=0.5)
    assert made["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert made["output_config"] == {"effort": "max"}
    assert "temperature" not in made  # which the API refuses beside thinking


def test_tools_named_by_a_result_are_loaded_by_reference() -> None:
    model = variant(compat={"supports_tool_references": True})
    result = ToolResultMessage("c1", "add", [TextContent("3")], added_tool_names=["sub"])
    made = body(UserMessage("a"), CALL, result, model=model, tools=[Spec("add"), Spec("sub")])
    assert [tool.get("defer_loading") for tool in made["tools"]] == [None, True]
    first, second = made["messages"][2]["content"]
    assert first["content"] == [{"type": "tool_reference", "tool_name": "sub"}]
    assert second["text"] == "3"


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        ("add", {"type": "tool", "name": "add"}),
    ],
)
def test_tool_choice(choice: str, sent: dict[str, str]) -> None:
    assert body(UserMessage("a"), tools=[Spec("add")], tool_choice=choice)["tool_choice"] == sent


def test_image_alone_in_a_result_gets_a_word() -> None:
    result = ToolResultMessage("c1", "add", [ImageContent("AA==", "image/png")])
    content = body(UserMessage("a"), CALL, result)["messages"][2]["content"][0]["content"]
    assert [part["type"] for part in content] == ["text", "image"]


def test_strict_tool_is_flagged_where_supported_and_refused_where_required_but_not() -> None:
    strict = variant(compat={"supports_strict_tools": True})
    assert describe_tool(strict, Spec("add", constrained_sampling="prefer"))["strict"] is True
    assert "strict" not in describe_tool(MODEL, Spec("add", constrained_sampling="prefer"))
    with pytest.raises(ModelError, match="Tool 'add' requires strict arguments"):
        describe_tool(MODEL, Spec("add", constrained_sampling="require"))


def test_a_tool_that_cannot_be_sent_fails_the_request_before_it_is_made() -> None:
    bad = Spec("add", {"type": "object", "properties": {"größe": {"type": "integer"}}})
    reply = reply_to(MODEL, b"", context=Context(messages=[UserMessage("hi")], tools=[bad]))
    assert reply.error.startswith("Tool 'add' cannot be sent to Anthropic: parameter 'größe'")
    assert reply.requests == []


def test_headers_and_address() -> None:
    model = variant(headers={"X-Team": "a"}, compat={"send_session_affinity_headers": True})
    options = StreamOptions(session_id="s1", headers={"X-Api-Key": "mine"})
    [request] = reply_to(model, b"", options=options).requests
    assert str(request.url) == "http://server.test/v1/messages"
    shown = {name: request.headers[name] for name in ("x-api-key", "x-team", "x-session-affinity", "anthropic-beta")}
    assert shown == {
        "x-api-key": "mine",
        "x-team": "a",
        "x-session-affinity": "s1",
        "anthropic-beta": "interleaved-thinking-2025-05-14",
    }
