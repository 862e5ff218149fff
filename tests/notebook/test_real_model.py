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


ATTEMPTS = 3
"""A small model does not do the sensible thing every time; that it can is what is shown."""


@pytest.mark.real_model
@pytest.mark.timeout(900)
def test_a_real_model_calls_a_notebook_tool_and_answers_from_its_result(newest_kernel: Session) -> None:
    newest_kernel.run(SETUP)
    model = f"-m openai-compatible:{os.environ[MODEL_VARIABLE]} --base-url {os.environ[BASE_URL_VARIABLE]}"
    for _ in range(ATTEMPTS):
        cell = newest_kernel.run(
            f"%%agent {model} -o out --new --max-turns 4\nI have 3.5 litres and get 2.25 more. How much in total?",
            timeout=280,
        )
        if newest_kernel.value("calls"):
            break
    assert cell.status == "ok", cell.outputs
    assert sorted(newest_kernel.value("calls")[0]) == [2.25, 3.5]
    assert newest_kernel.value("out.tool_calls[0].value") == 5.75
    assert newest_kernel.value("out.stop_reason") == "stop"
