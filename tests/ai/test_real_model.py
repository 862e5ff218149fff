"""The loop over a language model that nobody scripted; see `tests/local_model.py` for where it comes from."""

from __future__ import annotations

import os

import pytest

from pi_notebook import Agent, tool
from pi_notebook.ai.model import StreamOptions
from pi_notebook.ai.providers import resolve_model

from ..local_model import BASE_URL_VARIABLE, MODEL_VARIABLE


@pytest.mark.real_model
def test_a_real_model_calls_a_tool_and_the_run_ends_with_its_answer() -> None:
    calls: list[tuple[int, int]] = []

    @tool
    def add(a: int, b: int) -> int:
        """Add two whole numbers and return the sum."""
        calls.append((a, b))
        return a + b

    name = os.environ.get(MODEL_VARIABLE, "model")
    model = resolve_model(f"openai-compatible:{name}", base_url=os.environ[BASE_URL_VARIABLE])
    # Cold and short, so that a small model does the same each time and cannot ramble
    options = StreamOptions(temperature=0, max_tokens=200)
    system = "Use the tools for all arithmetic."
    agent = Agent(model=model, tools=[add], system_prompt=system, max_turns=6, options=options)
    result = agent.run("What is 1234 plus 4321?")

    assert sorted(calls[0]) == [1234, 4321]
    first = result.tool_calls[0]
    assert (first.name, sorted(first.arguments.values()), first.value) == ("add", [1234, 4321], 5555)
    assert result.stop_reason == "stop"
    assert result.text.strip()
    assert result.turns >= 2
    assert result.usage.output > 0
