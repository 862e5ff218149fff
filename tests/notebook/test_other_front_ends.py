"""`%%agent` where there are no widgets: nbclient, papermill, IPython in a terminal, jupyter console."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import pexpect
import pytest
from nbclient import NotebookClient

CEILING = 120

TOOLS = """
%load_ext pi_notebook
from pi_notebook import tool, scripted, call
ran = []

@tool(approval=True)
def wipe(path: str) -> str:
    "Delete everything under a path."
    ran.append(path)
    return f"wiped {path}"
"""
MODEL = "m = scripted([call('wipe', path='x')], lambda c: 'I was told: ' + c.messages[-1].text)"
NOBODY = "I was told: Blocked: this tool needs a person's approval, and nobody could be asked"


def notebook() -> Any:
    cells = [nbformat.v4.new_code_cell(source) for source in (TOOLS, MODEL, "%%agent -m m\nwipe it", "print(ran)")]
    return nbformat.v4.new_notebook(
        cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    )


def check_blocked(nb: Any) -> None:
    agent, after = nb.cells[2], nb.cells[3]
    (output,) = agent.outputs
    assert set(output.data) == {"text/html", "text/markdown", "text/plain"}
    assert NOBODY in output.data["text/plain"]
    assert "blocked for want of anybody to ask at" in output.data["text/plain"]
    assert after.outputs[0].text == "[]\n"
    assert "widgets" not in nb.metadata


def test_under_nbclient_an_approval_is_blocked_at_once_and_the_model_is_told() -> None:
    nb = notebook()
    NotebookClient(nb, timeout=CEILING).execute()
    check_blocked(nb)


def test_under_papermill_too(tmp_path: Path) -> None:
    import papermill

    source, target = tmp_path / "in.ipynb", tmp_path / "out.ipynb"
    nbformat.write(notebook(), source)
    papermill.execute_notebook(str(source), str(target), progress_bar=False)
    nb = nbformat.read(target, as_version=4)
    check_blocked(nb)


def test_an_error_of_the_run_stops_a_headless_notebook() -> None:
    nb = notebook()
    nb.cells[1].source = "m = scripted(RuntimeError('the model broke'))"
    with pytest.raises(Exception, match="the model broke"):
        NotebookClient(nb, timeout=CEILING).execute()
    assert "the model broke" in str(nb.cells[2].outputs[0].data)


def terminal(folder: Path, *command: str) -> pexpect.spawn:
    environment = {**os.environ, "TERM": "dumb", "NO_COLOR": "1", "IPYTHONDIR": str(folder / "ipython")}
    child = pexpect.spawn(
        command[0], list(command[1:]), env=environment, encoding="utf-8", timeout=CEILING, dimensions=(50, 160)
    )
    child.delaybeforesend = 0.05
    return child


def prepare(child: pexpect.spawn, folder: Path) -> None:
    (folder / "setup.ipy").write_text(TOOLS + MODEL + "\n")
    child.sendline(f"%run -i {folder / 'setup.ipy'}")
    child.sendline("print('rea' + 'dy')")
    child.expect_exact("ready")


def ask(child: pexpect.spawn) -> None:
    child.sendline("r = get_ipython().run_cell_magic('agent', '-m m', 'wipe it')")
    child.expect_exact("wipe wants to run")
    child.expect_exact("path = x")
    child.expect_exact("Run it? [y]es, [n]o, [a]lways, or a reason to block:")


@pytest.fixture
def ipython(tmp_path: Path) -> Any:
    child = terminal(tmp_path, sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor")
    child.expect_exact("In [1]:")
    prepare(child, tmp_path)
    yield child
    child.close(force=True)


@pytest.fixture
def console(tmp_path: Path) -> Any:
    child = terminal(tmp_path, sys.executable, "-m", "jupyter_console", "--simple-prompt", "--kernel", "python3")
    child.expect_exact("In [1]:")
    prepare(child, tmp_path)
    yield child
    child.sendeof()
    child.close(force=True)


def test_in_ipython_a_yes_runs_the_tool_and_the_text_shows_it(ipython: pexpect.spawn) -> None:
    ask(ipython)
    ipython.sendline("y")
    ipython.expect_exact("I was told: wiped x")
    ipython.sendline("print('ran', ran)")
    ipython.expect_exact("ran ['x']")


def test_in_ipython_other_words_are_a_reason_to_block(ipython: pexpect.spawn) -> None:
    ask(ipython)
    ipython.sendline("not that one")
    ipython.expect_exact("I was told: The user blocked this call. Reason: not that one")
    ipython.sendline("print('ran', ran)")
    ipython.expect_exact("ran []")


def test_in_ipython_an_interrupt_ends_the_question(ipython: pexpect.spawn) -> None:
    ask(ipython)
    ipython.sendintr()
    ipython.expect_exact("KeyboardInterrupt")
    ipython.sendline("print('alive', ran)")
    ipython.expect_exact("alive []")


def test_in_ipython_the_reason_of_an_error_is_said_once(ipython: pexpect.spawn) -> None:
    ipython.sendline("m = scripted(RuntimeError('no ' + 'luck'))")
    ipython.sendline("r = get_ipython().run_cell_magic('agent', '-m m', 'wipe it')")
    ipython.expect_exact("error: no luck")
    ipython.expect_exact("RunError: the run failed; its transcript above says why.")
    assert "no luck" not in ipython.before


@pytest.mark.parametrize(
    "line",
    [
        "get_ipython().run_cell_magic('capture', 'c', '%%agent -m m -o r\\nwipe it')",
        "with __import__('contextlib').redirect_stdout(__import__('io').StringIO()): "
        "r = get_ipython().run_cell_magic('agent', '-m m', 'wipe it')",
    ],
)
def test_in_ipython_a_captured_output_does_not_hide_what_would_run(ipython: pexpect.spawn, line: str) -> None:
    ipython.sendline(line + "\n")
    ipython.expect_exact("? wipe wants to run")
    ipython.expect_exact("path = x")
    ipython.expect_exact("Run it? [y]es, [n]o, [a]lways, or a reason to block:")
    ipython.sendline("y")
    ipython.sendline("print('ran', ran, r.text)")
    ipython.expect_exact("ran ['x'] I was told: wiped x")


def test_in_ipython_the_questions_of_a_batch_are_asked_one_after_another(ipython: pexpect.spawn) -> None:
    ipython.sendline("m = scripted([call('wipe', path='one'), call('wipe', path='two')], 'both')")
    ipython.sendline("r = get_ipython().run_cell_magic('agent', '-m m', 'wipe them')")
    for path, word in (("one", "y"), ("two", "n")):
        ipython.expect_exact("wipe wants to run")
        ipython.expect_exact(f"path = {path}")
        ipython.expect_exact("reason to block: ")
        ipython.sendline(word)
    ipython.expect_exact("both")
    assert "\n? wipe" not in ipython.before
    ipython.sendline("print('ran', ran)")
    ipython.expect_exact("ran ['one']")


def test_in_jupyter_console_the_question_is_asked_by_input(console: pexpect.spawn) -> None:
    ask(console)
    console.sendline("y")
    console.expect_exact("I was told: wiped x")
    console.sendline("print('ran', ran)")
    console.expect_exact("ran ['x']")
