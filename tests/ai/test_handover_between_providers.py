"""A conversation that began with one provider goes on with another: the other takes it, and nothing of it is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pi_notebook.ai.message_json import message_from_json, message_to_json
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
from pi_notebook.ai.model import Context, Model, StreamOptions, adapter

from .apis.servers import Spec
from .official import check_request

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
MODELS = {
    "openai-completions": Model("deepseek-v4", "openai-completions", "deepseek", "https://api.deepseek.com"),
    "openai-responses": Model("gpt-5", "openai-responses", "openai", "https://api.openai.com/v1", reasoning=True),
    "anthropic-messages": Model(
        "claude-sonnet-4-5", "anthropic-messages", "anthropic", "https://api.anthropic.com", max_tokens=64_000
    ),
    "google-generative-ai": Model("gemini-3-pro", "google-generative-ai", "google", "https://g.test/v1beta"),
}
# As each API's replies leave them behind: signatures of thoughts, texts and calls, and ids in its own form.
REASONING = json.dumps({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENCRYPTED0"})
REPLIES: dict[str, tuple[ThinkingContent, TextContent, ToolCall, ToolCall]] = {
    "openai-completions": (
        ThinkingContent("I think so.", "reasoning_content"),
        TextContent("Let me add."),
        ToolCall("call_00_Qx", "add", {"a": 1}),
        ToolCall("call_01_Qy", "add", {"a": 2}),
    ),
    "openai-responses": (
        ThinkingContent("I think so.", REASONING),
        TextContent("Let me add.", json.dumps({"v": 1, "id": "msg_0123456789"})),
        ToolCall(f"call_{'x' * 40}|fc_{'y' * 60}", "add", {"a": 1}),
        ToolCall(f"call_{'x' * 40}z|fc_{'y' * 60}z", "add", {"a": 2}),
    ),
    "anthropic-messages": (
        ThinkingContent("I think so.", "U0lHTkFUVVJFMA=="),
        TextContent("Let me add."),
        ToolCall("toolu_01A", "add", {"a": 1}),
        ToolCall("toolu_01B", "add", {"a": 2}),
    ),
    "google-generative-ai": (
        ThinkingContent("I think so.", "VEhPVUdIVFMwMDA="),
        TextContent("Let me add.", "VEVYVFNJRzAwMDA="),
        ToolCall("add_1", "add", {"a": 1}, "Q0FMTFNJRzAwMDA="),
        ToolCall("add_2", "add", {"a": 2}, "Q0FMTFNJRzAwMDE="),
    ),
}
SIGNATURES = (
    "ENCRYPTED0", "msg_0123456789", "U0lHTkFUVVJFMA==", "VEhPVUdIVFMwMDA=", "VEVYVFNJRzAwMDA=", "Q0FMTFNJRzAwMDA=",
    "Q0FMTFNJRzAwMDE=",
)  # fmt: skip


def conversation(api: str) -> list[Message]:
    model, content = MODELS[api], REPLIES[api]
    first, second = content[2:]
    messages: list[Message] = [
        UserMessage([TextContent("What is in it?"), ImageContent(PIXEL, "image/png")]),
        AssistantMessage(content, model.api, model.provider, model.id, stop_reason="tool_use"),
        ToolResultMessage(first.id, "add", [TextContent("result one"), ImageContent(PIXEL, "image/png")]),
        ToolResultMessage(second.id, "add", [TextContent("result two")], is_error=True),
        AssistantMessage([TextContent("It is 3.")], model.api, model.provider, model.id),
        UserMessage("Go on."),
    ]
    return [message_from_json(json.loads(json.dumps(message_to_json(message)))) for message in messages]


def body(source: str, target: str) -> dict[str, Any]:
    context = Context("Be brief.", conversation(source), [Spec("add")])
    made = adapter(target).request_body(MODELS[target], context, StreamOptions())
    sent: dict[str, Any] = json.loads(json.dumps(made))
    return sent


def ids_of_calls_and_results(api: str, made: dict[str, Any]) -> tuple[list[str], list[str]]:
    match api:
        case "openai-completions":
            calls = [c["id"] for m in made["messages"] for c in m.get("tool_calls") or ()]
            return calls, [m["tool_call_id"] for m in made["messages"] if m["role"] == "tool"]
        case "openai-responses":
            calls = [i["call_id"] for i in made["input"] if i.get("type") == "function_call"]
            return calls, [i["call_id"] for i in made["input"] if i.get("type") == "function_call_output"]
        case "anthropic-messages":
            blocks = [b for m in made["messages"] if isinstance(m["content"], list) for b in m["content"]]
            calls = [b["id"] for b in blocks if b["type"] == "tool_use"]
            return calls, [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        case _:
            parts = [p for c in made["contents"] for p in c["parts"]]
            calls = [p["functionCall"]["id"] for p in parts if "functionCall" in p]
            return calls, [p["functionResponse"]["id"] for p in parts if "functionResponse" in p]


@pytest.mark.parametrize("target", MODELS)
@pytest.mark.parametrize("source", MODELS)
def test_every_provider_takes_what_another_began(source: str, target: str) -> None:
    made = body(source, target)
    check_request(target, made)
    text = json.dumps(made)
    for said in ("Be brief.", "What is in it?", "I think so.", "Let me add.", "result one", "result two", "Go on."):
        if said != "I think so." or (source, target) != ("openai-responses",) * 2:
            assert text.count(said) == 1, said
    assert text.count(PIXEL) == 2
    calls, results = ids_of_calls_and_results(target, made)
    assert len(set(calls)) == 2
    assert calls == results


@pytest.mark.parametrize("target", MODELS)
@pytest.mark.parametrize("source", MODELS)
def test_signatures_go_home_and_nowhere_else(source: str, target: str) -> None:
    text = json.dumps(body(source, target))
    sent = [signature for signature in SIGNATURES if signature in text]
    own = json.dumps([message_to_json(message) for message in conversation(source)])
    assert sent == ([signature for signature in SIGNATURES if signature in own] if source == target else [])
