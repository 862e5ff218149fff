"""The line between a call in another process and the context it belongs to: updates one way, an abort the other."""

from __future__ import annotations

import contextlib
import functools
import secrets
import socket
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge
from typing import Any, ClassVar

from ..ai.abort import AbortController
from .workers import start_worker

SECONDS_BETWEEN = 0.05
"""Updates that come faster than this are thinned out: the last of them is always sent. Printed text is not thinned."""
REST_SECONDS = 1.0
"""How long the last updates of a call that has ended are waited for."""

Receive = Callable[[bytes], None]

_BEGUN, _ENDED = b"begun", b"ended"


class LineEnd:
    """The far end. This one leads nowhere; a context manager that sends what is left at its end."""

    leads_home = False

    def __init__(self) -> None:
        self.controller = AbortController()
        self.signal = self.controller.signal
        self._waiting: list[tuple[str, bytes]] = []
        self._wake = threading.Condition()
        self._open = True

    def send(self, kind: str, message: bytes) -> None:
        """Send `message` soon. Of several of kind `update` only the last is sent."""
        with self._wake:
            if kind == "update" and self._waiting and self._waiting[-1][0] == kind:
                self._waiting.pop()
            self._waiting.append((kind, message))
            self._wake.notify()

    def deliver(self, message: bytes) -> None:
        """Send now. May raise anything; the line is then given up."""

    def __enter__(self) -> LineEnd:
        if not self.signal.aborted:
            self.send("begun", _BEGUN)
        self._sender = start_worker(self._send_waiting)
        return self

    def __exit__(self, *_: Any) -> None:
        with self._wake:
            self._open = False
            self._wake.notify()
        with contextlib.suppress(Exception):
            self._sender.result(timeout=REST_SECONDS)

    def _send_waiting(self) -> None:
        while True:
            with self._wake:
                while self._open and not self._waiting:
                    self._wake.wait()
                messages, self._waiting = self._waiting, []
            for _, message in messages:
                self.deliver(message)
            if not self._open and not self._waiting:
                self.deliver(_ENDED)
                return
            time.sleep(SECONDS_BETWEEN)


class Line:
    """The near end. `end` is picklable and opens to the far `LineEnd`. `begun`: the call runs there.

    An end that opens after `abort` has its signal raised already.
    """

    end: Any

    def __init__(self, receive: Receive, begin: Callable[[], None]) -> None:
        self._receive = receive
        self._begin = begin
        self._ended = threading.Event()
        self.begun = False

    def take(self, message: bytes) -> None:
        if message == _BEGUN:
            self.begun = True
            self._begin()
        elif message == _ENDED:
            self._ended.set()
        else:
            self._receive(message)

    def wait_for_rest(self) -> None:
        """Return when all updates are here; blocks `REST_SECONDS` at most."""
        self._ended.wait(REST_SECONDS)

    def abort(self, reason: str) -> None:
        """Raise the signal at the far end."""
        raise NotImplementedError

    def close(self) -> None:
        """Take no more."""
        self._receive = lambda message: None
        self._begin = lambda: None
        self._ended.set()


def open_line(executor: Any, receive: Receive, begin: Callable[[], None]) -> Line:
    """A line for one call on `executor`; `receive` gets each message and `begin` is told once, on some thread."""
    if type(executor).__module__.startswith("distributed."):
        return DaskLine(executor._client, receive, begin)
    return LoopbackLine(receive, begin)


# ---- processes on this machine --------------------------------------------------------------------


class LoopbackEnd:
    """Picklable: where a line's far end connects to, and the key that both ends must know."""

    def __init__(self, port: int, name: str, key: bytes) -> None:
        self.port = port
        self.name = name
        self.key = key

    def __repr__(self) -> str:
        return f"<LoopbackEnd at port {self.port}>"

    def open(self) -> LineEnd:
        connection = Client(("127.0.0.1", self.port), authkey=self.key)
        connection.send(self.name)
        return _LoopbackLineEnd(connection)


class _LoopbackLineEnd(LineEnd):
    leads_home = True

    def __init__(self, connection: Any) -> None:
        super().__init__()
        self.connection = connection
        if reason := connection.recv():
            self.controller.abort(reason)
        start_worker(self._listen)

    def _listen(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            self.controller.abort(self.connection.recv())

    def deliver(self, message: bytes) -> None:
        self.connection.send_bytes(message)

    def __exit__(self, *_: Any) -> None:
        super().__exit__()
        self.connection.close()


class _Exchange:
    """One listening socket on the loopback interface for all lines of this process."""

    def __init__(self) -> None:
        self.key = secrets.token_bytes(32)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.lines: dict[str, LoopbackLine] = {}
        start_worker(self._accept)

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self.socket.accept()
            except OSError:
                return
            start_worker(functools.partial(self._serve, accepted))

    def _serve(self, accepted: socket.socket) -> None:
        connection = Connection(accepted.detach())
        with connection, contextlib.suppress(EOFError, OSError):
            # A peer that does not know the key fails here, before anything of it is unpickled.
            deliver_challenge(connection, self.key)
            answer_challenge(connection, self.key)
            line = self.lines.get(connection.recv())
            if line is not None:
                line.serve(connection)


class LoopbackLine(Line):
    _exchange: ClassVar[_Exchange | None] = None
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, receive: Receive, begin: Callable[[], None]) -> None:
        super().__init__(receive, begin)
        with self._lock:
            exchange = LoopbackLine._exchange or _Exchange()
            LoopbackLine._exchange = exchange
        self.exchange = exchange
        self.name = secrets.token_hex(8)
        self.connection: Any = None
        self.aborted = ""
        exchange.lines[self.name] = self
        self.end = LoopbackEnd(exchange.port, self.name, exchange.key)

    def serve(self, connection: Any) -> None:
        self.connection = connection
        connection.send(self.aborted)
        while True:
            self.take(connection.recv_bytes())

    def abort(self, reason: str) -> None:
        self.aborted = reason or "aborted"
        if self.connection is not None:
            with contextlib.suppress(OSError):
                self.connection.send(self.aborted)

    def close(self) -> None:
        super().close()
        self.exchange.lines.pop(self.name, None)


# ---- Dask -----------------------------------------------------------------------------------------


_DASK_LOOK_SECONDS = 0.25
"""How often a running call asks the scheduler whether it was aborted: a pending wait would outlive it."""


class DaskEnd:
    """Picklable: the cluster's names for a line's updates and its abort."""

    def __init__(self, topic: str) -> None:
        self.topic = topic

    def open(self) -> LineEnd:
        return _DaskLineEnd(self.topic)


class _DaskLineEnd(LineEnd):
    """Updates are events of the worker, whose order the scheduler keeps; the abort is a cluster-wide Event."""

    leads_home = True

    def __init__(self, topic: str) -> None:
        super().__init__()
        from distributed import get_client, get_worker

        self.topic = topic
        self.worker = get_worker()
        self.event = _dask_event(topic, get_client())
        self._look()
        self.closed = threading.Event()
        start_worker(self._listen)

    def _listen(self) -> None:
        with contextlib.suppress(Exception):  # the worker is closing
            while not self.signal.aborted and not self.closed.wait(_DASK_LOOK_SECONDS):
                self._look()

    def _look(self) -> None:
        if self.event.is_set():
            self.controller.abort("aborted")

    def __exit__(self, *_: Any) -> None:
        self.closed.set()
        super().__exit__()

    def deliver(self, message: bytes) -> None:
        self.worker.log_event(self.topic, message)


def _dask_event(name: str, client: Any) -> Any:
    import distributed

    make: Any = distributed.Event
    return make(name, client=client)


class DaskLine(Line):
    def __init__(self, client: Any, receive: Receive, begin: Callable[[], None]) -> None:
        super().__init__(receive, begin)
        self.client = client
        self.topic = f"pi_notebook-{secrets.token_hex(8)}"
        self.end = DaskEnd(self.topic)
        self._event: Any = None
        client.subscribe_topic(self.topic, self._handle)

    def _handle(self, event: tuple[float, Any]) -> None:
        self.take(event[1])

    def abort(self, reason: str) -> None:
        self._event = _dask_event(self.topic, self.client)
        with contextlib.suppress(Exception):  # the cluster is gone, and the call with it
            self._event.set()

    def close(self) -> None:
        super().close()
        with contextlib.suppress(Exception):
            self.client.unsubscribe_topic(self.topic)
        if self._event is not None:
            start_worker(self._event.clear)
