"""The tool `python`."""

from __future__ import annotations

import ast
import asyncio
import inspect
import itertools
import linecache
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ..agent.tool import OnUpdate, Tool, ToolContext, ToolResult
from ..agent.workers import start_worker
from ..ai.abort import AbortSignal
from ..ai.messages import TextContent, UserContent
from ._thread_tool import ThreadTool
from ._truncate import count, cut_head, cut_tail

if TYPE_CHECKING:
    from ..agent.output import Captured

MAX_OUTPUT_LINES = 1_000
MAX_OUTPUT_BYTES = 30 * 1024
MAX_VALUE_LINES = 500
MAX_VALUE_BYTES = 20 * 1024

DESCRIPTION = (
    "Run Python code in the notebook's own namespace, like a cell: variables and imports stay, the value of a last "
    "expression comes back together with what was printed and plotted. Not for code that should outlive this kernel "
    "(bash), or for only looking at which variables there are (variables)."
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "description": "Python code; the value of a last expression is returned."}
    },
    "required": ["code"],
    "additionalProperties": False,
}


@dataclass(slots=True)
class Outcome:
    """What running a piece of code came to.

    Args:
        value: Of the last expression; None if there was none.
        captured: What was printed and displayed.
        error: What was raised.
        traceback: `error` with the lines that led to it, as plain text; made from `error` if empty.
    """

    value: Any = None
    captured: Captured | None = None
    error: BaseException | None = None
    traceback: str = ""


_numbers = itertools.count(1)
"""Names the pieces of code of this process, so that a traceback finds the lines of each."""


class Runner(Protocol):
    """Runs code where the user's own code runs. What it raises is in the outcome; `KeyboardInterrupt` may pass."""

    def __call__(self, code: str, context: ToolContext) -> Awaitable[Outcome]: ...


@dataclass(frozen=True, slots=True)
class PythonDetails:
    """`details` of a run.

    Args:
        new_variables: Names that were not there before, sorted; private ones (`_x`) are left out.
        changed_variables: Names that now stand for another object, sorted.
        seconds: Wall time of the code.
        error: Type of what it raised, or empty.
    """

    new_variables: tuple[str, ...]
    changed_variables: tuple[str, ...]
    seconds: float
    error: str = ""


def python_tool(namespace: dict[str, Any], runner: Runner | None = None) -> Tool:
    """A tool that runs code in `namespace`. It is not confined to any folder.

    Args:
        namespace: Where the code's variables live; looked at before and after each run.
        runner: Runs the code in that namespace. None compiles and executes it where the agent's host runs plain
            functions: the main thread of a notebook, a worker thread in a script.
    """
    run = runner or NamespaceRunner(namespace)

    async def execute(
        tool_call_id: str, params: dict[str, Any], signal: AbortSignal | None, on_update: OnUpdate | None
    ) -> ToolResult:
        context = ToolContext.current() or ToolContext(tool_call_id, "python", signal, on_update)
        before = dict(namespace)
        started = time.perf_counter()
        outcome = await run(params["code"], context)
        seconds = time.perf_counter() - started
        new, changed = _differences(before, dict(namespace))
        del before
        error = type(outcome.error).__name__ if outcome.error is not None else ""
        content = await context.host.run_plain(lambda: _content(outcome, new), context)
        details = PythonDetails(new, changed, round(seconds, 3), error)
        return ToolResult(content, details, is_error=bool(error), value=outcome.value, error=outcome.error)

    return ThreadTool("python", DESCRIPTION, PARAMETERS, execute, execution_mode="sequential", approval=True)


def _differences(before: dict[str, Any], after: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names that are new, and names that stand for another object."""
    public = [
        name for name in after if isinstance(name, str) and not name.startswith("_") and name not in ("In", "Out")
    ]
    new = tuple(sorted(name for name in public if name not in before))
    return new, tuple(sorted(name for name in public if name in before and after[name] is not before[name]))


def _content(outcome: Outcome, new: tuple[str, ...]) -> list[UserContent]:
    """Output, then figures, then the value or the traceback, then the names of new variables."""
    from ..agent.results import to_content

    blocks: list[UserContent] = []
    captured = outcome.captured
    if captured is not None and captured.text.strip():
        cut = cut_tail(captured.text, MAX_OUTPUT_LINES, MAX_OUTPUT_BYTES)
        missing = f"[{cut.left_out} of output before this left out]\n" if cut.by else ""
        blocks.append(TextContent(missing + cut.text.rstrip("\n")))
    if captured is not None:
        for display in captured.displays:
            blocks += _display_blocks(display)
    if outcome.error is not None:
        cut = cut_tail(outcome.traceback or traceback_text(outcome.error), MAX_VALUE_LINES, MAX_VALUE_BYTES)
        blocks.append(TextContent(cut.text))
    elif outcome.value is not None and not _is_shown(outcome.value, captured):
        blocks += _plain(outcome.value) or to_content(outcome.value)
    if new:
        blocks.append(TextContent(f"[New {'variable' if len(new) == 1 else 'variables'}: {', '.join(new)}]"))
    if not blocks:
        return [TextContent("(no output)")]
    return _one_below_the_other(blocks)


def _display_blocks(display: Any) -> list[UserContent]:
    from ..agent.results import mimebundle_blocks, to_content

    return list(mimebundle_blocks(display)) if isinstance(display, dict) else to_content(display)


def _is_shown(value: Any, captured: Captured | None) -> bool:
    """Whether `value` is a part of a figure that was collected already: `plt.plot(x)` returns lines."""
    from ..agent._pictures import matplotlib_figure

    figure = matplotlib_figure(value)
    return figure is not None and captured is not None and any(figure is display for display in captured.displays)


_PLAIN = (str, bytes, int, float, complex, bool, list, tuple, dict, set, frozenset, range)


def _plain(value: Any) -> list[UserContent]:
    """Built-in values as a cell would print them; nothing for others, and for those that hold pictures or tables."""
    from ..agent.results import to_content

    if type(value) not in _PLAIN:
        return []
    if isinstance(value, list | tuple | dict) and any(block.type == "image" for block in to_content(value)):
        return []
    try:
        text = repr(value)
    except Exception as error:
        text = f"<a {type(value).__name__} whose repr failed: {type(error).__name__}: {error}>"
    cut = cut_head(text, MAX_VALUE_LINES, MAX_VALUE_BYTES)
    length = f" of a {type(value).__name__} with {count(len(value), 'item')}" if hasattr(value, "__len__") else ""
    return [TextContent(cut.text + (f"\n[{cut.left_out}{length} left out]" if cut.by else ""))]


def _one_below_the_other(blocks: list[UserContent]) -> list[UserContent]:
    joined: list[UserContent] = []
    for block in blocks:
        if joined and isinstance(block, TextContent) and isinstance(last := joined[-1], TextContent):
            joined[-1] = TextContent(f"{last.text}\n{block.text}")
        else:
            joined.append(block)
    return joined


def traceback_text(error: BaseException) -> str:
    """Type and text of `error`, with the lines of the code that led to it."""
    from ..agent.results import short_traceback

    if isinstance(error, SyntaxError) and error.filename and error.filename.startswith("<python "):
        return "".join(traceback.format_exception_only(error)).rstrip("\n")
    return short_traceback(error)


class NamespaceRunner:
    """Runs code in a dict: the last expression's value is kept, `await` is allowed at the top level.

    Args:
        namespace: Where the code's variables live.
        transform: Makes plain Python of a notebook's own notation (`%magic`, `!command`) first.
    """

    def __init__(self, namespace: dict[str, Any], transform: Callable[[str], str] | None = None) -> None:
        self.namespace = namespace
        self.transform = transform

    async def __call__(self, code: str, context: ToolContext) -> Outcome:
        return await context.host.run_plain(lambda: self._run(code, context), context)

    def _run(self, code: str, context: ToolContext) -> Outcome:
        outcome = Outcome()
        name = f"<python {next(_numbers)}>"
        with context.host.capture(context) as captured:
            outcome.captured = captured
            try:
                outcome.value = self._execute(code, name)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # SystemExit too: a model's code does not end the process
                outcome.error = error
                outcome.traceback = traceback_text(error)
        return outcome

    def _execute(self, code: str, name: str) -> Any:
        if self.transform is not None:
            code = self.transform(code)
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        tree = ast.parse(code, name)
        last = tree.body[-1] if tree.body else None
        if not isinstance(last, ast.Expr):
            return self._evaluate(tree, name, "exec")
        tree.body.pop()
        self._evaluate(tree, name, "exec")
        return self._evaluate(ast.Expression(last.value), name, "eval")

    def _evaluate(self, tree: Any, name: str, mode: str) -> Any:
        compiled = compile(tree, name, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        result = eval(compiled, self.namespace)
        return _awaited(result) if compiled.co_flags & inspect.CO_COROUTINE else result


def _awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine; on a loop and a thread of its own where this thread's loop is busy with this call."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    return start_worker(lambda: asyncio.run(coroutine)).result()
