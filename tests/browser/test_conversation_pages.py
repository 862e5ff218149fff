"""A conversation in real pages: where it is kept, and a kernel that dies in the middle of a tool call."""

from __future__ import annotations

import os
import signal

from tests.environments import KERNEL_VERSIONS, kernel_name

from .jupyter import Notebook, Server

SETUP = """%load_ext pi_notebook
import os, time
from pi_notebook import tool, scripted, call

@tool
def hang(seconds: int) -> str:
    "Wait."
    time.sleep(seconds)

first = scripted([call("hang", seconds=600)], "never")
def told(context):
    last = [m for m in context.messages if m.role == "tool_result"]
    return f"{len(context.messages)} messages, {len(last)} result: {last[0].text}"
then = scripted(told, told)
print("pid", os.getpid())"""


def test_a_kernel_killed_in_a_tool_call_goes_on_after_resume(notebook: Notebook, server: Server) -> None:
    folder = server.root / f"kept-{notebook.front_end}"
    folder.mkdir()
    name = f"{folder.name}/sales report.ipynb"
    cells = [SETUP, "%agent resume", "%%agent -m first\nlook", "%%agent -m then\ngo on"]
    server.write_notebook(name, cells, kernel_name(KERNEL_VERSIONS[-1]))
    notebook.open(name)
    notebook.run(0, 1, wait=True)
    notebook.wait_text(1, "Nothing to resume")
    pid = notebook.text(0).split()[1]
    notebook.run(2)
    notebook.wait_text(2, "running")
    os.kill(int(pid), signal.SIGKILL)
    notebook.page.get_by_role("button", name="Ok", exact=True).click()  # the kernel has died, it says
    notebook.wait_idle()

    notebook.run(0, wait=True)
    assert notebook.text(0).split()[1] != pid
    notebook.run(1, 3)
    notebook.wait_text(1, "Resumed the conversation")
    notebook.wait_text(1, "marked as interrupted")
    notebook.wait_text(3, "4 messages, 1 result: This tool call was interrupted: the kernel ended")
    notebook.run(2)
    notebook.wait_text(2, "Stale now")
    notebook.interrupt()
    assert sorted(path.name for path in (folder / ".pi_notebook").iterdir()) == [
        ".gitignore",
        "sales report.ipynb.jsonl",
    ]
