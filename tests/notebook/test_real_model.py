"""The main job with a language model that nobody scripted; see `tests/local_model.py` for where it comes from."""

from __future__ import annotations

import os

import pytest

from ..kernels import Session
from ..local_model import BASE_URL_VARIABLE, MODEL_VARIABLE

SETUP = """
%load_ext pi_notebook
from pi_notebook import tool
calls = []

@tool
def add(a: float, b: float) -> float:
    "Add two numbers and return the sum."
    calls.append((a, b))
    return a + b
"""


@pytest.mark.real_model
def test_a_real_model_calls_a_notebook_tool_and_answers_from_its_result(newest_kernel: Session) -> None:
    model = f"openai-compatible:{os.environ[MODEL_VARIABLE]}"
    newest_kernel.run(SETUP)
    cell = newest_kernel.run(
        f"%%agent -m {model} --base-url {os.environ[BASE_URL_VARIABLE]} -o out --max-turns 6\n"
        "What is 17.5 plus 24.25? Use the add tool, then tell me the number.",
        timeout=240,
    )
    assert cell.status == "ok", cell.outputs
    assert sorted(newest_kernel.value("calls")[0]) == [17.5, 24.25]
    assert newest_kernel.value("out.tool_calls[0].value") == 41.75
    assert newest_kernel.value("out.stop_reason") == "stop"
    assert "41.75" in newest_kernel.value("out.text")
