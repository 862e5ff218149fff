"""How the execute phase of a call is watched: its updates on their way out, and its end after an abort."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ..ai.abort import AbortController, AbortSignal
from ..ai.messages import ToolCall
from .events import AgentEvent, ToolExecutionUpdate
from .tool import ToolResult

T = TypeVar("T")
Emit = Callable[[AgentEvent], Awaitable[None]]


class Updates:
    """Partial results of one call on their way to the listeners: pushed from any thread, told in order."""

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
    """Times a call from when its own code begins, not while it waits for its turn, and ends one that takes too long.

    Args:
        timeout: Seconds until `controller` is aborted; None for ever.
    """

    def __init__(self, timeout: float | None, controller: AbortController | None) -> None:
        self.timeout = timeout
        self.controller = controller
        self.loop = asyncio.get_running_loop()
        self.started: float | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.milliseconds: int | None = None
        """Until `stop`; None if the call never began."""

    def begin(self) -> None:
        """Any thread."""
        self.started = time.perf_counter()
        if self.timeout is not None:
            self.loop.call_soon_threadsafe(self._arm)

    def _arm(self) -> None:
        if self.timeout is not None and self.controller is not None and self.milliseconds is None:
            text = f"timed out after {self.timeout:g} s"
            self.timer = self.loop.call_later(self.timeout, self.controller.abort, text)

    def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.started is not None:
            self.milliseconds = round((time.perf_counter() - self.started) * 1000)


async def until_abort(
    task: asyncio.Future[T], signal: AbortSignal, *, cancel_after: float | None, abandon_after: float
) -> T | None:
    """The task's result or exception. After an abort it is cancelled after `cancel_after` seconds (None: never) and
    left alone after `abandon_after`; then, and if it was cancelled, the answer is None."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def end(_: Any = None) -> None:
        if not ended.done():
            ended.set_result(None)

    def begin_to_end() -> None:
        if cancel_after is not None:
            timers.append(loop.call_later(cancel_after, task.cancel))
        timers.append(loop.call_later(abandon_after, end))

    def on_abort() -> None:
        try:
            loop.call_soon_threadsafe(begin_to_end)
        except RuntimeError:
            pass

    timers: list[asyncio.TimerHandle] = []
    task.add_done_callback(end)
    forget = signal.on_abort(on_abort)
    try:
        await ended
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        forget()
        for timer in timers:
            timer.cancel()
        if not task.done():
            task.add_done_callback(_drop)
    if not task.done() or task.cancelled():
        return None
    return task.result()


def _drop(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()  # an abandoned call's error is nobody's: do not let asyncio log it


def as_result(value: Any) -> ToolResult:
    """What a tool's `execute` returned, as a result; any value is one."""
    if isinstance(value, ToolResult):
        return value
    from .results import to_tool_result

    return to_tool_result(value)
