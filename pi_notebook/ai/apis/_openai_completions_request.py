"""The request half of openai-completions: a transcript, its tools and options as the body of `/chat/completions`.

Source: OpenAI API reference, "Chat completions"; the quirks are those of pi's `OpenAICompletionsCompat`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..messages import AssistantMessage, Message, ToolResultMessage
from ..model import Context, Model, StreamOptions, ThinkingLevel
from ._adapter import clamp_thinking, max_output_tokens
from ._openai_completions_compat import compat_of
from ._openai_completions_messages import convert, describe, system_message

Json = dict[str, Any]

DEFAULT_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384}
_ANSWER_TOKENS = 1024  # left for the answer where thinking shares its limit


def request_body(model: Model, context: Context, options: StreamOptions) -> Json:
    """The whole body, as `stream` sends it."""
    compat = compat_of(model)
    body = parameters(model, context, options)
    messages = system_message(model, context) + convert(context.messages, model, context)
    body = {"model": body.pop("model"), "messages": messages, **body}
    if uses_markers(model, options):
        mark_for_caching(body, options.cache_retention, compat)
    return body


def uses_markers(model: Model, options: StreamOptions) -> bool:
    """Whether the request carries Anthropic's cache markers."""
    return compat_of(model)["cache_control_format"] == "anthropic" and options.cache_retention != "none"


def parameters(model: Model, context: Context, options: StreamOptions) -> Json:
    """The body without its messages."""
    compat = compat_of(model)
    retention = options.cache_retention
    long_cache = retention == "long" and compat["supports_long_cache_retention"]
    body: Json = {"model": model.id, "stream": True}
    if options.session_id is not None and (long_cache or (retention != "none" and "api.openai.com" in model.base_url)):
        body["prompt_cache_key"] = options.session_id[:64]
    if long_cache:
        body["prompt_cache_retention"] = "24h"
    if compat["supports_usage_in_streaming"]:
        body["stream_options"] = {"include_usage": True}
    if compat["supports_store"]:
        body["store"] = False
    if max_tokens := max_output_tokens(model, context, options):
        body[compat["max_tokens_field"]] = max_tokens
    if options.temperature is not None:
        body["temperature"] = options.temperature
    later = added_tool_names(context) if compat["deferred_tools_mode"] == "kimi" else ()
    if tools := [describe(tool, compat) for tool in context.tools if tool.name not in later]:
        body["tools"] = tools
        if compat["zai_tool_stream"]:
            body["tool_stream"] = True
    elif _has_calls(context.messages):
        body["tools"] = []  # Claude behind a proxy wants the field where the transcript holds calls
    if options.tool_choice:
        body["tool_choice"] = _tool_choice(options.tool_choice)
    _add_thinking(body, model, options, compat)
    if compat["open_router_routing"] is not None:
        body["provider"] = compat["open_router_routing"]
    routing = compat["vercel_gateway_routing"] or {}
    if chosen := {key: routing[key] for key in ("only", "order") if routing.get(key)}:
        body["providerOptions"] = {"gateway": chosen}
    body.update(model.sampling_params)
    return body


def _tool_choice(choice: str) -> str | Json:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def _has_calls(messages: Sequence[Message]) -> bool:
    return any(
        isinstance(message, ToolResultMessage) or (isinstance(message, AssistantMessage) and bool(message.tool_calls))
        for message in messages
    )


def added_tool_names(context: Context) -> set[str]:
    """Tools that came with a tool's result."""
    return {
        name
        for message in context.messages
        if isinstance(message, ToolResultMessage)
        for name in message.added_tool_names
    }


def _add_thinking(body: Json, model: Model, options: StreamOptions, compat: Json) -> None:
    """The fields that ask for the thinking level, in the server's own words."""
    if not model.reasoning:
        return
    level: ThinkingLevel = clamp_thinking(model, options.thinking)
    on = level != "off"
    words = model.thinking_levels
    word = words.get(level) or level  # what the server calls this level
    off_word = words.get("off")
    off_is_possible = not ("off" in words and off_word is None)
    effort = compat["supports_reasoning_effort"]
    match compat["thinking_format"]:
        case "zai":
            body["thinking"] = {"type": "enabled", "clear_thinking": False} if on else {"type": "disabled"}
            if on and effort:
                body["reasoning_effort"] = word
        case "qwen":
            body["enable_thinking"] = on
            if on and effort:
                body["reasoning_effort"] = word
        case "qwen-chat-template":
            body["chat_template_kwargs"] = {"enable_thinking": on, "preserve_thinking": True}
        case "chat-template":
            if values := _template_values(compat["chat_template_kwargs"], model, level):
                body["chat_template_kwargs"] = values
        case "baseten":
            if values := _template_values(compat["chat_template_args"], model, level):
                body["chat_template_args"] = values
            if effort and (on or off_word):
                body["reasoning_effort"] = word if on else off_word
        case "deepseek":
            if on or off_is_possible:
                body["thinking"] = {"type": "enabled" if on else "disabled"}
            if on and effort:
                body["reasoning_effort"] = word
        case "openrouter":
            if on or off_is_possible:
                body["reasoning"] = {"effort": word if on else off_word or "none"}
        case "ant-ling" if on:
            if words.get(level):
                body["reasoning"] = {"effort": word}
        case "together":
            body["reasoning"] = {"enabled": on}
            if on and effort:
                body["reasoning_effort"] = word
        case "string-thinking":
            if on or off_is_possible:
                body["thinking"] = word if on else off_word or "none"
        case _:
            if effort and (on or off_word):
                body["reasoning_effort"] = word if on else off_word
    if on and compat["supports_thinking_token_budget"]:
        budgets = {**DEFAULT_BUDGETS, **(options.thinking_budgets or {})}
        wanted = budgets["high" if level in ("xhigh", "max") else level]
        ceiling = body.get("max_tokens") or body.get("max_completion_tokens") or model.max_tokens
        budget = min(wanted, max(0, ceiling - _ANSWER_TOKENS)) if ceiling else wanted
        if budget > 0:
            body["thinking_token_budget"] = budget


def _template_values(values: Json, model: Model, level: ThinkingLevel) -> Json:
    """`values` with `{"$var": "thinking.enabled"}` and `{"$var": "thinking.effort"}` replaced."""
    on = level != "off"
    resolved: Json = {}
    for key, value in values.items():
        if not isinstance(value, dict):
            resolved[key] = value
        elif not on and value.get("omitWhenOff"):
            continue
        elif value.get("$var") == "thinking.enabled":
            resolved[key] = on
        elif level in model.thinking_levels:
            if model.thinking_levels[level] is not None:
                resolved[key] = model.thinking_levels[level]
        elif on:
            resolved[key] = level
    return resolved


def mark_for_caching(body: Json, retention: str, compat: Json) -> None:
    """Put Anthropic's cache markers on the system prompt, the last tool and the last text, in place."""
    marker: Json = {"type": "ephemeral"}
    if retention == "long" and compat["supports_long_cache_retention"]:
        marker["ttl"] = "1h"
    messages = body["messages"]
    for message in messages:
        if message["role"] in ("system", "developer"):
            _mark(message, marker)
            break
    if tools := body.get("tools"):
        tools[-1]["cache_control"] = marker
    for message in reversed(messages):
        if message["role"] in ("user", "assistant", "tool") and _mark(message, marker):
            break


def _mark(message: Json, marker: Json) -> bool:
    content = message.get("content")
    if isinstance(content, str) and content:
        message["content"] = [{"type": "text", "text": content, "cache_control": marker}]
        return True
    for part in reversed(content if isinstance(content, list) else []):
        if part.get("type") == "text":
            part["cache_control"] = marker
            return True
    return False
