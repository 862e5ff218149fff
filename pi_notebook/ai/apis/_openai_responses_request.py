"""The request half of openai-responses: a transcript, its tools and options as the body of `/responses`.

Source: OpenAI API reference, "Responses"; nothing is stored at the provider (`store: false`), so encrypted reasoning
comes with each reply and goes back with the next request. `Model.compat` knows: `supports_developer_role` (True),
`supports_strict_mode` (False), `supports_tool_search` (False), `supports_long_cache_retention` (True),
`supports_explicit_prompt_cache_mode` (False), `session_affinity_format` (`openai`, `openai-nosession`, `openrouter`),
`key_header` (Azure: `api-key`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ...errors import ModelError
from .. import schemas
from .._short_hash import short_hash
from ..handover import clean, handover, is_same_model, sendable_arguments
from ..messages import AssistantMessage, Message, TextContent, ToolCall, ToolResultMessage, UserContent
from ..model import Context, Model, StreamOptions, ToolSpec
from ._adapter import clamp_thinking, compact_json, max_output_tokens

Json = dict[str, Any]

NO_OUTPUT = "(The tool returned nothing.)"
_MIN_OUTPUT_TOKENS = 16  # the API refuses less
_KEY_LENGTH = 64  # of prompt_cache_key and of ids
_KEEPS_ITEM_IDS = {"openai", "openai-codex", "opencode", "azure"}
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")


def request_body(model: Model, context: Context, options: StreamOptions) -> Json:
    """The whole body, as `stream` sends it."""
    body = parameters(model, context, options)
    items, _ = convert(context.messages, model, context, 0)
    return {"model": body.pop("model"), "input": system_items(model, context) + items, **body}


def parameters(model: Model, context: Context, options: StreamOptions) -> Json:
    """The body without its input."""
    compat = model.compat
    retention = options.cache_retention
    body: Json = {"model": model.id, "stream": True}
    if options.session_id is not None and retention != "none":
        body["prompt_cache_key"] = options.session_id[:_KEY_LENGTH]
    if retention == "long" and compat.get("supports_long_cache_retention", True):
        body["prompt_cache_retention"] = "24h"
    if retention == "none" and compat.get("supports_explicit_prompt_cache_mode"):
        body["prompt_cache_options"] = {"mode": "explicit"}
    body["store"] = False
    if limit := max_output_tokens(model, context, options):
        body["max_output_tokens"] = max(limit, _MIN_OUTPUT_TOKENS)
    if options.temperature is not None:
        body["temperature"] = options.temperature
    later = deferred_tools(model, context)
    if tools := [describe(tool, model) for name, tool in _by_name(context).items() if name not in later]:
        body["tools"] = tools
    if options.tool_choice:
        named = options.tool_choice not in ("auto", "none", "required")
        body["tool_choice"] = {"type": "function", "name": options.tool_choice} if named else options.tool_choice
    if model.reasoning:
        _add_reasoning(body, model, options)
    body.update(model.sampling_params)
    return body


def _add_reasoning(body: Json, model: Model, options: StreamOptions) -> None:
    level = clamp_thinking(model, options.thinking)
    words = model.thinking_levels
    if level != "off":
        body["reasoning"] = {"effort": words.get(level) or level, "summary": "auto"}
        body["include"] = ["reasoning.encrypted_content"]
    elif "off" not in words or words["off"] is not None:
        body["reasoning"] = {"effort": words.get("off") or "none"}
    if model.provider == "xai":
        body["include"] = ["reasoning.encrypted_content"]


# -- tools -------------------------------------------------------------------------------------------------------


def describe(tool: ToolSpec, model: Model, *, is_deferred: bool = False) -> Json:
    """The element of `tools` for one tool."""
    knows_strict = bool(model.compat.get("supports_strict_mode"))
    strict = None
    if tool.constrained_sampling is not None:
        if knows_strict:
            strict = schemas.strict_schema(tool)
        elif tool.constrained_sampling == "require":
            raise ModelError(
                f"Tool {tool.name!r} requires a strict schema, which {model.label} does not know: "
                'decorate it with constrained_sampling="prefer" or use another model.'
            )
    described: Json = {
        "type": "function",
        "name": tool.name,
        "description": clean(tool.description),
        "parameters": schemas.openai_schema(tool) if strict is None else strict,
    }
    if is_deferred:
        described["defer_loading"] = True
    if knows_strict:
        described["strict"] = strict is not None
    return described


def _by_name(context: Context) -> dict[str, ToolSpec]:
    return {tool.name: tool for tool in context.tools}


def deferred_tools(model: Model, context: Context) -> dict[str, ToolSpec]:
    """Tools that a tool's result added before any call of them: they are loaded there, which keeps the prompt's
    beginning, and with it the provider's cache, as it was."""
    if not model.compat.get("supports_tool_search"):
        return {}
    used: set[str] = set()
    added: set[str] = set()
    for message in context.messages:
        if isinstance(message, AssistantMessage):
            used.update(call.name for call in message.tool_calls)
        elif isinstance(message, ToolResultMessage):
            added.update(name for name in message.added_tool_names if name not in used)
    return {name: tool for name, tool in _by_name(context).items() if name in added}


# -- transcript --------------------------------------------------------------------------------------------------


def system_items(model: Model, context: Context) -> list[Json]:
    """The system prompt as an input item, if there is one."""
    if not context.system_prompt:
        return []
    developer = model.reasoning and model.compat.get("supports_developer_role") is not False
    return [{"role": "developer" if developer else "system", "content": clean(context.system_prompt)}]


def convert(messages: Sequence[Message], model: Model, context: Context, position: int) -> tuple[list[Json], int]:
    """Input items for whole segments of a transcript.

    Args:
        position: How many messages were sent before; ids that are made up here count on.

    Returns:
        The items, and the position after them.

    Raises:
        ModelError: A stored signature cannot be read.
    """
    later = deferred_tools(model, context)
    items: list[Json] = []
    ids: dict[str, str] = {}
    for message in handover(messages, model):
        if isinstance(message, AssistantMessage):
            ids = _wire_ids(message, model)
            new = _reply_items(message, model, position, ids)
        elif isinstance(message, ToolResultMessage):
            call_id = ids.get(message.tool_call_id, message.tool_call_id)
            new = [_result_item(message, call_id), *_loaded_tools(message, call_id, later, model)]
        else:
            new = _user_items(message.content)
        items += new
        position += bool(new)
    return items, position


def _user_items(content: str | Sequence[UserContent]) -> list[Json]:
    blocks = [TextContent(content)] if isinstance(content, str) else content
    parts = [_part(block) for block in blocks]
    return [{"role": "user", "content": parts}] if parts else []


def _part(block: UserContent) -> Json:
    if isinstance(block, TextContent):
        return {"type": "input_text", "text": clean(block.text)}
    url = f"data:{block.mime_type};base64,{block.data}"
    return {"type": "input_image", "detail": "auto", "image_url": url}


def _reply_items(message: AssistantMessage, model: Model, position: int, ids: dict[str, str]) -> list[Json]:
    items: list[Json] = []
    texts = 0
    is_sibling = message.model != model.id and (message.provider, message.api) == (model.provider, model.api)
    for block in message.content:
        if block.type == "thinking":
            if block.thinking_signature:
                items.append(_stored_reasoning(block.thinking_signature))
        elif block.type == "text":
            fallback = f"msg_pi_{position}" + (f"_{texts}" if texts else "")
            items.append(_text_item(block, fallback))
            texts += 1
        else:
            items.append(_call_item(block, ids[block.id], is_sibling))
    return items


def _stored_reasoning(signature: str) -> Any:
    try:
        return json.loads(signature)
    except ValueError:
        raise ModelError(
            "A reply in this conversation holds reasoning that cannot be sent back, because its signature is damaged: "
            "start a new conversation, or go on with another model."
        ) from None


def _text_item(block: TextContent, fallback_id: str) -> Json:
    text_id, phase = _read_signature(block.text_signature)
    if not text_id:
        text_id = fallback_id
    elif len(text_id) > _KEY_LENGTH:
        text_id = f"msg_{short_hash(text_id)}"
    item: Json = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": clean(block.text), "annotations": []}],
        "status": "completed",
        "id": text_id,
    }
    if phase is not None:
        item["phase"] = phase
    return item


def _read_signature(signature: str | None) -> tuple[str | None, str | None]:
    """Id and phase of a stored text; a signature that is no JSON is the id itself."""
    if signature and signature.startswith("{"):
        try:
            stored = json.loads(signature)
        except ValueError:
            stored = {}
        if stored.get("v") == 1 and isinstance(stored.get("id"), str):
            phase = stored.get("phase")
            return stored["id"], phase if phase in ("commentary", "final_answer") else None
    return signature, None


def _call_item(call: ToolCall, wire_id: str, is_sibling: bool) -> Json:
    call_id, _, item_id = wire_id.partition("|")
    item: Json = {"type": "function_call"}
    # OpenAI checks that an item id goes with the reasoning it came with; a sibling's reasoning is not sent.
    if item_id.startswith("fc_") and not is_sibling:
        item["id"] = item_id.partition("|")[0]
    arguments = compact_json(sendable_arguments(call))
    return {**item, "call_id": call_id, "name": call.name, "arguments": arguments}


def _result_item(message: ToolResultMessage, wire_id: str) -> Json:
    text = "\n".join(block.text for block in message.content if block.type == "text")
    images = [_part(block) for block in message.content if block.type == "image"]
    output: str | list[Json] = clean(text) or NO_OUTPUT
    if images:
        output = ([{"type": "input_text", "text": clean(text)}] if text else []) + images
    return {"type": "function_call_output", "call_id": wire_id.partition("|")[0], "output": output}


def _loaded_tools(message: ToolResultMessage, wire_id: str, later: dict[str, ToolSpec], model: Model) -> list[Json]:
    """What tells the model of tools that this result added; `later` loses them, so that each is told once."""
    tools = [later.pop(name) for name in message.added_tool_names if name in later]
    if not tools:
        return []
    names = [tool.name for tool in tools]
    load_id = short_hash(f"{wire_id}:{','.join(names)}")
    search: Json = {
        "call_id": f"pi_tool_load_{load_id}",
        "execution": "client",
        "status": "completed",
    }
    return [
        {"type": "tool_search_call", **search, "arguments": {"query": " ".join(names), "limit": len(names)}},
        {"type": "tool_search_output", **search, "tools": [describe(tool, model, is_deferred=True) for tool in tools]},
    ]


# -- ids ---------------------------------------------------------------------------------------------------------


def _wire_ids(message: AssistantMessage, model: Model) -> dict[str, str]:
    """Our call id -> `call_id|item_id` as this model takes it; another model's ids may have to be changed for that."""
    ids: dict[str, str] = {}
    taken: set[str] = set()
    is_own = is_same_model(message, model)
    is_foreign = (message.provider, message.api) != (model.provider, model.api)
    for call in message.tool_calls:
        wire_id = call.id if is_own else _normalized(call.id, model, is_foreign)
        call_id, bar, item_id = wire_id.partition("|")
        if call_id in taken and call.id not in ids:  # two long ids cut to the same one
            call_id = f"{call_id[: _KEY_LENGTH - 4]}_{len(taken)}"
        taken.add(call_id)
        ids[call.id] = f"{call_id}{bar}{item_id}"
    return ids


def _normalized(call_id: str, model: Model, is_foreign: bool) -> str:
    if model.provider not in _KEEPS_ITEM_IDS or "|" not in call_id:
        return _id_part(call_id)
    first, second = call_id.split("|")[:2]
    item_id = f"fc_{short_hash(second)}" if is_foreign else _id_part(second)
    if not item_id.startswith("fc_"):
        item_id = _id_part(f"fc_{item_id}")
    return f"{_id_part(first)}|{item_id}"


def _id_part(part: str) -> str:
    return _NOT_IN_IDS.sub("_", part)[:_KEY_LENGTH].rstrip("_") or f"call_{short_hash(part)}"
