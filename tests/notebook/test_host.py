"""Tools inside a notebook's cell: on its thread, and what an interrupt or Stop leaves of them."""

from __future__ import annotations

import _thread
import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pi_notebook import call, scripted, tool
from pi_notebook.agent.agent import Agent
from pi_notebook.agent.execute_phase import ABORTED, INTERRUPTED
from pi_notebook.agent.registry import registry
from pi_notebook.notebook.bridge import Bridge
from pi_notebook.notebook.host import NotebookHost
from pi_notebook.notebook.transcript import render_text
from pi_notebook.notebook.view import RunView

CEILING = 20.0


class Shell:
    """A terminal's shell, of which tools see the display publisher."""

    display_pub: Any = None


@pytest.fixture(autouse=True)
def _no_tools_are_left() -> Iterator[None]:
    yield
    registry.clear()


def run(*replies: Any, tools: Any) -> RunView:
    """One agent's cell without a kernel; an interrupt aborts."""
    shell, view = Shell(), RunView("m")
    ended = threading.Event()

    def work() -> None:
        asyncio.run(agent.prompt("go"))
        ended.set()
        bridge.wake()

    with Bridge(shell, on_interrupt=lambda: agent.abort("interrupted by the user")) as bridge:
        agent = Agent(model=scripted(*replies), tools=tools, host=NotebookHost(shell, bridge, view.running))
        agent.subscribe(lambda event, _: view.apply(event))
        bridge.spawn(work)
        assert bridge.wait(ended.is_set, CEILING)
    view.finish("interrupted")
    return view


@tool
def plain() -> None:
    "Sleeps on the cell's thread."
    _thread.interrupt_main(signal.SIGINT)
    time.sleep(CEILING)


@tool
async def on_loop() -> None:
    "Sleeps on the agent's loop."
    _thread.interrupt_main(signal.SIGINT)
    await asyncio.sleep(CEILING)


@pytest.mark.parametrize("sleeper", [plain, on_loop], ids=["plain", "async"])
def test_an_interrupted_call_is_stopped_wherever_it_ran(sleeper: Any) -> None:
    view = run([call(sleeper.name)], "not reached", tools=[sleeper])
    (row,) = view.rows
    assert (row.state, row.result and row.result.text) == ("stopped", INTERRUPTED)
    text = render_text(view)
    assert "■" in text and "CallInterrupted" not in text and "Traceback" not in text
    assert "1 turn ·" in text


def test_a_call_that_still_waited_for_the_thread_did_not_run() -> None:
    ran: list[int] = []

    @tool
    def note() -> None:
        "Note that it ran."
        ran.append(1)

    view = run([call("plain"), call("note")], "not reached", tools=[plain, note])
    assert [row.state for row in view.rows] == ["stopped", "stopped"]
    assert view.rows[1].result is not None and view.rows[1].result.text == ABORTED
    assert ran == []
