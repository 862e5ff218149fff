"""google-generative-ai: replies that bend the rules, and what a request says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai.apis.google_generative_ai import describe_tool, request_body
from pi_notebook.ai.message_json import message_from_json, message_to_json
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

MODEL = Model("gemini-3-flash", "google-generative-ai", "google", "http://server.test/v1beta")
OLDER = replace(MODEL, id="gemini-2.5-flash")


def chunk(*parts: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [{**candidate, **more.pop("candidate", {})}], "responseId": "r1", **more}


def call(args: Any = None, signature: str | None = None, **function_call: Any) -> dict[str, Any]:
    part: dict[str, Any] = {
        "functionCall": {"name": "add", **({} if args is None else {"args": args}), **function_call}
    }
    return part if signature is None else {**part, "thoughtSignature": signature}


def read(*chunks: Any, model: Model = MODEL, **more: Any) -> Any:
    return reply_to(model, sse(*chunks), **more)


@pytest.mark.parametrize(("finish", "reason"), [("STOP", "tool_use"), ("MAX_TOKENS", "length"), ("SAFETY", "error")])
def test_only_a_reply_that_ended_by_itself_runs_its_calls(finish: str, reason: str) -> None:
    message = read(chunk(call({"a": 1})), chunk(finish=finish)).message
    assert message.stop_reason == reason
    assert message.tool_calls[0].arguments == {"a": 1}


def test_why_a_prompt_was_blocked_is_shown() -> None:
    feedback = {
        "blockReason": "SAFETY",
        "safetyRatings": [
            {"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH"},
            {"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "LOW"},
        ],
    }
    assert read({"promptFeedback": feedback}).error == (
        "google:gemini-3-flash: the prompt was blocked (SAFETY, HARASSMENT HIGH)."
    )


def test_why_a_reply_was_stopped_is_shown() -> None:
    reply = read(chunk({"text": "par"}), chunk(finish="RECITATION", candidate={"finishMessage": "A known poem."}))
    assert reply.error == (
        "google:gemini-3-flash: the reply was stopped because it quoted protected text (RECITATION): A known poem."
    )
    assert reply.message.text == "par"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (sse(chunk({"text": "par"}), {"error": {"code": 503, "message": "overloaded"}}), "text/event-stream"),
        (b'{"error": {"code": 503, "message": "overloaded"}}', "application/json"),
        (b'[{"error": {"code": 503, "message": "overloaded"}}]', "application/json"),
    ],
)
def test_error_in_a_reply_with_status_200_is_shown(body: bytes, content_type: str) -> None:
    reply = reply_to(MODEL, body, content_type=content_type)
    assert reply.error == "google:gemini-3-flash: overloaded."
    assert reply.kinds[-1] == "error"


def test_list_of_chunks_instead_of_a_stream_is_read() -> None:
    body = json.dumps([chunk({"text": "a"}), chunk({"text": "b"}, finish="STOP")]).encode()
    assert reply_to(MODEL, body, content_type="application/json").message.text == "ab"


def test_reply_that_is_not_whole_is_an_error() -> None:
    assert "ended without a finish reason" in read(chunk({"text": "a"})).error
    assert "a reason that is not known here: NEW" in read(chunk(finish="NEW")).error


def test_ids_are_made_up_where_missing_or_repeated() -> None:
    message = read(chunk(call(id="x"), call(id="x"), call(), call()), chunk(finish="STOP")).message
    ids = [part.id for part in message.tool_calls]
    assert ids[0] == "x"
    assert len(set(ids)) == 4
    assert all(part.arguments == {} for part in message.tool_calls)


def test_arguments_as_text_are_read() -> None:
    message = read(chunk(call('{"a": 1}'), call("a = 1")), chunk(finish="STOP")).message
    assert [part.arguments for part in message.tool_calls] == [{"a": 1}, "a = 1"]


def test_empty_candidates_and_usage_alone_are_no_trouble() -> None:
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    message = read({"candidates": []}, chunk({"text": "a"}, finish="STOP"), {"usageMetadata": usage}).message
    assert (message.text, message.usage.input, message.usage.output) == ("a", 10, 5)


def test_each_signature_returns_on_its_own_part_also_through_save_and_load() -> None:
    parts = [
        {"text": "hm", "thought": True, "thoughtSignature": "dDA="},
        call({"a": 1}, "czE=", id="c1"),
        call({"a": 2}, "czI=", id="c2"),
    ]
    message = read(chunk(*parts), chunk({"text": "", "thoughtSignature": "czM="}, finish="STOP")).message
    loaded = message_from_json(json.loads(json.dumps(message_to_json(message))))
    for reply in (message, loaded):
        sent = body(UserMessage("hi"), reply, *results("c1", "c2"))["contents"][1]["parts"]
        assert sent == [*parts, {"text": "", "thoughtSignature": "czM="}]


def test_signatures_do_not_go_to_another_model() -> None:
    own = AssistantMessage(
        [ThinkingContent("hm", "dDA="), ToolCall("c1", "add", {}, "czE=")], MODEL.api, MODEL.provider, MODEL.id
    )
    sent = body(UserMessage("hi"), own, *results("c1"), model=replace(MODEL, id="gemini-3-pro"))["contents"][1]
    assert sent["parts"] == [{"text": "hm"}, {"functionCall": {"name": "add", "args": {}, "id": "c1"}}]


@given(st.lists(st.integers(0, 10_000), max_size=12))
def test_events_do_not_depend_on_where_the_bytes_are_cut(pieces: list[int]) -> None:
    content = sse(chunk({"text": "Grüße \u2028😀"}), chunk(call({"a": "é😀"}, id="c1")), chunk(finish="STOP"))
    whole, cut = reply_to(MODEL, content), reply_to(MODEL, content, pieces=pieces)
    assert (cut.kinds, cut.message) == (whole.kinds, whole.message)


def test_no_part_of_a_key_is_in_an_error() -> None:
    error = json.dumps({"error": {"message": f"API key {KEY} not valid", "status": "INVALID_ARGUMENT"}}).encode()
    reply = reply_to(MODEL, error, status=400, content_type="application/json")
    assert not any(KEY[i : i + 6] in reply.error for i in range(len(KEY) - 5))
    assert "HTTP 400" in reply.error


# Requests


def results(*ids: str, **more: Any) -> list[ToolResultMessage]:
    return [ToolResultMessage(call_id, "add", [TextContent("3")], **more) for call_id in ids]


def replied(*ids: str, model: Model = MODEL) -> AssistantMessage:
    return AssistantMessage([ToolCall(i, "add", {}) for i in ids], model.api, model.provider, model.id)


def body(*messages: Any, model: Model = MODEL, tools: Any = (), **options: Any) -> dict[str, Any]:
    made: dict[str, Any] = request_body(model, Context("SYS", messages, tools), StreamOptions(**options))
    return made


def test_results_of_one_reply_share_a_message_and_carry_ids_from_gemini_3_on() -> None:
    contents = body(UserMessage("hi"), replied("c1", "c2"), *results("c1", "c2"))["contents"]
    assert [part["functionResponse"]["id"] for part in contents[2]["parts"]] == ["c1", "c2"]
    older = body(UserMessage("hi"), replied("c1", model=OLDER), *results("c1"), model=OLDER)["contents"]
    assert older[2]["parts"] == [{"functionResponse": {"name": "add", "response": {"output": "3"}}}]


def test_error_result_is_told_as_error() -> None:
    contents = body(UserMessage("hi"), replied("c1"), *results("c1", is_error=True))["contents"]
    assert contents[2]["parts"][0]["functionResponse"]["response"] == {"error": "3"}


def test_images_of_results_go_inside_from_gemini_3_on_and_behind_before() -> None:
    image = ToolResultMessage("c1", "add", [ImageContent("AA==", "image/png")])
    inline = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    newer = body(UserMessage("hi"), replied("c1"), image)["contents"]
    assert newer[2]["parts"][0]["functionResponse"]["parts"] == [inline]
    older = body(UserMessage("hi"), replied("c1", model=OLDER), image, model=OLDER)["contents"]
    assert older[3] == {"role": "user", "parts": [{"text": "Tool result image:"}, inline]}


@pytest.mark.parametrize(
    ("model_id", "level", "config"),
    [
        ("gemini-2.5-flash", "high", {"includeThoughts": True, "thinkingBudget": 24576}),
        ("gemini-2.5-flash-lite", "minimal", {"includeThoughts": True, "thinkingBudget": 512}),
        ("gemini-2.5-pro", "low", {"includeThoughts": True, "thinkingBudget": 2048}),
        ("gemini-2.0-x", "low", {"includeThoughts": True, "thinkingBudget": -1}),
        ("gemini-3-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        ("gemini-3.1-flash", "medium", {"includeThoughts": True, "thinkingLevel": "MEDIUM"}),
        ("gemma-4-27b", "low", {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
        ("gemini-2.5-flash", "off", {"thinkingBudget": 0}),
        ("gemini-3-pro", "off", {"thinkingLevel": "LOW"}),
        ("gemini-flash-latest", "off", {"thinkingLevel": "MINIMAL"}),
    ],
)
def test_thinking_by_family(model_id: str, level: Any, config: dict[str, Any]) -> None:
    model = replace(MODEL, id=model_id, reasoning=True)
    assert body(UserMessage("hi"), model=model, thinking=level)["generationConfig"]["thinkingConfig"] == config


@pytest.mark.parametrize("model_id", ["gemini-2.5-pro", "gemini-3-flash"])
def test_above_high_the_model_thinks_as_far_as_it_finds_right(model_id: str) -> None:
    model = replace(MODEL, id=model_id, reasoning=True, thinking_levels={"max": "max"})
    made = body(UserMessage("hi"), model=model, thinking="max")
    assert made["generationConfig"]["thinkingConfig"] == {"includeThoughts": True}


def test_thinking_budgets_can_be_given() -> None:
    model = replace(OLDER, reasoning=True)
    made = body(UserMessage("hi"), model=model, thinking="low", thinking_budgets={"low": 7})
    assert made["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 7


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        (None, None),
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("add", {"mode": "ANY", "allowedFunctionNames": ["add"]}),
    ],
)
def test_tool_choice(choice: str | None, config: Any) -> None:
    made = body(UserMessage("hi"), tools=[Spec("add")], tool_choice=choice)
    assert made.get("toolConfig", {}).get("functionCallingConfig") == config


def test_strict_tools_are_validated_from_gemini_3_on() -> None:
    strict = Spec("add", constrained_sampling="require")
    assert body(UserMessage("hi"), tools=[strict])["toolConfig"] == {"functionCallingConfig": {"mode": "VALIDATED"}}
    with pytest.raises(ModelError, match=r"Tool 'add' requires strict arguments .* not gemini-2\.5-flash"):
        body(UserMessage("hi"), tools=[strict], model=OLDER)


def test_name_that_google_refuses_is_refused() -> None:
    with pytest.raises(ModelError, match="Tool '3d' cannot be sent to Google: names there begin with a letter or '_'"):
        describe_tool(None, Spec("3d"))


def test_recursive_parameters_fail_the_request_before_it_is_made() -> None:
    tree = Spec("add", {"type": "object", "properties": {"left": {"$ref": "#"}}})
    reply = reply_to(MODEL, b"", context=Context(messages=[UserMessage("hi")], tools=[tree]))
    assert reply.error.startswith("Tool 'add' cannot be sent to Google: parameter left: it refers to itself")
    assert reply.requests == []


def test_key_travels_in_a_header_and_never_in_the_address() -> None:
    [request] = read().requests
    assert str(request.url) == "http://server.test/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse"
    assert request.headers["x-goog-api-key"] == KEY


def test_a_transcript_without_content_is_not_sent() -> None:
    reply = reply_to(MODEL, b"", context=Context(messages=[]))
    assert reply.requests == []
    assert reply.error == "There is nothing to send: Google wants at least one message with content."
