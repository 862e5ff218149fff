"""The conversation across kernels: a kernel killed in a tool call, resumed, and asked again; cells run again."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..environments import KERNEL_VERSIONS, kernel_name
from ..kernels import Cell, Session, start_session

SETUP = """
%load_ext pi_notebook
import os, time
from pi_notebook import tool, scripted, call

@tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

@tool
def hang(seconds: int) -> str:
    "Wait."
    print("hanging", flush=True)
    time.sleep(seconds)

def word(message):
    "`role` or `role:call id:call id`"
    ids = [call.id for call in getattr(message, "tool_calls", ())] or [getattr(message, "tool_call_id", "")]
    return ":".join([message.role, *filter(None, ids)])

def roles(context):
    "The request, a word for each message."
    return " ".join(map(word, context.messages))
"""


BATCH = """
import asyncio

@tool
async def drink(seconds: int) -> str:
    "Wait beside others."
    await asyncio.sleep(seconds)

@tool(approval=True)
def wipe(path: str) -> str:
    "Wipe."
"""


class Kernels:
    """Kernels of one notebook, one after another."""

    def __init__(self, notebook: Path) -> None:
        self.notebook = notebook
        self.running: list[Session] = []

    @property
    def file(self) -> Path:
        return self.notebook.parent / ".pi_notebook" / f"{self.notebook.name}.jsonl"

    def start(self) -> Session:
        session = start_session(kernel_name(KERNEL_VERSIONS[-1]), JPY_SESSION_NAME=str(self.notebook))
        self.running.append(session)
        session.run(SETUP)
        return session

    def kill(self) -> None:
        """As the operating system does when memory is short."""
        session = self.running.pop()
        os.kill(session.manager.provisioner.pid, signal.SIGKILL)
        session.close()


@pytest.fixture
def kernels(tmp_path: Path) -> Iterator[Kernels]:
    kernels = Kernels(tmp_path / "sales report.ipynb")
    yield kernels
    for session in kernels.running:
        session.close()


def agent(session: Session, *replies: str, prompt: str = "go", cell_id: str | None = None):
    """Submit an agent cell whose model plays `replies`; `cell_id` as a front end gives it."""
    session.run(f"m = scripted({', '.join(replies)})")
    return session.submit(f"%%agent -m m -o out\n{prompt}", cell_id=cell_id)


def number(cell: Cell) -> str:
    """`[n]`, as people know a cell."""
    return f"[{cell.reply['execution_count']}]"


def said(session: Session, line: str) -> str:
    """What `%agent LINE` shows."""
    cell = session.run(f"%agent {line}")
    return "".join([*cell.data(), cell.stream("stderr")])


@pytest.mark.kernel
class TestKilled:
    def test_a_kernel_killed_in_a_tool_call_is_resumed_with_a_valid_request(self, kernels: Kernels) -> None:
        session = kernels.start()
        first = agent(session, "[call('add', a=1, b=2)], 'three'", prompt="first", cell_id="a").wait()
        both = "[call('add', a=3, b=4), call('hang', seconds=600)], 'never'"
        agent(session, both, prompt="second", cell_id="b")
        session.wait_until(lambda: "hanging" in str(session.widgets), what="the tool to run")
        kernels.kill()

        session = kernels.start()
        text = said(session, "resume")
        assert text.startswith("Resumed the conversation of 20")
        assert "2 cells, the last 'second'. The kernel ended during that one; calls that were open" in text
        rows = said(session, "history").splitlines()
        assert rows[1].split()[:5] == ["1", "earlier", number(first), "first", "done"]
        assert rows[2].split()[3:5] == ["second", "kernel"]
        shown = said(session, "show")
        assert "add(a=3, b=4)" in shown and "hang(seconds=600)" in shown and "stopped" in shown
        assert "The kernel ended during this run." in shown

        assert agent(session, "roles", prompt="third", cell_id="c").wait().status == "ok"
        asked = session.value("out.text").split()
        assert asked[0] == "user" and asked[-1] == "user"
        calls = [i for word in asked if word.startswith("assistant") for i in word.split(":")[1:]]
        results = [word.split(":")[1] for word in asked if word.startswith("tool_result")]
        assert len(calls) == 3 and results == calls

        agent(session, "roles", prompt="second again", cell_id="b").wait()
        assert session.value("out.text").split() == [*asked[:4], "user"], "the cell is known across kernels"

    def test_of_a_batch_each_call_keeps_what_is_known_of_it(self, kernels: Kernels) -> None:
        """One had ended, one ran, a plain one waited for the thread's end, one for a person."""
        session = kernels.start()
        session.run(BATCH)
        batch = "[call('add', a=3, b=4), call('drink', seconds=600), call('hang', seconds=600), call('wipe', path='x'),"
        agent(session, f"{batch} call('add', a=1, b=1)], 'never'", prompt="go")
        session.wait_until(lambda: "hanging" in str(session.widgets), what="the plain tool to run")
        session.wait_until(lambda: bool(session.drawn("Approve")), what="the question")
        kernels.kill()

        session = kernels.start()
        assert "calls that were open are marked as interrupted or as not run" in said(session, "resume")
        shown = said(session, "show")
        assert "→ 7" in shown
        agent(session, "lambda c: ' | '.join(m.text for m in c.messages if m.role == 'tool_result')").wait()
        ran = "This tool call was interrupted: the kernel ended before there was a result."
        texts = session.value("out.text").split(" | ")
        assert texts[0] == "7"
        assert texts[1].startswith(ran) and texts[2].startswith(ran)
        assert texts[3:] == ["This tool call did not run: the kernel ended before it began."] * 2

    def test_without_resume_a_new_kernel_starts_empty_and_destroys_nothing(self, kernels: Kernels) -> None:
        session = kernels.start()
        agent(session, "'one'", prompt="first").wait()
        before = kernels.file.read_bytes()
        kernels.kill()
        session = kernels.start()
        assert said(session, "history") == "Nothing has been said yet."
        agent(session, "roles", prompt="other").wait()
        assert session.value("out.text") == "user"
        assert kernels.file.read_bytes().startswith(before)
        assert "Resumed" in said(session, "resume")
        agent(session, "roles", prompt="more").wait()
        assert session.value("out.text") == "user assistant user"


@pytest.mark.kernel
def test_running_a_cell_in_the_middle_again_says_what_is_stale_and_undo_brings_it_back(kernels: Kernels) -> None:
    session = kernels.start()
    b, c = [number(agent(session, f"'{name}'", prompt=name, cell_id=name).wait()) for name in "abc"][1:]
    cell = agent(session, "roles", prompt="b2", cell_id="b").wait()
    assert session.value("out.text") == "user assistant user"
    shown = cell.data()[-1]
    assert f"Stale now: cells {c}; run them again, or bring them back with %agent undo." in shown
    text = f"Took back cell {number(cell)}. Brought back cells {b}, {c}. The conversation holds 3 cells now."
    assert said(session, "undo") == text
    records = [json.loads(line) for line in kernels.file.read_text().splitlines()]
    assert [r["prompt"] for r in records if r["type"] == "turn"] == ["a", "b", "c", "b2"]


@pytest.mark.kernel
def test_sessions_have_conversations_of_their_own(kernels: Kernels) -> None:
    session = kernels.start()
    agent(session, "'main'").wait()
    session.run("m = scripted(roles)\n")
    session.run("%%agent -m m --session side -o out\ngo")
    assert session.value("out.text") == "user"
    assert "side: 1 cells" in said(session, "status")
    assert sorted(p.name for p in kernels.file.parent.iterdir()) == [
        ".gitignore",
        "sales report.ipynb.jsonl",
        "sales report.ipynb@side.jsonl",
    ]
    kernels.kill()
    session = kernels.start()
    assert "no session of this name is kept. Kept beside it: sales report.ipynb@side.jsonl" in said(session, "resume x")
    assert "Resumed" in said(session, "resume side")
    agent(session, "roles").wait()
    assert session.value("out.text") == "user assistant user"


@pytest.mark.kernel
def test_an_interrupt_in_the_second_of_two_calls_leaves_a_valid_request(kernels: Kernels) -> None:
    """https://github.com/tidyverse/ellmer/issues/459; the next kernel, too, sends one result per call."""
    session = kernels.start()
    both = "[call('add', a=3, b=4), call('hang', seconds=600)], 'never'"
    cell = agent(session, both)
    session.wait_until(lambda: "hanging" in str(session.widgets), what="the tool to run")
    session.interrupt()
    assert cell.wait().error_name == "KeyboardInterrupt"
    agent(session, "roles", prompt="go on").wait()
    asked = session.value("out.text").split()
    calls = asked[1].split(":")[1:]
    results = [f"tool_result:{call_id}" for call_id in calls]
    assert len(results) == 2
    assert asked == [
        "user",
        asked[1],
        *results,
        "assistant",
        "user",
    ]  # the last reply is the empty one that was aborted
    kernels.kill()
    session = kernels.start()
    said(session, "resume")
    agent(session, "roles", prompt="go on").wait()
    assert session.value("out.text").split() == [*asked, "assistant", "user"]
