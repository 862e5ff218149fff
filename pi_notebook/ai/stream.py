"""Events of one streamed reply, and the `Reply` that they build.

An adapter (one per wire protocol) owns a `Reply` and calls its methods as data arrives; each method returns the
event to hand on. Events are light: `event.partial` makes the message so far only when somebody looks, and text is
joined only then, so the work per delta does not grow with the message.

Order, as in pi: `start`, then per block `X_start`, any number of `X_delta`, `X_end` (blocks may interleave), and at
the end exactly one `done` or `error`. An adapter never raises: failures are the `error` event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from .json_arguments import partial_arguments, without_lone_surrogates
from .messages import (
    NO_USAGE,
    AssistantContent,
    AssistantMessage,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
    now_ms,
)


@dataclass(slots=True)
class _Event:
    reply: Reply

    @property
    def partial(self) -> AssistantMessage:
        """The message as far as it has come, at the time of looking (stop reason `stop` until it is known)."""
        return self.reply.snapshot()


@dataclass(slots=True)
class Start(_Event):
    type: ClassVar[Literal["start"]] = "start"


@dataclass(slots=True)
class _BlockEvent(_Event):
    content_index: int


@dataclass(slots=True)
class TextStart(_BlockEvent):
    type: ClassVar[Literal["text_start"]] = "text_start"


@dataclass(slots=True)
class TextDelta(_BlockEvent):
    delta: str
    type: ClassVar[Literal["text_delta"]] = "text_delta"


@dataclass(slots=True)
class TextEnd(_BlockEvent):
    content: str
    type: ClassVar[Literal["text_end"]] = "text_end"


@dataclass(slots=True)
class ThinkingStart(_BlockEvent):
    type: ClassVar[Literal["thinking_start"]] = "thinking_start"


@dataclass(slots=True)
class ThinkingDelta(_BlockEvent):
    delta: str
    type: ClassVar[Literal["thinking_delta"]] = "thinking_delta"


@dataclass(slots=True)
class ThinkingEnd(_BlockEvent):
    content: str
    type: ClassVar[Literal["thinking_end"]] = "thinking_end"


@dataclass(slots=True)
class ToolCallStart(_BlockEvent):
    type: ClassVar[Literal["toolcall_start"]] = "toolcall_start"


@dataclass(slots=True)
class ToolCallDelta(_BlockEvent):
    """A piece of the arguments' text. For show only: what runs is `ToolCallEnd.tool_call`."""

    delta: str
    type: ClassVar[Literal["toolcall_delta"]] = "toolcall_delta"


@dataclass(slots=True)
class ToolCallEnd(_BlockEvent):
    tool_call: ToolCall
    type: ClassVar[Literal["toolcall_end"]] = "toolcall_end"


@dataclass(slots=True)
class Done:
    """The reply is whole. `reason` is `stop`, `length` or `tool_use`."""

    message: AssistantMessage
    type: ClassVar[Literal["done"]] = "done"

    @property
    def reason(self) -> StopReason:
        return self.message.stop_reason


@dataclass(slots=True)
class Error:
    """The reply failed (`error`) or was stopped (`aborted`); `message` holds what had come and the text."""

    message: AssistantMessage
    type: ClassVar[Literal["error"]] = "error"

    @property
    def reason(self) -> StopReason:
        return self.message.stop_reason


BlockEvent: TypeAlias = (
    TextStart
    | TextDelta
    | TextEnd
    | ThinkingStart
    | ThinkingDelta
    | ThinkingEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
)
StreamEvent: TypeAlias = Start | BlockEvent | Done | Error


class _OpenBlock:
    """A block under construction: its text as the list of its pieces."""

    __slots__ = ("call_id", "closed", "half", "kind", "name", "pieces", "redacted", "signature")

    def __init__(self, kind: Literal["text", "thinking", "tool_call"]) -> None:
        self.kind = kind
        self.pieces: list[str] = []
        self.half = ""  # of a surrogate pair, whose other half may come with the next piece
        self.signature: str | None = None
        self.redacted = False
        self.call_id = ""
        self.name = ""
        self.closed: AssistantContent | None = None

    def add(self, piece: str) -> str:
        """Take a piece in, without halves of surrogate pairs, and return it; a pair that was cut is whole again."""
        if self.half or not piece.isascii():
            piece = self.half + piece
            self.half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
            piece = without_lone_surrogates(piece)
        self.pieces.append(piece)
        return piece

    @property
    def text(self) -> str:
        pieces = self.pieces
        if len(pieces) > 1:
            pieces[:] = ["".join(pieces)]
        return pieces[0] if pieces else ""

    def content(self) -> AssistantContent:
        if self.closed is not None:
            return self.closed
        signature = _clean(self.signature)
        if self.kind == "text":
            return TextContent(self.text, signature)
        if self.kind == "thinking":
            return ThinkingContent(self.text, signature, self.redacted)
        return ToolCall(self.call_id, self.name, partial_arguments(self.text), signature)


def _clean(text: str | None) -> str | None:
    return text and without_lone_surrogates(text)


class Reply:
    """One assistant message while it arrives.

    `blocks[i]` is the block with `content_index` i. Adapters may set `signature`, `redacted`, `call_id`, `name` on
    an open block, and `usage`, `stop_reason`, `raw_stop_reason`, `response_id`, `response_model` on the reply.

    Lone halves of surrogate pairs, which no file and no request could hold, are left out of every text; the two
    halves of a pair may come in two deltas of a block.
    """

    __slots__ = (
        "api",
        "blocks",
        "error_message",
        "model",
        "provider",
        "raw_stop_reason",
        "response_id",
        "response_model",
        "stop_reason",
        "timestamp",
        "usage",
    )

    def __init__(self, api: str, provider: str, model: str) -> None:
        self.api = api
        self.provider = provider
        self.model = model
        self.blocks: list[_OpenBlock] = []
        self.usage: Usage = NO_USAGE
        self.stop_reason: StopReason = "stop"
        self.error_message: str | None = None
        self.raw_stop_reason: str | None = None
        self.response_id: str | None = None
        self.response_model: str | None = None
        self.timestamp = now_ms()

    def _open(self, kind: Literal["text", "thinking", "tool_call"]) -> int:
        self.blocks.append(_OpenBlock(kind))
        return len(self.blocks) - 1

    def start(self) -> Start:
        return Start(self)

    def text_start(self) -> TextStart:
        return TextStart(self, self._open("text"))

    def text_delta(self, index: int, delta: str) -> TextDelta:
        return TextDelta(self, index, self.blocks[index].add(delta))

    def text_end(self, index: int) -> TextEnd:
        block = self.blocks[index]
        block.closed = block.content()
        return TextEnd(self, index, block.text)

    def thinking_start(self) -> ThinkingStart:
        return ThinkingStart(self, self._open("thinking"))

    def thinking_delta(self, index: int, delta: str) -> ThinkingDelta:
        return ThinkingDelta(self, index, self.blocks[index].add(delta))

    def thinking_end(self, index: int) -> ThinkingEnd:
        block = self.blocks[index]
        block.closed = block.content()
        return ThinkingEnd(self, index, block.text)

    def toolcall_start(self, call_id: str = "", name: str = "") -> ToolCallStart:
        index = self._open("tool_call")
        self.blocks[index].call_id = without_lone_surrogates(call_id)
        self.blocks[index].name = without_lone_surrogates(name)
        return ToolCallStart(self, index)

    def toolcall_delta(self, index: int, delta: str) -> ToolCallDelta:
        return ToolCallDelta(self, index, self.blocks[index].add(delta))

    def toolcall_end(self, index: int, arguments: Any) -> ToolCallEnd:
        """Close a call with its final `arguments` (see `ToolCall.arguments`)."""
        block = self.blocks[index]
        block.closed = call = ToolCall(block.call_id, block.name, arguments, _clean(block.signature))
        block.pieces = []
        return ToolCallEnd(self, index, call)

    def snapshot(self) -> AssistantMessage:
        """The message so far, as a value of its own."""
        return AssistantMessage(
            content=[block.content() for block in self.blocks],
            api=self.api,
            provider=self.provider,
            model=self.model,
            usage=self.usage,
            stop_reason=self.stop_reason,
            error_message=_clean(self.error_message),
            raw_stop_reason=_clean(self.raw_stop_reason),
            response_id=_clean(self.response_id),
            response_model=_clean(self.response_model),
            timestamp=self.timestamp,
        )

    def done(self, stop_reason: StopReason) -> Done:
        self.stop_reason = stop_reason
        return Done(self.snapshot())

    def error(self, error_message: str, *, aborted: bool = False) -> Error:
        self.stop_reason = "aborted" if aborted else "error"
        self.error_message = error_message
        return Error(self.snapshot())
