"""What a tool writes to stdout and stderr, and the figures it leaves open in pyplot, told apart by call."""

from __future__ import annotations

import contextvars
import os
import re
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TextIO, cast

from . import _figures as figures
from ._progress_bars import watch_progress_bars
from .tool import ToolContext, ToolResult

_MOVES = re.compile(r"(\r|\x08|\x1b\[[02]?K)")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def as_shown(text: str) -> str:
    """`text` as a terminal shows it: after a carriage return or a backspace, what comes overwrites what was there."""
    if not _MOVES.search(text):
        return text
    return "\n".join(map(_overwritten, text.replace("\r\n", "\n").split("\n")))


def _overwritten(line: str) -> str:
    if not _MOVES.search(line):
        return line
    shown, at = "", 0
    for piece in _MOVES.split(_COLOURS.sub("", line)):
        if piece == "\r":
            at = 0
        elif piece == "\x08":
            at = max(0, at - 1)
        elif piece.startswith("\x1b"):
            shown = "" if "2" in piece else shown[:at]
            at = len(shown)
        else:
            shown = shown[:at] + piece + shown[at + len(piece) :]
            at += len(piece)
    return shown


class OutputCleared:
    """`details` of an update: what the call had written and displayed was taken back."""


class Captured:
    """What one call wrote and displayed.

    Attributes:
        text: All that was written to stdout and stderr, in order, as a terminal shows it.
        displays: Rich output in order: objects (figures), or mimebundles (dict of mime type to data).
    """

    __slots__ = ("_lock", "_on_clear", "_parts", "_stale", "displays")

    def __init__(self, on_clear: Callable[[], None] | None = None) -> None:
        """`on_clear` is called whenever what was there so far is forgotten."""
        self._parts: list[str] = []
        self._lock = threading.Lock()
        self._on_clear = on_clear
        self._stale = False
        self.displays: list[Any] = []

    @property
    def text(self) -> str:
        with self._lock:
            if len(self._parts) > 1:
                self._parts[:] = ["".join(self._parts)]
            return as_shown(self._parts[0]) if self._parts else ""

    def write(self, text: str) -> None:
        self._renew()
        with self._lock:
            self._parts.append(text)

    def show(self, display: Any) -> None:
        """Add to `displays`."""
        self._renew()
        self.displays.append(display)

    def clear(self, wait: bool = False) -> None:
        """Forget what was written and displayed so far; with `wait`, as soon as something new comes."""
        self._stale = True
        if not wait:
            self._renew()

    def _renew(self) -> None:
        if self._stale:
            self._stale = False
            with self._lock:
                self._parts.clear()
            self.displays.clear()
            if self._on_clear is not None:
                self._on_clear()

    def __bool__(self) -> bool:
        return bool(self.displays or self.text)

    def __repr__(self) -> str:
        return f"<Captured: {len(self.text)} characters, {len(self.displays)} displays>"


class _Sink:
    """Where the writes of one call go: kept, told to the call's console, and passed on if `echo`.

    The console is told whole lines (`print` writes its text and its line end apart), and the rest on a flush.
    """

    def __init__(self, context: ToolContext, echo: bool) -> None:
        self.context = context
        self.captured = Captured(self._cleared)
        self.echo = echo
        self.lock = threading.RLock()
        self.pending: list[str] = []

    def write(self, text: str) -> None:
        self.captured.write(text)
        with self.lock:
            self.pending.append(text)
            if "\n" in text:
                self.flush()

    def _cleared(self) -> None:
        with self.lock:
            self.pending.clear()
        self.context._emit(ToolResult((), OutputCleared()))

    def flush(self) -> None:
        with self.lock:
            text, self.pending = "".join(self.pending), []
            if text:
                # A listener may print in its turn, which must not be told to it.
                token = _telling.set(True)
                try:
                    self.context.console.write(text)
                finally:
                    _telling.reset(token)


_sink: contextvars.ContextVar[_Sink | None] = contextvars.ContextVar("pi_notebook_sink", default=None)
_telling: contextvars.ContextVar[bool] = contextvars.ContextVar("pi_notebook_telling", default=False)


class _Router:
    """Stands in for `sys.stdout` or `sys.stderr` while calls run; writes outside of a call pass through.

    One per stream that it stands in for, so that whoever swaps streams meanwhile (`%%capture`) and puts back what was
    there gets just that.
    """

    def __init__(self, name: str, original: TextIO | None) -> None:
        self._name = name
        self._original = original

    @classmethod
    def install(cls, name: str) -> None:
        present = getattr(sys, name)
        if not isinstance(present, cls):
            setattr(sys, name, cls(name, present))

    @classmethod
    def remove(cls, name: str) -> None:
        present = getattr(sys, name)
        if isinstance(present, cls):
            setattr(sys, name, present._original)

    def _real(self) -> TextIO:
        """What it stands in for, also for whoever kept this object, as a logging handler does. Never today's stream,
        which may be somebody's that writes to this one in turn."""
        return cast(TextIO, self._original or getattr(sys, f"__{self._name}__") or _Nowhere())

    def write(self, text: str) -> int:
        sink = _sink.get()
        if sink is None or _telling.get():
            return self._real().write(text)
        if text.startswith("\r") and watch_progress_bars():
            return len(text)  # the first bar of a tqdm that was imported inside the tool
        if sink.echo:
            self._real().write(text)
        sink.write(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        sink = _sink.get()
        if sink is not None and not _telling.get():
            sink.flush()
        self._real().flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real(), name)


class _Nowhere:
    """A process without a console (pythonw) has None as its stdout."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None: ...


_STREAMS = ("stdout", "stderr")
_lock = threading.Lock()
_active = 0


def _forget_lock() -> None:
    """A forked child may have been made while another thread held it."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


def capture_output(context: ToolContext, *, echo: bool = True) -> AbstractContextManager[Captured]:
    """Collect what is written to stdout and stderr inside, in every thread that runs in a copy of this context.

    Text goes to `context.console` as it comes, and with `echo` to the real stream too. Calls that run side by side
    never mix. `tqdm` bars become `context.progress`. pyplot figures that were opened inside are collected at the end
    and closed, so that the next call on this thread starts on a new one: enter it where the call runs.
    """
    return _Capture(context, echo)


class _Capture:
    """See `capture_output`; no generator, for it is entered at every call."""

    __slots__ = ("_hooked", "_made", "_noting", "_sink", "_token")

    def __init__(self, context: ToolContext, echo: bool) -> None:
        self._sink = _Sink(context, echo)

    def __enter__(self) -> Captured:
        global _active
        watch_progress_bars()
        self._hooked = "matplotlib.pyplot" in sys.modules
        with _lock:
            _active += 1
            for name in _STREAMS:
                _Router.install(name)
            if self._hooked:
                figures.watch()
        self._token = _sink.set(self._sink)
        self._made, self._noting = figures.begin_noting()
        return self._sink.captured

    def __exit__(self, *_: object) -> None:
        global _active
        figures.end_noting(self._noting)
        _sink.reset(self._token)
        sink = self._sink
        sink.flush()
        try:
            sink.captured.displays += figures.take(self._made, self._hooked)
        finally:
            with _lock:
                _active -= 1
                if not _active:
                    for name in _STREAMS:
                        _Router.remove(name)
                    figures.unwatch()
