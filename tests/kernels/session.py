"""A front end without a page: runs cells in a real kernel, collects outputs, clicks buttons, answers questions.

    session = start_session("pi-7.4.0")
    cell = session.submit("%%agent ...")        # returns at once; several cells can be queued
    session.click("Approve")                    # waits until the button is there
    cell.wait()
    assert cell.text == "..." and cell.status == "ok"

One thread, no sleeping: every wait reads what the kernel sends until a condition holds, or raises `TimeoutError`
that tells what came so far.
"""

from __future__ import annotations

import ast
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

Message = dict[str, Any]
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
CEILING = 60.0
"""Seconds that nothing here may take. Generous: it bounds a hanging test and measures nothing."""


class Cell:
    """One execute request, and what has come for it.

    Attributes:
        msg_id: Id of the request, the parent of all its messages.
        outputs: Outputs as nbformat has them, updated displays in place.
        reply: Content of the execute reply, or None.
        idle: Whether the kernel has said that it is done with the cell.
        started: Order in which the kernel began to execute this cell, or None.
    """

    def __init__(self, session: Session, msg_id: str) -> None:
        self._session = session
        self._clear = False
        self.msg_id = msg_id
        self.outputs: list[dict[str, Any]] = []
        self.reply: dict[str, Any] | None = None
        self.idle = False
        self.started: int | None = None

    def wait(self, timeout: float = CEILING) -> Cell:
        """Until the reply and the idle status are here."""
        self._session.wait_until(lambda: self.reply is not None and self.idle, timeout, "the cell's end")
        return self

    @property
    def status(self) -> str | None:
        """`ok`, `error` or `aborted`; None while it runs."""
        return None if self.reply is None else self.reply["status"]

    @property
    def error_name(self) -> str | None:
        """Class name of the exception that ended the cell."""
        return None if self.reply is None else self.reply.get("ename")

    @property
    def text(self) -> str:
        """What it has printed."""
        return self.stream("stdout")

    def stream(self, name: str) -> str:
        return "".join(out["text"] for out in self.outputs if out["output_type"] == "stream" and out["name"] == name)

    def data(self, mime: str = "text/plain") -> list[Any]:
        """What its displays and its value show as `mime`."""
        return [out["data"][mime] for out in self.outputs if mime in out.get("data", {})]

    def _add(self, kind: str, content: dict[str, Any]) -> None:
        if kind == "clear_output":
            self._clear = True
            if not content["wait"]:
                self._clear = False
                self.outputs.clear()
            return
        if self._clear:
            self._clear = False
            self.outputs.clear()
        last = self.outputs[-1] if self.outputs else {}
        if kind == "stream" and last.get("name") == content["name"]:
            last["text"] += content["text"]
        else:
            self.outputs.append({"output_type": kind, **content})


class Session:
    """A kernel and one client of it. Made by `start_session`."""

    def __init__(
        self, manager: KernelManager, client: BlockingKernelClient, folder: tempfile.TemporaryDirectory[str]
    ) -> None:
        self.manager = manager
        self.client = client
        self._folder = folder
        self.cells: dict[str, Cell] = {}
        self.widgets: dict[str, dict[str, Any]] = {}
        """Comm id to the state of each open widget model, as the kernel last told it."""
        self.answers: list[str] = []
        """Replies to the kernel's coming input requests, in order; one without an answer waits for one."""
        self.prompts: list[str] = []
        """Texts of the input requests so far."""
        self.comm_messages = 0
        """How many widget messages the kernel has sent."""
        self.statuses: list[tuple[str, str]] = []
        """(message type of the parent, state) of each status, in order."""
        self.states: list[tuple[str, str]] = []
        """(id of the parent, state) of each status, in order."""
        self.replies: dict[str, Message] = {}
        """Request id to its reply, whatever its type."""
        self.comm_subshell: str | None = None
        """Subshell that widget messages are addressed to, as JupyterLab does; None is the main shell."""
        self.execute_subshell: str | None = None
        """Subshell that cells run in."""
        self._unanswered: list[Message] = []
        self._started = 0

    # cells

    def submit(self, code: str, *, allow_stdin: bool = True, cell_id: str | None = None, **options: Any) -> Cell:
        """Send `code` and return at once. `options`: those of `execute` (`silent`, `stop_on_error`, ...).

        `cell_id` stands in the metadata, where JupyterLab tells which cell it runs.
        """
        content = {"code": code, "silent": False, "user_expressions": {}, "stop_on_error": True}
        content |= {"allow_stdin": allow_stdin, **options}
        metadata = {} if cell_id is None else {"cellId": cell_id}
        message = self.client.session.msg("execute_request", content, metadata=metadata)
        if self.execute_subshell is not None:
            message["header"]["subshell_id"] = self.execute_subshell
        self.client.shell_channel.send(message)
        msg_id = message["header"]["msg_id"]
        cell = self.cells[msg_id] = Cell(self, msg_id)
        return cell

    def run(self, code: str, *, timeout: float = CEILING, **options: Any) -> Cell:
        """Send `code` and wait for its end, whatever it is."""
        return self.submit(code, **options).wait(timeout)

    def value(self, expression: str) -> Any:
        """The value of a Python literal expression in the kernel, after the cells that are queued."""
        cell = self.submit("", silent=True, user_expressions={"value": f"repr({expression})"}).wait()
        assert cell.reply is not None
        shown = cell.reply["user_expressions"]["value"]
        if shown["status"] != "ok":
            raise AssertionError(f"{expression}: {shown['ename']}: {shown['evalue']}")
        return ast.literal_eval(ast.literal_eval(shown["data"]["text/plain"]))

    def interrupt(self) -> None:
        """As the stop button of a notebook does."""
        self.manager.interrupt_kernel()

    # widgets

    def find_widget(self, **state: Any) -> str:
        """Comm id of the open widget whose state has all of `state` (`description="Approve"`). Waits for it."""

        def found() -> list[str]:
            return [i for i, have in self.widgets.items() if all(have.get(k) == v for k, v in state.items())]

        self.wait_until(lambda: bool(found()), what=f"a widget with {state}")
        return found()[-1]

    def click(self, description: str) -> str:
        """Click the newest button with `description`, once a page would have drawn it. Returns the message's id."""
        self.wait_until(lambda: self.drawn(description), what=f"a drawn button {description!r}")
        return self.send_custom(self.drawn(description)[-1], {"event": "click"})

    def drawn(self, description: str) -> list[str]:
        """Buttons that stand in a displayed box: a page cannot click what has been made but not been put anywhere."""
        shown = [view["model_id"] for cell in self.cells.values() for view in cell.data(WIDGET_VIEW)]
        reached: list[str] = []
        while shown:
            comm_id = shown.pop(0)
            if comm_id in self.widgets and comm_id not in reached:
                reached.append(comm_id)
                children = self.widgets[comm_id].get("children", ())
                shown += [child.removeprefix("IPY_MODEL_") for child in children]
        return [comm_id for comm_id in reached if self.widgets[comm_id].get("description") == description]

    def send_custom(self, comm_id: str, content: dict[str, Any]) -> str:
        """A custom message to a widget, as `{"event": "click"}` to a button."""
        return self.send_comm(comm_id, {"method": "custom", "content": content})

    def set_state(self, comm_id: str, **state: Any) -> str:
        """Change a widget's state from the page, as typing into a text field does."""
        return self.send_comm(comm_id, {"method": "update", "state": state, "buffer_paths": []})

    def send_comm(self, comm_id: str, data: dict[str, Any]) -> str:
        """A comm message, to the main shell or to `comm_subshell`. Returns its id."""
        message = self.client.session.msg("comm_msg", {"comm_id": comm_id, "data": data})
        if self.comm_subshell is not None:
            message["header"]["subshell_id"] = self.comm_subshell
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def request(self, kind: str, content: dict[str, Any] | None = None, *, page: str | None = None) -> str:
        """Send any shell request; `page` stands for another client's session. Returns its id (see `replies`)."""
        message = self.client.session.msg(kind, content or {})
        if page is not None:
            message["header"]["session"] = page
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def reload_page(self) -> str:
        """What a page sends first when it is loaded again during a run. Returns the id of its last request."""
        page = uuid.uuid4().hex
        self.request("kernel_info_request", page=page)
        return self.request("comm_info_request", {"target_name": "jupyter.widget"}, page=page)

    @contextmanager
    def subshell(self) -> Iterator[str]:
        """Address widget messages to a new subshell meanwhile (ipykernel 7)."""
        reply = self._control("create_subshell_request", {})
        self.comm_subshell = reply["subshell_id"]
        try:
            yield reply["subshell_id"]
        finally:
            self._control("delete_subshell_request", {"subshell_id": self.comm_subshell})
            self.comm_subshell = None

    def _control(self, kind: str, content: dict[str, Any]) -> dict[str, Any]:
        message = self.client.session.msg(kind, content)
        self.client.control_channel.send(message)
        msg_id = message["header"]["msg_id"]
        self.wait_until(lambda: msg_id in self.replies, what=f"the reply to {kind}")
        reply: dict[str, Any] = self.replies[msg_id]["content"]
        assert reply["status"] == "ok", reply
        return reply

    # what the kernel sends

    def wait_until(self, done: Callable[[], object], timeout: float = CEILING, what: str = "a condition") -> None:
        """Read what the kernel sends until `done()` is true.

        Raises:
            TimeoutError: Not within `timeout` seconds; tells what the cells have shown so far.
        """
        deadline = time.monotonic() + timeout
        while not done():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} did not come within {timeout} s; cells so far: {self._summary()}")
            self.read(0.1)

    def read(self, timeout: float = 0.0) -> None:
        """Take in what has come, waiting at most `timeout` seconds for the first message."""
        channels = {
            "iopub": self.client.iopub_channel,
            "shell": self.client.shell_channel,
            "stdin": self.client.stdin_channel,
            "control": self.client.control_channel,
        }
        poller = zmq.Poller()
        for channel in channels.values():
            poller.register(channel.socket, zmq.POLLIN)
        ready = dict(poller.poll(int(timeout * 1000)))
        for name, channel in channels.items():
            if channel.socket in ready:
                self._take(name, channel.get_msg(timeout=0))
        while self.answers and self._unanswered:
            parent = self._unanswered.pop(0)
            reply = self.client.session.msg("input_reply", {"value": self.answers.pop(0)}, parent=parent)
            self.client.stdin_channel.send(reply)

    def _take(self, channel: str, message: Message) -> None:
        kind, content = message["msg_type"], message["content"]
        parent = message["parent_header"]
        cell = self.cells.get(parent.get("msg_id", ""))
        if channel == "stdin":
            self.prompts.append(content["prompt"])
            self._unanswered.append(message)
        elif channel in ("shell", "control"):
            self.replies[parent["msg_id"]] = message
            if cell is not None and kind == "execute_reply":
                cell.reply = content
        elif kind == "status":
            self.statuses.append((parent.get("msg_type", ""), content["execution_state"]))
            self.states.append((parent.get("msg_id", ""), content["execution_state"]))
            if cell is not None and content["execution_state"] == "idle":
                cell.idle = True
        elif kind == "execute_input" and cell is not None:
            self._started += 1
            cell.started = self._started
        elif kind.startswith("comm_"):
            self._take_comm(kind, content)
        elif kind == "update_display_data":
            self._update_display(content)
        elif cell is not None and kind in ("stream", "display_data", "execute_result", "error", "clear_output"):
            cell._add(kind, content)

    def _take_comm(self, kind: str, content: dict[str, Any]) -> None:
        self.comm_messages += 1
        comm_id, data = content["comm_id"], content.get("data") or {}
        if kind == "comm_open" and content.get("target_name") == "jupyter.widget":
            self.widgets[comm_id] = dict(data.get("state", {}))
        elif kind == "comm_close":
            self.widgets.pop(comm_id, None)
        elif comm_id in self.widgets and data.get("method") == "update":
            self.widgets[comm_id].update(data["state"])

    def _update_display(self, content: dict[str, Any]) -> None:
        display_id = content["transient"]["display_id"]
        for cell in self.cells.values():
            for output in cell.outputs:
                if output.get("transient", {}).get("display_id") == display_id:
                    output.update(data=content["data"], metadata=content["metadata"])

    def _summary(self) -> str:
        return "; ".join(f"{cell.status} {cell.outputs!r}" for cell in list(self.cells.values())[-5:])

    # life

    def reset(self) -> None:
        """Forget what came so far; the kernel keeps running."""
        self.cells.clear()
        self.prompts.clear()
        self.answers.clear()
        self.statuses.clear()
        self.states.clear()
        self.replies.clear()
        self._unanswered.clear()

    def close(self) -> None:
        """End the kernel."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self._folder.cleanup()


def start_session(kernel_name: str, **environment: str) -> Session:
    """Start the kernel of a kernel spec, with `environment` added to its variables, and connect to it."""
    import os

    # Sockets in a folder: a free TCP port may be somebody else's by the time the kernel binds it
    folder = tempfile.TemporaryDirectory()
    manager = KernelManager(kernel_name=kernel_name, transport="ipc", ip=f"{folder.name}/kernel")
    manager.start_kernel(env={**os.environ, **environment})
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=CEILING)
    except BaseException:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        folder.cleanup()
        raise
    return Session(manager, client, folder)
