"""Our own daemon threads. Those of `asyncio.to_thread` and of pools are joined at exit, where one stuck tool would
hang the shutdown of a kernel."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import itertools
import os
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from ._loop_errors import from_within

T = TypeVar("T")

IDLE_SECONDS = 10.0
"""How long a thread without work waits for some before it ends."""

_idle: list[_Worker] = []
_lock = threading.Lock()
_numbers = itertools.count(1)


class _Worker:
    """A daemon thread that runs one job at a time and then offers itself for the next."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, name=f"pi_notebook-{next(_numbers)}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while True:
            try:
                job = self.jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with _lock:
                    if self not in _idle:  # a job is on its way
                        continue
                    _idle.remove(self)
                return
            job()
            del job
            with _lock:
                _idle.append(self)


def start_worker(function: Callable[[], T]) -> concurrent.futures.Future[T]:
    """Run `function` on a daemon thread, in a copy of the present context. The future cannot be cancelled.

    Its exception may be any `BaseException`: a tool that exits does not end the thread's process.
    """
    future: concurrent.futures.Future[T] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def job() -> None:
        try:
            result = context.run(function)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    with _lock:
        worker = _idle.pop() if _idle else None
    (worker or _Worker()).jobs.put(job)
    return future


async def run_in_worker(function: Callable[[], T]) -> T:
    """`start_worker`, awaited. Cancelling leaves the thread to itself: what it returns or raises is dropped."""
    return await outcome_of(start_worker(function))


async def outcome_of(future: concurrent.futures.Future[T]) -> T:
    """Await a future of another thread or process without owning it: cancelling the wait does not cancel the future.

    Unlike `asyncio.wrap_future` it takes every exception: `StopIteration` and `SystemExit` would break the loop, and
    come as a `RuntimeError` that has them as its cause.
    """
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def tell(_: Any) -> None:
        try:
            loop.call_soon_threadsafe(_set_unless_done, done)
        except RuntimeError:  # the loop was closed: nobody waits any more
            pass

    future.add_done_callback(tell)
    await done
    if future.cancelled():
        raise RuntimeError("The executor dropped this call before it began.")
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, StopIteration | SystemExit | GeneratorExit | asyncio.CancelledError):
        raise from_within(error) from error
    raise error


def _set_unless_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _forget_threads() -> None:
    """A forked child has none of its parent's threads."""
    global _lock
    _lock = threading.Lock()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
