"""Tools whose work blocks, and so is done on a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ..agent.tool import OnUpdate, Tool, ToolResult
from ..agent.workers import run_in_worker
from ..ai.abort import AbortSignal


class ThreadTool(Tool):
    """Its `execute` waits for a thread: after an abort it ends by itself, and its result is wanted until then."""

    cancellable: ClassVar[bool] = False


def thread_tool(
    name: str, description: str, parameters: dict[str, Any], work: Callable[[dict[str, Any], AbortSignal], ToolResult]
) -> Tool:
    """A tool that does `work(params, signal)` on a worker thread. It only looks, so it asks nobody."""

    async def execute(
        tool_call_id: str, params: dict[str, Any], signal: AbortSignal | None, on_update: OnUpdate | None
    ) -> ToolResult:
        return await run_in_worker(lambda: work(params, signal or AbortSignal()))

    return ThreadTool(name, description, parameters, execute)
