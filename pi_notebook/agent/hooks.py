"""The seams of an agent: what each hook is given and what it may answer. Hooks are plain or async functions."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from ..ai.abort import AbortSignal
from ..ai.messages import AssistantMessage, Message, ToolCall, ToolResultMessage, Usage, UserContent
from ..ai.model import Model, ThinkingLevel
from ._loop_errors import from_within, is_cancel
from .tool import Tool, ToolResult

T = TypeVar("T")


@dataclass(slots=True)
class AgentContext:
    """What the next request will hold. The loop appends to `messages`."""

    system_prompt: str = ""
    messages: list[Message] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)


@dataclass(slots=True)
class BeforeToolCallContext:
    """`args` are validated and in JSON form; changes made in place are what runs, and are not validated again."""

    assistant_message: AssistantMessage
    tool_call: ToolCall
    args: dict[str, Any]
    context: AgentContext


@dataclass(slots=True)
class BeforeToolCallResult:
    """`block` refuses the call and gives the model `reason`; `terminate` then counts as the result's own."""

    block: bool = False
    reason: str | None = None
    terminate: bool | None = None


@dataclass(slots=True)
class AfterToolCallContext:
    assistant_message: AssistantMessage
    tool_call: ToolCall
    args: dict[str, Any]
    result: ToolResult
    is_error: bool
    context: AgentContext


@dataclass(slots=True)
class AfterToolCallResult:
    """Fields that are not None replace those of the result, whole; nothing is merged."""

    content: Sequence[UserContent] | None = None
    details: Any = None
    is_error: bool | None = None
    usage: Usage | None = None
    terminate: bool | None = None


@dataclass(slots=True)
class TurnContext:
    """A turn that has just ended. `new_messages`: what the run has added so far."""

    message: AssistantMessage
    tool_results: Sequence[ToolResultMessage]
    context: AgentContext
    new_messages: Sequence[Message]


@dataclass(slots=True)
class NextTurn:
    """Answer of `prepare_next_turn`: what is not None replaces what the run has used."""

    context: AgentContext | None = None
    model: Model | None = None
    thinking_level: ThinkingLevel | None = None


@dataclass(slots=True, eq=False)
class Question:
    """A call that a person may have to decide.

    Args:
        tool_call: The model's call.
        tool: The tool it names.
        arguments: Exactly what will run if approved, in JSON form: a snapshot after all hooks.
        reason: Why the tool asks; empty if it just does.
        required: The tool itself asks. False: only a rule of the user could make this a question.
        error: Why an earlier answer (edited arguments) could not be taken.
        signal: Aborted when the run ends while the question stands.
    """

    tool_call: ToolCall
    tool: Tool
    arguments: dict[str, Any]
    reason: str = ""
    required: bool = True
    error: str = ""
    signal: AbortSignal | None = None


@dataclass(slots=True, frozen=True)
class Decision:
    """The answer to a `Question`.

    Args:
        kind: `edit` approves other `arguments`; `always` approves this and later calls of the tool.
        reason: For the model, with `block`.
        by: Who decided, for the transcript: `you`, `rule`, `nobody`.
        at: Seconds since 1970.
    """

    kind: Literal["approve", "block", "edit", "always"]
    reason: str = ""
    arguments: dict[str, Any] | None = None
    by: str = "you"
    at: float = field(default_factory=time.time)


MaybeAwaitable: TypeAlias = T | Awaitable[T]
BeforeToolCall: TypeAlias = Callable[[BeforeToolCallContext, AbortSignal], MaybeAwaitable[BeforeToolCallResult | None]]
AfterToolCall: TypeAlias = Callable[[AfterToolCallContext, AbortSignal], MaybeAwaitable[AfterToolCallResult | None]]
TransformContext: TypeAlias = Callable[[list[Message], AbortSignal], MaybeAwaitable[list[Message]]]
ConvertToLlm: TypeAlias = Callable[[list[Message]], MaybeAwaitable[list[Message]]]
ShouldStopAfterTurn: TypeAlias = Callable[[TurnContext], MaybeAwaitable[bool]]
PrepareNextTurn: TypeAlias = Callable[[TurnContext], MaybeAwaitable[NextTurn | None]]
GetApiKey: TypeAlias = Callable[[str], MaybeAwaitable[str | None]]
GetMessages: TypeAlias = Callable[[], MaybeAwaitable[Sequence[Message] | None]]
Approve: TypeAlias = Callable[[Question], MaybeAwaitable[Decision]]


async def settle(hook: Callable[..., MaybeAwaitable[T]], *arguments: Any) -> T:
    """What `hook(*arguments)` returns, or awaits to.

    A `CancelledError` that is its own comes as a `RuntimeError`: only a cancel of the task that asks may end that.
    """
    try:
        value = hook(*arguments)
        return await value if inspect.isawaitable(value) else value
    except asyncio.CancelledError as error:
        if is_cancel(error):
            raise
        raise from_within(error) from error
