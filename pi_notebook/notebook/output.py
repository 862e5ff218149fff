"""What a tool displays inside a notebook: kept for its row, instead of landing loose in the cell."""

from __future__ import annotations

import contextvars
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


class _DisplayRouter:
    """Stands in for the shell's display publisher while calls run; what is displayed outside of one passes through."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def publish(self, data: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        collecting = _collector.get()
        if collecting is None:
            self.original.publish(data, *args, **kwargs)
            return
        captured, context = collecting
        if WIDGET_VIEW in data and watch_progress_bars():
            return  # the first bar of a tqdm that was imported inside the tool
        captured.displays.append(data)
        context._emit(ToolResult((), {"display": data}))

    def clear_output(self, wait: bool = False) -> None:
        collecting = _collector.get()
        if collecting is None:
            self.original.clear_output(wait)
        else:
            collecting[0].displays.clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


@contextmanager
def capture_in_row(shell: Any, context: ToolContext) -> Iterator[Captured]:
    """`capture_output`, and displays too. Text streams into the row and nowhere else."""
    global _active
    with _lock:
        _active += 1
        if not isinstance(shell.display_pub, _DisplayRouter):
            shell.display_pub = _DisplayRouter(shell.display_pub)
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
