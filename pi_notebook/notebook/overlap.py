"""Says once how plain functions that took long one after another can run side by side."""

from __future__ import annotations

from collections.abc import Sequence

from ..agent.events import AgentEvent
from ..agent.tool import Tool

LONG_MS = 1_000
"""A call that took at least this long is worth a word."""


class OverlapHint:
    """Listens to a run.

    Args:
        tools: Those of the run; it may get more while it runs, which are left alone.
        in_turn: The person asked for one call at a time, so there is nothing to say.
    """

    def __init__(self, tools: Sequence[Tool], in_turn: bool) -> None:
        self._plain = {tool.name for tool in tools if tool.runs_on == "plain" and tool.execution_mode is None}
        self._told = in_turn
        self._long: list[tuple[str, int]] = []

    def hear(self, event: AgentEvent) -> str:
        """What to tell the person after this event; mostly "", and a text only once."""
        if event.type == "tool_execution_end":
            if event.tool_name in self._plain and (event.duration_ms or 0) >= LONG_MS:
                self._long.append((event.tool_name, event.duration_ms or 0))
            return ""
        if event.type != "turn_end":
            return ""
        took, self._long = self._long, []
        if len(took) < 2 or self._told:
            return ""
        self._told = True
        names = ", ".join(dict.fromkeys(name for name, _ in took))
        seconds = sum(milliseconds for _, milliseconds in took) / 1000
        return (
            f"{len(took)} calls ({names}) took {seconds:.1f} s one after another, as plain functions run on the "
            'notebook\'s main thread. To let them overlap: async def, or @tool(thread="worker") where that is safe, or '
            "@tool(executor=...)."
        )
