"""What the bridge takes for a page that is loaded during a run, held to the real pages."""

from __future__ import annotations

import pytest

from tests.environments import KERNEL_VERSIONS, kernel_name

from .jupyter import Notebook, Server

CELL = """
import threading
import ipywidgets
from IPython.display import display
from pi_notebook.notebook.bridge import Bridge

clicked = threading.Event()
with Bridge(get_ipython()) as bridge:
    button = ipywidgets.Button(description="Approve")
    button.on_click(lambda b: clicked.set())
    display(button)
    bridge.wait(clicked.is_set, timeout=100)
"""
# A page that was loaded anew does not know that the first cell runs, so the second one tells
REPORT = "print('mode', bridge.mode, 'reloaded', bridge.page_reloaded)"


@pytest.mark.parametrize("reload", [False, True], ids=["stays", "reloads"])
def test_a_button_works_and_a_reload_is_noticed(notebook: Notebook, server: Server, reload: bool) -> None:
    name = f"bridge-{reload}.ipynb"
    server.write_notebook(name, [CELL, REPORT], kernel=kernel_name(KERNEL_VERSIONS[-1]))
    notebook.open(name)
    notebook.run(0)
    notebook.button("Approve", 0).wait_for()
    if reload:
        notebook.save()
        notebook.reload(wait=False)
    notebook.click("Approve", 0)
    notebook.wait_idle()
    notebook.run(1, wait=True)
    notebook.wait_text(1, f"mode tap7 reloaded {reload}")
