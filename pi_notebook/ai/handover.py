"""A transcript prepared for the model that reads it next, and its encoded form kept from turn to turn.

A transcript is a row of segments: a user message, or an assistant message with the results of its calls. A segment
is prepared by looking at nothing but itself, which is what lets `EncodedHistory` leave old ones alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import is_
from typing import Any

from ._short_hash import short_hash
from .json_arguments import without_lone_surrogates as clean
from .messages import (
    AssistantContent,
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
)
from .model import Model

__all__ = ["EncodedHistory", "clean", "handover", "is_same_model", "sendable_arguments"]

USER_IMAGE_LEFT_OUT = "[Image left out: this model takes text only.]"
TOOL_IMAGE_LEFT_OUT = "[Image of a tool result left out: this model takes text only.]"
NO_RESULT = "This tool call was interrupted: there is no result, and it is not known how far the tool came."


def handover(
    messages: Sequence[Message], model: Model, normalize_id: Callable[[str], str] | None = None
) -> list[Message]:
    """The messages that `model` may be sent.

    - Replies that failed or were aborted are left out, with their results.
    - Each call has exactly one result, right behind its message: a missing one becomes an error result, a result
      without a call is left out.
    - Images become a placeholder where `model` takes none.
    - What another model (provider, api or id differ) thought becomes text; its signatures and hidden thoughts are
      left out, and its call ids go through `normalize_id`, in calls and results alike.
    """
    takes_images = "image" in model.input
    prepared: list[Message] = []
    calls: list[ToolCall] = []  # of the last reply, as they were, without result so far
    ids: dict[str, str] = {}

    for message in messages:
        if message.role == "tool_result":
            call_id = message.tool_call_id
            for position, call in enumerate(calls):
                if call.id == call_id:
                    del calls[position]
                    break
            else:
                continue
            content = message.content if takes_images else _without_images(message.content, TOOL_IMAGE_LEFT_OUT)
            new_id = ids.get(call_id, call_id)
            if content is not message.content or new_id != call_id:
                message = replace(message, content=content, tool_call_id=new_id)
            prepared.append(message)
            continue
        if calls:
            prepared += [_no_result(call, ids) for call in calls]
            calls = []
        if message.role == "user":
            if not takes_images and not isinstance(message.content, str):
                message = replace(message, content=_without_images(message.content, USER_IMAGE_LEFT_OUT))
            prepared.append(message)
        elif message.stop_reason not in ("error", "aborted"):
            ids = {}
            calls = [block for block in message.content if block.type == "tool_call"]
            if is_same_model(message, model):
                prepared.append(_own_reply(message))
            else:
                prepared.append(_foreign_reply(message, normalize_id, ids))
    return prepared + [_no_result(call, ids) for call in calls]


def _no_result(call: ToolCall, ids: dict[str, str]) -> ToolResultMessage:
    return ToolResultMessage(ids.get(call.id, call.id), call.name, (TextContent(NO_RESULT),), is_error=True)


def _without_images(content: Sequence[UserContent], placeholder: str) -> Sequence[UserContent]:
    """Each row of images becomes one placeholder."""
    if not any(isinstance(block, ImageContent) for block in content):
        return content
    kept: list[UserContent] = []
    for block in content:
        if isinstance(block, TextContent):
            kept.append(block)
        elif not kept or not isinstance(kept[-1], TextContent) or kept[-1].text != placeholder:
            kept.append(TextContent(placeholder))
    return tuple(kept)


def is_same_model(message: AssistantMessage, model: Model) -> bool:
    """Whether `message` came from `model` itself, so that signatures in it may go back."""
    return message.provider == model.provider and message.api == model.api and message.model == model.id


def _own_reply(message: AssistantMessage) -> AssistantMessage:
    kept = [
        block
        for block in message.content
        if block.type != "thinking" or block.redacted or block.thinking_signature or block.thinking.strip()
    ]
    return message if len(kept) == len(message.content) else replace(message, content=kept)


def _foreign_reply(
    message: AssistantMessage, normalize_id: Callable[[str], str] | None, ids: dict[str, str]
) -> AssistantMessage:
    content: list[AssistantContent] = []
    is_changed = False
    for block in message.content:
        new: AssistantContent | None = block
        if block.type == "text":
            new = block if block.text_signature is None else TextContent(block.text)
        elif block.type == "tool_call":
            new_id = _foreign_id(block.id, normalize_id, ids)
            if new_id != block.id or block.thought_signature is not None:
                new = ToolCall(new_id, block.name, block.arguments)
        else:
            new = None if block.redacted or not block.thinking.strip() else TextContent(block.thinking)
        is_changed = is_changed or new is not block
        if new is not None:
            content.append(new)
    return replace(message, content=content) if is_changed else message


def _foreign_id(call_id: str, normalize_id: Callable[[str], str] | None, ids: dict[str, str]) -> str:
    if normalize_id is None:
        return call_id
    if call_id not in ids:
        new_id = normalize_id(call_id) or f"call_{short_hash(call_id)}"
        if new_id in ids.values():  # two long ids cut to the same one
            new_id = f"{new_id[: -len(str(len(ids))) - 1]}_{len(ids)}"
        ids[call_id] = new_id
    return ids[call_id]


def sendable_arguments(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call as the JSON object that every API wants, also where the model sent something else."""
    arguments = {} if call.arguments is None else call.arguments
    return arguments if isinstance(arguments, dict) else {"invalid_arguments": arguments}


class EncodedHistory:
    """The settled part of a growing transcript as JSON, encoded once.

    `messages` are compared by identity, which costs next to nothing per message, so they must not be changed; any
    other transcript, or another model, just starts anew.
    """

    __slots__ = ("_messages", "_model", "_pieces")

    def __init__(self) -> None:
        self._model: Model | None = None
        self._messages: list[Message] = []
        self._pieces: list[bytes] = []

    def encode(
        self,
        messages: Sequence[Message],
        model: Model,
        convert: Callable[[Sequence[Message], int], list[Any]],
        encode: Callable[[Any], bytes],
    ) -> tuple[list[bytes], list[Any]]:
        """All segments but the last as pieces of JSON, which commas join, and the last one converted.

        Args:
            convert: `(segments, number of messages before them)` -> their wire messages. Called in order; nothing
                else than what it was given, now and for earlier segments, may decide them.
            encode: Wire messages -> their JSON with commas between, no brackets around.
        """
        end = len(messages)
        while end > 0:
            end -= 1
            if not isinstance(messages[end], ToolResultMessage):
                break
        known = self._messages
        if self._model is not model or len(known) > end or not all(map(is_, known, messages)):
            self._model = model
            self._messages = known = []
            self._pieces = []
        start = len(known)
        if end > start:
            fresh = messages[start:end]
            if items := convert(fresh, start):
                self._pieces.append(encode(items))
            known.extend(fresh)
        return self._pieces, convert(messages[end:], end)
