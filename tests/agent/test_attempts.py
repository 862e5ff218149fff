"""What ends a call other than its own return: within the call, and for the batch around it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pi_notebook.agent.agent import Agent
from pi_notebook.agent.attempts import Attempt, Attempts, Interrupted, Patience
from pi_notebook.agent.execute_phase import INTERRUPTED
from pi_notebook.agent.function_tool import tool
from pi_notebook.agent.result import RunResult
from pi_notebook.agent.tool import Tool
from pi_notebook.ai.abort import AbortController
from pi_notebook.ai.apis.scripted import call, scripted
from pi_notebook.ai.messages import ToolCall

ANY = {"type": "object", "properties": {}}
QUICK = Patience(0.0, 0.05)


def run_tools(*bodies: Callable[[], Awaitable[Any]], **more: Any) -> RunResult:
    """A run of one batch in which the model calls every one of `bodies`."""

    def make(number: int, body: Callable[[], Awaitable[Any]]) -> Tool:
        async def execute(call_id: str, params: Any, signal: Any, on_update: Any) -> Any:
            return await body()

        return Tool(f"t{number}", "a tool", ANY, execute)

    tools = [make(number, body) for number, body in enumerate(bodies)]
    agent = Agent(model=scripted([call(tool.name) for tool in tools], "done"), tools=tools, **more)
    return asyncio.run(agent.prompt("go"))


async def fine() -> str:
    await asyncio.sleep(0.01)
    return "fine"


async def cancels_itself_and_waits() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel("enough")
    await asyncio.sleep(10)


async def cancels_itself_at_its_end() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel("enough")
    return "never"


async def exits() -> None:
    raise SystemExit(3)


async def closes() -> None:
    raise GeneratorExit


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (cancels_itself_and_waits, "RuntimeError: CancelledError: enough"),
        (cancels_itself_at_its_end, "RuntimeError: CancelledError: enough"),
        (exits, "RuntimeError: SystemExit: 3"),
        (closes, "RuntimeError: GeneratorExit"),
    ],
)
def test_what_would_end_the_loop_is_the_failure_of_one_call(body: Any, said: str) -> None:
    result = run_tools(body, fine)
    first, second = result.tool_calls
    assert first.is_error and first.result.text.startswith(said)
    assert (second.result.text, result.text) == ("fine", "done")


async def loses_what_it_waits_for(*_: Any) -> None:
    waits = asyncio.ensure_future(asyncio.sleep(30))
    asyncio.get_running_loop().call_soon(waits.cancel, "lost")
    await waits


@pytest.mark.parametrize("hook", ["before_tool_call", "after_tool_call", "approve"])
def test_a_cancel_inside_a_hook_is_the_failure_of_its_call(hook: str) -> None:
    result = run_tools(fine, fine, **{hook: loses_what_it_waits_for})
    assert [record.result.text.partition("\n")[0].strip() for record in result.tool_calls] == 2 * [
        "RuntimeError: CancelledError: lost"
    ]
    assert result.text == "done"


@pytest.mark.parametrize("hook", ["transform_context", "convert_to_llm", "should_stop_after_turn", "prepare_next_turn"])
def test_a_cancel_inside_a_hook_between_turns_is_the_failure_of_the_run(hook: str) -> None:
    assert run_tools(fine, **{hook: loses_what_it_waits_for}).error_message == "CancelledError: lost"


@pytest.mark.parametrize("event", ["agent_start", "tool_execution_start", "tool_execution_end", "message_update"])
def test_a_cancel_inside_a_listener_is_logged_and_the_run_goes_on(event: str, caplog: pytest.LogCaptureFixture) -> None:
    @tool
    async def one() -> str:
        """One."""
        return "one"

    async def listen(told: Any, signal: Any) -> None:
        if told.type == event:
            await loses_what_it_waits_for()

    agent = Agent(model=scripted([call("one")], "done"), tools=[one])
    agent.subscribe(listen)
    assert agent.run("go").text == "done"
    assert f"a listener raised on {event}" in caplog.text


def test_an_agent_inside_a_tool_stops_with_the_run_around_it() -> None:
    inner_results: list[str] = []

    async def waits() -> None:
        outer.abort("enough")
        await asyncio.sleep(30)

    async def nested() -> str:
        inner = Agent(model=scripted([call("waits")], "inner"), tools=[Tool("waits", "w", ANY, lambda *_: waits())])
        try:
            return (await inner.prompt("go")).text
        finally:
            inner_results.extend(m.text for m in inner.state.messages if m.role == "tool_result")

    outer = Agent(model=scripted([call("nested")], "done"), tools=[Tool("nested", "n", ANY, lambda *_: nested())])
    (record,) = outer.run("go").tool_calls
    assert (record.result.text, inner_results) == (INTERRUPTED, [INTERRUPTED])


def test_calls_of_one_id_stay_in_the_models_order() -> None:
    async def sleep(call_id: str, params: Any, signal: Any, on_update: Any) -> str:
        await asyncio.sleep(params["seconds"])
        return str(params["seconds"])

    same = [ToolCall("x", "nap", {"seconds": seconds}) for seconds in (0.1, 0.2, 0.05)]
    result = Agent(model=scripted(same, "done"), tools=[Tool("nap", "n", ANY, sleep)]).run("go")
    assert [record.value for record in result.tool_calls] == ["0.1", "0.2", "0.05"]


def in_attempts(*works: Any, abort: bool = True) -> list[str]:
    async def main() -> list[str]:
        controller = AbortController()
        attempts = Attempts[str](controller.signal)
        if abort:
            asyncio.get_running_loop().call_soon(controller.abort)
        return await attempts.outcomes(works)

    return asyncio.run(main())


async def instead() -> str:
    return "instead"


def waiting_for(seconds: float, deaf: bool = False) -> Callable[[Attempt[str]], Any]:
    async def nap() -> str:
        for _ in range(2):
            try:
                await asyncio.sleep(seconds)
                return "slept"
            except asyncio.CancelledError:
                if not deaf:
                    raise
        return "never"

    async def work(attempt: Attempt[str]) -> str:
        try:
            return await attempt.until_abort(nap(), QUICK, instead)
        except Interrupted:
            return "interrupted"

    return work


def test_each_of_a_batch_ends_as_it_can_after_an_abort() -> None:
    works = waiting_for(0), waiting_for(30), waiting_for(30, deaf=True)
    assert in_attempts(*works) == ["slept", "interrupted", "instead"]


def test_the_outcomes_come_in_the_order_of_the_works() -> None:
    assert in_attempts(waiting_for(0.02), waiting_for(0), abort=False) == ["slept", "slept"]
    assert in_attempts(abort=False) == []


def test_an_error_comes_out_at_once_and_the_others_are_cancelled() -> None:
    cancelled: list[bool] = []

    async def waits(attempt: Attempt[str]) -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return ""

    async def fails(attempt: Attempt[str]) -> str:
        await asyncio.sleep(0)
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        in_attempts(waits, fails, abort=False)
    assert cancelled == [True]


def test_nothing_of_a_call_is_kept_alive_by_a_cycle() -> None:
    class Big: ...

    kept: list[weakref.ref[Big]] = []

    async def work(attempt: Attempt[str]) -> str:
        big = Big()
        kept.append(weakref.ref(big))

        async def hold() -> str:
            return str(bool(big))

        return await attempt.until_abort(hold(), QUICK, instead)

    gc.disable()
    try:
        assert in_attempts(work, work, abort=False) == ["True", "True"]
        assert [reference() for reference in kept] == [None, None]
    finally:
        gc.enable()
