"""A call that a person makes in code, `my_tool.call(...)`: on the thread it is made on, with Python values."""

from __future__ import annotations

import asyncio
import contextvars
import enum
import queue
import sys
from collections import ChainMap
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from ..ai.abort import AbortController
from ..ai.messages import ToolCall
from ._json_form import WHOLE, goes_by_name, json_form
from ._pictures import is_picture
from ._tables import is_table
from .tool import Host, Tool, ToolContext, ToolResult
from .workers import outcome_of, start_worker

T = TypeVar("T")


class CallingThread(Host):
    """Runs plain `def` tools on the thread that waits in `serve`, so that handles, pyplot and `input()` work there."""

    def __init__(self, handed: Mapping[str, Any]) -> None:
        self.handed = handed
        self.jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def variables(self) -> Mapping[str, Any]:
        return ChainMap(dict(self.handed), dict(super().variables()))

    async def run_plain(self, function: Callable[[], T], context: ToolContext) -> T:
        future: Future[T] = Future()
        copied = contextvars.copy_context()

        def job() -> None:
            try:
                future.set_result(copied.run(function))
            except Exception as error:
                future.set_exception(error)

        self.jobs.put(job)
        return await outcome_of(future)

    def serve(self, ended: Future[ToolResult]) -> ToolResult:
        """Run the jobs that come until `ended`. What is no `Exception` (a Ctrl-C) leaves at once."""
        ended.add_done_callback(lambda _: self.jobs.put(None))
        while (job := self.jobs.get()) is not None:
            job()
            del job  # or it would keep the tool alive while we wait
        return ended.result()


def call_for_person(tool: Tool, arguments: Mapping[str, Any]) -> ToolResult:
    """Take a call through all phases, unasked; also inside a running event loop, which stands still meanwhile."""
    from .single_call import run_tool_call

    raw, handed = json_arguments(arguments)
    host = CallingThread(handed)
    call = ToolCall("call", tool.name, raw)
    controller = AbortController()

    async def main() -> ToolResult:
        return await run_tool_call(call, [tool], ask=False, host=host, signal=controller.signal)

    try:
        return host.serve(start_worker(lambda: asyncio.run(main())))
    except KeyboardInterrupt:
        controller.abort("interrupted")
        raise


def json_arguments(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Python values as a model would send them; and those that it could only name, by the name they are sent as."""
    raw: dict[str, Any] = {}
    handed: dict[str, Any] = {}
    for name, value in arguments.items():
        if _is_json(value):
            raw[name] = value
        elif goes_by_name(type(value)):
            raw[name] = value.name
        elif _must_be_named(value):
            handed[f"_{name}"] = value
            raw[name] = f"_{name}"
        else:
            raw[name] = json_form(value, WHOLE)
    return raw, handed


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return type(value) in (str, int, float, bool, type(None))


def _must_be_named(value: Any) -> bool:
    if is_table(value) or is_picture(value):
        return True
    library = type(value).__module__.partition(".")[0]
    if isinstance(value, enum.Enum) or (library in sys.stdlib_module_names and library != "sqlite3"):
        return False
    form = json_form(value)
    return isinstance(form, str) and form == str(value) and not isinstance(value, str)
