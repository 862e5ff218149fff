"""The hint for plain functions that take long one after another."""

from __future__ import annotations

from typing import Any

from pi_notebook.agent.events import ToolExecutionEnd, TurnEnd
from pi_notebook.agent.function_tool import tool
from pi_notebook.agent.tool import ToolResult
from pi_notebook.ai.messages import AssistantMessage
from pi_notebook.notebook.overlap import OverlapHint

TURN_END = TurnEnd(AssistantMessage(()), ())


@tool
def plain() -> None:
    """Plain."""


@tool(execution_mode="sequential")
def in_turn() -> None:
    """One at a time on purpose."""


@tool
async def beside() -> None:
    """On the loop."""


def said(hint: OverlapHint, *calls: tuple[str, int]) -> str:
    for name, milliseconds in calls:
        assert hint.hear(ToolExecutionEnd("id", name, ToolResult("ok"), False, milliseconds, args={})) == ""
    return hint.hear(TURN_END)


def make(**options: Any) -> OverlapHint:
    return OverlapHint([plain, in_turn, beside], **{"in_turn": False, **options})


def test_two_long_plain_calls_of_a_batch_are_pointed_out_once() -> None:
    hint = make()
    assert said(hint, ("plain", 1_200), ("plain", 2_400)) == (
        "2 calls (plain) took 3.6 s one after another, as plain functions run on the notebook's main thread. "
        'To let them overlap: async def, or @tool(thread="worker") where that is safe, or @tool(executor=...).'
    )
    assert said(hint, ("plain", 1_200), ("plain", 2_400)) == ""


def test_nothing_is_said_of_short_calls_single_calls_and_calls_that_overlap_or_must_not() -> None:
    hint = make()
    assert said(hint, ("plain", 900), ("plain", 20)) == ""
    assert said(hint, ("plain", 5_000)) == ""
    assert said(hint, ("plain", 5_000)) == ""
    assert said(hint, ("beside", 5_000), ("beside", 5_000)) == ""
    assert said(hint, ("in_turn", 5_000), ("in_turn", 5_000)) == ""
    assert said(make(in_turn=True), ("plain", 5_000), ("plain", 5_000)) == ""
