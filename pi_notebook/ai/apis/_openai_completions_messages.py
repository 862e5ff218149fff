"""The messages and tools of an openai-completions request.

Source: OpenAI API reference, "Chat completions".
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from typing import Any

from ...errors import ModelError
from .. import schemas
from .._short_hash import short_hash
from ..handover import clean, handover, sendable_arguments
from ..messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from ..model import Context, Model, ToolSpec
from ._adapter import compact_json, text_to_json, to_json
from ._openai_completions_compat import compat_of

Json = dict[str, Any]

ONLY_IMAGES = "(The result is the image below.)"
NO_OUTPUT = "(The tool returned nothing.)"
IMAGES_FOLLOW = "Images from the tool results above:"
BRIDGE = "I have read the tool results."


def describe(tool: ToolSpec, compat: Json) -> Json:
    """The element of `tools` for one tool."""
    function: Json = {"name": tool.name, "description": clean(tool.description)}
    strict = None
    if tool.constrained_sampling is not None:
        if compat["supports_strict_mode"]:
            strict = schemas.strict_schema(tool)
        elif tool.constrained_sampling == "require":
            raise ModelError(
                f"Tool {tool.name!r} requires a strict schema, which this server does not know: "
                'decorate it with constrained_sampling="prefer" or use another model.'
            )
    function["parameters"] = schemas.openai_schema(tool) if strict is None else strict
    if compat["supports_strict_mode"]:
        function["strict"] = strict is not None
    return {"type": "function", "function": function}


def system_message(model: Model, context: Context) -> list[Json]:
    """The system prompt as a message, if there is one."""
    if not context.system_prompt:
        return []
    developer = model.reasoning and compat_of(model)["supports_developer_role"]
    return [{"role": "developer" if developer else "system", "content": clean(context.system_prompt)}]


def convert(messages: Sequence[Message], model: Model, context: Context, *, as_json: bool = False) -> list[Any]:
    """Whole segments of a transcript (see `handover`) as wire messages.

    With `as_json`, those of nothing but text and calls come as JSON text at once: a long transcript is encoded in
    half the time without a dict for each message. See `encode_messages`.
    """
    compat = compat_of(model)
    bridge = {"role": "assistant", "content": BRIDGE} if compat["requires_assistant_after_tool_result"] else None
    as_json = as_json and not any(compat[quirk] for quirk in _QUIRKS)
    wire: list[Any] = []
    images: list[Json] = []  # of the results just added
    added: list[str] = []  # tools that these results brought
    in_results = after_results = False
    for message in handover(messages, model, functools.partial(_call_id, model)):
        if message.role == "tool_result":
            wire.append(_result(message, images, compat, as_json))
            added += message.added_tool_names
            in_results = True
            continue
        if in_results:
            in_results = False
            after_results = not images  # images come in a user message, which needs its own bridge
            wire += _behind_results(images, added, bridge, context, compat)
            images, added = [], []
        if message.role == "user":
            said = _user(message, as_json)
            if bridge and after_results:
                wire.append(bridge)
        else:
            said = _assistant(message, model, compat, as_json)
        if said is not None:
            wire.append(said)
            after_results = False
    return wire + _behind_results(images, added, bridge, context, compat)


_QUIRKS = (
    "requires_tool_result_name",
    "requires_assistant_after_tool_result",
    "requires_reasoning_content_on_assistant_messages",
)


def encode_messages(wire: Sequence[Any]) -> bytes:
    """Wire messages, as JSON text or not, as the items of a JSON list."""
    items = ",".join([item if type(item) is str else to_json(item) for item in wire])
    try:
        return items.encode()
    except UnicodeEncodeError:  # in an id or a name
        return clean(items).encode()


def _user(message: UserMessage, as_json: bool) -> Json | str | None:
    content = message.content
    if isinstance(content, str):
        text = clean(content)
        return f'{{"role":"user","content":{text_to_json(text)}}}' if as_json else {"role": "user", "content": text}
    parts = [
        {"type": "text", "text": clean(block.text)} if isinstance(block, TextContent) else _image(block)
        for block in content
    ]
    return {"role": "user", "content": parts} if parts else None


def _image(block: ImageContent) -> Json:
    return {"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}}


def _assistant(message: AssistantMessage, model: Model, compat: Json, as_json: bool) -> Json | str | None:
    """One reply; None if nothing of it can be sent. Text goes as one string: some models copy a list's form."""
    texts: list[str] = []
    thoughts: list[ThinkingContent] = []
    calls: list[ToolCall] = []
    signed = False
    for block in message.content:
        if block.type == "text":
            if block.text and not block.text.isspace():
                texts.append(clean(block.text))
        elif block.type == "tool_call":
            calls.append(block)
            signed = signed or bool(block.thought_signature)
        elif block.thinking and not block.thinking.isspace():
            thoughts.append(block)
    text = "".join(texts)
    if as_json and not thoughts and not signed:
        said = text_to_json(text) if text else "null"
        if not calls:
            return f'{{"role":"assistant","content":{said}}}' if text else None
        return f'{{"role":"assistant","content":{said},"tool_calls":[{",".join(map(_call_json, calls))}]}}'
    wire: Json = {
        "role": "assistant",
        "content": text or ("" if compat["requires_assistant_after_tool_result"] else None),
    }
    if thoughts and compat["requires_thinking_as_text"]:
        parts = ["\n\n".join(clean(block.thinking) for block in thoughts), *texts]
        wire["content"] = [{"type": "text", "text": part} for part in parts]
    elif thoughts and (field := thoughts[0].thinking_signature):
        # The signature is the name of the field that the server sent its reasoning in.
        field = "reasoning_content" if model.provider == "opencode-go" and field == "reasoning" else field
        if field not in wire:
            wire[field] = clean("\n".join(block.thinking for block in thoughts))
    if calls:
        wire["tool_calls"] = [_call(call) for call in calls]
        details = [_reasoning_detail(call.thought_signature) for call in calls if call.thought_signature]
        if details := [detail for detail in details if detail]:
            wire["reasoning_details"] = details
    if compat["requires_reasoning_content_on_assistant_messages"] and model.reasoning:
        wire.setdefault("reasoning_content", "")
    return wire if wire["content"] or calls else None


def _call(call: ToolCall) -> Json:
    arguments = compact_json(sendable_arguments(call))
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _call_json(call: ToolCall) -> str:
    arguments = text_to_json(compact_json(sendable_arguments(call)))
    function = f'{{"name":{text_to_json(call.name)},"arguments":{arguments}}}'
    return f'{{"id":{text_to_json(call.id)},"type":"function","function":{function}}}'


def _reasoning_detail(signature: str) -> Any:
    try:
        return json.loads(signature)
    except ValueError:  # another protocol's
        return None


def _result(result: ToolResultMessage, images: list[Json], compat: Json, as_json: bool) -> Json | str:
    """The message for one result; its images are appended to `images`, because it can hold text only."""
    pictures = [_image(block) for block in result.content if block.type == "image"]
    images += pictures
    text = clean("\n".join([block.text for block in result.content if block.type == "text"]))
    text = text or (ONLY_IMAGES if pictures else NO_OUTPUT)
    if as_json:
        return f'{{"role":"tool","content":{text_to_json(text)},"tool_call_id":{text_to_json(result.tool_call_id)}}}'
    item = {"role": "tool", "content": text, "tool_call_id": result.tool_call_id}
    if compat["requires_tool_result_name"] and result.tool_name:
        item["name"] = result.tool_name
    return item


def _behind_results(
    images: list[Json], added: list[str], bridge: Json | None, context: Context, compat: Json
) -> list[Json]:
    """What follows the results of one reply: their images in a user message, and the tools that they brought."""
    wire: list[Json] = []
    if images:
        if bridge:
            wire.append(bridge)
        wire.append({"role": "user", "content": [{"type": "text", "text": IMAGES_FOLLOW}, *images]})
    if added and compat["deferred_tools_mode"] == "kimi":
        by_name = {tool.name: tool for tool in context.tools}
        if tools := [describe(by_name[name], compat) for name in dict.fromkeys(added) if name in by_name]:
            wire.append({"role": "system", "tools": tools})
    return wire


def _call_id(model: Model, call_id: str) -> str:
    """An id from another API as this one takes it: `call|item` ids of openai-responses become one name."""
    if model.provider == "mistral" or "api.mistral.ai" in model.base_url:
        return call_id if re.fullmatch(r"[A-Za-z0-9]{9}", call_id) else short_hash(call_id)[:9].ljust(9, "0")
    if "|" in call_id:
        call, item = (re.sub(r"[^a-zA-Z0-9_-]", "_", part) for part in call_id.split("|", 1))
        combined = f"{call}_{item}" if item else call
        if len(combined) <= 40:
            return combined
        digest = short_hash(call_id)[:8]
        return f"{call[: max(1, 39 - len(digest))]}_{digest}"
    return call_id[:40] if model.provider == "openai" else call_id
