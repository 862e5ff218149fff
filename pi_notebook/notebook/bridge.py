"""The kernel during one agent's cell: clicks, main-thread calls, interrupts, output, and who can answer.

The agent works on a thread of its own (`Bridge.spawn`) while the cell's thread waits in a pump (`Bridge.wait`) that
handles widget messages and runs, one at a time, what has to happen on the cell's thread (`Bridge.call`). Nothing else
in the kernel's queue is touched: cells that wait behind this one run after it, in order, never inside it.

This module and `_kernel_messages` hold all private kernel API of the package. Neither knows agents or widgets.
"""

from __future__ import annotations

import contextvars
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, Literal, TypeVar

from ..errors import PiNotebookError
from ._kernel_messages import INFO_TYPES, Message, NoSource, find_source

T = TypeVar("T")
Answerer = Literal["terminal", "nobody", "front end"]

_LONGEST_WAIT = 0.25  # seconds; on Windows a waiting lock does not let a signal handler run
_PROMPT_SECONDS = 0.2
_STUCK_SECONDS = 1.0  # a widget's callback that takes longer may be broken off by a second interrupt


class CallInterrupted(PiNotebookError):
    """A person interrupted the kernel while this call ran on the main thread."""


class CallExited(PiNotebookError):
    """A call on the main thread tried to end the process, or its task, instead of returning or raising an error."""


@dataclass(slots=True)
class _Call:
    function: Callable[[], Any]
    context: contextvars.Context
    future: Future[Any]


class Bridge:
    """A context manager, entered on the thread that runs the cell, for the length of one agent run.

        with Bridge(shell, on_interrupt=agent.abort) as bridge:
            bridge.spawn(work)          # calls bridge.call(...), and bridge.wake() when it has ended
            bridge.wait(lambda: work_has_ended)

    Enter it before the first widget is shown, so that no click can come too early to be seen.

    **Clicks.** Messages of all comms are handled on the cell's thread while `wait` waits, each between a busy and an
    idle status. While a call of `call` runs there, they wait in order, and are handled right after it; a long call can
    let them through with `pump_once`.

    **Interrupts** (SIGINT). While a call runs, KeyboardInterrupt is raised in it; everywhere else nothing is torn: a
    note is left, and acted on by the pump. The first interrupt calls `on_interrupt`, on the cell's thread; a second one
    makes `wait` raise KeyboardInterrupt at once, whatever still runs. A widget's callback is broken off only by a
    second interrupt, and only if it has run for more than a second. The handler found on entry is put back on exit.
    On a thread that is not Python's main thread there can be no handler, and nothing is changed.

    Attributes:
        mode: `"tap7"`, `"queue6"` (see `_kernel_messages`) or `"none"`: clicks cannot arrive while the cell runs,
            everything else works.
        page_reloaded: A page other than the one that runs the cell (the same one, loaded again, is another) asked
            for the kernel's widgets during the run, so a display id known to the first page may be lost.
        prompt: The message that is handled now has not waited for a call to let it through.
    """

    mode: str
    page_reloaded: bool
    prompt: bool

    def __init__(self, shell: Any, on_interrupt: Callable[[], None] | None = None) -> None:
        """`shell` is the IPython shell. Without a `kernel` attribute it is a terminal, and no clicks can arrive."""
        self._display_pub = shell.display_pub
        self._on_interrupt = on_interrupt
        self._inbox: queue.SimpleQueue[Message | _Call | Future[None] | None] = queue.SimpleQueue()
        self._messages: deque[Message] = deque()
        self._calls: deque[_Call] = deque()
        self._asked: list[Future[None]] = []  # by `messages_handled`
        # SimpleQueue, since its put is safe in a signal handler
        self._interrupt_notes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._interrupts = 0
        self._thread: int | None = None
        self._in_call = False
        self._looked_at = time.monotonic()
        self._message_started: float | None = None
        self._closed = False
        self._old_handler: Any = None
        self.page_reloaded = False
        self.prompt = True
        kernel = getattr(shell, "kernel", None)
        self._parent = _parent(kernel)
        self._page = self._parent.get("header", {}).get("session")
        self._source = find_source(kernel, self._inbox.put)
        self.mode = self._source.mode

    # ---- life -------------------------------------------------------------------------------------------------

    def __enter__(self) -> Bridge:
        self._thread = threading.get_ident()
        self._outer, _entered.bridge = bridge_of_thread(), self
        self._install_signal_handler()
        if not self._source.open():
            self._source = NoSource()
            self.mode = self._source.mode
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Put everything back, handle what was taken already, cancel the calls that have not started."""
        try:
            self._source.close()
            self._closed = True
            self._sort_inbox()
            self._handle_messages()
            for call in self._calls:
                call.future.cancel()
            for asked in self._asked:
                asked.cancel()
        finally:
            _entered.bridge = self._outer
            self._restore_signal_handler()

    # ---- from any thread --------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Have `wait` look at its condition now. Any thread, also a signal handler."""
        self._inbox.put(None)

    def call(self, function: Callable[[], T]) -> Future[T]:
        """Run `function()` on the cell's thread, in the caller's context, after the calls submitted before it.

        Any thread. From inside such a call the function runs at once: there is nobody else to run it.

        Returns:
            A future with the result or the `Exception` of `function`. A KeyboardInterrupt counts as the run's
            interrupt and becomes `CallInterrupted`; any other exception that is no `Exception` (SystemExit) becomes
            `CallExited`. A call that has not started when the run is interrupted never starts, and gets
            `CallInterrupted` too. Cancelled if the bridge is, or gets, closed before the call starts.
        """
        call = _Call(function, contextvars.copy_context(), Future())
        if self._in_call and threading.get_ident() == self._thread:
            self._run_call(call)
            return call.future
        self._inbox.put(call)
        if self._closed:
            call.future.cancel()
        return call.future

    def messages_handled(self) -> Future[None]:
        """A future that is done, on the cell's thread, once the widget messages that have come by now are handled.

        Any thread. While a call runs that lets no messages through, that takes until its end. Cancelled if the bridge
        is, or gets, closed.
        """
        future: Future[None] = Future()
        self._inbox.put(future)
        if self._closed:
            future.cancel()
        return future

    def spawn(self, function: Callable[[], object], name: str = "pi_notebook agent") -> threading.Thread:
        """Start `function()` on a daemon thread, in a copy of the caller's context.

        What it prints and displays lands in the caller's cell. A daemon, so that a stuck one cannot hold up the
        kernel's shutdown. An exception that leaves `function` goes to `threading.excepthook`.
        """
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(function,), name=name, daemon=True)
        thread.start()
        return thread

    def publish(
        self,
        data: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        *,
        display_id: str | None = None,
        update: bool = False,
    ) -> None:
        """Publish a MIME bundle as output of the cell that entered this bridge. Any thread, any time.

        Args:
            data: MIME type to JSON-ready value (images as base64 text).
            metadata: MIME type to metadata.
            display_id: Name for later updates.
            update: Replace the outputs shown under `display_id` instead of adding one.
        """
        transient = {} if display_id is None else {"display_id": display_id}
        publisher = self._display_pub
        if not all(hasattr(publisher, name) for name in ("session", "pub_socket", "topic")):
            # a terminal, or output that is being captured: there an update takes the place of what it updates
            captured = getattr(publisher, "outputs", ()) if update else ()
            earlier = next((output for output in captured if output.get("transient") == transient), None)
            if earlier is not None:
                earlier.update(data=data, metadata=metadata or {})
            else:
                publisher.publish(data=data, metadata=metadata or {}, transient=transient, update=update)
            return
        sys.stdout.flush()
        sys.stderr.flush()
        # Straight to the socket: ipykernel 6 knows one current cell only, which after this one is another
        content = {"data": data, "metadata": metadata or {}, "transient": transient}
        kind = "update_display_data" if update else "display_data"
        message = publisher.session.msg(kind, content, parent=self._parent)
        publisher.session.send(publisher.pub_socket, message, ident=publisher.topic)

    # ---- on the cell's thread ---------------------------------------------------------------------------------

    @property
    def interrupted(self) -> bool:
        """Whether a person has interrupted the run, be it acted on yet or not."""
        return self._interrupts > 0 or not self._interrupt_notes.empty()

    def wait(self, done: Callable[[], bool], timeout: float | None = None) -> bool:
        """Pump until `done()` is true or `timeout` seconds have passed. Returns what `done()` said last.

        `done` is asked after everything that happened here and after `wake`; it must be quick and must not raise.

        Raises:
            KeyboardInterrupt: The run was interrupted a second time. `wait` may be called again, nothing is lost.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        in_call, self._in_call = self._in_call, False
        try:
            while True:
                self._take_interrupts()
                if done():
                    return True
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                if not self._step():
                    self._rest(left)
        finally:
            self._in_call = in_call

    def pump_once(self) -> None:
        """Handle the widget messages that have arrived, without waiting: for a long call on the cell's thread.

        Safe inside a call of `call`, where else a click on **Stop** would wait for its end; on another thread it
        does nothing. Starts no other call.

        Raises:
            KeyboardInterrupt: Inside a call, if an interrupt came while a message was handled.
        """
        if threading.get_ident() != self._thread or self._message_started is not None:
            return
        in_call, self._in_call = self._in_call, False
        try:
            self._look()
        finally:
            self._in_call = in_call
        if in_call and not self._interrupt_notes.empty():
            raise KeyboardInterrupt

    def _rest(self, longest: float | None) -> None:
        """Wait until something comes in, or it is time to look for it."""
        limits = [_LONGEST_WAIT, longest, self._source.interval]
        try:
            self._sort(self._inbox.get(timeout=min(limit for limit in limits if limit is not None)))
        except queue.Empty:
            pass
        self._looked_at = time.monotonic()

    def _step(self) -> bool:
        """Do what is there to do. At most one call, since after each the run may have ended."""
        looked = self._look()
        if self._calls:
            self._run_call(self._calls.popleft())
            return True
        return looked

    def _look(self) -> bool:
        """Handle the messages that have come; False if there was nothing to do."""
        self.prompt = time.monotonic() - self._looked_at < _PROMPT_SECONDS
        self._sort_inbox()
        asked, self._asked = self._asked, []  # before the look, so that it sees all that had come by then
        self._source.poll()
        self._sort_inbox()
        handled = self._handle_messages()
        for future in asked:
            if future.set_running_or_notify_cancel():
                future.set_result(None)
        self._looked_at = time.monotonic()
        return handled or bool(asked)

    def _sort_inbox(self) -> None:
        while True:
            try:
                self._sort(self._inbox.get_nowait())
            except queue.Empty:
                return

    def _sort(self, item: Message | _Call | Future[None] | None) -> None:
        if isinstance(item, _Call):
            self._calls.append(item)
        elif isinstance(item, Future):
            self._asked.append(item)
        elif item is not None:
            self._messages.append(item)

    def _handle_messages(self) -> bool:
        handled = False
        while self._messages:
            handled = True
            message = self._messages.popleft()
            if message.type in INFO_TYPES and message.content["header"].get("session") != self._page:
                self.page_reloaded = True
            self._message_started = time.monotonic()
            try:
                self._source.handle(message)
            except KeyboardInterrupt:
                pass  # its note is waiting
            finally:
                self._message_started = None
        return handled

    def _run_call(self, call: _Call) -> None:
        """Run `call` so that an interrupt can hit its function, but never the lines that keep the books."""
        if not call.future.set_running_or_notify_cancel():
            return
        outer, self._in_call = self._in_call, True
        try:
            result = call.context.run(self._invoke, call.function)
        except BaseException as error:
            self._in_call = outer
            self._fail(call.future, error)
        else:
            self._in_call = outer
            call.future.set_result(result)

    def _invoke(self, function: Callable[[], T]) -> T:
        """A frame between a call and the books: an interrupt that comes in here is the function's."""
        if self.interrupted:
            raise KeyboardInterrupt
        return function()

    def _fail(self, future: Future[Any], error: BaseException) -> None:
        if isinstance(error, KeyboardInterrupt):
            if not self.interrupted:
                self._interrupt_notes.put(None)  # raised by the function itself, not by our handler
            replacement: Exception = CallInterrupted("interrupted by the user")
        elif isinstance(error, Exception):
            future.set_exception(error)
            return
        else:
            replacement = CallExited(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        # Not as they are: raised in a coroutine, they would end the agent's event loop
        replacement.__cause__ = error
        future.set_exception(replacement)

    # ---- interrupts -------------------------------------------------------------------------------------------

    def _install_signal_handler(self) -> None:
        if threading.current_thread() is threading.main_thread():
            # None: a handler that was not set from Python, and could not be put back
            self._old_handler = signal.getsignal(signal.SIGINT)
            if self._old_handler is not None:
                signal.signal(signal.SIGINT, self._handle_signal)

    def _restore_signal_handler(self) -> None:
        if self._old_handler is not None:
            signal.signal(signal.SIGINT, self._old_handler)

    def _handle_signal(self, signum: int, frame: FrameType | None) -> None:
        self._interrupt_notes.put(None)
        self.wake()
        in_function = self._in_call and (frame is None or frame.f_code not in _BOOKKEEPING)
        if in_function or self._is_stuck():
            raise KeyboardInterrupt

    def _is_stuck(self) -> bool:
        """Whether a second interrupt asks to break off a widget's callback."""
        started = self._message_started
        if started is None or time.monotonic() - started < _STUCK_SECONDS:
            return False
        return self._interrupts + self._interrupt_notes.qsize() > 1

    def _take_interrupts(self) -> None:
        """Act on the notes that interrupts left."""
        while True:
            try:
                self._interrupt_notes.get_nowait()
            except queue.Empty:
                return
            self._interrupts += 1
            if self._interrupts > 1:
                raise KeyboardInterrupt
            if self._on_interrupt is not None:
                self._on_interrupt()


_entered = threading.local()


def bridge_of_thread() -> Bridge | None:
    """The bridge of the cell that runs on this thread, if it has one."""
    bridge: Bridge | None = getattr(_entered, "bridge", None)
    return bridge


# Frames of ours that run while `_in_call` is set
_BOOKKEEPING = frozenset({Bridge._run_call.__code__, Bridge._handle_signal.__code__})


def who_can_answer(shell: Any) -> Answerer:
    """Who could answer a question that the running cell asks.

    Returns:
        `"terminal"`: IPython without a kernel; ask by `input()`. `"nobody"`: the cell was sent by a program that takes
        no input (nbclient, papermill, nbconvert). `"front end"`: a page or console; whether it draws widgets is seen
        only once one is shown.
    """
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return "terminal"
    return "front end" if _parent(kernel).get("content", {}).get("allow_stdin") else "nobody"


def running_cell(shell: Any) -> tuple[str, str | None]:
    """Which cell runs: the id of its execution (empty in a terminal), and the id that the page gave the cell, if any.

    JupyterLab, Notebook 7 and VS Code name the cell in the request's metadata; consoles and programs do not.
    """
    parent = _parent(getattr(shell, "kernel", None))
    cell_id = parent.get("metadata", {}).get("cellId")
    return str(parent.get("header", {}).get("msg_id", "")), None if cell_id is None else str(cell_id)


def is_cell_thread() -> bool:
    """Whether cells run on the calling thread: it is Python's main thread, or one of ipykernel's (a subshell)."""
    thread = threading.current_thread()
    of_kernel = any(each.__module__.partition(".")[0] == "ipykernel" for each in type(thread).__mro__)
    return of_kernel or thread is threading.main_thread()


def _parent(kernel: Any) -> dict[str, Any]:
    """The execute request of the running cell; empty outside of one."""
    get_parent = getattr(kernel, "get_parent", None)
    parent: dict[str, Any] = get_parent("shell") if get_parent is not None else {}
    return parent or {}
