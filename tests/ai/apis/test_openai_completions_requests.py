"""openai-completions: what a request says, in the words of the server it goes to."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from pi_notebook.ai.apis.openai_completions import describe_tool, request_body
from pi_notebook.ai.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from pi_notebook.ai.model import Context, Model, StreamOptions
from pi_notebook.errors import ModelError

from .servers import KEY, Spec, reply_to, sse

OPEN = {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}, "required": ["q"]}
STRICT = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "n": {"type": ["integer", "null"]}},
    "required": ["q", "n"],
    "additionalProperties": False,
}
IMAGE = ImageContent("AAAA", "image/png")


def model(provider: str = "local", url: str = "http://server.test/v1", **more: Any) -> Model:
    return Model(more.pop("id", "m1"), "openai-completions", provider, url, **more)


def body(
    asked: Model | None = None,
    *,
    messages: list[Message] | None = None,
    tools: list[Spec] | None = None,
    system: str = "",
    **options: Any,
) -> dict[str, Any]:
    context = Context(system, messages or [UserMessage("go")], tools or [])
    return request_body(asked or model(), context, StreamOptions(**options))


def own(*content: Any, asked: Model | None = None, **more: Any) -> AssistantMessage:
    asked = asked or model()
    return AssistantMessage(content, asked.api, asked.provider, asked.id, **more)


def sent(asked: Model, **options: Any) -> httpx.Request:
    answer = sse({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]})
    return reply_to(asked, answer, options=StreamOptions(**options)).requests[0]


# -- thinking --------------------------------------------------------------------------------------------------------

LEVELS = {"off": "none", "low": "little", "high": "much"}


@pytest.mark.parametrize(
    ("thinking_format", "on", "off"),
    [
        ("openai", {"reasoning_effort": "much"}, {"reasoning_effort": "none"}),
        ("openrouter", {"reasoning": {"effort": "much"}}, {"reasoning": {"effort": "none"}}),
        (
            "deepseek",
            {"thinking": {"type": "enabled"}, "reasoning_effort": "much"},
            {"thinking": {"type": "disabled"}},
        ),
        ("together", {"reasoning": {"enabled": True}, "reasoning_effort": "much"}, {"reasoning": {"enabled": False}}),
        (
            "zai",
            {"thinking": {"type": "enabled", "clear_thinking": False}, "reasoning_effort": "much"},
            {"thinking": {"type": "disabled"}},
        ),
        ("qwen", {"enable_thinking": True, "reasoning_effort": "much"}, {"enable_thinking": False}),
        (
            "qwen-chat-template",
            {"chat_template_kwargs": {"enable_thinking": True, "preserve_thinking": True}},
            {"chat_template_kwargs": {"enable_thinking": False, "preserve_thinking": True}},
        ),
        (
            "chat-template",
            {"chat_template_kwargs": {"on": True, "how": "much", "fixed": 1, "when_on": "much"}},
            {"chat_template_kwargs": {"on": False, "how": "none", "fixed": 1}},
        ),
        (
            "baseten",
            {"chat_template_args": {"on": True}, "reasoning_effort": "much"},
            {"chat_template_args": {"on": False}, "reasoning_effort": "none"},
        ),
        ("string-thinking", {"thinking": "much"}, {"thinking": "none"}),
        ("ant-ling", {"reasoning": {"effort": "much"}}, {"reasoning_effort": "none"}),
    ],
)
def test_thinking_is_asked_for_in_the_servers_own_words(
    thinking_format: str, on: dict[str, Any], off: dict[str, Any]
) -> None:
    compat = {
        "thinking_format": thinking_format,
        "chat_template_kwargs": {
            "on": {"$var": "thinking.enabled"},
            "how": {"$var": "thinking.effort"},
            "fixed": 1,
            "when_on": {"$var": "thinking.effort", "omitWhenOff": True},
        },
        "chat_template_args": {"on": {"$var": "thinking.enabled"}},
    }
    asked = model(reasoning=True, thinking_levels=LEVELS, compat=compat)
    plain = body(model(compat=compat), thinking="high")
    assert _new(body(asked, thinking="high"), plain) == on
    assert _new(body(asked, thinking="off"), plain) == off


def _new(changed: dict[str, Any], plain: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in changed.items() if plain.get(key) != value}


@pytest.mark.parametrize(
    ("levels", "asked", "told"),
    [
        ({}, "xhigh", "high"),
        ({"xhigh": "most"}, "xhigh", "most"),
        ({"minimal": None, "low": None}, "minimal", "medium"),
        ({"high": None, "medium": None}, "high", "low"),
        ({}, "minimal", "minimal"),
    ],
)
def test_a_level_that_a_model_lacks_becomes_the_nearest(levels: dict[str, Any], asked: Any, told: str) -> None:
    assert body(model(reasoning=True, thinking_levels=levels), thinking=asked)["reasoning_effort"] == told


def test_a_server_that_cannot_switch_thinking_off_is_not_told_to() -> None:
    for thinking_format in ("openrouter", "deepseek", "string-thinking", "openai"):
        asked = model(reasoning=True, thinking_levels={"off": None}, compat={"thinking_format": thinking_format})
        assert not body(asked).keys() & {"reasoning", "thinking", "reasoning_effort"}


def test_a_thinking_budget_leaves_room_for_the_answer() -> None:
    asked = model(reasoning=True, compat={"supports_thinking_token_budget": True})
    assert body(asked, thinking="high")["thinking_token_budget"] == 16384
    assert body(asked, thinking="high", max_tokens=5000)["thinking_token_budget"] == 5000 - 1024
    assert body(asked, thinking="low", thinking_budgets={"low": 7})["thinking_token_budget"] == 7
    assert "thinking_token_budget" not in body(asked, thinking="low", max_tokens=1000)
    assert "thinking_token_budget" not in body(asked)


# -- limits and switches ---------------------------------------------------------------------------------------------


def test_the_limit_leaves_room_in_the_context_window() -> None:
    asked = model(max_tokens=30_000, context_window=20_000)
    short = [UserMessage("x" * 4000)]
    assert body(asked, messages=short)["max_completion_tokens"] == 20_000 - 1000 - 4096
    counted = [
        UserMessage("x" * 400_000),
        own(TextContent("y"), usage=Usage(total_tokens=5000)),
        UserMessage("x" * 400),
    ]
    assert body(asked, messages=counted)["max_completion_tokens"] == 20_000 - 5000 - 100 - 4096
    assert body(asked, messages=[UserMessage("x" * 400_000)])["max_completion_tokens"] == 1
    assert body(asked, max_tokens=7)["max_completion_tokens"] == 7
    assert "max_completion_tokens" not in body()


@pytest.mark.parametrize(
    ("provider", "url", "field"),
    [
        ("openai", "https://api.openai.com/v1", "max_completion_tokens"),
        ("together", "https://api.together.ai/v1", "max_tokens"),
        ("mistral", "https://api.mistral.ai/v1", "max_tokens"),
        ("x", "https://llm.chutes.ai/v1", "max_tokens"),
    ],
)
def test_the_field_of_the_limit(provider: str, url: str, field: str) -> None:
    assert body(model(provider, url), max_tokens=5)[field] == 5


def test_what_mistral_refuses_is_not_sent() -> None:
    sent_body = body(model("mistral", "https://api.mistral.ai/v1"), cache_retention="long", session_id="s")
    assert sent_body.keys() == {"model", "messages", "stream"}


def test_the_callers_own_fields_come_last() -> None:
    asked = model(sampling_params={"top_p": 0.5, "temperature": 0.9})
    assert body(asked, temperature=0.1)["temperature"] == 0.9
    assert body(temperature=0)["temperature"] == 0


@pytest.mark.parametrize("choice", ["auto", "none", "required"])
def test_tool_choice(choice: str) -> None:
    assert body(tool_choice=choice)["tool_choice"] == choice
    named = {"type": "function", "function": {"name": "add"}}
    assert body(tool_choice="add")["tool_choice"] == named


def test_prompt_caching_fields() -> None:
    openai = model("openai", "https://api.openai.com/v1")
    assert body(openai, session_id="s" * 80)["prompt_cache_key"] == "s" * 64
    assert "prompt_cache_key" not in body(openai, session_id="s", cache_retention="none")
    assert "prompt_cache_key" not in body(session_id="s")
    long = body(session_id="s", cache_retention="long")
    assert (long["prompt_cache_key"], long["prompt_cache_retention"]) == ("s", "24h")


def test_anthropics_cache_markers_where_they_are_understood() -> None:
    claude = model("openrouter", "https://openrouter.ai/api/v1", id="anthropic/claude-x")
    marker = {"type": "ephemeral"}
    messages: list[Message] = [UserMessage("first"), own(TextContent("x"), asked=claude), UserMessage([IMAGE])]
    marked = body(claude, messages=messages, tools=[Spec("a"), Spec("b")], system="SYS")
    system, first, reply, last = marked["messages"]
    assert system["content"] == [{"type": "text", "text": "SYS", "cache_control": marker}]
    assert first["content"] == "first"
    assert reply["content"] == [{"type": "text", "text": "x", "cache_control": marker}]  # the last text there is
    assert "cache_control" not in json.dumps(last)
    assert [tool.get("cache_control") for tool in marked["tools"]] == [None, marker]
    assert "cache_control" not in json.dumps(body(claude, cache_retention="none"))
    assert '"ttl": "1h"' in json.dumps(body(claude, cache_retention="long"))


def test_routing_preferences() -> None:
    asked = model(compat={"open_router_routing": {"only": ["x"]}, "vercel_gateway_routing": {"order": ["y"]}})
    assert body(asked)["provider"] == {"only": ["x"]}
    assert body(asked)["providerOptions"] == {"gateway": {"order": ["y"]}}


# -- tools -----------------------------------------------------------------------------------------------------------


def test_a_tool_as_it_is_and_in_strict_form() -> None:
    loose = describe_tool(None, Spec("find", OPEN))
    assert loose == {
        "type": "function",
        "function": {"name": "find", "description": "does it", "parameters": OPEN, "strict": False},
    }
    strict = describe_tool(None, Spec("find", OPEN, constrained_sampling="prefer"))["function"]
    assert strict["strict"] is True
    assert strict["parameters"]["required"] == ["q", "n"]
    assert strict["parameters"]["additionalProperties"] is False
    assert describe_tool(None, Spec("find", STRICT, constrained_sampling="require"))["function"]["parameters"] == STRICT


def test_a_server_without_strict_schemas() -> None:
    asked = model(compat={"supports_strict_mode": False})
    assert "strict" not in describe_tool(asked, Spec("find", OPEN, constrained_sampling="prefer"))["function"]
    with pytest.raises(ModelError, match="'find' requires a strict schema, which this server does not know"):
        describe_tool(asked, Spec("find", OPEN, constrained_sampling="require"))


def test_a_schema_that_cannot_be_strict_is_sent_as_it_is_or_refused() -> None:
    free = {"type": "object", "properties": {"x": {"type": "object", "additionalProperties": {"type": "string"}}}}
    assert describe_tool(None, Spec("f", free, constrained_sampling="prefer"))["function"]["strict"] is False
    with pytest.raises(ModelError, match=r"'?f'?.*x"):
        describe_tool(None, Spec("f", free, constrained_sampling="require"))


def test_a_refused_tool_is_the_replys_error_and_nothing_is_sent() -> None:
    free = {"type": "object", "properties": {"x": {}}}
    context = Context(messages=[UserMessage("go")], tools=[Spec("f", free, constrained_sampling="require")])
    reply = reply_to(model(), b"", context=context)
    assert reply.requests == []
    assert reply.kinds == ["error"]
    assert "'f'" in reply.error


def test_no_tools_but_calls_in_the_transcript() -> None:
    assert "tools" not in body()
    assert body(messages=[own(ToolCall("a", "t", {}))])["tools"] == []


def test_tools_that_a_result_brought_come_behind_it_for_kimi() -> None:
    asked = model(compat={"deferred_tools_mode": "kimi"})
    messages: list[Message] = [
        own(ToolCall("a", "load", {}), ToolCall("b", "load", {})),
        ToolResultMessage("a", "load", [TextContent("1")], added_tool_names=["late"]),
        ToolResultMessage("b", "load", [TextContent("2")], added_tool_names=["late", "gone"]),
        UserMessage("go"),
    ]
    told = body(asked, messages=messages, tools=[Spec("load"), Spec("late")])
    assert [tool["function"]["name"] for tool in told["tools"]] == ["load"]
    assert [message["role"] for message in told["messages"]] == ["assistant", "tool", "tool", "system", "user"]
    assert [tool["function"]["name"] for tool in told["messages"][3]["tools"]] == ["late"]


# -- messages --------------------------------------------------------------------------------------------------------


def test_images_of_results_come_behind_all_of_them() -> None:
    messages: list[Message] = [
        own(ToolCall("a", "t", {}), ToolCall("b", "t", {})),
        ToolResultMessage("a", "t", [IMAGE]),
        ToolResultMessage("b", "t", [TextContent("1"), IMAGE, TextContent("2")]),
    ]
    _, first, second, images = body(messages=messages)["messages"]
    assert first["content"] == "(The result is the image below.)"
    assert second["content"] == "1\n2"
    assert [part["type"] for part in images["content"]] == ["text", "image_url", "image_url"]
    assert images["content"][1]["image_url"]["url"] == "data:image/png;base64,AAAA"


def test_an_empty_result_is_not_sent_empty() -> None:
    messages: list[Message] = [own(ToolCall("a", "t", {})), ToolResultMessage("a", "t", [])]
    assert body(messages=messages)["messages"][1]["content"] == "(The tool returned nothing.)"


def test_reasoning_goes_back_to_its_own_model_in_its_own_field_and_to_no_other() -> None:
    asked = model("deepseek", "https://api.deepseek.com", reasoning=True)
    messages: list[Message] = [
        own(ThinkingContent("hm", "reasoning_content"), ToolCall("a", "t", {}), asked=asked),
        ToolResultMessage("a", "t", [TextContent("1")]),
        own(TextContent("done"), asked=asked),
    ]
    first, _, last = body(asked, messages=messages)["messages"]
    assert first["reasoning_content"] == "hm"
    assert last["reasoning_content"] == ""  # this server wants the field on each reply
    other = body(model(), messages=messages)["messages"][0]
    assert other["content"] == "hm" and "reasoning_content" not in other


def test_encrypted_reasoning_goes_back_with_its_call() -> None:
    detail = {"type": "reasoning.encrypted", "id": "a", "data": "ENC"}
    message = own(ToolCall("a", "t", {}, json.dumps(detail)), ToolCall("b", "t", {}, "not json"))
    assert body(messages=[message])["messages"][0]["reasoning_details"] == [detail]


def test_arguments_go_back_as_the_text_of_an_object() -> None:
    for arguments, text in (
        ({"a": 1, "b": "é"}, '{"a":1,"b":"é"}'),
        ("{'a': 1}", '{"invalid_arguments":"{\'a\': 1}"}'),
        ([1], '{"invalid_arguments":[1]}'),
        ({"x": "a\ud83d"}, '{"x":"a"}'),
    ):
        (call,) = body(messages=[own(ToolCall("a", "t", arguments))])["messages"][0]["tool_calls"]
        assert call["function"]["arguments"] == text


def test_ids_of_other_apis_are_renamed() -> None:
    def ids(asked: Model, *call_ids: str) -> list[str]:
        message = AssistantMessage([ToolCall(call_id, "t", {}) for call_id in call_ids], "openai-responses", "x", "y")
        return [call["id"] for call in body(asked, messages=[message])["messages"][0]["tool_calls"]]

    assert ids(model(), "call_1|fc_a+/=", "call_1|fc_b") == ["call_1_fc_a___", "call_1_fc_b"]
    assert ids(model("openai"), "x" * 50 + "a", "x" * 50 + "b") == ["x" * 40, "x" * 38 + "_1"]
    for call_id in ids(model("mistral", "https://api.mistral.ai/v1"), "toolu_01", "abcDEF123", "a|b"):
        assert len(call_id) == 9 and call_id.isalnum()


# -- headers ---------------------------------------------------------------------------------------------------------


def test_headers() -> None:
    request = sent(model(headers={"X-Team": "a", "x-both": "model"}), headers={"X-Both": "request"})
    assert str(request.url) == "http://server.test/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-team"] == "a"
    assert request.headers["x-both"] == "request"


@pytest.mark.parametrize(
    ("session_format", "names"),
    [
        ("openai", {"session_id", "x-client-request-id", "x-session-affinity"}),
        ("openai-nosession", {"x-client-request-id", "x-session-affinity"}),
        ("openrouter", {"x-session-id"}),
    ],
)
def test_session_headers(session_format: str, names: set[str]) -> None:
    compat = {"send_session_affinity_headers": True, "session_affinity_format": session_format}
    every = {"session_id", "x-client-request-id", "x-session-affinity", "x-session-id"}
    headers = sent(model(compat=compat), session_id="s").headers
    assert {name for name in every if headers.get(name) == "s"} == names
    assert not every & set(sent(model(compat=compat), session_id="s", cache_retention="none").headers)
    assert not every & set(sent(model(), session_id="s").headers)


def test_a_hook_may_replace_the_body() -> None:
    seen: list[dict[str, Any]] = []

    def replace(payload: dict[str, Any]) -> dict[str, Any]:
        seen.append(payload)
        return {**payload, "seed": 7}

    assert json.loads(sent(model(), on_payload=replace).content)["seed"] == 7
    assert json.loads(sent(model(), on_payload=seen.append).content) == seen[-1]
