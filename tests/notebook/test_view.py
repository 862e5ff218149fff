"""What a run looks like, from its events."""

from __future__ import annotations

import asyncio
from typing import Any

from pi_notebook.agent.agent import Agent
from pi_notebook.agent.events import MessageEnd, MessageStart, MessageUpdate, ToolExecutionEnd, TurnStart
from pi_notebook.agent.execute_phase import ABORTED
from pi_notebook.agent.hooks import BeforeToolCallResult, Decision
from pi_notebook.agent.output import OutputCleared
from pi_notebook.agent.tool import ConsoleText, Progress, Tool, ToolResult
from pi_notebook.ai.apis.scripted import call, scripted, thinking
from pi_notebook.ai.messages import AssistantMessage, Cost, TextContent, ToolCall, ToolResultMessage, Usage, UserMessage
from pi_notebook.notebook._header import head_line
from pi_notebook.notebook._items import ConsoleTail
from pi_notebook.notebook.view import RunView
from tests.browser.states import Play


def states(view: RunView) -> list[tuple[str, str]]:
    return [(row.name, row.state) for row in view.rows]


def run(view: RunView, *replies: Any, **options: Any) -> None:
    async def execute(call_id: str, params: Any, signal: Any, on_update: Any) -> ToolResult:
        if params.get("fail"):
            raise ValueError("no such file")
        return ToolResult("42")

    schema = {"type": "object", "properties": {"fail": {"type": "boolean"}}}
    agent = Agent(model=scripted(*replies), tools=[Tool("look", "Look.", schema, execute)], **options)
    agent.subscribe(lambda event, signal: view.apply(event))
    asyncio.run(agent.prompt("go"))


def test_a_run_shows_thinking_text_and_calls_in_order() -> None:
    view = RunView("m")
    run(view, [thinking("hm"), "I look.", call("look")], "It is 42.")
    view.finish()
    assert [item.kind for item in view.items] == ["thinking", "text", "row", "text"]
    assert view.items[1].source == "I look."  # type: ignore[union-attr]
    assert states(view) == [("look", "done")]
    assert view.rows[0].result.text == "42"  # type: ignore[union-attr]
    assert view.turn == 2
    assert view.status == "done"


def test_a_hook_that_refuses_makes_a_call_blocked_and_not_failed() -> None:
    view = RunView("m")
    run(view, call("look"), "ok", before_tool_call=lambda *_: BeforeToolCallResult(True, "not today"))
    assert states(view) == [("look", "blocked")]


def test_an_exception_wrong_arguments_and_an_unknown_tool_are_failures() -> None:
    view = RunView("m")
    run(view, [call("look", fail=True), call("look", fail=[]), call("nothing")], "ok")
    assert states(view) == [("look", "failed"), ("look", "failed"), ("nothing", "failed")]


def test_a_call_that_was_not_begun_at_an_abort_is_stopped() -> None:
    play = Play()
    one = play.call("c1", "look", {})
    play.end_reply("tool_use")
    play.start(one, run=False)
    play.finish(one, ToolResult.failure(ABORTED), None)
    assert states(play.view) == [("look", "stopped")]
    assert play.view.rows[0].seconds(0) is None


def test_calls_with_the_same_id_are_rows_of_their_own() -> None:
    play = Play()
    one, two = play.call("same", "look", {"a": 1}), play.call("same", "look", {"a": 2})
    play.end_reply("tool_use")
    play.start(one)
    play.start(two)
    play.finish(one, ToolResult("first"))
    play.finish(two, ToolResult("second"))
    assert [row.result.text for row in play.view.rows if row.result] == ["first", "second"]
    play.begin()
    three = play.call("same", "look", {"a": 3})
    play.end_reply("tool_use")
    play.start(three)
    assert states(play.view) == [("look", "done"), ("look", "done"), ("look", "running")]


def test_one_streamed_call_that_turns_out_to_be_two_gets_two_rows() -> None:
    play = Play()
    play.call("c1", "look", {"a": 1})
    message = AssistantMessage([ToolCall("c1", "look", {"a": 1}), ToolCall("c2", "look", {"a": 2})])
    play.view.apply(MessageEnd(message))
    assert [row.arguments for row in play.view.rows] == [{"a": 1}, {"a": 2}]


def test_a_reply_that_was_not_streamed_is_shown_whole() -> None:
    view = RunView("m")
    message = AssistantMessage([TextContent("hello"), ToolCall("c1", "look", {})])
    view.apply(MessageStart(message))
    view.apply(MessageEnd(message))
    assert [item.kind for item in view.items] == ["text", "row"]
    assert view.items[0].source == "hello"  # type: ignore[union-attr]


def test_arguments_that_arrive_are_shown_in_part_and_their_cost_stays_small() -> None:
    play = Play()
    index = play._tell(play.reply.toolcall_start("c1", "write"))
    play._tell(play.reply.toolcall_delta(index, '{"path": "a.txt", "content": "'))
    for _ in range(1000):
        play._tell(play.reply.toolcall_delta(index, "x" * 100))
    row = play.view.rows[0]
    assert row.writing
    assert row.shown_arguments["path"] == "a.txt"
    assert row.raw_length > 100_000 > len(row._raw)
    assert play.view.status == "writing a call"
    play.view.apply(MessageUpdate(play.reply.toolcall_end(index, {"path": "b.txt"})))
    assert row.shown_arguments == {"path": "b.txt"}


def test_a_question_shows_the_final_arguments_and_its_answer_stays() -> None:
    play = Play()
    one = play.call("c1", "look", {"a": "model's own"})
    play.end_reply("tool_use")
    play.start(one, run=False)
    question = play.ask(ToolCall("c1", "look", {"a": "after the hooks"}))
    assert play.view.rows[0].arguments == {"a": "after the hooks"}
    assert play.view.rows[0].model_arguments == {"a": "model's own"}
    assert play.view.status == "waiting for you"
    play.view.answered(question, Decision("edit", arguments={"a": "edited"}))
    assert play.view.rows[0].state == "queued"
    play.view.running("c1")
    play.view.apply(ToolExecutionEnd("c1", "look", ToolResult("x"), False, 3, args={"a": "edited"}))
    assert play.view.rows[0].arguments == {"a": "edited"}
    assert states(play.view) == [("look", "done")]


def test_a_call_that_is_asked_about_again_stays_one_row() -> None:
    play = Play()
    one = play.call("c1", "look", {})
    play.end_reply("tool_use")
    play.start(one, run=False)
    first = play.ask(one)
    play.view.answered(first, Decision("edit", arguments={"a": "wrong"}))
    play.ask(one)
    assert states(play.view) == [("look", "waiting for you")]
    assert play.view.rows[0].decision is None


def test_questions_are_matched_to_their_own_calls() -> None:
    play = Play()
    calls = [play.call(f"c{n}", f"tool{n}", {}) for n in range(3)]
    play.end_reply("tool_use")
    for one in calls:
        play.start(one, run=False)
    questions = [play.ask(one) for one in calls]
    assert play.view.status == "waiting for you: 3 questions"
    play.view.answered(questions[1], Decision("block", "no"))
    play.view.answered(questions[2], Decision("approve"))
    assert [state for _, state in states(play.view)] == ["waiting for you", "blocked", "queued"]


def test_progress_console_and_partial_results_are_kept_apart() -> None:
    play = Play()
    one = play.call("c1", "look", {})
    play.end_reply("tool_use")
    play.start(one)
    play.update(one, Progress(1, 3))
    play.update(one, ConsoleText("a"))
    play.update(one, ConsoleText("b\n"))
    play.update(one, {"rows": 3})
    row = play.view.rows[0]
    assert (row.progress, row.console.text) == (Progress(1, 3), "ab\n")
    assert row.partial is not None and row.partial.details == {"rows": 3}


def test_the_console_keeps_its_end_and_counts_what_it_dropped() -> None:
    tail = ConsoleTail()
    for number in range(10_000):
        tail.write(f"line {number}\n")
    assert tail.text.endswith("line 9999\n")
    assert len(tail.text) == ConsoleTail.LIMIT
    assert tail.dropped == sum(len(f"line {n}\n") for n in range(10_000)) - ConsoleTail.LIMIT
    tail.write("x" * 50_000)
    assert tail.text == "x" * ConsoleTail.LIMIT


def test_the_console_shows_a_rewritten_line_in_its_last_form() -> None:
    tail = ConsoleTail()
    for percent in (10, 50, 100):
        tail.write(f"\r{percent} %")
    tail.write("\r\ndone\n")
    assert tail.text == "100 %\ndone\n"


def test_a_tool_that_clears_its_output_clears_its_row() -> None:
    play = Play()
    one = play.call("c1", "look", {})
    play.end_reply("tool_use")
    play.start(one)
    play.update(one, ConsoleText("old\n"))
    play.update(one, {"display": {"text/plain": "old"}})
    play.update(one, OutputCleared())
    play.update(one, ConsoleText("new\n"))
    assert (play.view.rows[0].console.text, play.view.rows[0].partial) == ("new\n", None)


def test_steering_is_queued_until_the_model_gets_it() -> None:
    play = Play()
    play.view.apply(MessageEnd(UserMessage("the prompt")))
    play.say("Working.\n")
    play.view.steer("use the other table")
    assert play.view.queued == ["use the other table"]
    play.end_reply()
    play.view.apply(MessageEnd(UserMessage("use the other table")))
    assert play.view.queued == []
    assert [item.kind for item in play.view.items] == ["text", "steering"]


def test_tokens_add_up_and_an_unknown_price_makes_the_cost_unknown() -> None:
    view = RunView("m")
    known = Usage(100, 20, cache_read=50, total_tokens=170, cost=Cost(total=0.5))
    view.apply(MessageEnd(AssistantMessage([TextContent("a")], usage=known)))
    assert (view.tokens_in, view.tokens_out, view.cost) == (150, 20, 0.5)
    view.apply(MessageEnd(AssistantMessage([TextContent("b")], usage=Usage(1, 1, total_tokens=2))))
    assert view.cost is None


def test_a_retry_is_named_until_the_next_event() -> None:
    view = RunView("m")
    view.retrying(1, 2.0, "503 from the server")
    assert view.retry == "attempt 2 in 2 s: 503 from the server"
    assert view.status == "retrying"
    view.apply(MessageStart(AssistantMessage()))
    assert view.retry == ""


def test_a_failed_reply_says_why_and_once() -> None:
    view = RunView("m")
    view.apply(MessageEnd(AssistantMessage(stop_reason="error", error_message="401: bad key")))
    view.notice("401: bad key", "error")
    assert [(item.kind, item.text) for item in view.items if item.kind == "notice"] == [("notice", "401: bad key")]


def test_a_turn_that_a_stop_left_without_a_reply_is_not_counted() -> None:
    play = Play()
    one = play.call("c1", "look", {})
    play.end_reply("tool_use")
    play.start(one)
    play.finish(one, ToolResult.failure("stopped"))
    ended = AssistantMessage(stop_reason="aborted", error_message="stopped by the user")
    for event in (TurnStart(), MessageStart(ended), MessageEnd(ended)):
        play.view.apply(event)
    play.view.finish("stopped")
    assert head_line(play.view).split(" · ")[1] == "1 turn"
    stored = RunView("m")
    stored.replay([AssistantMessage([ToolCall("c1", "look", {})]), ToolResultMessage("c1", "look", []), ended])
    assert stored.turn == 1


def test_a_turn_that_was_stopped_in_the_middle_of_its_reply_counts() -> None:
    play = Play()
    play.end_reply()
    play.view.apply(TurnStart())
    play.view.apply(MessageEnd(AssistantMessage([TextContent("half a sen")], stop_reason="aborted")))
    assert play.view.turn == 2


def test_after_the_end_nothing_changes_and_what_was_open_is_stopped() -> None:
    play = Play()
    play.say("half a sen", end=False)
    one = play.call("c1", "look", {})
    play.end_reply("tool_use")
    play.start(one)
    play.view.finish("interrupted")
    version = play.view.version
    play.finish(one, ToolResult("too late"))
    play.view.finish("done")
    assert (play.view.version, play.view.status) == (version, "interrupted")
    assert states(play.view) == [("look", "stopped")]
    assert all(not item.open for item in play.view.items if item.kind == "text")


def test_a_stored_transcript_is_shown_as_the_run_was() -> None:
    view = RunView("m")
    view.replay(
        [
            UserMessage("look"),
            AssistantMessage([TextContent("I look."), ToolCall("c1", "look", {"a": 1})], stop_reason="tool_use"),
            ToolResultMessage("c1", "look", [TextContent("42")], duration_ms=5),
            AssistantMessage([TextContent("It is 42.")]),
        ]
    )
    view.finish()
    assert [item.kind for item in view.items] == ["text", "row", "text"]
    assert states(view) == [("look", "done")]
    assert view.rows[0].seconds(0) == 0.005
