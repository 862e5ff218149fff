"""The request of the Gemini API (https://ai.google.dev/api/generate-content). It has no caching marks: caching is
implicit. `Model.sampling_params` and `Model.compat` are not used here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...errors import ModelError
from ..handover import EncodedHistory, clean, handover, sendable_arguments
from ..messages import AssistantMessage, ImageContent, Message, TextContent, ToolResultMessage, UserMessage
from ..model import Context, Model, StreamOptions, ToolSpec
from ..schemas import google_schema
from ._adapter import clamp_thinking, encode, encode_items, max_output_tokens, without_surrogates

SEE_IMAGE = "(see the attached image)"
TOOL_IMAGE = "Tool result image:"

Part = dict[str, Any]

_FUNCTION_NAME = re.compile(r"[A-Za-z_]")
_SIGNATURE = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_TOOL_CHOICES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_BUDGETS = {
    "2.5-pro": {"minimal": 128, "low": 2048, "medium": 8192, "high": 32768},
    "2.5-flash-lite": {"minimal": 512, "low": 2048, "medium": 8192, "high": 24576},
    "2.5-flash": {"minimal": 128, "low": 2048, "medium": 8192, "high": 24576},
}
_DYNAMIC_BUDGET = -1  # the model decides
# Models that take a level instead of a budget: what stands for `off` (they cannot stop), and for each level.
_LEVELS = (
    (
        re.compile(r"gemini-3(?:\.\d+)?-pro"),
        {"off": "LOW", "minimal": "LOW", "low": "LOW", "medium": "HIGH", "high": "HIGH"},
    ),
    (
        re.compile(r"gemini-3(?:\.\d+)?-flash|^gemini-flash(?:-lite)?-latest$"),
        {"off": "MINIMAL", "minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM", "high": "HIGH"},
    ),
    (
        re.compile(r"gemma-?4"),
        {"off": "MINIMAL", "minimal": "MINIMAL", "low": "MINIMAL", "medium": "HIGH", "high": "HIGH"},
    ),
)


def request_body(model: Model, context: Context, options: StreamOptions) -> Part:
    """The JSON body of the request. Raises `ModelError` for a tool that cannot be sent, or no content."""
    contents = _contents(context.messages, model)
    _check_content(contents)
    return {"contents": contents, **_rest(model, context, options)}


def encoded_body(model: Model, context: Context, options: StreamOptions, histories: dict[Any, Any]) -> bytes:
    """`request_body` as JSON; what was encoded for earlier requests is kept in `histories` and not encoded again."""
    history: EncodedHistory = histories.setdefault("google-generative-ai", EncodedHistory())
    settled, last = history.encode(
        context.messages, model, lambda messages, _: _contents(messages, model), encode_items
    )
    rest = encode(_rest(model, context, options))
    contents = [*settled, encode_items(last)] if last else settled
    _check_content(contents)
    return b"".join((b'{"contents":[', b",".join(contents), b"],", rest[1:]))


def _check_content(content: Sequence[Any]) -> None:
    if not content:
        raise ModelError("There is nothing to send: Google wants at least one message with content.")


def describe_tool(model: Model | None, tool: ToolSpec) -> Part:
    """The item of `functionDeclarations` for this tool."""
    if not _FUNCTION_NAME.match(tool.name):
        raise ModelError(f"Tool {tool.name!r} cannot be sent to Google: names there begin with a letter or '_'.")
    return {
        "name": tool.name,
        "description": clean(tool.description),
        "parametersJsonSchema": google_schema(tool),
    }


def _rest(model: Model, context: Context, options: StreamOptions) -> Part:
    """All of the body but the messages."""
    body: Part = {}
    if context.system_prompt:
        body["systemInstruction"] = {"parts": [{"text": clean(context.system_prompt)}], "role": "user"}
    if context.tools:
        body["tools"] = [{"functionDeclarations": [describe_tool(model, tool) for tool in context.tools]}]
        if calling := _function_calling(model, context, options):
            body["toolConfig"] = {"functionCallingConfig": calling}
    config: Part = {}
    if options.temperature is not None:
        config["temperature"] = options.temperature
    if max_tokens := max_output_tokens(model, context, options):
        config["maxOutputTokens"] = max_tokens
    if model.reasoning:
        config["thinkingConfig"] = _thinking(model, options)
    body["generationConfig"] = config
    return body


def _function_calling(model: Model, context: Context, options: StreamOptions) -> Part | None:
    is_strict = False
    for tool in context.tools:
        if tool.constrained_sampling and (_major_version(model.id) or 0) >= 3:
            is_strict = True
        elif tool.constrained_sampling == "require":
            raise ModelError(
                f"Tool {tool.name!r} requires strict arguments (constrained_sampling='require'), which Google has "
                f"from Gemini 3 on only, not {model.id}. Use 'prefer', or another model."
            )
    choice = options.tool_choice
    if choice and choice not in _TOOL_CHOICES:
        return {"mode": "ANY", "allowedFunctionNames": [choice]}
    if is_strict and choice in (None, "", "auto"):
        return {"mode": "VALIDATED"}
    return {"mode": _TOOL_CHOICES[choice]} if choice else None


def _thinking(model: Model, options: StreamOptions) -> Part:
    level = clamp_thinking(model, options.thinking)
    if options.thinking != "off" and level == "off":
        level = "high"  # asked of a model whose levels are all marked as missing: the reference's answer
    name = model.id.lower()
    levels = next((levels for pattern, levels in _LEVELS if pattern.search(name)), None)
    if level == "off":
        return {"thinkingLevel": levels["off"]} if levels else {"thinkingBudget": 0}
    config: Part = {"includeThoughts": True}
    if levels:
        if level in levels:  # for more than `high` they think as far as they find right
            config["thinkingLevel"] = levels[level]
        return config
    family = next((budgets for part, budgets in _BUDGETS.items() if part in model.id), None)
    budget = (options.thinking_budgets or {}).get(level, family.get(level) if family else _DYNAMIC_BUDGET)
    if budget is not None:
        config["thinkingBudget"] = budget
    return config


# Messages


def _major_version(model_id: str) -> int | None:
    found = re.match(r"gemini(?:-live)?-(\d+)", model_id.lower())
    return int(found[1]) if found else None


def _wants_ids(model: Model) -> bool:
    """Whether the model pairs calls and results by id rather than by their order."""
    return model.id.startswith(("claude-", "gpt-oss-")) or (_major_version(model.id) or 0) >= 3


def _takes_images_in_results(model: Model) -> bool:
    version = _major_version(model.id)
    return version is None or version >= 3


def _normalized_id(call_id: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)[:64]


def _contents(messages: Sequence[Message], model: Model) -> list[Part]:
    """`messages`, whole segments of the transcript, as the API takes them."""
    contents: list[Part] = []
    ids = _normalized_id if _wants_ids(model) else None
    for message in handover(messages, model, ids):
        if isinstance(message, UserMessage):
            if parts := _user_parts(message):
                contents.append({"role": "user", "parts": parts})
        elif isinstance(message, AssistantMessage):
            if parts := _reply_parts(message, model):
                contents.append({"role": "model", "parts": parts})
        else:
            _add_result(contents, message, model)
    return contents


def _image(block: ImageContent) -> Part:
    return {"inlineData": {"mimeType": block.mime_type, "data": block.data}}


def _user_parts(message: UserMessage) -> list[Part]:
    if isinstance(message.content, str):
        return [{"text": clean(message.content)}]
    return [
        {"text": clean(block.text)} if isinstance(block, TextContent) else _image(block) for block in message.content
    ]


def _reply_parts(message: AssistantMessage, model: Model) -> list[Part]:
    """The parts of a reply, each with the signature that came with it."""
    is_own = message.provider == model.provider and message.model == model.id
    parts: list[Part] = []
    for block in message.content:
        if block.type == "tool_call":
            call = {"name": block.name, "args": without_surrogates(sendable_arguments(block))}
            if _wants_ids(model):
                call["id"] = block.id
            part: Part = {"functionCall": call}
            signature = block.thought_signature
        elif block.type == "text":
            part = {"text": clean(block.text)}
            signature = block.text_signature
        else:
            part = {"text": clean(block.thinking)}
            if is_own:
                part["thought"] = True
            signature = block.thinking_signature
        if is_own and signature and len(signature) % 4 == 0 and _SIGNATURE.fullmatch(signature):
            part["thoughtSignature"] = signature
        elif not part.get("text", "-").strip():
            continue  # empty text goes back only for the signature that it carries
        parts.append(part)
    return parts


def _add_result(contents: list[Part], message: ToolResultMessage, model: Model) -> None:
    text = "\n".join(block.text for block in message.content if isinstance(block, TextContent))
    images = [_image(block) for block in message.content if isinstance(block, ImageContent)]
    said = clean(text) or (SEE_IMAGE if images else "")
    response: Part = {
        "name": message.tool_name,
        "response": {"error" if message.is_error else "output": said},
    }
    inside = _takes_images_in_results(model)
    if images and inside:
        response["parts"] = images
    if _wants_ids(model):
        response["id"] = message.tool_call_id
    part = {"functionResponse": response}
    last = contents[-1] if contents else {}
    if last.get("role") == "user" and any("functionResponse" in part for part in last["parts"]):
        last["parts"].append(part)  # all results of a reply belong into one message
    else:
        contents.append({"role": "user", "parts": [part]})
    if images and not inside:
        contents.append({"role": "user", "parts": [{"text": TOOL_IMAGE}, *images]})
