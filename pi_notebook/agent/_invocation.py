"""One call of a user's function, and of the generator that it may give back."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from ._figures import OwnTable
from ._loop_errors import from_within
from ._signature import BoundCall
from .results import to_tool_result
from .tool import ToolContext, ToolResult

if TYPE_CHECKING:
    from .output import Captured


def invoke_plain(function: Callable[..., Any], call: BoundCall, context: ToolContext) -> Any:
    """Call `function`; a generator is run to its end: each yield an update, the returned value the result."""
    try:
        value = call.invoke(function, context)
        return drain(value, context) if inspect.isgenerator(value) else value
    except (SystemExit, StopIteration, GeneratorExit, asyncio.CancelledError) as error:
        # None of these may reach a loop or end a thread: to the agent it is a tool that failed.
        raise from_within(error) from error


def drain(values: Iterator[Any], context: ToolContext) -> Any:
    """The generator's return value; the last thing it yielded if it returns nothing."""
    last = None
    while True:
        try:
            last = next(values)
        except StopIteration as end:
            return last if end.value is None else end.value
        context.update(last)
        if context.signal.aborted:
            values.close()  # type: ignore[attr-defined]
            context.signal.raise_if_aborted()


class Unfinished(NamedTuple):
    """A plain function gave back what an `async def` made: `value` is still to be awaited, on the loop."""

    value: Any
    captured: Captured


def plain_result(function: Callable[..., Any], call: BoundCall, context: ToolContext) -> ToolResult | Unfinished:
    """Call `function` on this very thread. Its result is made here too: a second turn on the thread might come late."""
    context.begin()
    is_beside_others = threading.current_thread() is not threading.main_thread()
    with OwnTable() if is_beside_others else nullcontext(), context.host.capture(context) as captured:
        value = invoke_plain(function, call, context)
    is_unfinished = inspect.iscoroutine(value) or inspect.isasyncgen(value)
    return Unfinished(value, captured) if is_unfinished else to_tool_result(value, captured)


async def finished(value: Any, context: ToolContext) -> Any:
    """What comes of what an `async def` gave back; an async generator's yields are updates, the last its result."""
    return await (_last_of(value, context) if inspect.isasyncgen(value) else value)


async def _last_of(values: AsyncIterator[Any], context: ToolContext) -> Any:
    last = None
    async for last in values:
        context.update(last)
    return last
