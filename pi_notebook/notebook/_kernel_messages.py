"""Widget messages out of a busy kernel's queue: private ipykernel API, one class per way in.

Used by `bridge` alone. ipykernel handles shell messages one after another, so the click that a running cell waits
for is stuck behind that very cell. A source takes out of the queue what a page needs for widgets to work, and leaves
everything else, in its order, where ipykernel finds it.

- `TappedStream` (ipykernel 7): messages arrive on a thread of their own; we stand in front of its callback.
- `ScannedQueue` (ipykernel 6): messages wait in the socket; we let ipykernel read them into its queue and pick there.
- `NoSource`: no kernel, or one whose private names are not those we know.

Every name is looked for before use (`find_source`). Names seen in ipykernel 6.31.0, 7.0.1, 7.3.0, 7.4.0.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

COMM_TYPES = frozenset({"comm_open", "comm_msg", "comm_close"})
# A page that loads in the middle of a run asks these before it can show any widget.
INFO_TYPES = frozenset({"comm_info_request", "kernel_info_request"})

_POLL_OUT = 2  # zmq.POLLOUT
_SWAP_SECONDS = 5.0


class Message(NamedTuple):
    """A verified shell message and the identity of the client that sent it."""

    identities: list[bytes]
    content: dict[str, Any]
    """The whole deserialized message: header, parent_header, metadata, content, buffers."""

    @property
    def type(self) -> str:
        return str(self.content["header"]["msg_type"])


class Source(Protocol):
    """Where widget messages come from while a cell runs."""

    mode: str
    interval: float | None
    """Seconds between calls of `poll` that are needed to see messages; None if they announce themselves."""

    def open(self) -> bool:
        """Start taking widget messages. False if that is not possible; then the source is of no use."""

    def poll(self) -> None:
        """Hand over what came since the last call. On the main thread only."""

    def close(self) -> None:
        """Stop taking messages; what comes from now on waits for the cell's end."""

    def handle(self, message: Message) -> None:
        """Run the kernel's handler for `message`, on the calling thread."""


class NoSource:
    """No widget message ever arrives."""

    mode = "none"
    interval: float | None = None

    def open(self) -> bool:
        return True

    def poll(self) -> None: ...

    def close(self) -> None: ...

    def handle(self, message: Message) -> None: ...


class _KernelSource:
    """What both kernel generations share: which messages are ours, and how one is handled."""

    mode: str

    def __init__(self, kernel: Any, deliver: Callable[[Message], None]) -> None:
        self._kernel = kernel
        self._deliver = deliver
        # None is the main shell; a cell can also run in a subshell (ipykernel 7)
        self._subshell_id = kernel.get_parent("shell").get("header", {}).get("subshell_id")

    def _take(self, frames: list[Any]) -> bool:
        """Deliver `frames` if they are a message for us. False, and nothing done, if not, or if they are malformed."""
        session = self._kernel.session
        try:
            identities, parts = session.feed_identities(frames, copy=False)
            header = session.unpack(parts[1].bytes)
            if not self._is_ours(header):
                return False
            message = session.deserialize(parts, content=True, copy=False)  # verifies the signature
        except Exception:
            self._kernel.log.warning("pi_notebook: message left to the kernel", exc_info=True)
            return False
        self._deliver(Message(identities, message))
        return True

    def _is_ours(self, header: dict[str, Any]) -> bool:
        if header["msg_type"] in COMM_TYPES:
            return True  # whatever subshell it is addressed to: widgets belong to the thread that runs the cell
        return header["msg_type"] in INFO_TYPES and header.get("subshell_id") == self._subshell_id

    def _reply_stream(self) -> Any:
        raise NotImplementedError

    def _sent(self, stream: Any) -> None:
        """Called after a handler wrote to `stream`."""

    def handle(self, message: Message) -> None:
        kernel = self._kernel
        # No set_parent: what a widget's callback prints belongs to the cell that is running.
        # Busy and idle, because the front end holds back a widget's next change until it sees idle.
        kernel._publish_status("busy", "shell", parent=message.content)
        try:
            if not self._is_late(message):
                stream = self._reply_stream()
                finish(kernel.shell_handlers[message.type](stream, message.identities, message.content))
                self._sent(stream)
        except Exception:
            kernel.log.error("pi_notebook: exception in handler of %s", message.type, exc_info=True)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            kernel._publish_status("idle", "shell", parent=message.content)

    def _is_late(self, message: Message) -> bool:
        """A message for a comm that is closed; ipykernel would complain about it in the cell."""
        return (
            message.type in ("comm_msg", "comm_close")
            and message.content["content"].get("comm_id") not in self._kernel.comm_manager.comms
        )


class TappedStream(_KernelSource):
    """ipykernel 7: stands in front of the callback of the shell channel's stream, on that stream's thread."""

    mode = "tap7"
    interval: float | None = None
    _is_open = False

    def open(self) -> bool:
        stream = self._kernel.shell_stream
        # Not a fixed name: another tap may be in place (an agent's cell inside an agent's cell)
        self._original = stream._recv_callback
        self._is_open = self._on_stream_thread(lambda: stream.on_recv(self._tapped, copy=False))
        return self._is_open

    def _tapped(self, frames: list[Any]) -> Awaitable[None] | None:
        if self._is_open and self._take(frames):
            return None
        result: Awaitable[None] | None = self._original(frames)
        return result

    def poll(self) -> None: ...

    def close(self) -> None:
        self._is_open = False  # even if the thread below no longer answers
        self._on_stream_thread(lambda: self._kernel.shell_stream.on_recv(self._original, copy=False))

    def _on_stream_thread(self, change: Callable[[], None]) -> bool:
        """Have the stream's own thread make a change. False if it does not answer."""
        done = threading.Event()

        def change_and_tell() -> None:
            change()
            done.set()

        try:
            self._kernel.shell_channel_thread.io_loop.add_callback(change_and_tell)
        except RuntimeError:  # its loop is closed
            return False
        return done.wait(_SWAP_SECONDS)

    def _reply_stream(self) -> Any:
        manager = self._kernel.shell_channel_thread.manager
        return manager.get_subshell_to_shell_channel_socket(self._subshell_id)


class ScannedQueue(_KernelSource):
    """ipykernel 6: has the kernel read its socket into its message queue, then picks out of that queue."""

    mode = "queue6"
    interval: float | None = 0.03

    def open(self) -> bool:
        self._scanned = 0
        return True

    def poll(self) -> None:
        kernel = self._kernel
        kernel.shell_stream.flush()  # reads the socket; runs no handler
        waiting = kernel.msg_queue._queue
        # Nobody else takes from the queue while our cell runs, so what was looked at once stays at its left end
        fresh = [waiting.pop() for _ in range(len(waiting) - self._scanned)]
        for entry in reversed(fresh):
            if not self._take_entry(entry):
                waiting.append(entry)
        self._scanned = len(waiting)

    def _take_entry(self, entry: tuple[Any, ...]) -> bool:
        _, dispatch, arguments = entry
        return dispatch == self._kernel.dispatch_shell and self._take(arguments[0])

    def close(self) -> None:
        self.poll()  # an edge-triggered socket: what was noticed but not read would wait for the next message

    def _reply_stream(self) -> Any:
        return self._kernel.shell_stream

    def _sent(self, stream: Any) -> None:
        stream.flush(_POLL_OUT)


def finish(result: Any) -> None:
    """Run a handler's coroutine to its end without an event loop.

    Raises:
        RuntimeError: The coroutine waits for something. None of the handlers used here does.
    """
    if not inspect.isawaitable(result):
        return
    steps: Iterator[Any] = result.__await__()
    try:
        next(steps)
    except StopIteration:
        return
    raise RuntimeError("the kernel's handler waits for its event loop, which is busy")


_SHARED_NAMES = (
    "log",
    "get_parent",
    "_publish_status",
    "shell_handlers",
    "comm_manager.comms",
    "session.feed_identities",
    "session.unpack",
    "session.deserialize",
)
_TAP_NAMES = (
    "shell_channel_thread.io_loop.add_callback",
    "shell_channel_thread.manager.get_subshell_to_shell_channel_socket",
    "shell_stream.on_recv",
    "shell_stream._recv_callback",
)
_QUEUE_NAMES = ("msg_queue._queue.pop", "dispatch_shell", "shell_stream.flush")


def find_source(kernel: Any, deliver: Callable[[Message], None]) -> Source:
    """The way in that `kernel` offers, or `NoSource` if it is None or lacks a name that we need.

    `deliver` is called with each message, in order of arrival, from any thread.
    """
    if kernel is None or not _has_all(kernel, _SHARED_NAMES):
        return NoSource()
    if not set(kernel.shell_handlers) >= COMM_TYPES | INFO_TYPES:
        return NoSource()
    # Some of ipykernel 7 have a message queue too, but nothing ever waits in it
    if not hasattr(kernel, "shell_channel_thread"):
        return ScannedQueue(kernel, deliver) if _has_all(kernel, _QUEUE_NAMES) else NoSource()
    return TappedStream(kernel, deliver) if _has_all(kernel, _TAP_NAMES) else NoSource()


def _has_all(thing: Any, names: Iterable[str]) -> bool:
    return all(_has(thing, name) for name in names)


def _has(thing: Any, dotted: str) -> bool:
    for name in dotted.split("."):
        thing = getattr(thing, name, None)
        if thing is None:
            return False
    return True
