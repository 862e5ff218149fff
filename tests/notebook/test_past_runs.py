"""A run of an earlier kernel shows the transcript that it had."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pi_notebook import Tool, call, scripted, tool
from pi_notebook.agent.agent import Agent
from pi_notebook.agent.hooks import Decision, Question
from pi_notebook.notebook.conversation import CellTurn
from pi_notebook.notebook.past_runs import calls_of, view_of
from pi_notebook.notebook.records import bounded
from pi_notebook.notebook.transcript import render_html, render_markdown, render_text
from pi_notebook.notebook.view import RunView


@tool(label="Sum")
def add(a: int, b: int) -> int:
    "Add."
    return a + b


@tool(approval=True)
def wipe(path: str) -> str:
    "Wipe."
    return f"wiped {path}"


@tool
def boom() -> str:
    "Fail."
    raise ValueError("no")


def test_states_labels_decisions_and_edits_are_the_same_after_a_restart() -> None:
    tools: list[Tool] = [add, wipe, boom]
    labels = {each.name: each.label for each in tools}
    view = RunView("scripted", "hi", labels=lambda name: labels.get(name, name))
    answers = {
        "a": Decision("approve", at=5.0),
        "b": Decision("block", "not mine", at=6.0),
        "c": Decision("edit", arguments={"path": "safe"}, at=7.0),
        "d": Decision("block", "nobody here", by="nobody", at=8.0),
    }

    async def approve(question: Question) -> Decision:
        if not question.required:
            return Decision("approve")
        decision = answers[question.arguments["path"]]
        view.ask(question)
        view.answered(question, decision)
        return decision

    calls = [call("wipe", path=path) for path in answers]
    model = scripted(
        ["Let me see.", *calls, call("add", a=1, b=2), call("add", a="x", b=2), call("nope"), call("boom")], "ok"
    )
    agent = Agent(model=model, tools=tools, approve=approve)
    agent.subscribe(lambda event, _: view.apply(event))
    result = asyncio.run(agent.prompt("hi"))
    view.finish()

    noted: Any = json.loads(json.dumps([bounded(each) for each in calls_of(view)]))
    turn = CellTurn(None, "hi", list(result.messages), outcome="done", calls=noted)
    again = view_of(turn)
    for render in (render_text, render_markdown):
        shown, then = render(again), render(view)
        assert without_head(shown) == without_head(then)
    assert "edited and approved by you" in render_html(again)
    assert [row.state for row in again.rows] == [
        "done", "blocked", "done", "blocked", "done", "failed", "failed", "failed",
    ]  # fmt: skip


def without_head(text: str) -> list[str]:
    """The lines (or pieces) of a transcript but those with the run's own time."""
    return [piece for piece in text.replace("<div", "\n<div").splitlines() if " turns" not in piece]
