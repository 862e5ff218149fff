"""Whatever a server sends, a reply is a well-formed row of events with one end."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai.apis._adapter import ReplyDecoder
from pi_notebook.ai.apis._anthropic_reply import AnthropicReply
from pi_notebook.ai.apis._google_reply import GoogleReply
from pi_notebook.ai.apis._openai_completions_stream import CompletionsDecoder
from pi_notebook.ai.apis._openai_responses_stream import ResponsesDecoder
from pi_notebook.ai.message_json import message_from_json, message_to_json
from pi_notebook.ai.messages import AssistantMessage
from pi_notebook.ai.model import Model
from pi_notebook.ai.stream import Done, Error
from pi_notebook.errors import ProviderError

from .servers import reply_to, sse

CALL = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'}
MESSAGE = {"id": "m1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
# Replies as they should be; the test damages them.
REPLIES: dict[str, list[Any]] = {
    "anthropic-messages": [
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "S"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "t", "name": "add"}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a": 1}'}},
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ],
    "google-generative-ai": [
        {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "x", "thoughtSignature": "c2ln"}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "add", "args": {"a": 1}, "id": "c1"}}]}}]},
        {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 3}},
    ],
    "openai-completions": [
        {"id": "r", "choices": [{"index": 0, "delta": {"role": "assistant", "reasoning_content": "hm"}}]},
        {"choices": [{"index": 0, "delta": {"content": "x"}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "add"}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1}}},
        "[DONE]",
    ],
    "openai-responses": [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**MESSAGE, "content": []}},
        {"type": "response.content_part.added", "output_index": 0, "content_index": 0, "part": {"type": "output_text"}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m1", "delta": "x"},
        {"type": "response.output_item.done", "output_index": 0, "item": MESSAGE},
        {"type": "response.output_item.added", "output_index": 1, "item": {**CALL, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc_1", "delta": '{"a": 1}'},
        {"type": "response.function_call_arguments.done", "output_index": 1, "arguments": '{"a": 1}'},
        {"type": "response.output_item.done", "output_index": 1, "item": CALL},
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "usage": {"input_tokens": 3}}},
    ],
}  # fmt: skip
NUMBERS = [0, -1, 7, 1.5, 1e308, float("inf"), 10**400]
TEXTS = ["", "x", "0", "\ud83d", '{"a": 1}{"a": 2}', "[1"]
ODD = [None, True, *NUMBERS, *TEXTS, [], [None], [[]], ["x"], [{}], {}, {"a": {}}, {"text": [0]}]
INSTEAD = st.sampled_from(ODD) | st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each (container, key or position) in `value`."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(value, key), *places(value[key])]]


@st.composite
def replies(draw: st.DrawFn, api: str) -> list[Any]:
    """A reply with some of its parts left out, doubled or replaced."""
    events: list[Any] = json.loads(json.dumps(REPLIES[api]))
    for _ in range(draw(st.integers(0, 4))):
        if not (found := places(events)):
            break
        container, key = found[draw(st.integers(0, len(found) - 1))]
        match draw(st.sampled_from(["leave out", "double", "replace"])):
            case "leave out":
                del container[key]
            case "double" if isinstance(container, list):
                container.insert(key, json.loads(json.dumps(container[key])))
            case _:
                container[key] = json.loads(json.dumps(draw(INSTEAD)))
    return events


@pytest.mark.parametrize("api", REPLIES)
def test_replies_are_whole_before_they_are_damaged(api: str) -> None:
    reply = reply_to(Model("m", api, "p", "http://server.test"), sse(*REPLIES[api], named=True))
    assert reply.message.stop_reason == "tool_use", reply.error
    assert [call.arguments for call in reply.message.tool_calls] == [{"a": 1}]
    assert reply.message.text == "x"


DECODERS: dict[str, Callable[[Model], ReplyDecoder]] = {
    "anthropic-messages": AnthropicReply,
    "google-generative-ai": GoogleReply,
    "openai-completions": lambda model: CompletionsDecoder(model, ["add"]),
    "openai-responses": ResponsesDecoder,
}


def decode(api: str, events: list[Any]) -> AssistantMessage:
    """What becomes of `events`; raises what the decoder raises."""
    decoder = DECODERS[api](Model("m", api, "p", "http://server.test"))
    for event in events:
        kind = event.get("type") if isinstance(event, dict) and api == "anthropic-messages" else None
        data = event if isinstance(event, str) else json.dumps(event)
        list(decoder.feed([(kind if isinstance(kind, str) else "", data.encode("utf-8", "replace"))]))
    list(decoder.finish())
    return decoder.reply.snapshot()


@pytest.mark.parametrize("api", REPLIES)
def test_each_part_of_a_reply_may_be_missing_or_anything(api: str) -> None:
    tried = 0
    for number in range(len(REPLIES[api])):
        for place in range(len(places(REPLIES[api][number]))):
            for odd in [*ODD, "leave out"]:
                events = json.loads(json.dumps(REPLIES[api]))
                container, key = places(events[number])[place]
                if odd == "leave out":
                    del container[key]
                else:
                    container[key] = odd
                with contextlib.suppress(ProviderError):
                    json.dumps(message_to_json(decode(api, events)), ensure_ascii=False).encode()
                tried += 1
    assert tried > 500


@pytest.mark.parametrize("api", REPLIES)
@pytest.mark.parametrize("depth", [400, 600, 980, 100_000])
def test_nesting_without_end_is_no_crash(api: str, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    for number in range(len(REPLIES[api])):
        for place in range(len(places(REPLIES[api][number]))):
            events = json.loads(json.dumps(REPLIES[api]))
            container, key = places(events[number])[place]
            container[key] = "@"
            body = sse(*events, named=True).replace(b'"@"', deep.encode())
            assert "could not be understood" not in reply_to(Model("m", api, "p", "http://server.test"), body).error


def test_a_second_object_in_the_arguments_of_a_block_that_is_never_ended_is_a_call_with_events() -> None:
    events = [event for event in REPLIES["anthropic-messages"] if event.get("type") != "content_block_stop"]
    doubled = [event for event in events for _ in range(1 + ("partial_json" in json.dumps(event)))]
    reply = reply_to(Model("m", "anthropic-messages", "p", "http://server.test"), sse(*doubled, named=True))
    assert [call.arguments for call in reply.message.tool_calls] == [{"a": 1}, {"a": 1}]
    assert reply.kinds[-4:] == ["toolcall_start", "toolcall_delta", "toolcall_end", "done"]


# Not even an error: what makes no sense is passed over.
IGNORED: dict[str, list[Any]] = {
    "anthropic-messages": [
        {"type": "content_block_start", "index": 9},
        {"type": "content_block_start", "index": [], "content_block": "x"},
        {"type": "content_block_delta", "index": 0},
        {"type": "content_block_delta", "index": 1, "delta": None},
        {"type": "content_block_delta", "index": {}, "delta": {"type": "text_delta", "text": "y"}},
        {"type": "content_block_stop", "index": [0]},
        {"type": "message_delta", "delta": None, "usage": "x"},
        {"type": "message_delta", "usage": {"output_tokens": "x", "output_tokens_details": [1]}},
    ],
    "google-generative-ai": [
        {"candidates": {}},
        {"candidates": ["x"]},
        {"candidates": [{"content": "x"}], "usageMetadata": "x"},
        {"candidates": [{"content": {"parts": [None, "x", 1]}}], "promptFeedback": [1]},
        {"candidates": [{"content": {"parts": 3}, "finishReason": None}]},
    ],
    "openai-completions": [
        {"choices": [None]},
        {"choices": {}},
        {"choices": "x"},
        {"choices": [{"delta": "hi"}]},
        {"choices": [{"delta": [1]}]},
        {"choices": [{"delta": {"tool_calls": [None]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": "x"}]}}]},
        {"choices": [], "usage": "x", "x_groq": [1]},
        7,
        [None],
    ],
    "openai-responses": [
        {"type": "response.output_item.added", "output_index": [], "item": {"type": ["x"]}},
        {"type": "response.output_item.done", "output_index": 7, "item": None},
        {"type": "response.output_text.delta", "output_index": {}, "delta": "y"},
        {"type": "response.output_text.delta", "output_index": 0, "delta": ["y"]},
        {"type": ["x"]},
        "[]",
    ],
}


@pytest.mark.parametrize(("api", "event"), [(api, event) for api, events in IGNORED.items() for event in events])
def test_an_event_that_makes_no_sense_is_passed_over_wherever_it_comes(api: str, event: Any) -> None:
    whole = decode(api, REPLIES[api])
    for place in range(1, len(REPLIES[api])):
        message = decode(api, [*REPLIES[api][:place], event, *REPLIES[api][place:]])
        assert message.content == whole.content
        assert (message.usage, message.stop_reason) == (whole.usage, whole.stop_reason)


@pytest.mark.parametrize("api", REPLIES)
@given(data=st.data())
def test_any_reply_is_a_well_formed_row_of_events(api: str, data: st.DataObject) -> None:
    events = data.draw(replies(api))
    reply = reply_to(Model("m", api, "p", "http://server.test"), sse(*events, named=True))
    assert [isinstance(event, Done | Error) for event in reply.events] == [False] * (len(reply.events) - 1) + [True]
    opened: list[str] = []
    closed: set[int] = set()
    for event in reply.events[1:-1]:
        kind, _, step = event.type.rpartition("_")
        place = event.content_index  # type: ignore[union-attr]
        if step == "start":
            assert place == len(opened)
            opened.append(kind)
        assert opened[place] == kind
        assert place not in closed
        closed.update([place] if step == "end" else [])
    message = reply.message
    assert [part.type.replace("_", "") for part in message.content] == opened
    assert "could not be understood" not in reply.error
    assert bool(message.error_message) == (message.stop_reason in ("error", "aborted"))
    saved = message_to_json(message)
    assert message_from_json(saved) == message
    assert json.dumps(saved, ensure_ascii=False).encode()  # no half of a surrogate pair is left
