"""Exceptions by which an event loop ends tasks and programs, where a tool, a hook or a listener raises them itself."""

from __future__ import annotations

import asyncio


def from_within(error: BaseException) -> RuntimeError:
    """What to raise instead, so that nothing but its own call ends."""
    text = str(error)
    return RuntimeError(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def is_cancel(error: BaseException) -> bool:
    """Whether `error` is a cancel asked of the present task; any other `CancelledError` is its raiser's own."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling() > 0)


def runs_now(task: asyncio.Task[None]) -> bool:
    """Whether this is a step of `task`, and not the closing of a coroutine that nobody goes on with."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # no loop runs
        return False
