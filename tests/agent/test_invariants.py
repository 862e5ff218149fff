"""What holds for every batch, whatever its tools do and whenever it is aborted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pi_notebook.agent.agent import Agent
from pi_notebook.agent.hooks import BeforeToolCallResult
from pi_notebook.agent.tool import Tool, ToolResult
from pi_notebook.ai.apis.scripted import scripted
from pi_notebook.ai.messages import ToolCall, UserMessage
from pi_notebook.ai.model import Context, Model, StreamOptions, adapter

ANY = {"type": "object", "properties": {}}
BEHAVIOURS = ["return", "raise", "update", "terminate", "heed", "sleep", "none", "error result", "cancel myself"]


async def behave(kind: str, signal: Any, on_update: Any) -> Any:
    if kind == "raise":
        raise ValueError("tool broke")
    if kind == "update":
        for n in range(3):
            on_update(ToolResult(f"step {n}"))
            await asyncio.sleep(0)
    if kind == "terminate":
        return ToolResult("end", terminate=True)
    if kind == "heed":
        await asyncio.wait([asyncio.ensure_future(signal.wait())], timeout=0.01)
    if kind == "sleep":
        await asyncio.sleep(0.001)
    if kind == "error result":
        return ToolResult("bad", is_error=True)
    if kind == "cancel myself":
        raise asyncio.CancelledError
    return None if kind == "none" else ToolResult("ok")


CALL = st.tuples(st.sampled_from(BEHAVIOURS), st.sampled_from(["t", "blocked", "unknown", "t"]), st.booleans())
BATCHES = st.lists(st.lists(CALL, min_size=1, max_size=5), min_size=1, max_size=3)


@settings(max_examples=120, deadline=None)
@given(BATCHES, st.booleans(), st.integers(min_value=-1, max_value=40), st.booleans())
def test_every_call_has_one_result_in_order_and_nothing_starts_after_an_abort(
    batches: list[list[tuple[str, str, bool]]], sequential: bool, abort_at: int, same_ids: bool
) -> None:
    kinds: dict[str, str] = {}
    replies = []
    for number, batch in enumerate(batches):
        calls = []
        for index, (kind, name, _) in enumerate(batch):
            call_id = f"{number}" if same_ids else f"{number}.{index}"
            kinds[f"{number}.{index}"] = kind
            calls.append(ToolCall(call_id, name, {"k": f"{number}.{index}"}))
        replies.append(calls)
    started_after_abort: list[str] = []

    async def execute(call_id: str, params: Any, signal: Any, on_update: Any) -> Any:
        if signal.aborted:
            started_after_abort.append(params["k"])
        return await behave(kinds[params["k"]], signal, on_update)

    def before(context: Any, signal: Any) -> Any:
        return BeforeToolCallResult(True, "no") if context.tool_call.name == "blocked" else None

    tools = [Tool(name, name, ANY, execute) for name in ("t", "blocked")]
    agent = Agent(
        model=scripted(*replies, "done"),
        tools=tools,
        before_tool_call=before,
        tool_execution="sequential" if sequential else "parallel",
    )
    events: list[Any] = []

    def listener(event: Any, signal: Any) -> None:
        events.append(event)
        if len(events) == abort_at:
            agent.abort()

    agent.subscribe(listener)
    result = asyncio.run(agent.prompt("go"))

    assert started_after_abort == []
    check_transcript(result.messages)
    check_requests(result.messages)
    check_events([event.type for event in events])
    assert len(result.tool_calls) == sum(m.role == "tool_result" for m in result.messages)
    assert agent.state.pending_tool_calls == frozenset()
    assert not agent.state.is_streaming


def check_transcript(messages: Any) -> None:
    """Every reply that counts is followed by one result per call, in order: what every provider asks for."""
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if message.role != "assistant" or message.stop_reason in ("error", "aborted"):
            assert message.role != "tool_result"
            continue
        for call in message.tool_calls:
            assert messages[at].role == "tool_result"
            assert (messages[at].tool_call_id, messages[at].tool_name) == (call.id, call.name)
            at += 1


def check_requests(messages: Any) -> None:
    """What each provider is sent holds one result per call, each after its call and before anything else is said."""
    context = Context("", [*messages, UserMessage("go on")])
    for api, pairs in PAIRS.items():
        body = adapter(api).request_body(Model("m", api, "p", "http://127.0.0.1:9"), context, StreamOptions())
        open_calls: list[str] = []
        for kind, call_id in pairs(body):
            if kind == "call":
                open_calls.append(call_id)
            elif kind == "result":
                open_calls.remove(call_id)
            else:
                assert open_calls == []
        assert open_calls == []


def completions_pairs(body: Any) -> Iterator[tuple[str, str]]:
    for message in body["messages"]:
        if message["role"] == "tool":
            yield "result", message["tool_call_id"]
            continue
        yield "said", ""
        for call in message.get("tool_calls", ()):
            yield "call", call["id"]


def responses_pairs(body: Any) -> Iterator[tuple[str, str]]:
    for item in body["input"]:
        kind = {"function_call": "call", "function_call_output": "result"}.get(item.get("type"), "said")
        yield kind, item.get("call_id", "")


def anthropic_pairs(body: Any) -> Iterator[tuple[str, str]]:
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else [{"type": "text"}]
        for block in blocks:
            if block["type"] == "tool_use":
                yield "call", block["id"]
            elif block["type"] == "tool_result":
                yield "result", block["tool_use_id"]
            else:
                yield "said", ""


def google_pairs(body: Any) -> Iterator[tuple[str, str]]:
    for content in body["contents"]:
        for part in content["parts"]:
            if "functionCall" in part:
                yield "call", part["functionCall"]["name"]
            elif "functionResponse" in part:
                yield "result", part["functionResponse"]["name"]
            else:
                yield "said", ""


PAIRS = {
    "openai-completions": completions_pairs,
    "openai-responses": responses_pairs,
    "anthropic-messages": anthropic_pairs,
    "google-generative-ai": google_pairs,
}


def check_events(types: list[str]) -> None:
    """Starts and ends are nested as they should be."""
    assert types[0] == "agent_start" and types[-1] == "agent_end"
    assert types.count("agent_start") == types.count("agent_end") == 1
    in_turn = in_message = False
    open_calls = 0
    for kind in types[1:-1]:
        if kind == "turn_start":
            assert not in_turn
            in_turn = True
        elif kind == "turn_end":
            assert in_turn and not in_message and open_calls == 0
            in_turn = False
        elif kind == "message_start":
            assert in_turn and not in_message
            in_message = True
        elif kind == "message_update":
            assert in_message
        elif kind == "message_end":
            assert in_message
            in_message = False
        elif kind == "tool_execution_start":
            assert in_turn and not in_message
            open_calls += 1
        elif kind == "tool_execution_update":
            assert open_calls
        elif kind == "tool_execution_end":
            open_calls -= 1
            assert open_calls >= 0
    assert not in_turn
