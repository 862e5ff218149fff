import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai.abort import AbortController
from pi_notebook.ai.apis.scripted import call, scripted, thinking
from pi_notebook.ai.messages import (
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
    UserMessage,
)
from pi_notebook.ai.model import Context, Model, StreamOptions, stream
from pi_notebook.errors import ModelError


def ask(model: Model, *messages: Any, options: StreamOptions | None = None) -> list[Any]:
    async def run() -> list[Any]:
        return [event async for event in stream(model, Context(messages=messages), options)]

    return asyncio.run(run())


def final(model: Model, *messages: Any) -> AssistantMessage:
    message: AssistantMessage = ask(model, *messages)[-1].message
    return message


def test_replies_come_in_order_across_requests() -> None:
    model = scripted("first", [call("add", a=1, b=2)], "third")
    assert final(model).text == "first"
    second = final(model)
    assert second.tool_calls == (ToolCall("call_1", "add", {"a": 1, "b": 2}),)
    assert second.stop_reason == "tool_use"
    assert model.remaining == 1
    assert final(model).stop_reason == "stop"


def test_a_used_up_script_is_an_error_that_says_what_to_do() -> None:
    model = scripted("one", "two")
    ask(model), ask(model)
    message = final(model)
    assert message.stop_reason == "error"
    assert message.error_message == (
        "The script is used up: it held 2 replies and this is request 3. "
        "Give scripted(...) more replies, or call rewind() on the model to play it from the start."
    )


def test_a_used_up_script_of_one_reply_says_one_reply() -> None:
    model = scripted("x")
    ask(model)
    assert "held 1 reply and this is request 2" in (final(model).error_message or "")


def test_rewind_plays_the_script_again() -> None:
    model = scripted("one")
    ask(model)
    model.rewind()
    assert final(model).text == "one"


def test_events_come_in_legal_order_with_several_deltas() -> None:
    events = ask(scripted([thinking("let me see"), "Hello big world", call("add", a=1, text="x" * 40)]))
    assert [event.type for event in events if not event.type.endswith("_delta")] == [
        "start",
        "thinking_start",
        "thinking_end",
        "text_start",
        "text_end",
        "toolcall_start",
        "toolcall_end",
        "done",
    ]
    assert [e.delta for e in events if e.type == "text_delta"] == ["Hello ", "big ", "world"]
    assert sum(e.type == "toolcall_delta" for e in events) > 2
    assert events[-1].message.content == (
        ThinkingContent("let me see"),
        TextContent("Hello big world"),
        ToolCall("call_1", "add", {"a": 1, "text": "x" * 40}),
    )


@given(st.text())
def test_deltas_join_to_the_exact_text(text: str) -> None:
    events = ask(scripted(text))
    assert "".join(e.delta for e in events if e.type == "text_delta") == text
    assert events[-1].message.text == text


def test_call_ids_go_on_where_the_conversation_stands() -> None:
    earlier = AssistantMessage([ToolCall("call_1", "a", {}), ToolCall("call_3", "a", {})])
    reply = final(scripted([call("a"), call("b"), ToolCall("mine", "c", {})]), UserMessage("go"), earlier)
    assert [c.id for c in reply.tool_calls] == ["call_2", "call_4", "mine"]


def test_an_assistant_message_is_played_with_all_it_holds() -> None:
    recorded = AssistantMessage(
        [TextContent("cut", "sig"), ToolCall("c9", "add", '{"a":', "thought")],
        api="anthropic-messages",
        provider="anthropic",
        model="claude",
        usage=Usage(input=3, output=4, total_tokens=7),
        stop_reason="length",
        response_id="r1",
    )
    assert final(scripted(recorded)) == recorded
    failed = AssistantMessage([TextContent("half")], stop_reason="error", error_message="overloaded")
    message = final(scripted(failed))
    assert (message.stop_reason, message.error_message, message.text) == ("error", "overloaded", "half")


def test_an_exception_is_the_error_of_its_request() -> None:
    model = scripted(TimeoutError("the line went dead"), "ok")
    message = final(model)
    assert (message.stop_reason, message.error_message) == ("error", "the line went dead")
    assert final(model).text == "ok"


def test_a_function_sees_the_context_and_may_be_async() -> None:
    async def later(context: Context) -> list[Any]:
        return ["async ", call("count", n=len(context.messages))]

    model = scripted(lambda context: f"{len(context.messages)} messages", later, lambda context: 1 / 0)
    assert final(model, UserMessage("a")).text == "1 messages"
    assert final(model, UserMessage("a")).tool_calls[0].arguments == {"n": 1}
    assert final(model).error_message == "division by zero"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: scripted("fine", 5), "Reply 2 of scripted(...) is of type int; a reply is text,"),  # type: ignore[arg-type]
        (lambda: scripted(["a", {}]), "Reply 1 of scripted(...) holds a dict; a list may hold"),  # type: ignore[list-item]
        (lambda: scripted(ValueError), "Reply 1 of scripted(...) is of type type;"),
    ],
)
def test_something_that_is_no_reply_is_refused_at_once(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(ModelError) as error:
        make()
    assert str(error.value).startswith(text)


def test_a_function_that_returns_no_reply_is_an_error_event() -> None:
    assert "What the script's function returned is of type int" in (
        final(scripted(lambda context: 5)).error_message or ""
    )


def test_abort_between_two_deltas_keeps_what_had_come() -> None:
    controller = AbortController()

    async def run() -> list[Any]:
        events = []
        options = StreamOptions(signal=controller.signal)
        async for event in stream(scripted("one two three"), Context(), options):
            events.append(event)
            if event.type == "text_delta" and event.delta == "two ":
                controller.abort()
        return events

    last = asyncio.run(run())[-1]
    assert (last.type, last.reason, last.message.text) == ("error", "aborted", "one two ")


def test_abort_wakes_a_long_delay_from_another_thread() -> None:
    controller = AbortController()

    async def run() -> Any:
        last = None
        options = StreamOptions(signal=controller.signal)
        async for last in stream(scripted("one two", delay=3600), Context(), options):
            if last.type == "text_start":
                threading.Thread(target=controller.abort).start()
        return last

    assert asyncio.run(run()).reason == "aborted"


def test_a_request_that_is_aborted_already_uses_no_reply() -> None:
    controller = AbortController()
    controller.abort()
    model = scripted("one")
    assert ask(model, options=StreamOptions(signal=controller.signal))[-1].reason == "aborted"
    assert model.remaining == 1


def test_tokens_are_estimated_and_cost_is_unknown() -> None:
    usage = final(scripted("x" * 40), UserMessage("y" * 80)).usage
    assert (usage.input, usage.output, usage.total_tokens, usage.cost) == (20, 10, 30, None)


def test_threads_never_get_the_same_reply() -> None:
    model = scripted(*[str(n) for n in range(200)])
    got: list[str] = []

    def take() -> None:
        got.extend(final(model).text for _ in range(50))

    threads = [threading.Thread(target=take) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(got, key=int) == [str(n) for n in range(200)]
