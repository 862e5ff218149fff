"""What a tool displays inside a notebook: kept for its row, instead of landing loose in the cell."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..agent._progress_bars import watch_progress_bars
from ..agent.output import Captured, capture_output
from ..agent.tool import ToolContext, ToolResult

_collector: contextvars.ContextVar[tuple[Captured, ToolContext] | None] = contextvars.ContextVar(
    "pi_notebook_displays", default=None
)
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
_lock = threading.Lock()
_active = 0


def _keep(collecting: tuple[Captured, ToolContext], data: dict[str, Any]) -> None:
    captured, context = collecting
    captured.show(data)
    context._emit(ToolResult((), {"display": data}))


class _DisplayRouter:
    """Stands in for the shell's display publisher while calls run; what is displayed outside of one passes through."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def publish(self, data: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        collecting = _collector.get()
        if collecting is None:
            self.original.publish(data, *args, **kwargs)
        elif not (WIDGET_VIEW in data and watch_progress_bars()):
            # else the first bar of a tqdm that was imported inside the tool
            _keep(collecting, data)

    def clear_output(self, wait: bool = False) -> None:
        collecting = _collector.get()
        if collecting is None:
            self.original.clear_output(wait)
        else:
            collecting[0].clear(wait)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


class _ValueRouter:
    """Stands in for `sys.displayhook`, which shows the value of a cell that a tool runs (`shell.run_cell`)."""

    def __init__(self, shell: Any, original: Any) -> None:
        self.shell = shell
        self.original = original

    def __call__(self, value: Any = None) -> None:
        collecting = _collector.get()
        if collecting is None:
            self.original(value)
            return
        hook = self.shell.displayhook
        if value is not None and not hook.quiet():
            hook.update_user_ns(value)
            hook.fill_exec_result(value)
            data, _ = hook.compute_format_data(value)
            if data:  # empty: it has displayed itself
                _keep(collecting, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


def behind_routers(hook: Any) -> Any:
    """The display publisher or hook that was there before any call: a call that was left behind keeps its router."""
    while isinstance(hook, _DisplayRouter | _ValueRouter):
        hook = hook.original
    return hook


@contextmanager
def capture_in_row(shell: Any, context: ToolContext) -> Iterator[Captured]:
    """`capture_output`, and displays too. Text streams into the row and nowhere else."""
    global _active
    with _lock:
        _active += 1
        if not isinstance(shell.display_pub, _DisplayRouter):
            shell.display_pub = _DisplayRouter(shell.display_pub)
        if not isinstance(sys.displayhook, _ValueRouter):
            sys.displayhook = _ValueRouter(shell, sys.displayhook)
    try:
        with capture_output(context, echo=False) as captured:
            token = _collector.set((captured, context))
            try:
                yield captured
            finally:
                _collector.reset(token)
    finally:
        with _lock:
            _active -= 1
            if not _active and isinstance(shell.display_pub, _DisplayRouter):
                shell.display_pub = shell.display_pub.original
            if not _active and isinstance(sys.displayhook, _ValueRouter):
                sys.displayhook = sys.displayhook.original
