"""Tools on any `concurrent.futures.Executor`: other processes, other machines. By cloudpickle, because a function
that was decorated in a notebook cannot be pickled by its name.

While the call runs, a line to it carries updates this way and an abort that way: a loopback connection, or the
cluster's own messages for Dask. Without a line (a machine that cannot reach this one) a call runs without progress.
"""

from __future__ import annotations

import concurrent.futures
import contextvars
import functools
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import ToolError
from . import tool as contract
from ._invocation import invoke_plain
from ._lines import Line, LineEnd, open_line
from ._signature import BoundCall, base_function
from ._tracebacks import exception_text, remember_frames
from .output import Captured, capture_output
from .tool import ConsoleText, ToolContext, ToolResult
from .workers import outcome_of, run_in_worker, start_worker

if TYPE_CHECKING:
    from concurrent.futures import Executor


async def run_in_executor(
    executor: Executor, function: Callable[..., Any], call: BoundCall, context: ToolContext, captured: Captured
) -> Any:
    """Run `call` of `function` on `executor`; its value, or what it raised.

    Updates and prints come to `context` as they happen. What it printed and plotted is added to `captured`. An abort
    drops a call that has not begun, and raises the signal in one that has.

    Raises:
        ToolError: The function, an argument or the value cannot be pickled.
    """
    if isinstance(executor, concurrent.futures.ThreadPoolExecutor):
        run = functools.partial(contextvars.copy_context().run, _run_on_thread, function, call, context)
        return await outcome_of(executor.submit(run))
    value, error, text, displays = await _outcome(executor, function, call, context)
    if text:
        captured.write(text)
    captured.displays.extend(displays)
    if error is None:
        return value
    _name_sources(error, function)
    try:
        raise error
    finally:
        del error  # its traceback holds this frame


def _run_on_thread(function: Callable[..., Any], call: BoundCall, context: ToolContext) -> Any:
    context.signal.raise_if_aborted()  # while it waited for its turn
    context.begin()
    return invoke_plain(function, call, context)


async def _outcome(executor: Executor, function: Callable[..., Any], call: BoundCall, context: ToolContext) -> Any:
    """Value, error, printed text and displays. No error is raised from here: its traceback would keep the future, and
    with it the result on a cluster."""
    line = open_line(executor, functools.partial(_receive, context), context.begin)
    forget: Callable[[], None] | None = None
    try:
        payload = _packed_call(function, call, context, line)
        future = executor.submit(run_remote, payload)

        def abort() -> None:
            if not line.begun:  # Dask would forget a running call too, and with it what it still says
                future.cancel()
            start_worker(functools.partial(line.abort, context.signal.reason))

        forget = context.signal.on_abort(abort)
        packed: bytes = await outcome_of(future)
        *outcome, had_line = pickle.loads(packed)
        if had_line:
            await run_in_worker(line.wait_for_rest)
        else:
            context.begin()  # nobody could say when
        return outcome
    finally:
        if forget is not None:
            forget()
        line.close()


def _receive(context: ToolContext, message: bytes) -> None:
    context._emit(pickle.loads(message))


def _name_sources(error: Exception, function: Callable[..., Any]) -> None:
    """Give the frames of functions that were pickled by value their files back, which cloudpickle leaves out."""
    base = base_function(function)
    functions = [base, *(each for each in getattr(base, "__globals__", {}).values() if callable(each))]
    codes = [code for each in functions if (code := getattr(base_function(each), "__code__", None)) is not None]
    frames = []
    for frame in getattr(error, "_pi_notebook_frames", ()):
        for code in codes:
            lines = {line for _, _, line in code.co_lines()}
            if frame.filename == "<dynamic-code>" and code.co_name == frame.function and frame.line in lines:
                frame = replace(frame, filename=code.co_filename)
        frames.append(frame)
    if frames:
        error._pi_notebook_frames = frames  # type: ignore[attr-defined]


def _packed_call(function: Callable[..., Any], call: BoundCall, context: ToolContext, line: Line) -> bytes:
    job = (function, call, context.tool_call_id, context.tool_name, line.end)
    return _pickled(job, f"Tool {context.tool_name!r} cannot be sent to its executor")


def _pickled(value: Any, problem: str) -> bytes:
    try:
        import cloudpickle
    except ImportError:
        raise ToolError(f"{problem}: it needs cloudpickle, which comes with pip install 'pi-notebook[dask]'.") from None
    try:
        data: bytes = cloudpickle.dumps(value)
    except Exception as error:
        raise ToolError(
            f"{problem}: {type(error).__name__}: {error}. Something in it cannot be pickled (a lock, a connection, an "
            f"open file, a client): make it where it is used."
        ) from error
    return data


# ---- on the other side ----------------------------------------------------------------------------


def run_remote(payload: bytes) -> bytes:
    """Run a packed call in this process; returns value, error, printed text, displays and whether there was a line,
    pickled. Never raises for what the tool does."""
    function, call, call_id, name, end = pickle.loads(payload)
    value: Any = None
    error: Exception | None = None
    with open_end(end) as opened:
        context = ToolContext(call_id, name, opened.signal, functools.partial(_send, opened))
        token = contract._current.set(context)
        try:
            with capture_output(context, echo=False) as captured:
                opened.signal.raise_if_aborted()  # while it waited for its turn
                value = invoke_plain(function, call, context)
        except Exception as raised:
            remember_frames(raised)
            error = raised
        finally:
            contract._current.reset(token)
    return _packed_outcome(name, value, error, captured, opened.leads_home)


def open_end(end: Any) -> LineEnd:
    """The line's end, or one that leads nowhere if it cannot be opened from here."""
    try:
        opened: LineEnd = end.open()
    except Exception:
        opened = LineEnd()
    return opened


def _send(end: LineEnd, update: ToolResult) -> None:
    kind = "text" if isinstance(update.details, ConsoleText) else "update"
    try:
        message = _pickled(update, "An update")
    except ToolError:
        message = _pickled(ToolResult(update.content), "An update")
    end.send(kind, message)


def _packed_outcome(name: str, value: Any, error: Exception | None, captured: Captured, had_line: bool) -> bytes:
    displays = []
    for shown in captured.displays:
        try:
            _pickled(shown, "")
        except ToolError:
            continue
        displays.append(shown)
    if error is not None:
        return _pickled((None, _portable(error), captured.text, displays, had_line), "An error")
    try:
        return _pickled((value, None, captured.text, displays, had_line), "")
    except ToolError as problem:
        text = f"Tool {name!r} ran, but its value (a {type(value).__name__}) cannot be sent back{problem}"
        return _pickled((None, ToolError(text), captured.text, displays, had_line), "An error")


def _portable(error: Exception) -> Exception:
    """`error` if it survives pickling, else one that says the same."""
    try:
        copied = pickle.loads(_pickled(error, "An error"))
        if str(copied) == str(error):
            return error
    except Exception:
        pass
    stand_in = RuntimeError(exception_text(error))
    stand_in._pi_notebook_frames = getattr(error, "_pi_notebook_frames", [])  # type: ignore[attr-defined]
    return stand_in
