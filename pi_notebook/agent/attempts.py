"""Calls that run side by side, each in a task that an abort cancels and, where that does not end it, leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from ..ai.abort import AbortSignal
from ._loop_errors import from_within, runs_now

T = TypeVar("T")
R = TypeVar("R")


class Interrupted(Exception):
    """An abort has cancelled what was awaited."""


class Patience(NamedTuple):
    """Seconds after an abort until what is awaited is cancelled (None: never), and until it is left behind."""

    cancel_after: float | None
    leave_after: float


class Attempt(Generic[T]):
    """One call on its way to its outcome."""

    __slots__ = ("_attempts", "_left", "_otherwise", "_patience", "_timers", "outcome", "task")

    outcome: T
    _patience: Patience
    _otherwise: Callable[[], Coroutine[Any, Any, T]] | None
    """What makes the outcome if this is left behind where it is now; None where an abort has to wait."""

    def __init__(self, attempts: Attempts[T], work: Callable[[Attempt[T]], Coroutine[Any, Any, T]]) -> None:
        self._attempts = attempts
        self._otherwise = None
        self._timers: list[asyncio.TimerHandle] = []
        self._left = False
        self.task = attempts.loop.create_task(self._carry(work))

    async def _carry(self, work: Callable[[Attempt[T]], Coroutine[Any, Any, T]]) -> None:
        attempts = self._attempts
        try:
            self.outcome = await work(self)
        except asyncio.CancelledError as error:
            if attempts.given_up or asyncio.current_task() is not self.task:
                raise
            attempts.fail(from_within(error))
        except BaseException as error:
            attempts.fail(error)
            if not isinstance(error, Exception):
                raise
        else:
            attempts.count()

    async def until_abort(
        self, work: Awaitable[R], patience: Patience, otherwise: Callable[[], Coroutine[Any, Any, T]]
    ) -> R:
        """Await `work`. If it is left behind after an abort, this does not return, and `otherwise` makes the outcome.

        Raises:
            Interrupted: It was cancelled after an abort.
            RuntimeError: It was cancelled from within.
        """
        self._patience, self._otherwise = patience, otherwise
        if self._attempts.signal.aborted:
            self.interrupt()
        try:
            value = await work
            if self.task.cancelling():
                await asyncio.sleep(0)  # where a cancel takes effect that was asked for in the last step
            return value
        except asyncio.CancelledError as error:
            if self._attempts.given_up:
                raise
            if self._timers:
                raise Interrupted from None
            raise from_within(error) from error
        except (SystemExit, GeneratorExit) as error:  # would end the loop
            if not runs_now(self.task):
                raise
            raise from_within(error) from error
        finally:
            self._otherwise = None
            while self.task.cancelling() and not self._attempts.given_up:
                self.task.uncancel()
            while self._timers:
                self._timers.pop().cancel()
            if self._left:
                raise asyncio.CancelledError

    def interrupt(self) -> None:
        """The run was aborted, or the time of this call is up. On the loop's own thread."""
        if self._otherwise is None or self._timers:
            return
        cancel_after, leave_after = self._patience
        later = self._attempts.loop.call_later
        if cancel_after is not None:
            self._timers.append(later(cancel_after, self.task.cancel))
        self._timers.append(later(leave_after, self._leave, self._otherwise))

    def _leave(self, otherwise: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._left = True
        self.task = self._attempts.loop.create_task(self._carry(lambda _: otherwise()))


class Attempts(Generic[T]):
    """A batch of attempts. Aborting `signal` interrupts each where it lets itself be interrupted."""

    def __init__(self, signal: AbortSignal) -> None:
        self.signal = signal
        self.loop = asyncio.get_running_loop()
        self.given_up = False
        self._all: list[Attempt[T]] = []
        self._missing = 0
        self._ended: asyncio.Future[None] = self.loop.create_future()

    async def outcomes(self, works: Iterable[Callable[[Attempt[T]], Coroutine[Any, Any, T]]]) -> list[T]:
        """Start all of `works` and wait for their outcomes, which come in the same order.

        What one of them raises comes out of here at once. Then, and if this is cancelled, the others are cancelled.
        """
        attempts = self._all = [Attempt(self, work) for work in works]
        self._missing = len(attempts)
        if not attempts:
            return []
        forget = self.signal.on_abort(self._on_abort)
        try:
            await self._ended
        except BaseException:
            self.given_up = True
            for attempt in attempts:
                attempt.task.cancel()
            raise
        finally:
            forget()
            self._all = []  # no cycle keeps what a call refers to alive
        return [attempt.outcome for attempt in attempts]

    def count(self) -> None:
        """One more has its outcome."""
        self._missing -= 1
        if not self._missing and not self._ended.done():
            self._ended.set_result(None)

    def fail(self, error: BaseException) -> None:
        if not self._ended.done():
            self._ended.set_exception(error)

    def _on_abort(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self._interrupt)
        except RuntimeError:  # the loop was closed
            pass

    def _interrupt(self) -> None:
        for attempt in self._all:
            attempt.interrupt()
