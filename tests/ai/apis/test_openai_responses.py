"""openai-responses: replies that bend the rules, whose ids and signatures go back, and Azure's ways."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai.apis.openai_responses import describe_tool, request_body
from pi_notebook.ai.message_json import message_from_json, message_to_json
from pi_notebook.ai.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pi_notebook.ai.model import Context, CostRates, Model, StreamOptions
from pi_notebook.errors import ModelError

from .servers import KEY, Spec, reply_to, sse

MODEL = Model(
    "gpt-x", "openai-responses", "openai", "https://api.openai.com/v1", reasoning=True, cost=CostRates(1, 2, 0.1)
)


def added(place: int, kind: str, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": place, "item": {"type": kind, **item}}


def done(place: int, kind: str, **item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": place, "item": {"type": kind, **item}}


def text(said: str, place: int = 0) -> list[dict[str, Any]]:
    content = [{"type": "output_text", "text": said}]
    return [
        added(place, "message", id=f"msg_{place}"),
        {"type": "response.output_text.delta", "output_index": place, "delta": said},
        done(place, "message", id=f"msg_{place}", content=content),
    ]


HALF = text("half")


def call(arguments: Any, place: int = 0, **item: Any) -> list[dict[str, Any]]:
    item = {"id": f"fc_{place}", "call_id": f"call_{place}", "name": "add", **item}
    return [
        added(place, "function_call", **item, arguments=""),
        done(place, "function_call", **item, arguments=arguments),
    ]


def end(status: str = "completed", **response: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": {"id": "resp_1", "status": status, **response}}


def read(*events: Any, model: Model = MODEL, **more: Any) -> Any:
    return reply_to(model, sse(*events, named=True), **more)


# -- replies


def test_items_in_parallel_keep_their_own_blocks() -> None:
    first, second = call('{"a": 1}', 0), call('{"a": 2}', 1)
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"a": 1}'}
    reply = read(first[0], second[0], delta, second[1], first[1], end())
    assert [c.arguments for c in reply.message.tool_calls] == [{"a": 1}, {"a": 2}]
    assert [c.id for c in reply.message.tool_calls] == ["call_0|fc_0", "call_1|fc_1"]
    assert reply.message.stop_reason == "tool_use"


@pytest.mark.parametrize("lost", ["id", "call_id"])
def test_an_id_that_is_missing_is_made_up_and_its_result_goes_back(lost: str) -> None:
    message = read(*call("{}", **{lost: None}), end()).message
    (made,) = message.tool_calls
    assert made.id and "None" not in made.id
    transcript = [UserMessage("x"), message, ToolResultMessage(made.id, "add", [TextContent("3")])]
    items = request_body(MODEL, Context(messages=transcript), StreamOptions())["input"]
    assert items[1]["call_id"] == items[2]["call_id"] != ""


@pytest.mark.parametrize("arguments", ["path: a", '{"a": 1', "[1]", '"x"'])
def test_arguments_that_are_no_object_are_kept_as_they_came(arguments: str) -> None:
    (made,) = read(*call(arguments), end()).message.tool_calls
    assert not isinstance(made.arguments, dict)


@pytest.mark.parametrize("arguments", ["", None, " "])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    assert read(*call(arguments), end()).message.tool_calls[0].arguments == {}


def test_arguments_as_an_object_and_several_in_a_row() -> None:
    assert read(*call({"a": 1}), end()).message.tool_calls[0].arguments == {"a": 1}
    calls = read(*call('{"a": 1}{"a": 2}'), end()).message.tool_calls
    assert [c.arguments for c in calls] == [{"a": 1}, {"a": 2}]
    assert len({c.id for c in calls}) == 2


def test_a_call_that_was_never_done_is_read_strictly() -> None:
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"a": '}
    message = read(call("")[0], delta, end()).message
    assert message.tool_calls[0].arguments == '{"a": '


def test_a_reply_cut_by_its_limit_runs_nothing() -> None:
    message = read(*call('{"a"'), end("incomplete", incomplete_details={"reason": "max_output_tokens"})).message
    assert message.stop_reason == "length"
    assert message.raw_stop_reason == "incomplete.max_output_tokens"


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([end("incomplete", incomplete_details={"reason": "content_filter"})], "content filter stopped the reply"),
        ([end("failed", error={"code": "server_error", "message": "boom"})], "boom [server_error]"),
        ([{"type": "error", "code": "c1", "message": "in mid-stream"}], "in mid-stream"),
        ([{"error": {"message": "a proxy says no"}, "type": None}], "a proxy says no"),
        ([], "the reply broke off before its end"),
    ],
)
def test_what_went_wrong_is_said_and_what_had_come_is_kept(events: list[Any], text: str) -> None:
    message = reply_to(MODEL, sse(*HALF, *events)).message
    assert (message.stop_reason, message.text) == ("error", "half")
    assert text in message.error_message


def test_refusals_are_shown() -> None:
    delta = {"type": "response.refusal.delta", "output_index": 0, "delta": "I cannot"}
    item = {"id": "m", "content": [{"type": "refusal", "refusal": "I cannot."}]}
    assert read(added(0, "message", id="m"), delta, done(0, "message", **item), end()).message.text == "I cannot."


def test_a_server_that_does_not_stream_is_read() -> None:
    output = [done(0, "message", id="m", content=[{"type": "output_text", "text": "whole"}])["item"]]
    body = json.dumps({"object": "response", "id": "r", "status": "completed", "output": output}).encode()
    message = reply_to(MODEL, body, content_type="application/json").message
    assert (message.text, message.stop_reason, message.response_id) == ("whole", "stop", "r")


def test_usage_leaves_cached_tokens_out_of_input_and_priority_costs_more() -> None:
    usage = {
        "input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
        "input_tokens_details": {"cached_tokens": 60}, "output_tokens_details": {"reasoning_tokens": 5},
    }  # fmt: skip
    plain = read(*text("x"), end(usage=usage)).message.usage
    assert (plain.input, plain.output, plain.cache_read, plain.reasoning, plain.total_tokens) == (40, 20, 60, 5, 120)
    fast = read(*text("x"), end(usage=usage, service_tier="priority")).message.usage
    assert plain.cost is not None and fast.cost is not None
    assert fast.cost.total == pytest.approx(2 * plain.cost.total)
    unpriced = read(*text("x"), end(usage=usage), model=replace(MODEL, cost=None)).message.usage
    assert unpriced.cost is None


@given(st.lists(st.integers(0, 10_000), max_size=12))
def test_any_split_of_the_bytes_gives_the_same_events(pieces: list[int]) -> None:
    events = [*text("a\u2028b é 😀"), *call('{"a": "ü"}', 1), end()]
    body = b": ping\r\n\r\n" + sse(*events, named=True).replace(b"\n", b"\r\n")
    whole, split = reply_to(MODEL, body), reply_to(MODEL, body, pieces=pieces)
    assert split.kinds == whole.kinds
    assert split.message == whole.message


# -- what goes back


def reasoning(**item: Any) -> list[dict[str, Any]]:
    summary = [{"type": "summary_text", "text": "Adding."}]
    return [added(0, "reasoning", id="rs_1"), done(0, "reasoning", id="rs_1", summary=summary, **item)]


def next_input(message: AssistantMessage, model: Model = MODEL) -> list[dict[str, Any]]:
    results = [ToolResultMessage(c.id, c.name, [TextContent("3")]) for c in message.tool_calls]
    transcript: list[Message] = [UserMessage("x"), message_from_json(message_to_json(message)), *results]
    items: list[dict[str, Any]] = request_body(model, Context(messages=transcript), StreamOptions())["input"]
    return items[1:]


def test_reasoning_goes_back_whole_to_the_same_model_also_after_saving() -> None:
    message = read(*reasoning(encrypted_content="E"), *call('{"a": 1}', 1), end()).message
    assert message.content[0] == ThinkingContent("Adding.", message.content[0].thinking_signature)
    items = next_input(message)
    assert items[0] == reasoning(encrypted_content="E")[1]["item"]
    assert items[1]["id"] == "fc_1"


def test_reasoning_that_is_encrypted_only_at_the_end_goes_back_too() -> None:
    late = {**reasoning()[1]["item"], "encrypted_content": "LATE"}
    message = read(*reasoning(), *call("{}", 1), end(output=[late])).message
    assert next_input(message)[0]["encrypted_content"] == "LATE"


def test_another_model_gets_no_foreign_reasoning_and_no_paired_id() -> None:
    message = read(*reasoning(encrypted_content="E"), *call("{}", 1), end()).message
    items = next_input(message, replace(MODEL, id="gpt-y"))
    assert [item["type"] for item in items] == ["message", "function_call", "function_call_output"]
    assert "id" not in items[1]
    assert "E" not in json.dumps(items[0]["content"]).replace("Adding", "")


def test_ids_of_another_provider_become_ids_that_openai_takes() -> None:
    long = "x" * 80
    calls = [ToolCall(f"{long}|a b", "add", {}), ToolCall(f"{long}|c", "add", {}), ToolCall("é", "add", {})]
    message = AssistantMessage(calls, "anthropic-messages", "anthropic", "claude", stop_reason="tool_use")
    items = next_input(message)
    ids = [item["call_id"] for item in items[:3]]
    assert len(set(ids)) == 3 and all(0 < len(call_id) <= 64 and call_id.isascii() for call_id in ids)
    assert ids == [item["call_id"] for item in items[3:]]


def test_damaged_signature_is_an_error_that_says_what_to_do() -> None:
    broken = AssistantMessage([ThinkingContent("t", "not json")], MODEL.api, MODEL.provider, MODEL.id)
    message = reply_to(MODEL, b"", context=Context(messages=[UserMessage("a"), broken, UserMessage("b")])).message
    assert "its signature is damaged: start a new conversation" in (message.error_message or "")


# -- requests


def test_azure_gets_its_key_in_its_own_header() -> None:
    address = "https://r.openai.azure.com/openai/v1"
    model = replace(MODEL, provider="azure", base_url=address, compat={"key_header": "api-key"})
    (request,) = read(*text("x"), end(), model=model).requests
    assert str(request.url) == f"{address}/responses"
    assert request.headers["api-key"] == KEY and "authorization" not in request.headers


def test_headers_of_a_person_win_over_ours() -> None:
    model = replace(MODEL, headers={"Authorization": "Basic mine"})
    (request,) = read(*text("x"), end(), model=model).requests
    assert request.headers["authorization"] == "Basic mine"


def test_a_key_in_an_error_of_the_server_is_hidden() -> None:
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}).encode()
    error = reply_to(MODEL, body, status=401, content_type="application/json").error
    assert "401" in error and "Incorrect API key provided" in error
    assert not any(KEY[i : i + 6] in error for i in range(len(KEY) - 5))


def test_thinking_is_asked_for_in_the_models_own_words() -> None:
    def asked(level: Any, **changes: Any) -> Any:
        body = request_body(replace(MODEL, **changes), Context(), StreamOptions(thinking=level))
        return body.get("reasoning"), body.get("include")

    assert asked("high") == ({"effort": "high", "summary": "auto"}, ["reasoning.encrypted_content"])
    assert asked("off") == ({"effort": "none"}, None)
    assert asked("off", thinking_levels={"off": None}) == (None, None)
    assert asked("max") == ({"effort": "high", "summary": "auto"}, ["reasoning.encrypted_content"])
    assert asked("high", reasoning=False) == (None, None)


def test_strict_tools_where_the_server_knows_them() -> None:
    tool = Spec("add", {"type": "object", "properties": {"a": {"type": "number"}}}, constrained_sampling="require")
    described = describe_tool(None, tool)
    assert described["strict"] is True and described["parameters"]["required"] == ["a"]
    with pytest.raises(ModelError, match=r"Tool 'add' requires a strict schema, which openai:gpt-x does not know"):
        describe_tool(MODEL, tool)
    assert describe_tool(MODEL, replace(tool, constrained_sampling="prefer")).get("strict") is None


def test_a_tool_that_a_result_added_is_loaded_there_once() -> None:
    model = replace(MODEL, compat={"supports_tool_search": True})

    def turn(number: int) -> list[Message]:
        call = ToolCall(f"c{number}", "add", {})
        return [
            AssistantMessage([call], model.api, model.provider, model.id),
            ToolResultMessage(call.id, "add", [TextContent("3")], added_tool_names=["sub"]),
        ]

    context = Context(messages=[UserMessage("x"), *turn(1), *turn(2)], tools=[Spec("add"), Spec("sub")])
    body = request_body(model, context, StreamOptions())
    assert [tool["name"] for tool in body["tools"]] == ["add"]
    loads = [item for item in body["input"] if item.get("type") == "tool_search_output"]
    assert [tool["name"] for load in loads for tool in load["tools"]] == ["sub"]
    assert loads[0]["tools"][0]["defer_loading"] is True
