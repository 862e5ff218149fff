"""What surrounds tools in a notebook: the cell's own thread, the live variables, the call's row."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from ..agent.execute_phase import ABORTED, INTERRUPTED
from ..agent.tool import Host, ToolContext
from ..agent.workers import outcome_of
from ..errors import ToolError
from .bridge import Bridge, CallInterrupted
from .output import capture_in_row

if TYPE_CHECKING:
    from ..agent.output import Captured

T = TypeVar("T")
BREATH = 0.05
"""Seconds at least between two looks for clicks from within a plain function."""


class NotebookHost(Host):
    """Runs plain `def` tools on the cell's thread, one at a time, as if typed in the cell.

    Args:
        shell: The IPython shell whose namespace tools may name.
        bridge: The pump of the running cell.
        begun: Told the id of a tool call when its own code begins.
    """

    def __init__(self, shell: Any, bridge: Bridge, begun: Callable[[str], None]) -> None:
        self._shell = shell
        self._bridge = bridge
        self._begun = begun
        self._breathed = 0.0

    async def run_plain(self, function: Callable[[], T], context: ToolContext) -> T:
        began = False

        def call() -> T:
            nonlocal began
            if context.signal.aborted:  # Stop was clicked while this call waited for its turn
                raise ToolError(ABORTED)
            began = True
            return function()

        try:
            return await outcome_of(self._bridge.call(call))
        except CallInterrupted as error:  # in the words of calls that run elsewhere
            raise ToolError(INTERRUPTED if began else ABORTED) from error

    def breathe(self) -> None:
        """Let clicks in while a plain function occupies the cell's thread, so that Stop works in it."""
        now = time.monotonic()
        if now - self._breathed >= BREATH:
            self._breathed = now
            self._bridge.pump_once()

    def begun(self, context: ToolContext) -> None:
        self._begun(context.tool_call_id)

    def variables(self) -> Mapping[str, Any]:
        namespace: dict[str, Any] = self._shell.user_ns
        hidden: dict[str, Any] = getattr(self._shell, "user_ns_hidden", {})
        return {name: value for name, value in namespace.items() if hidden.get(name, self) is not value}

    def capture(self, context: ToolContext) -> AbstractContextManager[Captured]:
        return capture_in_row(self._shell, context)
