"""Servers that bend the chat protocol, from the first byte to the second request: a call runs, or the model is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from pi_notebook import Agent, RunResult, tool
from pi_notebook.ai.model import Model

from ..ai.servers import Server, head, replies, serving, sse

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def delta(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(arguments: Any, name: str | None = "add", **fields: Any) -> dict[str, Any]:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return delta(tool_calls=[{"function": function, **fields}])


async def run(*chunks: Any) -> tuple[RunResult, Server, list[tuple[int, int]]]:
    """A run whose first reply is `chunks`, and the calls that ran."""
    ran: list[tuple[int, int]] = []

    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        ran.append((a, b))
        return a + b

    @tool
    def now() -> str:
        """The time."""
        ran.append((0, 0))
        return "noon"

    end = sse(delta("stop", content="done"))
    async with serving(replies(head() + sse(*chunks), head() + end)) as server:
        model = Model("m", "openai-completions", "local", server.base_url)
        result = await Agent(model=model, tools=[add, now]).prompt("go")
    return result, server, ran


def told_back(server: Server) -> tuple[Any, list[Any]]:
    """The calls as the second request repeats them, and its results."""
    messages = server.bodies[1]["messages"]
    reply = next(message for message in messages if message["role"] == "assistant")
    return reply["tool_calls"], [message for message in messages if message["role"] == "tool"]


WHOLE = '{"a":1,"b":2}'


@pytest.mark.parametrize(
    "chunks",
    [
        [call(WHOLE)],
        [call(WHOLE, index=0, id="c1", type="function")],
        [call({"a": 1, "b": 2}, index=0)],
        [call('{"a":1', index=0, id="c1"), call(',"b":2}', None, index=0)],
        [{"choices": []}, call(WHOLE), {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}],
    ],
    ids=["neither index nor id", "as it should be", "an object", "in pieces", "empty choices"],
)
@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
async def test_one_call_runs_once_and_goes_back_with_its_result(chunks: Sequence[Any], finish: str) -> None:
    result, server, ran = await run(*chunks, delta(finish))
    assert ran == [(1, 2)]
    [sent], [answer] = told_back(server)
    assert json.loads(sent["function"]["arguments"]) == {"a": 1, "b": 2}
    assert (sent["id"], answer["content"]) == (answer["tool_call_id"], "3")
    assert sent["id"]
    assert (result.stop_reason, result.text) == ("stop", "done")


@pytest.mark.parametrize("ids", [("c1", "c2", "c3"), (None, None, None)])
async def test_three_calls_on_one_index_run_all(ids: Sequence[str | None]) -> None:
    chunks = [
        call(json.dumps({"a": n, "b": n}), index=0, **({"id": call_id} if call_id else {}))
        for n, call_id in enumerate(ids)
    ]
    _, server, ran = await run(*chunks, delta("tool_calls"))
    assert sorted(ran) == [(0, 0), (1, 1), (2, 2)]
    sent, answers = told_back(server)
    assert [each["id"] for each in sent] == [each["tool_call_id"] for each in answers]
    assert len({each["id"] for each in sent}) == 3


async def test_two_objects_in_one_call_are_two_calls() -> None:
    _, _, ran = await run(call('{"a":1,"b":2}{"a":3,"b":4}', index=0, id="c1"), delta("tool_calls"))
    assert sorted(ran) == [(1, 2), (3, 4)]


async def test_no_arguments_are_enough_for_a_tool_that_takes_none_only() -> None:
    _, server, ran = await run(call("", "now", index=0, id="c1"), call("", index=1, id="c2"), delta("tool_calls"))
    assert ran == [(0, 0)]
    _, (noon, refused) = told_back(server)
    assert noon["content"] == "noon"
    assert "a" in refused["content"] and "b" in refused["content"]


async def test_arguments_that_are_no_object_do_not_run_and_the_model_is_told() -> None:
    result, server, ran = await run(call('{"a":1,"b"', index=0, id="c1"), delta("tool_calls"))
    assert ran == []
    assert [record.is_error for record in result.tool_calls] == [True]
    _, [refused] = told_back(server)
    assert "got text that is none: it was cut off" in refused["content"]


async def test_a_reply_cut_by_its_limit_runs_no_call() -> None:
    result, _, ran = await run(call('{"a":1,"b"', index=0, id="c1"), delta("length"))
    assert ran == []
    assert all(record.is_error for record in result.tool_calls)


async def test_reasoning_goes_back_to_its_own_model() -> None:
    _, server, _ = await run(delta(reasoning_content="hm"), call(WHOLE, index=0, id="c1"), delta("tool_calls"))
    reply = next(message for message in server.bodies[1]["messages"] if message["role"] == "assistant")
    assert reply["reasoning_content"] == "hm"
