"""One tool call without a model: for code, and for a person who tries a tool."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from ..ai.abort import AbortSignal
from ..ai.messages import AssistantMessage, ToolCall
from .events import AgentEvent
from .execution import ToolCalls
from .hooks import AgentContext
from .tool import Tool, ToolResult

T = TypeVar("T")


async def run_tool_call(call: ToolCall, tools: Sequence[Tool], **options: Any) -> ToolResult:
    """Take one call through all phases without a model; `options` are those of `ToolCalls` (hooks, approve, host).

    Never raises for what the tool does: the result says so.
    """
    ended: list[ToolResult] = []

    async def emit(event: AgentEvent) -> None:
        if event.type == "tool_execution_end":
            ended.append(event.result)

    context = AgentContext(tools=list(tools))
    signal = options.pop("signal", None) or AbortSignal()
    message = AssistantMessage([call])
    await ToolCalls(context, message, emit, signal, **options).run([call])
    return ended[0]


def call_tool(tool: Tool, arguments: dict[str, Any]) -> ToolResult:
    """`run_tool_call` for synchronous code: also from inside a running event loop, on a thread of its own there."""
    coroutine = run_tool_call(ToolCall("call", tool.name, arguments), [tool], ask=False)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    return _run_on_thread(coroutine)


def _run_on_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    from .workers import start_worker

    return start_worker(lambda: asyncio.run(coroutine)).result()
