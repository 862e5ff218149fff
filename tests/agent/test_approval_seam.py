"""A person's word on a call: what is shown is what runs."""

from __future__ import annotations

import asyncio
from typing import Any

from pi_notebook.agent.agent import Agent
from pi_notebook.agent.execute_phase import ABORTED
from pi_notebook.agent.execution import NOBODY
from pi_notebook.agent.hooks import BeforeToolCallResult, Decision, Question
from pi_notebook.agent.tool import Tool, ToolResult
from pi_notebook.ai.apis.scripted import call, scripted

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Recorder:
    """A tool that keeps what it ran with."""

    def __init__(self, name: str = "wipe", approval: Any = True) -> None:
        self.ran: list[Any] = []
        self.tool = Tool(name, "d", SCHEMA, self.execute, approval=approval)

    async def execute(self, call_id: str, params: Any, signal: Any, on_update: Any) -> ToolResult:
        self.ran.append(params)
        return ToolResult(f"wiped {params['n']}")


def run(recorder: Recorder, approve: Any, *calls: Any, **more: Any) -> list[str]:
    agent = Agent(
        model=scripted(list(calls or [call("wipe", n=1)]), "done"), tools=[recorder.tool], approve=approve, **more
    )
    asyncio.run(agent.prompt("go"))
    return [m.text for m in agent.state.messages if m.role == "tool_result"]


def test_without_anybody_to_ask_the_call_is_blocked() -> None:
    recorder = Recorder()
    assert run(recorder, None) == [NOBODY]
    assert recorder.ran == []


def test_a_tool_that_needs_no_approval_runs_without_a_seam() -> None:
    recorder = Recorder(approval=False)
    assert run(recorder, None) == ["wiped 1"]


def test_the_approval_function_sees_the_validated_arguments_and_gives_the_reason() -> None:
    recorder = Recorder(approval=lambda args: f"n is {args['n'] + 1}")
    questions: list[Question] = []

    def approve(question: Question) -> Decision:
        questions.append(question)
        return Decision("approve")

    run(recorder, approve, call("wipe", n="4"))
    assert (questions[0].reason, questions[0].required, questions[0].arguments) == ("n is 5", True, {"n": 4})


def test_an_approval_function_that_raises_asks() -> None:
    recorder = Recorder(approval=lambda args: args["missing"])
    questions: list[Question] = []

    def approve(question: Question) -> Decision:
        questions.append(question)
        return Decision("block", "no")

    assert run(recorder, approve) == ["no"]
    assert questions[0].reason == "its approval rule failed: KeyError: 'missing'"


def test_a_hook_that_keeps_the_arguments_cannot_change_them_after_the_question() -> None:
    recorder = Recorder()
    kept: list[dict[str, Any]] = []

    def before(context: Any, signal: Any) -> None:
        kept.append(context.args)

    def approve(question: Question) -> Decision:
        kept[0]["n"] = 999
        return Decision("approve")

    assert run(recorder, approve, before_tool_call=before) == ["wiped 1"]


def test_what_a_hook_changed_before_the_question_is_what_is_shown_and_run() -> None:
    recorder = Recorder()
    shown: list[Any] = []

    def before(context: Any, signal: Any) -> None:
        context.args["n"] = 7

    def approve(question: Question) -> Decision:
        shown.append(question.arguments)
        return Decision("approve")

    assert run(recorder, approve, before_tool_call=before) == ["wiped 7"]
    assert shown == [{"n": 7}]


def test_edited_arguments_are_coerced_validated_and_pass_the_hooks_again() -> None:
    recorder = Recorder()
    seen: list[Any] = []

    def before(context: Any, signal: Any) -> None:
        seen.append(dict(context.args))

    assert run(recorder, lambda q: Decision("edit", arguments={"n": "5"}), before_tool_call=before) == ["wiped 5"]
    assert seen == [{"n": 1}, {"n": 5}]


def test_edited_arguments_that_do_not_fit_are_asked_again_with_the_reason() -> None:
    recorder = Recorder()
    answers = iter([Decision("edit", arguments={"n": "x"}), Decision("edit", arguments={"n": 2})])
    errors: list[str] = []

    def approve(question: Question) -> Decision:
        errors.append(question.error)
        return next(answers)

    assert run(recorder, approve) == ["wiped 2"]
    assert errors[0] == "" and "Validation failed for tool" in errors[1]


def test_a_hook_may_block_what_a_person_edited() -> None:
    recorder = Recorder()

    def before(context: Any, signal: Any) -> BeforeToolCallResult | None:
        return BeforeToolCallResult(True, "too many") if context.args["n"] > 3 else None

    assert run(recorder, lambda q: Decision("edit", arguments={"n": 4}), before_tool_call=before) == ["too many"]
    assert recorder.ran == []


def test_a_hook_that_changes_edited_arguments_makes_the_question_stand_again() -> None:
    recorder = Recorder()
    shown: list[Any] = []

    def before(context: Any, signal: Any) -> None:
        context.args["n"] = min(context.args["n"], 3)

    def approve(question: Question) -> Decision:
        shown.append(dict(question.arguments))
        return Decision("edit", arguments={"n": 9}) if len(shown) == 1 else Decision("approve")

    assert run(recorder, approve, before_tool_call=before) == ["wiped 3"]
    assert shown == [{"n": 1}, {"n": 3}]


def test_in_a_parallel_batch_all_questions_stand_open_at_once() -> None:
    recorder = Recorder()

    async def scenario() -> tuple[list[str], int]:
        standing: dict[int, asyncio.Future[Decision]] = {}
        most = 0

        async def approve(question: Question) -> Decision:
            nonlocal most
            future = standing[question.arguments["n"]] = asyncio.get_running_loop().create_future()
            most = max(most, len(standing))
            if len(standing) == 3:
                for n in (3, 1, 2):  # answered out of order
                    standing[n].set_result(Decision("block", "not 1") if n == 1 else Decision("approve"))
            return await future

        agent = Agent(
            model=scripted([call("wipe", n=n) for n in (1, 2, 3)], "done"), tools=[recorder.tool], approve=approve
        )
        await agent.prompt("go")
        return [m.text for m in agent.state.messages if m.role == "tool_result"], most

    texts, most = asyncio.run(scenario())
    assert most == 3
    assert texts == ["not 1", "wiped 2", "wiped 3"]


def test_an_abort_ends_a_question_nobody_answers() -> None:
    recorder = Recorder()

    async def scenario() -> list[str]:
        async def approve(question: Question) -> Decision:
            asyncio.get_running_loop().call_later(0.02, agent.abort)
            await asyncio.sleep(60)
            return Decision("approve")

        agent = Agent(model=scripted([call("wipe", n=1)], "done"), tools=[recorder.tool], approve=approve)
        await agent.prompt("go")
        return [m.text for m in agent.state.messages if m.role == "tool_result"]

    assert asyncio.run(scenario()) == [ABORTED]
    assert recorder.ran == []


def test_an_approver_that_raises_blocks_the_call() -> None:
    recorder = Recorder()

    def approve(question: Question) -> Decision:
        raise RuntimeError("approver broke")

    (text,) = run(recorder, approve)
    assert text.startswith("RuntimeError: approver broke")
    assert recorder.ran == []


def test_an_answer_that_is_no_decision_blocks_the_call_and_says_so() -> None:
    recorder = Recorder()
    approve: Any = lambda question: True  # noqa: E731
    (text,) = run(recorder, approve)
    assert "approve must answer with a Decision, not True." in text
    assert recorder.ran == []


def test_a_call_that_a_person_makes_in_code_is_not_asked_about() -> None:
    recorder = Recorder()
    assert recorder.tool.call(n=3).text == "wiped 3"
