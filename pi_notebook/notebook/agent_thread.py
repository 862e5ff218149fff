"""The thread on which agents work: one event loop for all cells of a kernel.

One loop for all, because what an `async def` tool leaves behind (a client, a lock) is bound to its loop and should work
again in the next cell. A loop that a tool keeps blocked is given up, and the next run gets a new one.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class AgentThread:
    """A daemon thread with a running event loop. `spawn` starts the thread (the kernel's bridge knows how)."""

    def __init__(self, spawn: Callable[[Callable[[], object]], threading.Thread]) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(_log_quietly)
        self._thread = spawn(self._work)

    def _work(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    @property
    def usable(self) -> bool:
        return self._thread.is_alive() and not self.loop.is_closed()

    def submit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Run `work()` as a task, in a copy of the caller's context: its output belongs to the caller's cell."""
        context = contextvars.copy_context()
        future: Future[T] = Future()

        def start() -> None:
            task = self.loop.create_task(work(), context=context)
            task.add_done_callback(lambda done: _copy_outcome(done, future))

        self.loop.call_soon_threadsafe(start, context=context)
        return future

    def stop(self) -> None:
        """Let the thread end when what it runs now lets go of the loop."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)


def _copy_outcome(task: asyncio.Task[T], future: Future[T]) -> None:
    if task.cancelled():
        future.cancel()
        future.set_running_or_notify_cancel()
    elif (error := task.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(task.result())


def _log_quietly(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What abandoned calls leave behind is worth a debug line, not a traceback in somebody's cell."""
    import logging

    logging.getLogger(__name__).debug("event loop: %s", context.get("message"), exc_info=context.get("exception"))
