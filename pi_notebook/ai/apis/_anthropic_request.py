"""The request of the Anthropic Messages API (https://docs.anthropic.com/en/api/messages).

`Model.compat` knows: `supports_eager_tool_input_streaming` (True), `supports_long_cache_retention` (True),
`supports_cache_control_on_tools` (True), `supports_temperature` (True), `supports_strict_tools` (False),
`strict_tools_are_closed` (False: a strict tool's schema goes as it is; True: in the closed form that Anthropic's own
API wants), `supports_tool_references` (by the model's name), `send_session_affinity_headers` (False),
`allow_empty_signature` (False), `force_adaptive_thinking` (False: thinking has a budget). `Model.sampling_params` is
not used here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import ModelError
from ..handover import EncodedHistory, clean, handover, sendable_arguments
from ..messages import AssistantMessage, Message, ToolResultMessage, UserContent, UserMessage
from ..model import Context, Model, StreamOptions, ToolSpec
from ..providers import PROVIDERS
from ..schemas import anthropic_schema, anthropic_strict_schema
from ._adapter import encode, encode_items, max_output_tokens, without_surrogates

MAX_TOKENS = 8192  # the API wants a number; this one is asked for where the model's own limit is unknown
SEE_IMAGE = "(see the attached image)"
BETA_FINE_GRAINED = "fine-grained-tool-streaming-2025-05-14"
BETA_INTERLEAVED = "interleaved-thinking-2025-05-14"

_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384}
_MIN_ANSWER = 1024  # tokens that are left for the answer where a thinking budget shares the limit
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium"}
_TOOL_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_VERSION = re.compile(r"claude-(?:opus|sonnet|fable)-(\d+)(?:-(\d+))?(?:-|$)")

Block = dict[str, Any]


def request_body(model: Model, context: Context, options: StreamOptions) -> Block:
    """The JSON body of the request. Raises `ModelError` for a tool that cannot be sent."""
    request = _Request(model, context, options)
    messages = request.wire_messages(context.messages)
    _mark(messages, request.cache_control)
    return {"model": model.id, "messages": messages, **request.rest()}


def encoded_body(model: Model, context: Context, options: StreamOptions, histories: dict[Any, Any]) -> bytes:
    """`request_body` as JSON; what was encoded for earlier requests is kept in `histories` and not encoded again."""
    request = _Request(model, context, options)
    names, history = histories.get("anthropic-messages", (None, None))
    if history is None or names != request.deferred_names:  # which decide how results are written
        history = EncodedHistory()
        histories["anthropic-messages"] = (request.deferred_names, history)
    settled, last = history.encode(
        context.messages, model, lambda messages, _: request.wire_messages(messages), encode_items
    )
    if not last:  # the mark goes to a message that is encoded already
        return encode(request_body(model, context, options))
    _mark(last, request.cache_control)
    head = encode({"model": model.id, **request.rest()})
    messages = b",".join([*settled, encode_items(last)])
    return b"".join((head[:-1], b',"messages":[', messages, b"]}"))


def describe_tool(model: Model | None, tool: ToolSpec) -> Block:
    """The element of `tools` for this tool, when it stands alone and without a caching mark."""
    return _tool(model, tool)


class _Request:
    def __init__(self, model: Model, context: Context, options: StreamOptions) -> None:
        self.model = model
        self.context = context
        self.options = options
        self.cache_control = _cache_control(model, options)
        self.allow_empty_signature = bool(model.compat.get("allow_empty_signature"))
        self.immediate, self.deferred = _split_tools(model, context)
        self.deferred_names = frozenset(tool.name for tool in self.deferred)
        self._references = _references(context.messages, self.deferred_names)

    def rest(self) -> Block:
        """All of the body but model and messages."""
        context, options, model = self.context, self.options, self.model
        thinking, max_tokens = _thinking(model, context, options)
        body: Block = {"max_tokens": max_tokens, "stream": True}
        if context.system_prompt:
            body["system"] = [self._marked({"type": "text", "text": clean(context.system_prompt)})]
        takes_temperature = model.compat.get("supports_temperature", True) and not _thinks(model, options)
        if options.temperature is not None and takes_temperature:
            body["temperature"] = options.temperature
        if context.tools:
            body["tools"] = self._tools()
        body.update(thinking)
        user_id = (options.metadata or {}).get("user_id")
        if isinstance(user_id, str):
            body["metadata"] = {"user_id": user_id}
        if options.tool_choice:
            kind = _TOOL_CHOICES.get(options.tool_choice)
            body["tool_choice"] = {"type": kind} if kind else {"type": "tool", "name": options.tool_choice}
        return body

    def _tools(self) -> list[Block]:
        tools = [_tool(self.model, tool) for tool in self.immediate]
        if tools and self.model.compat.get("supports_cache_control_on_tools", True):
            tools[-1] = self._marked(tools[-1])
        return tools + [{**_tool(self.model, tool), "defer_loading": True} for tool in self.deferred]

    def _marked(self, block: Block) -> Block:
        return {**block, "cache_control": self.cache_control} if self.cache_control else block

    def wire_messages(self, messages: Sequence[Message]) -> list[Block]:
        """`messages`, whole segments of the transcript, as the API takes them."""
        wire: list[Block] = []
        results: list[Block] = []  # of the calls of one reply: one message for all of them
        beside: list[Block] = []

        def end_results() -> None:
            if results:
                wire.append({"role": "user", "content": [*results, *beside]})
                results.clear()
                beside.clear()

        for message in handover(messages, self.model, _normalized_id):
            if isinstance(message, ToolResultMessage):
                result, displaced = self._result(message)
                results.append(result)
                beside += displaced
                continue
            end_results()
            if isinstance(message, UserMessage):
                if content := _user_content(message):
                    wire.append({"role": "user", "content": content})
            elif blocks := _reply_blocks(message, self.allow_empty_signature):
                wire.append({"role": "assistant", "content": blocks})
        end_results()
        return wire

    def _result(self, message: ToolResultMessage) -> tuple[Block, list[Block]]:
        """A result, and what has to stand behind all results: the API takes no text beside tool references."""
        content = _result_content(message.content)
        names = [name for name in self._references.get(message.tool_call_id, ()) if name in message.added_tool_names]
        result: Block = {"type": "tool_result", "tool_use_id": message.tool_call_id}
        if not names:
            return {**result, "content": content, "is_error": message.is_error}, []
        references = [{"type": "tool_reference", "tool_name": name} for name in names]
        displaced = [{"type": "text", "text": content}] if isinstance(content, str) else content
        return {**result, "content": references, "is_error": message.is_error}, displaced


def _mark(messages: list[Block], cache_control: Block | None) -> None:
    """Put the caching mark on the end of the last message, in place, if it is not the model's own."""
    if not cache_control or not messages or messages[-1]["role"] != "user":
        return
    content = messages[-1]["content"]
    if isinstance(content, str):
        messages[-1]["content"] = [{"type": "text", "text": content, "cache_control": cache_control}]
    else:
        content[-1]["cache_control"] = cache_control


def _cache_control(model: Model, options: StreamOptions) -> Block | None:
    if options.cache_retention == "none":
        return None
    is_long = options.cache_retention == "long" and model.compat.get("supports_long_cache_retention", True)
    return {"type": "ephemeral", "ttl": "1h"} if is_long else {"type": "ephemeral"}


# Messages


def _normalized_id(call_id: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)[:64]


def _content_blocks(content: Sequence[UserContent]) -> list[Block]:
    return [
        {"type": "text", "text": clean(block.text)}
        if block.type == "text"
        else {
            "type": "image",
            "source": {"type": "base64", "media_type": block.mime_type, "data": block.data},
        }
        for block in content
    ]


def _user_content(message: UserMessage) -> str | list[Block]:
    """Empty if nothing is left: the API refuses blank text."""
    content = message.content
    if isinstance(content, str):
        return clean(content) if content.strip() else ""
    return [block for block in _content_blocks(content) if block["type"] != "text" or block["text"].strip()]


def _result_content(content: Sequence[UserContent]) -> str | list[Block]:
    if all(block.type == "text" for block in content):
        return clean("\n".join(block.text for block in content if block.type == "text"))
    blocks = _content_blocks(content)
    if all(block["type"] == "image" for block in blocks):
        blocks.insert(0, {"type": "text", "text": SEE_IMAGE})
    return blocks


def _reply_blocks(message: AssistantMessage, allow_empty_signature: bool) -> list[Block]:
    blocks: list[Block] = []
    for block in message.content:
        if block.type == "tool_call":
            arguments = without_surrogates(sendable_arguments(block))
            blocks.append({"type": "tool_use", "id": block.id, "name": block.name, "input": arguments})
        elif block.type == "text":
            if block.text.strip():
                blocks.append({"type": "text", "text": clean(block.text)})
        elif block.redacted:
            blocks.append({"type": "redacted_thinking", "data": block.thinking_signature})
        elif (block.thinking_signature or "").strip():
            text = clean(block.thinking)
            blocks.append({"type": "thinking", "thinking": text, "signature": block.thinking_signature})
        elif block.thinking.strip():
            # Without its signature (the reply was cut) the API takes thinking as text only.
            text = clean(block.thinking)
            unsigned = {"type": "thinking", "thinking": text, "signature": ""}
            blocks.append(unsigned if allow_empty_signature else {"type": "text", "text": text})
    return blocks


# Tools


def _tool(model: Model | None, tool: ToolSpec) -> Block:
    compat = model.compat if model else PROVIDERS["anthropic"].compat
    element: Block = {"name": tool.name, "description": clean(tool.description)}
    if compat.get("supports_eager_tool_input_streaming", True):
        element["eager_input_streaming"] = True
    schema = None
    if tool.constrained_sampling:
        schema = _strict_schema(compat, tool)
        if schema is not None:
            element["strict"] = True
        elif tool.constrained_sampling == "require":
            raise ModelError(
                f"Tool {tool.name!r} requires strict arguments (constrained_sampling='require'), which "
                f"{model.label if model else 'this API'} is not known to support. Use 'prefer', or another model."
            )
    element["input_schema"] = anthropic_schema(tool) if schema is None else schema
    return element


def _strict_schema(compat: Mapping[str, Any], tool: ToolSpec) -> Block | None:
    if not compat.get("supports_strict_tools"):
        return None
    return anthropic_strict_schema(tool) if compat.get("strict_tools_are_closed") else anthropic_schema(tool)


def _supports_references(model: Model) -> bool:
    """Known of Anthropic's own models but Haiku, from 4.5 on."""
    known = model.compat.get("supports_tool_references")
    if known is not None:
        return bool(known)
    version = _VERSION.match(model.id)
    if model.provider != "anthropic" or "haiku" in model.id or not version:
        return False
    minor = version[2] or ""
    return (int(version[1]), int(minor) if minor and len(minor) < 8 else 0) >= (4, 5)  # eight digits are a date


def _split_tools(model: Model, context: Context) -> tuple[list[ToolSpec], list[ToolSpec]]:
    """Tools that the model knows from the start, and those that a result made known (which keeps the cache warm)."""
    tools = list({tool.name: tool for tool in context.tools}.values())
    if not _supports_references(model):
        return tools, []
    used: set[str] = set()
    added: set[str] = set()
    for message in context.messages:
        if isinstance(message, ToolResultMessage):
            if message.added_tool_names:
                added.update(name for name in message.added_tool_names if name not in used)
        elif isinstance(message, AssistantMessage) and message.stop_reason not in ("error", "aborted"):
            used.update(block.name for block in message.content if block.type == "tool_call")
    immediate = [tool for tool in tools if tool.name not in added]
    deferred = [tool for tool in tools if tool.name in added]
    return (immediate, deferred) if immediate else (deferred, [])


def _references(messages: Sequence[Message], deferred: Collection[str]) -> dict[str, list[str]]:
    """Call id (as it is and normalized) -> the tools that its result is the first to name."""
    references: dict[str, list[str]] = {}
    seen: set[str] = set()
    for message in messages if deferred else ():
        if isinstance(message, ToolResultMessage):
            names = [name for name in dict.fromkeys(message.added_tool_names) if name in deferred and name not in seen]
            if names:
                seen.update(names)
                for call_id in {message.tool_call_id, _normalized_id(message.tool_call_id)}:
                    references[call_id] = references.get(call_id, []) + names
    return references


# Thinking


def _thinks(model: Model, options: StreamOptions) -> bool:
    return model.reasoning and options.thinking != "off"


def _thinking(model: Model, context: Context, options: StreamOptions) -> tuple[Block, int]:
    """The fields that ask for thinking, and the limit of tokens, which includes the thinking."""
    max_tokens = max_output_tokens(model, context, options) or MAX_TOKENS
    if not model.reasoning:
        return {}, max_tokens
    level = options.thinking
    if level == "off":
        can_be_off = model.thinking_levels.get("off", "") is not None
        return ({"thinking": {"type": "disabled"}} if can_be_off else {}), max_tokens
    if model.compat.get("force_adaptive_thinking"):
        effort = model.thinking_levels.get(level) or _EFFORTS.get(level, "high")
        adaptive = {"type": "adaptive", "display": "summarized"}
        return {"thinking": adaptive, "output_config": {"effort": effort}}, max_tokens
    budgets = {**_BUDGETS, **(options.thinking_budgets or {})}
    wanted = budgets["high" if level in ("xhigh", "max") else level]
    roomy = replace(options, max_tokens=min(max_tokens + wanted, model.max_tokens or max_tokens + wanted))
    max_tokens = max_output_tokens(model, context, roomy) or MAX_TOKENS
    budget = min(wanted, max(0, max_tokens - _MIN_ANSWER))
    thinking: Block = {"type": "enabled", "budget_tokens": budget or _MIN_ANSWER, "display": "summarized"}
    return {"thinking": thinking}, max_tokens
