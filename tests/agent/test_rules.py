"""Where the loop is better than the reference on purpose, rule by rule (L1 to L8)."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest

from pi_notebook.agent.agent import Agent
from pi_notebook.agent.execute_phase import ABANDONED, ABORTED, INTERRUPTED
from pi_notebook.agent.hooks import AfterToolCallResult, BeforeToolCallResult
from pi_notebook.agent.tool import Tool, ToolResult
from pi_notebook.ai.apis.scripted import call, scripted
from pi_notebook.ai.messages import ToolCall
from pi_notebook.errors import AgentError, ToolError

ANY = {"type": "object", "properties": {}}


def make(name: str, run: Any = None, **more: Any) -> Tool:
    """A tool that returns `run(params)`, awaited if it can be."""

    async def execute(call_id: str, params: Any, signal: Any, on_update: Any) -> Any:
        value = run(params) if run else ToolResult(f"{name} ran")
        return await value if asyncio.iscoroutine(value) else value

    return Tool(name, f"tool {name}", ANY, execute, **more)


def results_of(agent: Agent) -> list[tuple[str, str, bool]]:
    return [(m.tool_call_id, m.text, m.is_error) for m in agent.state.messages if m.role == "tool_result"]


def test_l1_after_an_abort_no_prepared_call_starts_and_every_call_has_one_result() -> None:
    started: list[str] = []
    agent = Agent(
        model=scripted([call("a"), call("b"), call("c")], "done"),
        tools=[make(n, lambda _, n=n: started.append(n)) for n in "abc"],
    )

    def before(context: Any, signal: Any) -> None:
        if context.tool_call.name == "b":
            agent.abort()

    agent.before_tool_call = before
    asyncio.run(agent.prompt("go"))
    assert started == []
    assert results_of(agent) == [(f"call_{i}", ABORTED, True) for i in (1, 2, 3)]


def test_l2_a_listener_that_raises_is_logged_and_the_run_and_other_listeners_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = Agent(model=scripted([call("a")], "done"), tools=[make("a")])
    heard: list[str] = []

    def broken(event: Any, signal: Any) -> None:
        raise RuntimeError("listener broke")

    agent.subscribe(broken)
    agent.subscribe(lambda event, signal: heard.append(event.type))
    with caplog.at_level(logging.ERROR):
        result = asyncio.run(agent.prompt("go"))
    assert result.text == "done"
    assert agent.state.error_message is None
    assert heard[0] == "agent_start" and heard[-1] == "agent_end"
    assert all(record.exc_info and "listener broke" in str(record.exc_info[1]) for record in caplog.records)


@pytest.mark.parametrize(("returned", "text"), [(None, ""), ("bare", "bare"), (42, "42"), ({"a": [1]}, '{"a": [1]}')])
def test_l3_any_return_value_becomes_a_result(returned: Any, text: str) -> None:
    agent = Agent(model=scripted([call("a")], "done"), tools=[make("a", lambda _: returned)])
    result = asyncio.run(agent.prompt("go"))
    ((_, content, is_error),) = results_of(agent)
    assert not is_error
    assert result.text == "done"
    if text:
        assert text.replace(" ", "") in content.replace(" ", "").replace("\n", "")


def test_l4_reset_during_a_run_is_refused() -> None:
    agent = Agent(model=scripted("done"))
    refused: list[str] = []

    def listener(event: Any, signal: Any) -> None:
        if event.type == "turn_start":
            with pytest.raises(AgentError) as error:
                agent.reset()
            refused.append(str(error.value))

    agent.subscribe(listener)
    asyncio.run(agent.prompt("go"))
    assert refused == [
        "Cannot reset: a run is going on. "
        "Use steer() or follow_up() to add to it, abort() to end it, or wait_for_idle()."
    ]
    assert [m.role for m in agent.state.messages] == ["user", "assistant"]


def test_l5_pending_calls_are_counted_per_call_not_per_id() -> None:
    async def wait(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "ok"

    agent = Agent(
        model=scripted([ToolCall("dup", "quick", {}), ToolCall("dup", "slow", {})], "done"),
        tools=[make("quick", lambda _: "ok"), make("slow", lambda _: wait(0.05))],
    )
    pending: list[frozenset[str]] = []

    def listener(event: Any, signal: Any) -> None:
        if event.type == "tool_execution_end":
            pending.append(agent.state.pending_tool_calls)

    agent.subscribe(listener)
    asyncio.run(agent.prompt("go"))
    assert pending == [frozenset({"dup"}), frozenset()]


def test_l6_is_error_returned_by_a_tool_is_honoured() -> None:
    agent = Agent(model=scripted([call("a")], "done"), tools=[make("a", lambda _: ToolResult("no", is_error=True))])
    asyncio.run(agent.prompt("go"))
    assert results_of(agent) == [("call_1", "no", True)]


def test_l7_a_block_can_terminate() -> None:
    agent = Agent(
        model=scripted([call("a")], "never asked for"),
        tools=[make("a")],
        before_tool_call=lambda context, signal: BeforeToolCallResult(True, "stop here", terminate=True),
    )
    result = asyncio.run(agent.prompt("go"))
    assert results_of(agent) == [("call_1", "stop here", True)]
    assert result.turns == 1


def test_l8_results_and_their_events_carry_the_duration() -> None:
    async def slow() -> str:
        await asyncio.sleep(0.02)
        return "ok"

    agent = Agent(model=scripted([call("a")], "done"), tools=[make("a", lambda _: slow())])
    ends: list[Any] = []
    agent.subscribe(lambda e, s: ends.append(e) if e.type == "tool_execution_end" else None)
    asyncio.run(agent.prompt("go"))
    (message,) = [m for m in agent.state.messages if m.role == "tool_result"]
    assert message.duration_ms == ends[0].duration_ms
    assert 15 <= message.duration_ms < 10_000


def test_a_call_that_never_began_has_no_duration() -> None:
    agent = Agent(model=scripted([call("nope")], "done"))
    asyncio.run(agent.prompt("go"))
    (message,) = [m for m in agent.state.messages if m.role == "tool_result"]
    assert message.duration_ms is None
    assert message.text == "There is no tool named 'nope'. Tools you can call: none."


class TestTimesOfAnAbort:
    """The signal first; cancelled after 0.3 s; left alone after 0.6 s; the run over within a second."""

    @staticmethod
    def run(tool: Tool) -> tuple[list[tuple[str, str, bool]], float]:
        async def scenario() -> float:
            async def abort_soon(event: Any, signal: Any) -> None:
                if event.type == "tool_execution_start":
                    asyncio.get_running_loop().call_later(0.05, agent.abort)

            agent.subscribe(abort_soon)
            started = time.monotonic()
            await agent.prompt("go")
            return time.monotonic() - started

        agent = Agent(model=scripted([call(tool.name)], "done"), tools=[tool])
        seconds = asyncio.run(scenario())
        return results_of(agent), seconds

    def test_a_tool_that_heeds_the_signal_gives_its_own_result(self) -> None:
        async def execute(call_id: str, params: Any, signal: Any, on_update: Any) -> ToolResult:
            await signal.wait()
            return ToolResult(f"saved half ({signal.reason})")

        results, _ = self.run(Tool("a", "a", ANY, execute))
        assert results == [("call_1", "saved half (stopped)", False)]

    def test_an_async_tool_that_ignores_the_signal_is_cancelled(self) -> None:
        cleaned: list[bool] = []

        async def execute(call_id: str, params: Any, signal: Any, on_update: Any) -> ToolResult:
            try:
                await asyncio.sleep(30)
            finally:
                cleaned.append(True)
            return ToolResult("never")

        results, seconds = self.run(Tool("a", "a", ANY, execute))
        assert results == [("call_1", INTERRUPTED, True)]
        assert cleaned == [True]
        assert seconds < 5

    def test_a_tool_that_will_not_end_is_abandoned_and_its_late_result_dropped(self) -> None:
        async def execute(call_id: str, params: Any, signal: Any, on_update: Any) -> ToolResult:
            for _ in range(8):
                try:
                    await asyncio.sleep(0.3)
                except asyncio.CancelledError:
                    on_update(ToolResult("still here"))
            return ToolResult("late")

        results, seconds = self.run(Tool("a", "a", ANY, execute))
        assert results == [("call_1", ABANDONED.format(seconds=0.6), True)]
        assert seconds < 5

    def test_a_result_that_comes_in_time_is_kept(self) -> None:
        async def execute(call_id: str, params: Any, signal: Any, on_update: Any) -> ToolResult:
            await asyncio.sleep(0.15)
            return ToolResult("just in time")

        results, _ = self.run(Tool("a", "a", ANY, execute))
        assert results == [("call_1", "just in time", False)]


def test_a_timeout_ends_the_call_and_the_run_goes_on() -> None:
    async def forever() -> None:
        await asyncio.sleep(30)

    agent = Agent(model=scripted([call("a")], "done"), tools=[make("a", lambda _: forever(), timeout=0.05)])
    result = asyncio.run(agent.prompt("go"))
    assert results_of(agent) == [("call_1", "a timed out after 0.05 s.", True)]
    assert result.text == "done"


def test_a_tool_with_a_timeout_still_hears_the_runs_abort() -> None:
    async def execute(call_id: str, params: Any, signal: Any, on_update: Any) -> ToolResult:
        agent.abort("enough")
        await signal.wait()
        return ToolResult(signal.reason)

    agent = Agent(model=scripted([call("a")], "done"), tools=[Tool("a", "a", ANY, execute, timeout=30)])
    asyncio.run(agent.prompt("go"))
    assert results_of(agent) == [("call_1", "enough", False)]


def test_a_tool_error_speaks_for_itself_and_other_errors_name_their_type() -> None:
    def plain(_: Any) -> None:
        raise ToolError("no such table: sales")

    def bug(_: Any) -> None:
        raise KeyError("price")

    agent = Agent(model=scripted([call("plain"), call("bug")], "done"), tools=[make("plain", plain), make("bug", bug)])
    result = asyncio.run(agent.prompt("go"))
    (_, first, _), (_, second, _) = results_of(agent)
    assert first == "no such table: sales"
    assert second.startswith("KeyError: 'price'")
    assert isinstance({r.name: r.result.error for r in result.tool_calls}["bug"], KeyError)


def test_after_hook_replaces_fields_without_merging() -> None:
    agent = Agent(
        model=scripted([call("a")], "done"),
        tools=[make("a", lambda _: ToolResult("secret", {"keep": 1, "drop": 2}))],
        after_tool_call=lambda context, signal: AfterToolCallResult(details={"keep": 1}),
    )
    asyncio.run(agent.prompt("go"))
    (message,) = [m for m in agent.state.messages if m.role == "tool_result"]
    assert (message.text, message.details) == ("secret", {"keep": 1})
