"""How a run asks and shows itself where there is no card."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from pi_notebook.agent.events import ToolExecutionEnd, ToolExecutionStart
from pi_notebook.agent.hooks import Decision, Question
from pi_notebook.agent.tool import Tool, ToolResult
from pi_notebook.ai.messages import TextContent, ToolCall
from pi_notebook.notebook.faces import TerminalFace, input_at_terminal, prompt_person
from pi_notebook.notebook.view import RunView


async def nothing(call_id: str, params: Any, signal: Any, on_update: Any) -> ToolResult:
    return ToolResult([])


def question(**arguments: Any) -> Question:
    tool = Tool(name="wipe", description="", parameters={"type": "object"}, execute=nothing, approval=True)
    return Question(ToolCall("1", "wipe", arguments), tool, arguments)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class MainThread:
    """A bridge whose calls run when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Future[Any]]] = []

    def call(self, function: Callable[[], Any]) -> Future[Any]:
        self.waiting.append((function, Future()))
        return self.waiting[-1][1]

    def run_next(self) -> None:
        function, future = self.waiting.pop(0)
        future.set_result(function())


def test_the_arguments_stand_in_the_prompt_of_the_answer_itself() -> None:
    """What is printed may be captured; what `input` says reaches whoever types."""
    prompts: list[str] = []

    def read(prompt: str) -> str:
        prompts.append(prompt)
        return ["", "not that"][len(prompts) - 1]

    assert prompt_person(question(path="q\u202e"), read).reason == "not that"
    asked = "? wipe wants to run\n    path = q[U+202E]\nRun it? [y]es, [n]o, [a]lways, or a reason to block: "
    assert prompts == [asked] * 2


@pytest.mark.parametrize("stderr_too", [False, True])
def test_a_captured_output_does_not_hide_the_prompt(monkeypatch: pytest.MonkeyPatch, stderr_too: bool) -> None:
    captured, screen = io.StringIO(), Screen()
    monkeypatch.setattr("sys.stdout", captured)
    monkeypatch.setattr("sys.__stdout__", io.StringIO() if stderr_too else screen)
    monkeypatch.setattr("sys.__stderr__", screen)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert input_at_terminal("sure?") == "y"
    assert (screen.getvalue(), captured.getvalue()) == ("sure?", "")


def test_who_types_but_can_be_shown_nothing_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in ("stdout", "__stdout__", "__stderr__"):
        monkeypatch.setattr(f"sys.{stream}", io.StringIO())
    monkeypatch.setattr("sys.stdin", Screen("y\n"))
    decision = prompt_person(question(path="q"), input_at_terminal)
    assert (decision.kind, decision.by) == ("block", "nobody there")


def test_nothing_is_written_at_a_terminal_while_a_question_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a batch, the first call's result comes before the second question, not onto its line."""
    screen = Screen()
    for stream in ("stdout", "__stdout__"):
        monkeypatch.setattr(f"sys.{stream}", screen)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\nn\n"))
    view, main = RunView("m", "go"), MainThread()
    face = TerminalFace(main, view)  # type: ignore[arg-type]

    def end(call_id: str, text: str) -> None:
        view.apply(ToolExecutionEnd(call_id, "wipe", ToolResult([TextContent(text)]), False, 1, {}))

    async def ask_both() -> list[Decision | None]:
        for call_id in ("1", "2", "3"):
            view.apply(ToolExecutionStart(call_id, "wipe", {}))
        asked = [asyncio.ensure_future(face.ask(question(path=path))) for path in ("a", "b")]
        await asyncio.sleep(0)
        end("3", "of another call")
        before = screen.getvalue()
        assert face.refresh()
        assert (screen.getvalue(), len(main.waiting)) == (before, 1)
        main.run_next()
        await asked[0]
        end("1", "wiped a")
        while not main.waiting:
            await asyncio.sleep(0)
        main.run_next()
        assert not face.refresh()
        return [await each for each in asked]

    decisions = asyncio.run(ask_both())
    assert [each and each.kind for each in decisions] == ["approve", "block"]
    text = screen.getvalue()
    assert text.index("path = a") < text.index("of another call") < text.index("path = b") < text.index("wiped a")
