"""One call of a user's function, and of the generator that it may give back."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from ._signature import BoundCall
from .tool import ToolContext


def invoke_plain(function: Callable[..., Any], call: BoundCall, context: ToolContext) -> Any:
    """Call `function`; a generator is run to its end: each yield an update, the returned value the result."""
    try:
        value = call.invoke(function, context)
        return drain(value, context) if inspect.isgenerator(value) else value
    except (SystemExit, StopIteration, GeneratorExit, asyncio.CancelledError) as error:
        # None of these may reach a loop or end a thread: to the agent it is a tool that failed.
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


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


async def last_of(values: AsyncIterator[Any], context: ToolContext) -> Any:
    """Run an async generator to its end: each yield an update, the last of them its result."""
    last = None
    async for last in values:
        context.update(last)
    return last
