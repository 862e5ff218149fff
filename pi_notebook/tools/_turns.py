"""One after the other: writes to one file wait for each other, whichever agent or thread they come from."""

from __future__ import annotations

import asyncio
import threading
import unicodedata
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from ..agent.workers import run_in_worker

T = TypeVar("T")

_lock = threading.Lock()
_last: dict[Hashable, Future[None]] = {}


def file_key(path: Path) -> Hashable:
    """What is the same for two real paths of one file: hard links, and spellings that differ in case or in how accents
    are composed, which are one file on some systems. (Elsewhere two files wait for each other without need.)

    A file without other links is known by its path, since each write gives it another inode.
    """
    try:
        status = path.stat()
    except OSError:
        status = None
    if status is not None and status.st_nlink > 1:
        return (status.st_dev, status.st_ino)
    return unicodedata.normalize("NFC", str(path)).casefold()


class _Turn:
    """A place in the queue of `key`, taken at once. It ends once, when the work has truly ended."""

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.started = False
        self.given_up = False
        self.done: Future[None] = Future()
        self.done.set_running_or_notify_cancel()  # so that nobody who waits for it can cancel it
        with _lock:
            self.previous = _last.get(key)
            _last[key] = self.done

    def end(self) -> None:
        with _lock:
            if _last.get(self.key) is self.done:
                del _last[self.key]
        self.done.set_result(None)

    def give_up(self) -> None:
        """The caller stopped waiting. Work that runs keeps its turn until it ends; else the turn is passed on."""
        with _lock:
            self.given_up = True
            if self.started:
                return
        if self.previous is None:
            self.end()
        else:
            self.previous.add_done_callback(lambda _: self.end())

    def begin(self) -> bool:
        """False if the caller has stopped waiting."""
        with _lock:
            self.started = not self.given_up
            return self.started


async def in_turn(key: Hashable, work: Callable[[], T]) -> T:
    """Run `work` on a worker thread once all that was asked for `key` before has ended; return what it returns.

    The order is that of the calls. A cancelled call whose work has not begun never runs it.
    """
    turn = _Turn(key)

    def job() -> T:
        if not turn.begin():
            raise asyncio.CancelledError
        try:
            return work()
        finally:
            turn.end()

    try:
        if turn.previous is not None:
            await asyncio.wrap_future(turn.previous)
        return await run_in_worker(job)
    except BaseException:
        if not turn.started:
            turn.give_up()
        raise
