"""Waiting for the last keys that a person typed.

A page sends a field's value at most once per round trip and holds later changes back meanwhile, but a click or Enter is
sent at once and overtakes them. Acting on it at once would take a text without its end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

QUIET = 0.2
"""Seconds without a change after which a field is taken to hold all that was typed."""


def when_typed(fields: Iterable[Any], act: Callable[[], None]) -> None:
    """Call `act` once, on a thread of its own, as soon as none of `fields` has changed for `QUIET` seconds."""
    _Waiting(list(fields), act).restart()


class _Waiting:
    def __init__(self, fields: list[Any], act: Callable[[], None]) -> None:
        self._fields = fields
        self._act = act
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._over = False
        for field in fields:
            field.observe(self.restart, "value")

    def restart(self, change: Any = None) -> None:
        with self._lock:
            if self._over:
                return
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(QUIET, self._end)
            self._timer.daemon = True
            self._timer.start()

    def _end(self) -> None:
        with self._lock:
            if self._over or self._timer is not threading.current_thread():
                return  # a change came in the last moment and set another timer
            self._over = True
        for field in self._fields:
            field.unobserve(self.restart, "value")
        self._act()
