"""The run that is going on in an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ..ai.abort import AbortController
from ..ai.messages import Message
from .events import AgentEvent
from .guards import Guards
from .result import RunResult, ToolCallRecord

ENDED_AFTER = 1.0
"""Seconds after an abort within which a run ends by itself, whatever its tools do."""


class ActiveRun:
    """The run that is going on: its abort controller, its guards, and what it has produced."""

    def __init__(self, guards: Guards) -> None:
        self.controller = AbortController()
        self.guards = guards
        self.idle = asyncio.Event()
        self.messages: list[Message] = []
        self.begun: list[list[ToolCallRecord]] = []  # per call, in order: its record, once it has ended
        self.running: dict[str, list[tuple[Any, list[ToolCallRecord]]]] = {}  # arguments and place; ids can occur twice
        self.notes: list[Message] = []
        self.stopped_by = ""

    def note(self, event: AgentEvent) -> None:
        """Keep what the run's result is made of."""
        if event.type == "message_end":
            self.messages.append(event.message)
        elif event.type == "tool_execution_start":
            place: list[ToolCallRecord] = []
            self.begun.append(place)
            self.running.setdefault(event.tool_call_id, []).append((event.args, place))
        elif event.type == "tool_execution_end":
            record = ToolCallRecord(event.tool_call_id, event.tool_name, event.args, event.result)
            same_id = self.running[record.id]
            index = 0
            if len(same_id) > 1:
                index = next((i for i, (arguments, _) in enumerate(same_id) if arguments == record.arguments), 0)
            same_id.pop(index)[1].append(record)

    def result(self) -> RunResult:
        calls = [record for place in self.begun for record in place]
        return RunResult(self.messages, calls, self.stopped_by)


async def until_cancelled(execute: Callable[[], Awaitable[Any]], controller: AbortController) -> None:
    """Await `execute()`. Cancelled (a Ctrl-C in a script), it is aborted first, so that its tools hear of it and every
    call gets its result; what has not ended by then is cancelled too."""
    task = asyncio.ensure_future(execute())
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        controller.abort("the run was cancelled")
        await asyncio.wait([task], timeout=ENDED_AFTER)
        if not task.cancel() and not task.cancelled():
            task.exception()  # the cancelling is what the caller hears of
        raise
