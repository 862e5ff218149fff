"""AbortSignal: one flag that any thread can raise and any thread or task can watch."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Aborted(Exception):
    """Raised by `AbortSignal.raise_if_aborted`; its text is the reason."""


class AbortSignal:
    """Tells a model request or a tool to stop. Watch it; only its `AbortController` can raise it.

    Usable from any thread. It goes up once and stays up.
    """

    __slots__ = ("_aborted", "_callbacks", "_lock", "_reason")

    def __init__(self) -> None:
        self._aborted = False
        self._reason = ""
        self._callbacks: dict[object, Callable[[], object]] = {}
        self._lock = threading.Lock()

    @property
    def aborted(self) -> bool:
        return self._aborted

    @property
    def reason(self) -> str:
        """Why the run was aborted; empty while it was not."""
        return self._reason

    def raise_if_aborted(self) -> None:
        """Raise `Aborted` if the run was aborted: call it between the steps of a long tool."""
        if self._aborted:
            raise Aborted(self._reason)

    def on_abort(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call `callback()` once on abort, at once if that has happened; returns a function that forgets it.

        The callback runs on the thread that aborts, so it must be quick and thread-safe. What it raises is logged.
        """
        key = object()
        with self._lock:
            if not self._aborted:
                self._callbacks[key] = callback
                return lambda: self._forget(key)
        _call(callback)
        return lambda: None

    def _forget(self, key: object) -> None:
        with self._lock:
            self._callbacks.pop(key, None)

    async def wait(self) -> None:
        """Return when the run is aborted; never otherwise."""
        loop = asyncio.get_running_loop()
        raised = asyncio.Event()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(raised.set)
            except RuntimeError:  # the loop was closed before the abort
                pass

        forget = self.on_abort(wake)
        try:
            await raised.wait()
        finally:
            forget()

    def __repr__(self) -> str:
        return f"<AbortSignal {'aborted: ' + self._reason if self._aborted else 'active'}>"


class AbortController:
    """Owns one `signal` and is the only way to raise it."""

    __slots__ = ("signal",)

    def __init__(self) -> None:
        self.signal = AbortSignal()

    def abort(self, reason: str = "aborted") -> None:
        """Raise the signal, from any thread. A second call changes nothing."""
        signal = self.signal
        with signal._lock:
            if signal._aborted:
                return
            signal._reason = reason
            signal._aborted = True
            callbacks = list(signal._callbacks.values())
            signal._callbacks.clear()
        for callback in callbacks:
            _call(callback)


def _call(callback: Callable[[], object]) -> None:
    try:
        callback()
    except Exception:
        logger.exception("an on_abort callback raised")
