"""The execute phase of a call: its updates on their way out, its time, and what it came to."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from ..ai.abort import AbortController
from ..ai.messages import ToolCall
from .events import Emit, ToolExecutionUpdate
from .tool import Tool, ToolContext, ToolResult

CANCEL_AFTER = 0.3
"""Seconds after an abort (or a tool's timeout) until an async tool is cancelled."""
ABANDON_AFTER = 0.6
"""Seconds after an abort (or a tool's timeout) until a call that still runs is left alone and its result dropped."""

ABORTED = "Not run: the run was stopped before this call began."
INTERRUPTED = "Stopped while it ran: the run was stopped. What it had done by then may stay done."
ABANDONED = (
    "Abandoned: the run was stopped and the tool did not stop within {seconds} s. "
    "It may still be running; its result will not be used."
)


class Updates:
    """Partial results of one call on their way to the listeners: pushed from any thread, told in order."""

    __slots__ = ("call", "emit", "loop", "open", "scheduled", "telling", "waiting")

    def __init__(self, call: ToolCall, emit: Emit) -> None:
        self.call = call
        self.emit = emit
        self.waiting: deque[ToolResult] = deque()
        self.open = True
        self.loop = asyncio.get_running_loop()
        self.telling: asyncio.Task[None] | None = None
        self.scheduled = False

    def push(self, partial: ToolResult) -> None:
        """Tell `partial` soon. Dropped once the call has ended."""
        if not self.open:
            return
        self.waiting.append(partial if isinstance(partial, ToolResult) else as_result(partial))
        if not self.scheduled:
            self.scheduled = True
            try:
                self.loop.call_soon_threadsafe(self._begin)
            except RuntimeError:  # the loop is closed: an abandoned thread is still reporting
                self.open = False

    def _begin(self) -> None:
        self.scheduled = False
        if self.waiting and (self.telling is None or self.telling.done()):
            self.telling = self.loop.create_task(self._tell())

    async def _tell(self) -> None:
        while self.waiting:
            partial = self.waiting.popleft()
            await self.emit(ToolExecutionUpdate(self.call.id, self.call.name, self.call.arguments, partial))

    async def close(self) -> None:
        """Take no more, and return when all that was taken has been told."""
        self.open = False
        if self.telling is not None:
            await self.telling
        if self.waiting:
            await self._tell()


class Clock:
    """Times a call from when its own code begins, not while it waits for its turn.

    Args:
        timeout: Seconds until `controller` is aborted and `on_timeout` called, on the loop's thread; None: never.
    """

    __slots__ = ("controller", "loop", "milliseconds", "on_timeout", "started", "timeout", "timer")

    def __init__(
        self, timeout: float | None, controller: AbortController | None, on_timeout: Callable[[], None]
    ) -> None:
        self.timeout = timeout
        self.controller = controller
        self.on_timeout = on_timeout
        self.loop = asyncio.get_running_loop()
        self.started: float | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.milliseconds: int | None = None
        """Until `stop`; None if the call never began."""

    def begin(self) -> None:
        """Any thread."""
        self.started = time.perf_counter()
        if self.timeout is not None:
            self.loop.call_soon_threadsafe(self._arm, self.timeout)

    def _arm(self, timeout: float) -> None:
        if self.milliseconds is None:
            self.timer = self.loop.call_later(timeout, self._ring)

    def _ring(self) -> None:
        if self.controller is not None:
            self.controller.abort(f"timed out after {self.timeout:g} s")
        self.on_timeout()

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.started is not None:
            self.milliseconds = round((time.perf_counter() - self.started) * 1000)


class ExecutePhase:
    """Runs the `execute` of one call: `start` it, and `end` it in any case with what came of it.

    Args:
        context: The call's; its signal becomes one of its own if the tool has a timeout.
        on_timeout: Called when the time is up, after the call's signal went up.
    """

    __slots__ = ("call", "clock", "context", "forget", "run_signal", "tool", "updates")

    def __init__(
        self, call: ToolCall, tool: Tool, context: ToolContext, emit: Emit, on_timeout: Callable[[], None]
    ) -> None:
        self.call = call
        self.tool = tool
        self.context = context
        self.run_signal = signal = context.signal
        self.forget: Callable[[], None] | None = None
        controller = None
        if tool.timeout is not None:
            controller = AbortController()
            self.forget = signal.on_abort(lambda: controller.abort(signal.reason))
            context.signal = controller.signal
        self.updates = Updates(call, emit)
        self.clock = Clock(tool.timeout, controller, on_timeout)
        context._on_update = self.updates.push
        context._on_begin = self.clock.begin

    def start(self, params: Any) -> Awaitable[ToolResult]:
        """Call `execute`, which may raise."""
        if self.tool.runs_on == "loop":  # elsewhere it may have to wait for its turn
            self.context.begin()
        return self.tool.execute(self.call.id, params, self.context.signal, self.updates.push)

    async def end(self, result: ToolResult) -> ToolResult:
        """`result`, with what the phase has to add, once all updates have been told; no more are taken."""
        self.clock.stop()
        if self.forget is not None:
            self.forget()
        await self.updates.close()
        result.duration_ms = self.clock.milliseconds
        if self.context.added_tool_names:
            result.added_tool_names = (*result.added_tool_names, *self.context.added_tool_names)
        return result

    def spared(self) -> ToolResult | None:
        """What a call comes to whose run was aborted while it waited for its turn."""
        spared = self.run_signal.aborted and self.clock.started is None
        return ToolResult.failure(ABORTED) if spared else None

    def interrupted(self) -> ToolResult:
        """What a cancelled call comes to."""
        return ToolResult.failure(f"{self._timeout}." if self._timeout else INTERRUPTED)

    def left_behind(self) -> ToolResult:
        """What a call comes to that did not end when it should."""
        if self._timeout:
            return ToolResult.failure(f"{self._timeout}. It may still be running; its result will not be used.")
        return self.spared() or ToolResult.failure(ABANDONED.format(seconds=ABANDON_AFTER))

    @property
    def _timeout(self) -> str:
        """Words for the timeout that ended this call; none if it was the run's abort."""
        signal = self.context.signal
        return f"{self.tool.name} {signal.reason}" if signal.aborted and not self.run_signal.aborted else ""


def as_result(value: Any) -> ToolResult:
    """What a tool's `execute` returned, as a result; any value is one."""
    if isinstance(value, ToolResult):
        return value
    from .results import to_tool_result

    return to_tool_result(value)
