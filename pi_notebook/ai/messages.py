"""Content blocks, messages, usage: the transcript that every model is given and every reply becomes.

All of these are values: frozen, with tuples inside. Change one with `dataclasses.replace`. That is what allows a
message's wire form to be encoded once and kept (`_encoded`), and a transcript to be shared by threads. The one
exception is what a caller puts into `arguments` and `details`: it must not be changed once the message exists.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

StopReason: TypeAlias = Literal["stop", "length", "tool_use", "error", "aborted"]


def now_ms() -> int:
    """Milliseconds since 1970, the unit of every timestamp here."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class TextContent:
    """Plain text. `text_signature` is a provider's own token that must go back with it."""

    text: str
    text_signature: str | None = None
    type: ClassVar[Literal["text"]] = "text"


@dataclass(frozen=True, slots=True)
class ThinkingContent:
    """A model's reasoning. `redacted`: the text is hidden and only `thinking_signature` (opaque) can be sent back."""

    thinking: str
    thinking_signature: str | None = None
    redacted: bool = False
    type: ClassVar[Literal["thinking"]] = "thinking"


@dataclass(frozen=True, slots=True)
class ImageContent:
    """An image: `data` is base64 text, `mime_type` for example `image/png`."""

    data: str
    mime_type: str
    type: ClassVar[Literal["image"]] = "image"

    def __repr__(self) -> str:
        return f"ImageContent({len(self.data)} base64 characters, {self.mime_type!r})"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to run a tool.

    `arguments` is a dict when the model sent a JSON object. Anything else is what came instead: the raw text where it
    was no JSON object, or the other JSON value; such a call does not run and the model is told why.
    `thought_signature` is a provider's own token that must go back on this very call.
    """

    id: str
    name: str
    arguments: Any
    thought_signature: str | None = None
    type: ClassVar[Literal["tool_call"]] = "tool_call"


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply. `input` leaves out cached tokens; `reasoning` is a part of `output`.

    `cost` is None where the price is unknown: show a dash, never 0.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int | None = None
    reasoning: int | None = None
    total_tokens: int = 0
    cost: Cost | None = None


NO_USAGE = Usage()

UserContent: TypeAlias = TextContent | ImageContent
AssistantContent: TypeAlias = TextContent | ThinkingContent | ToolCall


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a person (or the program) says. `content` is text or blocks; a sequence is stored as a tuple."""

    content: str | Sequence[UserContent]
    timestamp: int = field(default_factory=now_ms, compare=False)
    _encoded: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    role: ClassVar[Literal["user"]] = "user"

    def __post_init__(self) -> None:
        if not isinstance(self.content, str):
            object.__setattr__(self, "content", tuple(self.content or ()))


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """One reply of a model. `api`, `provider` and `model` say who gave it: signatures go back only to the same."""

    content: Sequence[AssistantContent] = ()
    api: str = ""
    provider: str = ""
    model: str = ""
    usage: Usage = NO_USAGE
    stop_reason: StopReason = "stop"
    error_message: str | None = None
    raw_stop_reason: str | None = None
    response_id: str | None = None
    response_model: str | None = None
    timestamp: int = field(default_factory=now_ms, compare=False)
    _encoded: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    role: ClassVar[Literal["assistant"]] = "assistant"

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", tuple(self.content or ()))

    @property
    def text(self) -> str:
        """All text blocks joined."""
        return "".join(block.text for block in self.content if block.type == "text")

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.content if block.type == "tool_call")


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    """The one answer to one tool call. `details` is for the view and for code, never for the model."""

    tool_call_id: str
    tool_name: str
    content: Sequence[UserContent] = ()
    details: Any = None
    usage: Usage | None = None
    added_tool_names: Sequence[str] = ()
    is_error: bool = False
    duration_ms: int | None = None
    timestamp: int = field(default_factory=now_ms, compare=False)
    _encoded: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    role: ClassVar[Literal["tool_result"]] = "tool_result"

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", tuple(self.content or ()))
        object.__setattr__(self, "added_tool_names", tuple(self.added_tool_names or ()))

    @property
    def text(self) -> str:
        """All text blocks joined."""
        return "".join(block.text for block in self.content if block.type == "text")


Message: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage
