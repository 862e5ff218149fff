"""Waiting for the last keys that a person typed.

A page sends a field's value at most once per round trip and holds later changes back meanwhile, but a click or Enter is
sent at once and overtakes them. Acting on it at once would take a text without its end. And while a tool holds the
cell's thread, all of it waits: what was typed before the tool ended must be heard before the run goes on without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..agent.workers import outcome_of
from .bridge import Bridge, bridge_of_thread

if TYPE_CHECKING:
    from .view import RunView

QUIET = 0.2
"""Seconds without a change after which a field is taken to hold all that was typed."""
PATIENCE = 1.0
"""Seconds that the end of a turn waits at most for what is being said: a tool that was left may hold the thread."""


def when_typed(fields: Iterable[Any], act: Callable[[], None]) -> None:
    """Call `act` once, on any thread, as soon as none of `fields` has changed for `QUIET` seconds.

    Time in which the cell's thread was held, so that a change could not come, does not count.
    """
    _Waiting(list(fields), act).restart()


async def said_by_now(bridge: Bridge, view: RunView) -> None:
    """Wait until what a person had sent by now is among the words for the model."""
    loop = asyncio.get_running_loop()
    patient_until = loop.time() + PATIENCE
    if bridge.mode != "none":
        with contextlib.suppress(TimeoutError, RuntimeError):  # the thread is held, or the cell has gone on
            await asyncio.wait_for(outcome_of(bridge.messages_handled()), PATIENCE)
    while view.being_said:
        if loop.time() > patient_until:
            return
        await asyncio.sleep(0.01)


def hear_last_words(bridge: Bridge, view: RunView) -> None:
    """`said_by_now` for the end of a run, on the cell's thread: words that come too late are still shown."""
    bridge.pump_once()
    if view.being_said:
        bridge.wait(lambda: not view.being_said, PATIENCE)


class _Waiting:
    def __init__(self, fields: list[Any], act: Callable[[], None]) -> None:
        self._fields = fields
        self._act = act
        self._bridge = bridge_of_thread()
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
            self._timer = timer = threading.Timer(QUIET, lambda: self._quiet(timer))
            timer.daemon = True
            timer.start()

    def _quiet(self, timer: threading.Timer) -> None:
        if self._bridge is None:
            self._end(timer)
        else:
            self._bridge.messages_handled().add_done_callback(lambda _: self._end(timer))

    def _end(self, timer: threading.Timer) -> None:
        with self._lock:
            if self._over or self._timer is not timer:
                return  # a change came in the last moment and set another timer
            self._over = True
        for field in self._fields:
            field.unobserve(self.restart, "value")
        self._act()
