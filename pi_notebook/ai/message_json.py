"""Messages as JSON and back, in pi's own shape (camelCase), so that a transcript can be kept and exchanged.

Timestamps are milliseconds. A key whose value is not set is absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .messages import (
    NO_USAGE,
    AssistantContent,
    AssistantMessage,
    Cost,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    now_ms,
)

STOP_REASONS = {"tool_use": "toolUse"}
_STOP_REASONS_BACK = {"toolUse": "tool_use"}


def _given(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def block_to_json(block: AssistantContent | ImageContent) -> dict[str, Any]:
    if block.type == "text":
        return _given(type="text", text=block.text, textSignature=block.text_signature)
    if block.type == "thinking":
        signature, redacted = block.thinking_signature, block.redacted or None
        return _given(type="thinking", thinking=block.thinking, thinkingSignature=signature, redacted=redacted)
    if block.type == "image":
        return {"type": "image", "data": block.data, "mimeType": block.mime_type}
    call = {"type": "toolCall", "id": block.id, "name": block.name, "arguments": block.arguments}
    return call | _given(thoughtSignature=block.thought_signature)


def block_from_json(data: Mapping[str, Any]) -> Any:
    """A content block. Raises ValueError for a type that is none of ours."""
    kind = data.get("type")
    if kind == "text":
        return TextContent(data["text"], data.get("textSignature"))
    if kind == "thinking":
        return ThinkingContent(data["thinking"], data.get("thinkingSignature"), bool(data.get("redacted")))
    if kind == "image":
        return ImageContent(data["data"], data["mimeType"])
    if kind == "toolCall":
        return ToolCall(data["id"], data["name"], data["arguments"], data.get("thoughtSignature"))
    raise ValueError(f"unknown content block type {kind!r}")


def usage_to_json(usage: Usage) -> dict[str, Any]:
    cost = usage.cost
    return _given(
        input=usage.input,
        output=usage.output,
        cacheRead=usage.cache_read,
        cacheWrite=usage.cache_write,
        cacheWrite1h=usage.cache_write_1h,
        reasoning=usage.reasoning,
        totalTokens=usage.total_tokens,
        cost=cost
        and {
            "input": cost.input,
            "output": cost.output,
            "cacheRead": cost.cache_read,
            "cacheWrite": cost.cache_write,
            "total": cost.total,
        },
    )


def usage_from_json(data: Mapping[str, Any]) -> Usage:
    cost = data.get("cost")
    return Usage(
        data.get("input", 0),
        data.get("output", 0),
        data.get("cacheRead", 0),
        data.get("cacheWrite", 0),
        data.get("cacheWrite1h"),
        data.get("reasoning"),
        data.get("totalTokens", 0),
        cost
        and Cost(
            cost.get("input", 0),
            cost.get("output", 0),
            cost.get("cacheRead", 0),
            cost.get("cacheWrite", 0),
            cost.get("total", 0),
        ),
    )


def message_to_json(message: Message) -> dict[str, Any]:
    """`details` is passed on as it is: who writes a file makes it JSON."""
    if message.role == "user":
        content = message.content
        blocks = content if isinstance(content, str) else [block_to_json(block) for block in content]
        return {"role": "user", "content": blocks, "timestamp": message.timestamp}
    blocks = [block_to_json(block) for block in message.content]
    if message.role == "tool_result":
        return _given(
            role="toolResult",
            toolCallId=message.tool_call_id,
            toolName=message.tool_name,
            content=blocks,
            details=message.details,
            usage=message.usage and usage_to_json(message.usage),
            addedToolNames=list(message.added_tool_names) or None,
            isError=message.is_error,
            durationMs=message.duration_ms,
            timestamp=message.timestamp,
        )
    return _given(
        role="assistant",
        content=blocks,
        api=message.api,
        provider=message.provider,
        model=message.model,
        usage=usage_to_json(message.usage),
        stopReason=STOP_REASONS.get(message.stop_reason, message.stop_reason),
        errorMessage=message.error_message,
        rawStopReason=message.raw_stop_reason,
        responseId=message.response_id,
        responseModel=message.response_model,
        timestamp=message.timestamp,
    )


def message_from_json(data: Mapping[str, Any]) -> Message:
    """The inverse of `message_to_json`; what is missing gets its default. Raises ValueError for an unknown role."""
    role = data.get("role")
    timestamp = data.get("timestamp", now_ms())
    content = data.get("content")
    blocks: Any = content if isinstance(content, str) else [block_from_json(b) for b in content or ()]
    if role == "user":
        return UserMessage(blocks, timestamp)
    if isinstance(blocks, str):
        blocks = [TextContent(blocks)]
    if role == "toolResult":
        added: Sequence[str] = data.get("addedToolNames") or ()
        usage = data.get("usage")
        return ToolResultMessage(
            data["toolCallId"],
            data["toolName"],
            blocks,
            data.get("details"),
            usage and usage_from_json(usage),
            added,
            bool(data.get("isError")),
            data.get("durationMs"),
            timestamp,
        )
    if role == "assistant":
        stop = data.get("stopReason", "stop")
        usage = data.get("usage")
        return AssistantMessage(
            blocks,
            data.get("api", ""),
            data.get("provider", ""),
            data.get("model", ""),
            usage_from_json(usage) if usage else NO_USAGE,
            _STOP_REASONS_BACK.get(stop, stop),
            data.get("errorMessage"),
            data.get("rawStopReason"),
            data.get("responseId"),
            data.get("responseModel"),
            timestamp,
        )
    raise ValueError(f"unknown message role {role!r}")
