"""The harness itself: a plain cell in both front ends."""

from __future__ import annotations

from .jupyter import Notebook, Server


def test_a_cell_runs_and_its_output_is_read_back_after_a_reload(notebook: Notebook, server: Server) -> None:
    server.write_notebook("plain.ipynb", ["print(6 * 7)", "print('second')"])
    notebook.open("plain.ipynb")
    notebook.run(0, wait=True)
    notebook.wait_text(0, "42")
    assert notebook.text(1) == ""
    notebook.save()
    notebook.shut_kernel_down()
    notebook.reload()
    notebook.wait_text(0, "42")
    assert notebook.requests == []
