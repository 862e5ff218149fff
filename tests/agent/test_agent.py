"""The stateful Agent: prompts, queues, events, results, guards, tools that add tools."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from pi_notebook.agent.agent import Agent
from pi_notebook.agent.function_tool import tool
from pi_notebook.agent.hooks import NextTurn
from pi_notebook.agent.single_call import run_tool_call
from pi_notebook.agent.tool import Host, Progress, Tool, ToolContext, ToolResult
from pi_notebook.ai.apis.scripted import call, scripted
from pi_notebook.ai.messages import AssistantMessage, Cost, ImageContent, TextContent, ToolCall, Usage, UserMessage
from pi_notebook.errors import AgentError

ANY = {"type": "object", "properties": {}}


def make(name: str, run: Any = None, **more: Any) -> Tool:
    async def execute(call_id: str, params: Any, signal: Any, on_update: Any) -> Any:
        return run(params) if run else "ok"

    return Tool(name, f"tool {name}", ANY, execute, **more)


def roles(agent: Agent) -> list[str]:
    return [message.role for message in agent.state.messages]


def test_run_returns_text_messages_calls_with_values_and_usage() -> None:
    value = {"rows": 3}
    agent = Agent(model=scripted([call("a", x=1)], "There are 3."), tools=[make("a", lambda _: value)])
    result = agent.run("how many?")
    assert result.text == "There are 3."
    assert [m.role for m in result.messages] == ["user", "assistant", "tool_result", "assistant"]
    (record,) = result.tool_calls
    assert (record.name, record.arguments, record.value is value, record.is_error) == ("a", {"x": 1}, True, False)
    assert result.turns == 2
    assert result.usage.output > 0
    assert result.stop_reason == "stop"
    assert repr(result) == "<RunResult 'There are 3.': 2 turns, 1 tool calls>"


def test_run_inside_a_running_loop_says_what_to_use() -> None:
    async def inside() -> None:
        Agent(model=scripted("x")).run("go")

    with pytest.raises(AgentError, match=r"use `await agent\.prompt"):
        asyncio.run(inside())


def test_stream_yields_every_event_and_leaving_early_aborts() -> None:
    async def scenario() -> tuple[list[str], str | None]:
        whole = [e.type async for e in Agent(model=scripted("a b")).stream("go")]
        agent = Agent(model=scripted("a b c d", delay=0.05))
        events = agent.stream("go")
        async for event in events:
            if event.type == "message_update":
                break
        await events.aclose()
        assert agent.signal is None
        last = agent.state.messages[-1]
        assert isinstance(last, AssistantMessage)
        return whole, last.stop_reason

    whole, stop_reason = asyncio.run(scenario())
    assert (whole[0], whole[-1]) == ("agent_start", "agent_end")
    assert stop_reason == "aborted"


def test_a_prompt_may_be_text_with_images_a_message_or_messages() -> None:
    agent = Agent(model=scripted("1", "2", "3"))
    image = ImageContent("AAAA", "image/png")
    agent.run("look", [image])
    agent.run(UserMessage("one"))
    agent.run([UserMessage("two"), UserMessage("three")])
    users = [m.content for m in agent.state.messages if m.role == "user"]
    assert users == [(TextContent("look"), image), "one", "two", "three"]


def test_a_second_prompt_while_one_runs_is_refused_and_loses_nothing() -> None:
    agent = Agent(model=scripted("done"))
    errors: list[str] = []

    async def listener(event: Any, signal: Any) -> None:
        if event.type == "turn_start":
            with pytest.raises(AgentError) as error:
                await agent.prompt("again")
            errors.append(str(error.value))

    agent.subscribe(listener)
    agent.run("go")
    assert errors == [
        "Cannot prompt: a run is going on. "
        "Use steer() or follow_up() to add to it, abort() to end it, or wait_for_idle()."
    ]
    assert roles(agent) == ["user", "assistant"]


def test_continue_needs_something_to_continue_from() -> None:
    agent = Agent(model=scripted("hello"))
    with pytest.raises(AgentError, match="the transcript is empty"):
        asyncio.run(agent.continue_())
    agent.run("hi")
    with pytest.raises(AgentError, match="the last message is the model's own"):
        asyncio.run(agent.continue_())


def test_steering_goes_in_after_the_turn_and_follow_up_when_the_agent_would_stop() -> None:
    agent = Agent(model=scripted([call("a")], "after steering", "after follow-up"), tools=[make("a")])
    agent.follow_up("one more thing")

    def listener(event: Any, signal: Any) -> None:
        if event.type == "tool_execution_start":
            threading.Thread(target=agent.steer, args=("use the other table",)).start()

    agent.subscribe(listener)
    agent.run("go")
    texts = [m.content[0].text for m in agent.state.messages if m.role == "user"]
    assert texts == ["go", "use the other table", "one more thing"]
    assert not agent.has_queued_messages()


def test_listeners_are_told_in_order_and_awaited_before_the_agent_is_idle() -> None:
    heard: list[str] = []

    async def slow(event: Any, signal: Any) -> None:
        if event.type == "agent_end":
            await asyncio.sleep(0.02)
            heard.append("slow")

    def quick(event: Any, signal: Any) -> None:
        if event.type == "agent_end":
            heard.append("quick")

    async def scenario() -> None:
        agent = Agent(model=scripted("x"))
        agent.subscribe(slow)
        unsubscribe = agent.subscribe(quick)
        running = asyncio.ensure_future(agent.prompt("go"))
        await asyncio.sleep(0)
        await agent.wait_for_idle()
        assert heard == ["slow", "quick"]
        await running
        unsubscribe()
        agent.state.model.rewind()  # type: ignore[attr-defined]
        await agent.prompt("again")

    asyncio.run(scenario())
    assert heard == ["slow", "quick", "slow"]


def test_a_tool_registered_by_a_running_tool_is_offered_in_the_very_next_request() -> None:
    offered: list[list[str]] = []

    async def grow(call_id: str, params: Any, signal: Any, on_update: Any) -> ToolResult:
        context = ToolContext.current()
        assert context is not None
        context.add_tool(make("new"))
        return ToolResult("grown")

    def script(context: Any) -> Any:
        offered.append([tool.name for tool in context.tools])
        return [[call("grow")], [call("new")], "done"][len(offered) - 1]

    agent = Agent(model=scripted(script, script, script), tools=[Tool("grow", "d", ANY, grow)])
    agent.run("go")
    assert offered == [["grow"], ["grow", "new"], ["grow", "new"]]
    first, second = (m for m in agent.state.messages if m.role == "tool_result")
    assert (first.added_tool_names, second.text) == (("new",), "ok")
    assert [tool.name for tool in agent.state.tools] == ["grow", "new"]


def test_progress_and_console_reach_the_listeners_as_updates_from_any_thread() -> None:
    async def execute(call_id: str, params: Any, signal: Any, on_update: Any) -> str:
        context = ToolContext.current()
        assert context is not None

        def work() -> None:
            for _ in context.track(range(2), "step"):
                print("line", file=context.console)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return "ok"

    agent = Agent(model=scripted([call("a")], "done"), tools=[Tool("a", "d", ANY, execute)])
    details: list[Any] = []
    agent.subscribe(
        lambda e, s: details.append(e.partial_result.details) if e.type == "tool_execution_update" else None
    )
    agent.run("go")
    assert [d for d in details if isinstance(d, Progress)] == [Progress(n, 2, "step") for n in (0, 1, 2)]
    assert "".join(d.text for d in details if not isinstance(d, Progress)) == "line\nline\n"


def test_updates_after_the_end_are_dropped() -> None:
    late: list[Any] = []

    async def execute(call_id: str, params: Any, signal: Any, on_update: Any) -> str:
        late.append(on_update)
        return "ok"

    agent = Agent(model=scripted([call("a")], "done"), tools=[Tool("a", "d", ANY, execute)])
    updates: list[Any] = []
    agent.subscribe(lambda e, s: updates.append(e) if e.type == "tool_execution_update" else None)

    async def scenario() -> None:
        await agent.prompt("go")
        late[0](ToolResult("too late"))
        await asyncio.sleep(0.01)

    asyncio.run(scenario())
    assert updates == []


def test_prepare_next_turn_changes_model_and_tools_for_the_next_request() -> None:
    other = scripted("from the other model", name="other")
    agent = Agent(model=scripted([call("a")]), tools=[make("a")], prepare_next_turn=lambda turn: NextTurn(model=other))
    assert agent.run("go").text == "from the other model"


def test_run_tool_call_takes_one_call_through_all_phases_without_a_model() -> None:
    seen: list[str] = []
    tool = make("a", lambda params: f"got {params}")
    result = asyncio.run(
        run_tool_call(
            ToolCall("c1", "a", {"x": 1}),
            [tool],
            before=lambda context, signal: seen.append("before"),
            after=lambda context, signal: seen.append("after"),
        )
    )
    assert result.text == "got {'x': 1}"
    assert seen == ["before", "after"]


def test_an_agent_runs_one_call_with_its_own_tools_and_hooks() -> None:
    seen: list[str] = []
    agent = Agent(
        model=scripted(),
        tools=[make("a", lambda p: f"got {p['x']}", approval=True)],
        before_tool_call=lambda context, signal: seen.append(context.tool_call.id),
    )
    result = asyncio.run(agent.run_tool_call(ToolCall("c9", "a", {"x": 1})))
    assert (result.text, seen, agent.state.messages) == ("got 1", ["c9"], [])


def test_call_works_inside_a_running_loop() -> None:
    async def inside() -> str:
        return make("a", lambda params: f"got {params['x']}").call(x=2).text

    assert asyncio.run(inside()) == "got 2"


def test_the_calls_of_a_result_are_in_the_order_in_which_they_were_made() -> None:
    async def later(call_id: str, params: Any, signal: Any, on_update: Any) -> str:
        await first_ended.wait()
        return "later"

    async def main() -> list[Any]:
        nonlocal first_ended
        first_ended = asyncio.Event()
        tools = [Tool("later", "later", ANY, later), make("now", lambda _: first_ended.set() or "now")]
        agent = Agent(model=scripted([call("later"), call("now"), call("now")], "done"), tools=tools)
        return [record.value for record in (await agent.prompt("go")).tool_calls]

    first_ended: Any = None
    assert asyncio.run(main()) == ["later", "now", "now"]


def test_a_cancelled_prompt_is_an_abort_that_its_tools_hear() -> None:
    heard = threading.Event()

    async def execute(call_id: str, params: Any, signal: Any, on_update: Any) -> str:
        started.set()
        await signal.wait()
        heard.set()
        return "ended"

    async def main() -> list[str]:
        nonlocal started
        started = asyncio.Event()
        agent = Agent(model=scripted([call("waits")], "never"), tools=[Tool("waits", "waits", ANY, execute)])
        task = asyncio.ensure_future(agent.prompt("go"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not agent.state.is_streaming and agent.signal is None
        return roles(agent)

    started: Any = None
    assert asyncio.run(main())[:3] == ["user", "assistant", "tool_result"]
    assert heard.is_set()


def test_a_cancelled_prompt_whose_hook_hangs_is_cancelled_all_the_same() -> None:
    async def hangs(*_: Any) -> None:
        started.set()
        await asyncio.Event().wait()

    async def main() -> Agent:
        nonlocal started
        started = asyncio.Event()
        agent = Agent(model=scripted([call("a")]), tools=[make("a")], before_tool_call=hangs)
        task = asyncio.ensure_future(agent.prompt("go"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return agent

    started: Any = None
    assert asyncio.run(main()).signal is None


def test_a_calls_clock_and_timeout_begin_with_its_own_code() -> None:
    class Busy(Host):
        async def run_plain(self, function: Any, context: ToolContext) -> Any:
            await asyncio.sleep(0.15)  # another call has the thread
            return function()

    @tool(timeout=0.1)
    def quick() -> str:
        """Quick."""
        return "ran"

    (record,) = Agent(model=scripted([call("quick")], "done"), tools=[quick], host=Busy()).run("go").tool_calls
    assert record.value == "ran"
    assert record.duration_ms is not None and record.duration_ms < 150


def test_a_call_that_was_stopped_before_its_turn_has_no_duration() -> None:
    class Full(Host):
        async def run_plain(self, function: Any, context: ToolContext) -> Any:
            agent.abort()
            await context.signal.wait()
            context.signal.raise_if_aborted()

    @tool
    def never() -> str:
        """Never runs."""
        return "ran"

    agent = Agent(model=scripted([call("never")]), tools=[never], host=Full())
    (record,) = agent.run("go").tool_calls
    assert (record.is_error, record.duration_ms) == (True, None)


class TestBadInput:
    def test_a_function_that_was_not_decorated_is_no_tool(self) -> None:
        def mean(x: int) -> int:
            return x

        tools: list[Any] = [make("a"), mean]
        with pytest.raises(AgentError) as raised:
            Agent(model=scripted("x"), tools=tools)
        assert str(raised.value) == "mean is no tool but a function: decorate it with @tool, or pass tool(mean)."
        with pytest.raises(AgentError, match="str is no tool but a str: give an agent `Tool`s"):
            Agent(model=scripted("x")).state.tools = ["read"]  # type: ignore[list-item]

    def test_two_tools_of_one_name_are_refused(self) -> None:
        with pytest.raises(AgentError) as raised:
            Agent(model=scripted(["done"]), tools=[make("a"), make("b"), make("a")])
        assert str(raised.value) == "Two tools are named 'a': give one another name, as @tool(name=...) does."

    def test_a_function_that_a_running_tool_adds_is_no_tool(self) -> None:
        @tool
        def register(ctx: ToolContext) -> None:
            """Register."""
            ctx.add_tool(len)  # type: ignore[arg-type]

        (record,) = Agent(model=scripted([call("register")], "done"), tools=[register]).run("go").tool_calls
        assert record.result.text.startswith("ToolDefinitionError: add_tool takes a tool, not <built-in function len>")
        assert record.result.added_tool_names == ()

    @pytest.mark.parametrize("option", ["tool_execution", "steering_mode", "follow_up_mode"])
    def test_a_misspelt_mode_is_refused(self, option: str) -> None:
        options: dict[str, Any] = {option: "paralel"}
        with pytest.raises(AgentError, match=f"{option} must be '.*' or '.*', not 'paralel'"):
            Agent(model=scripted("x"), **options)

    @pytest.mark.parametrize("prompt", [3, None, ["text"], {"role": "user"}])
    def test_what_is_no_prompt_is_refused_and_the_agent_stays_usable(self, prompt: Any) -> None:
        agent = Agent(model=scripted("fine"))
        with pytest.raises(AgentError, match="A prompt is text, a message or a list of messages, not"):
            agent.run(prompt)
        assert agent.run("go").text == "fine"


class TestGuards:
    def test_max_turns_stops_a_run_that_goes_on(self) -> None:
        replies = [[call("a", n=n)] for n in range(5)]
        agent = Agent(model=scripted(*replies), tools=[make("a", lambda p: str(p["n"]))], max_turns=3)
        result = agent.run("go")
        assert (result.turns, result.stopped_by) == (3, "Stopped after 3 turns (max_turns=3).")
        assert roles(agent)[-1] == "tool_result"

    def test_max_turns_stops_a_run_that_queued_messages_keep_going(self) -> None:
        agent = Agent(model=scripted(*["again"] * 9), max_turns=3)
        agent.subscribe(lambda event, _: agent.follow_up("more") if event.type == "turn_end" else None)
        result = agent.run("go")
        assert (result.turns, result.stopped_by) == (3, "Stopped after 3 turns (max_turns=3).")
        assert agent.has_queued_messages()

    def test_a_last_answer_at_the_limit_is_no_stop(self) -> None:
        agent = Agent(model=scripted([call("a")], "done"), tools=[make("a")], max_turns=2)
        assert agent.run("go").stopped_by == ""

    def test_max_cost_stops_after_the_turn_that_reached_it(self) -> None:
        dear = AssistantMessage(
            [call("a")], usage=Usage(1, 1, total_tokens=2, cost=Cost(total=0.3)), stop_reason="tool_use"
        )
        agent = Agent(model=scripted(dear, dear, dear), tools=[make("a", lambda p: object())], max_cost=0.5)
        result = agent.run("go")
        assert result.stopped_by == "Stopped: this run has cost $0.6000, and max_cost is $0.5."
        assert result.cost == pytest.approx(0.6)

    def test_a_call_repeated_three_times_is_pointed_out_and_the_fourth_stops_the_run(self) -> None:
        same = [call("a", x=1)]
        agent = Agent(model=scripted(same, same, same, same, "never"), tools=[make("a")])
        result = agent.run("go")
        assert result.stopped_by == "Stopped: a was called 4 times with the same arguments and the same result."
        notes = [m.content for m in result.messages if m.role == "user"][1:]
        assert len(notes) == 1 and "3 times running with the same arguments" in str(notes[0])

    def test_the_same_call_side_by_side_in_a_reply_counts_once(self) -> None:
        same = call("a", x=1)
        agent = Agent(model=scripted([same] * 4, [same], [same] * 2, [same], "never"), tools=[make("a")])
        result = agent.run("go")
        assert result.stopped_by == "Stopped: a was called 4 times with the same arguments and the same result."
        notes = [m.content for m in result.messages if m.role == "user"][1:]
        assert len(notes) == 1 and "3 times running with the same arguments" in str(notes[0])

    def test_many_equal_calls_in_one_reply_are_no_repetition(self) -> None:
        result = Agent(model=scripted([call("a", x=1)] * 50, "done"), tools=[make("a")]).run("go")
        assert result.text == "done" and result.stopped_by == "" and len(result.tool_calls) == 50

    def test_a_call_whose_result_changes_is_no_repetition(self) -> None:
        counter = iter(range(10))
        same = [call("poll")]
        agent = Agent(
            model=scripted(same, same, same, same, same, "done"), tools=[make("poll", lambda _: f"{next(counter)} %")]
        )
        assert agent.run("go").text == "done"
