"""Servers that bend openai-completions further than most: what they plainly mean is what counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pi_notebook.ai.messages import UserMessage
from pi_notebook.ai.model import Context, Model

from .servers import Reply, Spec, reply_to, sse
from .test_any_reply import REPLIES

MODEL = Model("m1", "openai-completions", "local", "http://server.test/v1")


def ask(*deltas: Any, finish: str = "stop") -> Reply:
    chunks = [{"choices": [{"delta": delta}]} for delta in deltas]
    body = sse(*chunks, {"choices": [{"delta": {}, "finish_reason": finish}]}, "[DONE]")
    return reply_to(MODEL, body, context=Context(messages=[UserMessage("hi")], tools=[Spec("add"), Spec("sub")]))


def calls(reply: Reply) -> list[tuple[str, str, Any]]:
    return [(call.id, call.name, call.arguments) for call in reply.message.tool_calls]


@pytest.mark.parametrize(("first", "second"), [("0", "1"), (0.0, 1.0), ("a", "b"), (0, "1"), ("00", "01")])
def test_pieces_of_two_calls_that_take_turns_are_told_apart_by_any_index(first: Any, second: Any) -> None:
    def piece(index: Any, arguments: str, **more: Any) -> Any:
        name = {"name": more.pop("name")} if "name" in more else {}
        return {"tool_calls": [{"index": index, **more, "function": {**name, "arguments": arguments}}]}

    reply = ask(
        piece(first, "", id="c1", name="add"),
        piece(second, "", id="c2", name="sub"),
        *(piece(index, part) for part in ('{"a"', ": ", "1}") for index in (first, second)),
        finish="tool_calls",
    )
    assert calls(reply) == [("c1", "add", {"a": 1}), ("c2", "sub", {"a": 1})]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"text": "hi"}, "hi"),
        ({"type": "text", "text": "hi"}, "hi"),
        (5, "5"),
        (0, "0"),
        (1.5, "1.5"),
        (["h", {"text": "i"}], "hi"),
        ([["hi"], 5], "hi5"),
        ([{"text": {"text": "hi"}}], "hi"),
    ],
)
def test_text_is_shown_in_whatever_form_it_comes(content: Any, text: str) -> None:
    reply = ask({"content": content})
    assert reply.error == ""
    assert reply.message.text == text


@pytest.mark.parametrize("content", [None, "", [], {}, True, {"type": "image"}, [None, {"image_url": "x"}]])
def test_what_is_no_text_opens_no_block(content: Any) -> None:
    assert ask({"content": content}).message.content == ()


def test_a_call_without_a_function_around_it() -> None:
    reply = ask(
        {"tool_calls": [{"index": 0, "id": "c1", "name": "add", "arguments": '{"a"'}]},
        {"tool_calls": [{"index": 0, "arguments": ": 1}"}]},
        {"tool_calls": {"index": 1, "id": "c2", "name": "sub", "function": None, "arguments": {"b": 2}}},
        finish="tool_calls",
    )
    assert calls(reply) == [("c1", "add", {"a": 1}), ("c2", "sub", {"b": 2})]


@pytest.mark.parametrize("api", REPLIES)
def test_raw_control_characters_in_a_text_are_read(api: str) -> None:
    body = sse(*REPLIES[api], named=True).replace(b'"x"', b'"x\ty"')
    reply = reply_to(Model("m", api, "p", "http://server.test"), body)
    assert reply.error == ""
    assert reply.message.text == "x\ty"


@pytest.mark.parametrize("api", REPLIES)
@pytest.mark.parametrize(
    "data", ["overloaded", '"overloaded"', '{"message": "overloaded"}', '{"error": {"message": "overloaded"}}']
)
@pytest.mark.parametrize("number", [0, 2])
def test_an_event_called_error_is_one_whatever_it_holds(api: str, data: str, number: int) -> None:
    before = sse(*REPLIES[api][:number], named=True)
    reply = reply_to(Model("m", api, "p", "http://server.test"), before + f"event: error\ndata: {data}\n\n".encode())
    assert reply.error == "p:m: overloaded."


def test_a_refusal_that_is_no_text_is_json() -> None:
    refusal = {"reason": "no"}
    assert json.loads(ask({"refusal": refusal}).message.text) == refusal
