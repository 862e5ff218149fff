"""tqdm bars inside a tool move the call's progress bar instead of writing to the screen.

tqdm is never imported: its classes are wrapped when a tool starts, or writes its first bar, and they are loaded.
"""

from __future__ import annotations

import functools
import io
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

from .tool import ToolContext

_leading: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()
"""The context of a call -> the bar that is shown for it: the first that lives, which of nested bars is the outer."""
_lock = threading.Lock()
_replaced: set[str] = set()


def watch_progress_bars() -> bool:
    """Wrap what is loaded of tqdm, once for each class. Returns whether there was something new."""
    new = False
    for module, name in (("tqdm.std", "tqdm"), ("tqdm.notebook", "tqdm_notebook")):
        if module in sys.modules and module not in _replaced:
            with _lock:
                if module not in _replaced and (bar := getattr(sys.modules[module], name, None)) is not None:
                    _replaced.add(module)
                    _wrap(bar, notebook=module == "tqdm.notebook")
                    new = True
    return new


def _wrap(bar: Any, notebook: bool) -> None:
    bar.display = _reporting(bar.display)
    if notebook:
        bar.__init__ = _without_widget(bar.__init__)
    else:
        bar.close = _silent(bar.close)


def _reporting(display: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(display)
    def report(self: Any, *args: Any, **options: Any) -> Any:
        context = ToolContext.current()
        if context is None:
            return display(self, *args, **options)
        if _leads(self, context):
            total = self.total if self.total is None or self.total >= self.n else None
            context.progress(self.n, total, self.desc.removesuffix(": ") if self.desc else "")
        return True

    return report


def _leads(bar: Any, context: ToolContext) -> bool:
    with _lock:
        reference = _leading.get(context)
        leader = reference() if reference is not None else None
        if leader is None or (leader is not bar and leader.disable):
            _leading[context] = weakref.ref(bar)
            return True
        return leader is bar


def _silent(close: Callable[..., Any]) -> Callable[..., Any]:
    """Closing a bar ends its line, which was never begun."""

    @functools.wraps(close)
    def closing(self: Any) -> Any:
        if ToolContext.current() is not None:
            self.fp = io.StringIO()
        return close(self)

    return closing


def _without_widget(initialise: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(initialise)
    def initialising(self: Any, *args: Any, **options: Any) -> None:
        if ToolContext.current() is not None:
            options["display"] = False
        initialise(self, *args, **options)

    return initialising
