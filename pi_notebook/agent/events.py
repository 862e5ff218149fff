"""What an agent tells its listeners, in pi's words: each thing that lasts has a start and an end event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from ..ai.messages import AssistantMessage, Message, ToolResultMessage
from ..ai.stream import BlockEvent
from .tool import ToolResult


@dataclass(slots=True)
class AgentStart:
    type: ClassVar[Literal["agent_start"]] = "agent_start"


@dataclass(slots=True)
class AgentEnd:
    """The last event of a run. `messages`: all that the run added to the transcript."""

    messages: Sequence[Message]
    type: ClassVar[Literal["agent_end"]] = "agent_end"


@dataclass(slots=True)
class TurnStart:
    type: ClassVar[Literal["turn_start"]] = "turn_start"


@dataclass(slots=True)
class TurnEnd:
    """One reply and the results of the calls in it."""

    message: AssistantMessage
    tool_results: Sequence[ToolResultMessage]
    type: ClassVar[Literal["turn_end"]] = "turn_end"


@dataclass(slots=True)
class MessageStart:
    message: Message
    type: ClassVar[Literal["message_start"]] = "message_start"


@dataclass(slots=True)
class MessageUpdate:
    """The streamed reply grew by `assistant_message_event`."""

    assistant_message_event: BlockEvent
    type: ClassVar[Literal["message_update"]] = "message_update"

    @property
    def message(self) -> AssistantMessage:
        """The reply so far; made at each look, so do not look at every delta without need."""
        return self.assistant_message_event.partial


@dataclass(slots=True)
class MessageEnd:
    """`message` is final and in the transcript."""

    message: Message
    type: ClassVar[Literal["message_end"]] = "message_end"


@dataclass(slots=True)
class ToolExecutionStart:
    """A call's turn has come; it may still be refused or blocked. `args` are the model's own."""

    tool_call_id: str
    tool_name: str
    args: Any
    type: ClassVar[Literal["tool_execution_start"]] = "tool_execution_start"


@dataclass(slots=True)
class ToolExecutionUpdate:
    tool_call_id: str
    tool_name: str
    args: Any
    partial_result: ToolResult
    type: ClassVar[Literal["tool_execution_update"]] = "tool_execution_update"


@dataclass(slots=True)
class ToolExecutionEnd:
    """`duration_ms` counts the execute phase alone; None if it never began. `args`: what ran, or would have."""

    tool_call_id: str
    tool_name: str
    result: ToolResult
    is_error: bool
    duration_ms: int | None = None
    args: Any = None
    type: ClassVar[Literal["tool_execution_end"]] = "tool_execution_end"


AgentEvent: TypeAlias = (
    AgentStart
    | AgentEnd
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
)

Emit: TypeAlias = Callable[[AgentEvent], Awaitable[None]]
