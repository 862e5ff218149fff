"""The `scripted` model: plays back replies in order, across requests and cells, for lessons and tests."""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ...errors import ModelError
from ..messages import (
    NO_USAGE,
    AssistantContent,
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from ..model import Context, Model, StreamOptions
from ..stream import Reply, StreamEvent
from ._playback import ABORTED, Pace, describe_tool, estimated_usage, play, with_ids

__all__ = ["ScriptedModel", "call", "describe_tool", "scripted", "stream", "thinking"]

Piece: TypeAlias = str | AssistantContent
ScriptedReply: TypeAlias = (
    Piece | Sequence[Piece] | AssistantMessage | Exception | Callable[[Context], "ScriptedReply | Any"]
)

_KINDS = (
    "text, a list of text, call(...) and thinking(...), an AssistantMessage, an exception, "
    "or a function of the context that returns one of these"
)


class _Script:
    """Replies and the place in them, shared by all copies of a model. Usable from any thread."""

    def __init__(self, replies: Sequence[ScriptedReply]) -> None:
        self.replies = tuple(replies)
        self.position = 0
        self._lock = threading.Lock()

    def next(self) -> ScriptedReply:
        with self._lock:
            self.position += 1
            asked = self.position
        if asked > len(self.replies):
            raise ModelError(_used_up(len(self.replies), asked))
        return self.replies[asked - 1]

    def rewind(self) -> None:
        with self._lock:
            self.position = 0


def _used_up(replies: int, asked: int) -> str:
    held = "1 reply" if replies == 1 else f"{replies} replies"
    return (
        f"The script is used up: it held {held} and this is request {asked}. "
        "Give scripted(...) more replies, or call rewind() on the model to play it from the start."
    )


@dataclass(frozen=True, slots=True, eq=False)
class ScriptedModel(Model):
    """A `Model` that plays its script; made by `scripted`."""

    script: _Script = field(default_factory=lambda: _Script(()), repr=False)
    delay: float = 0.0

    @property
    def remaining(self) -> int:
        """How many replies have not been played yet."""
        return max(0, len(self.script.replies) - self.script.position)

    def rewind(self) -> None:
        """Start again with the first reply."""
        self.script.rewind()


def scripted(*replies: ScriptedReply, delay: float = 0.0, name: str = "scripted") -> ScriptedModel:
    """A model that answers its first request with the first reply, its second with the second, and so on.

    Args:
        replies: Each is text, a list that mixes text, `call(...)` and `thinking(...)`, an `AssistantMessage`
            (its stop reason, error text, usage and signatures are played too), an exception (the request fails
            with its text), or a function of the `Context`, plain or async, that returns one of these. A call
            without an id gets the next free `call_N` of the conversation.
        delay: Seconds before each streamed piece (a word, a bit of arguments).
        name: What the card calls the model.

    When no reply is left, a request ends with an `Error` event that says so.

    Raises:
        ModelError: A reply is none of the above; which one, by its number.
    """
    for number, reply in enumerate(replies, 1):
        _check(reply, f"Reply {number} of scripted(...)")
    return ScriptedModel(id=name, api="scripted", script=_Script(replies), delay=delay)


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A tool call for `scripted`; `arguments` are the call's own. Its id is given when it is played."""
    return ToolCall("", name, arguments)


def thinking(text: str) -> ThinkingContent:
    """A block of reasoning for `scripted`."""
    return ThinkingContent(text)


def _check(reply: Any, what: str) -> None:
    if isinstance(reply, str | AssistantMessage | Exception | TextContent | ThinkingContent | ToolCall):
        return
    if callable(reply) and not isinstance(reply, type):
        return
    if not isinstance(reply, list | tuple):
        raise ModelError(f"{what} is of type {type(reply).__name__}; a reply is {_KINDS}.")
    for piece in reply:
        if not isinstance(piece, str | TextContent | ThinkingContent | ToolCall):
            raise ModelError(
                f"{what} holds a {type(piece).__name__}; a list may hold text, call(...) and thinking(...)."
            )


async def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
    """Play the next reply of the script. See `ai.model.stream`."""
    reply = Reply(model.api, model.provider, model.id)
    with Pace(getattr(model, "delay", 0.0), options.signal) as pace:
        yield reply.start()
        if pace.aborted:
            yield reply.error(ABORTED, aborted=True)
            return
        try:
            message = await _next_message(model, context)
        except Exception as error:  # a script's own function may raise anything
            yield reply.error(str(error) or type(error).__name__)
            return
        reply.api = message.api or reply.api
        reply.provider = message.provider or reply.provider
        reply.model = message.model or reply.model
        async for event in play(reply, message.content, pace):
            yield event
        reply.usage = message.usage
        reply.raw_stop_reason = message.raw_stop_reason
        reply.response_id, reply.response_model = message.response_id, message.response_model
        if pace.aborted:
            yield reply.error(ABORTED, aborted=True)
        elif message.stop_reason in ("error", "aborted"):
            text = message.error_message or "The scripted reply ends with an error."
            yield reply.error(text, aborted=message.stop_reason == "aborted")
        else:
            yield reply.done(message.stop_reason)


async def _next_message(model: Model, context: Context) -> AssistantMessage:
    if not isinstance(model, ScriptedModel):
        raise ModelError("A scripted model is made by scripted(...); it has no name to ask for it by.")
    reply: Any = model.script.next()
    while callable(reply) and not isinstance(reply, type):
        reply = reply(context)
        if inspect.isawaitable(reply):
            reply = await reply
    _check(reply, "What the script's function returned")
    if isinstance(reply, Exception):
        raise reply
    if isinstance(reply, AssistantMessage):
        blocks = list(reply.content)
    else:
        pieces = reply if isinstance(reply, list | tuple) else [reply]
        blocks = [TextContent(piece) if isinstance(piece, str) else piece for piece in pieces if piece != ""]
    blocks = with_ids(blocks, context)
    usage = estimated_usage(context, blocks)
    if not isinstance(reply, AssistantMessage):
        calls = any(block.type == "tool_call" for block in blocks)
        return AssistantMessage(blocks, usage=usage, stop_reason="tool_use" if calls else "stop")
    return replace(reply, content=blocks, usage=usage if reply.usage == NO_USAGE else reply.usage)
