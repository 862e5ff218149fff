"""Streams a reply that is known beforehand: what the `scripted` and `practice` adapters share."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from ..abort import AbortSignal
from ..messages import AssistantContent, Message, ToolCall, Usage
from ..model import Context, ToolSpec
from ..stream import Reply, StreamEvent, TextStart, ThinkingStart, ToolCallStart

ABORTED = "The request was aborted."
CHARACTERS_PER_TOKEN = 4

_WORD = re.compile(r"\s*\S+\s*|\s+")
_ARGUMENTS_PIECE = 16


def describe_tool(model: Any, tool: ToolSpec) -> dict[str, Any]:
    """The tool as these adapters see it; nothing of it leaves the process."""
    return {"name": tool.name, "description": tool.description, "parameters": tool.schema}


class Pace:
    """The pause before each delta: `delay` seconds, and always one turn of the event loop.

    Ends early when the signal goes up, and wakes for that at once. Use as a context manager.
    """

    def __init__(self, delay: float, signal: AbortSignal | None) -> None:
        self._delay = delay
        self._signal = signal
        self._raised = asyncio.Event()
        self._forget: Callable[[], None] = lambda: None

    def __enter__(self) -> Pace:
        loop = asyncio.get_running_loop()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(self._raised.set)
            except RuntimeError:  # the loop was closed before the abort
                pass

        if self._signal is not None and self._delay > 0:
            self._forget = self._signal.on_abort(wake)
        return self

    def __exit__(self, *exception: object) -> None:
        self._forget()

    @property
    def aborted(self) -> bool:
        return self._signal is not None and self._signal.aborted

    async def wait(self) -> bool:
        """Wait once; True if the reply has to end now."""
        if self._delay > 0 and not self.aborted:
            try:
                async with asyncio.timeout(self._delay):
                    await self._raised.wait()
            except TimeoutError:
                pass
        else:
            await asyncio.sleep(0)
        return self.aborted


async def play(reply: Reply, blocks: Sequence[AssistantContent], pace: Pace) -> AsyncIterator[StreamEvent]:
    """Stream `blocks` into `reply`, one after the other; stops where it is when `pace` says so.

    The caller sends the `start` event before and the final event after.
    """
    for block in blocks:
        opened: TextStart | ThinkingStart | ToolCallStart
        if block.type == "text":
            opened, pieces = reply.text_start(), _WORD.findall(block.text)
        elif block.type == "thinking":
            opened, pieces = reply.thinking_start(), _WORD.findall(block.thinking)
        else:
            opened, pieces = reply.toolcall_start(block.id, block.name), _arguments_pieces(block.arguments)
        yield opened
        index = opened.content_index
        for piece in pieces:
            if await pace.wait():
                return
            if block.type == "text":
                yield reply.text_delta(index, piece)
            elif block.type == "thinking":
                yield reply.thinking_delta(index, piece)
            else:
                yield reply.toolcall_delta(index, piece)
        if pace.aborted:
            return
        yield _close(reply, index, block)


def _close(reply: Reply, index: int, block: AssistantContent) -> StreamEvent:
    opened = reply.blocks[index]
    if block.type == "text":
        opened.signature = block.text_signature
        return reply.text_end(index)
    if block.type == "thinking":
        opened.signature, opened.redacted = block.thinking_signature, block.redacted
        return reply.thinking_end(index)
    opened.signature = block.thought_signature
    return reply.toolcall_end(index, block.arguments)


def _arguments_pieces(arguments: Any) -> list[str]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return [text[start : start + _ARGUMENTS_PIECE] for start in range(0, len(text), _ARGUMENTS_PIECE)]


def estimated_usage(context: Context, blocks: Sequence[AssistantContent]) -> Usage:
    """Tokens of a request and its reply, guessed from characters; no cost, since nobody charges any."""
    asked = len(context.system_prompt) + sum(map(_characters, context.messages))
    answered = sum(map(_block_characters, blocks))
    tokens_in, tokens_out = -(-asked // CHARACTERS_PER_TOKEN), -(-answered // CHARACTERS_PER_TOKEN)
    return Usage(input=tokens_in, output=tokens_out, total_tokens=tokens_in + tokens_out)


def _characters(message: Message) -> int:
    known = message._encoded.get("characters")
    if known is None:
        content = message.content
        known = len(content) if isinstance(content, str) else sum(map(_block_characters, content))
        message._encoded["characters"] = known
    return int(known)


def _block_characters(block: Any) -> int:
    if block.type == "text":
        return len(block.text)
    if block.type == "thinking":
        return len(block.thinking)
    if block.type == "tool_call":
        return len(block.name) + sum(map(len, _arguments_pieces(block.arguments)))
    return len(block.data)


def with_ids(blocks: Sequence[AssistantContent], context: Context) -> list[AssistantContent]:
    """Give each call without an id the next `call_N` that this conversation does not hold yet."""
    if not any(block.type == "tool_call" and not block.id for block in blocks):
        return list(blocks)
    used = {call.id for message in context.messages if message.role == "assistant" for call in message.tool_calls}
    used |= {block.id for block in blocks if block.type == "tool_call"}
    number = 0
    named: list[AssistantContent] = []
    for block in blocks:
        if block.type == "tool_call" and not block.id:
            while (call_id := f"call_{(number := number + 1)}") in used:
                pass
            block = ToolCall(call_id, block.name, block.arguments, block.thought_signature)
        named.append(block)
    return named
