"""Errors and listings name the cells as IPython does."""

from __future__ import annotations

from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from pi_notebook.agent._tracebacks import source_name
from pi_notebook.notebook import extension


@pytest.fixture
def shell() -> Any:
    return InteractiveShell()


def test_a_tool_of_a_cell_is_defined_in_the_cell_and_fails_in_it(shell: Any) -> None:
    extension.load(shell)
    shell.run_cell("from pi_notebook import tool\n@tool\ndef ratio(a: int):\n    return a / 0\n", store_history=True)
    ratio = shell.user_ns["ratio"]

    assert ratio.where == "Cell In[1], line 2"
    assert ratio.call(a=1).text == (
        "ZeroDivisionError: division by zero\nat Cell In[1], line 4, in ratio: return a / 0"
    )
    extension.unload(shell)


def test_unloading_forgets_the_cells(shell: Any) -> None:
    extension.load(shell)
    shell.run_cell("x = 1", store_history=True)
    name = next(iter(shell.compile._filename_map))
    assert source_name(name) == "Cell In[1]"
    extension.unload(shell)

    assert source_name("/tmp/ipykernel_1/2.py") == "a cell"
    assert not extension._forget_cells
