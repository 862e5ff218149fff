"""What an agent knows and does now, and the messages that wait to be told to its model."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Literal, TypeAlias

from ..ai.messages import Message
from ..ai.model import Model, ThinkingLevel
from ..errors import AgentError
from .events import AgentEvent, MessageStart, MessageUpdate
from .tool import Tool

QueueMode: TypeAlias = Literal["all", "one-at-a-time"]


def checked_tools(tools: Iterable[Tool]) -> list[Tool]:
    """A list of them. Raises `AgentError` for what is none, such as a function that was not decorated, and for a second
    tool of the same name, of which a model's call would not say which it means."""
    listed = list(tools)
    names: set[str] = set()
    for each in listed:
        if not isinstance(each, Tool):
            name = getattr(each, "__name__", type(each).__name__)
            remedy = f"decorate it with @tool, or pass tool({name})" if callable(each) else "give an agent `Tool`s"
            raise AgentError(f"{name} is no tool but a {type(each).__name__}: {remedy}.")
        if each.name in names:
            raise AgentError(f"Two tools are named {each.name!r}: give one another name, as @tool(name=...) does.")
        names.add(each.name)
    return listed


class AgentState:
    """What an agent knows and does now. `tools` and `messages` are copied when assigned."""

    def __init__(
        self,
        model: Model,
        system_prompt: str,
        thinking_level: ThinkingLevel,
        tools: Iterable[Tool],
        messages: Iterable[Message],
    ) -> None:
        self.model = model
        self.system_prompt = system_prompt
        self.thinking_level = thinking_level
        self._tools = checked_tools(tools)
        self._messages = list(messages)
        self._streaming: MessageStart | MessageUpdate | None = None
        self._pending: Counter[str] = Counter()
        self.is_streaming = False
        self.error_message: str | None = None

    @property
    def tools(self) -> list[Tool]:
        return self._tools

    @tools.setter
    def tools(self, tools: Iterable[Tool]) -> None:
        self._tools = checked_tools(tools)

    @property
    def messages(self) -> list[Message]:
        return self._messages

    @messages.setter
    def messages(self, messages: Iterable[Message]) -> None:
        self._messages = list(messages)

    @property
    def streaming_message(self) -> Message | None:
        """The message that is arriving, as far as it has come; None between messages."""
        return self._streaming.message if self._streaming else None

    @property
    def pending_tool_calls(self) -> frozenset[str]:
        """Ids of the calls that have started and not ended."""
        return frozenset(self._pending)

    def reduce(self, event: AgentEvent) -> None:
        """Take in what `event` says."""
        if event.type == "message_update" or event.type == "message_start":
            self._streaming = event
        elif event.type == "message_end":
            self._streaming = None
            self._messages.append(event.message)
        elif event.type == "tool_execution_start":
            self._pending[event.tool_call_id] += 1
        elif event.type == "tool_execution_end":
            self._pending[event.tool_call_id] -= 1
            if self._pending[event.tool_call_id] <= 0:
                del self._pending[event.tool_call_id]
        elif event.type == "turn_end":
            self.error_message = event.message.error_message or self.error_message
        elif event.type == "agent_end":
            self._streaming = None

    def rest(self) -> None:
        """No run is going on."""
        self.is_streaming = False
        self._streaming = None
        self._pending.clear()


class MessageQueue:
    """Messages that wait to be told to the model."""

    def __init__(self, mode: QueueMode) -> None:
        self.mode = mode
        self.messages: deque[Message] = deque()

    def drain(self) -> list[Message]:
        if self.mode == "all":
            taken = list(self.messages)
            self.messages.clear()
            return taken
        return [self.messages.popleft()] if self.messages else []
