"""openai-completions: replies of servers that follow the protocol, and of those that bend it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai.apis._openai_completions_stream import CompletionsDecoder
from pi_notebook.ai.messages import TextContent, ThinkingContent, ToolCall, UserMessage
from pi_notebook.ai.model import Context, CostRates, Model, StreamOptions
from pi_notebook.ai.stream import StreamEvent

from .servers import KEY, Reply, Spec, reply_to, sse

MODEL = Model("m1", "openai-completions", "local", "http://server.test/v1", cost=CostRates(1, 2, 0.1, 1.25))
TOOLS = [Spec("add"), Spec("list_tables"), Spec("read")]


def chunk(finish: str | None = None, /, usage: Any = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    more = {"usage": usage} if usage else {}
    return {"id": "cmpl-1", "object": "chat.completion.chunk", "model": "m1", "choices": [choice], **more}


def piece(arguments: Any = None, **more: Any) -> dict[str, Any]:
    """A chunk with one piece of a call; `name` goes into its function."""
    function = {key: more.pop(key) for key in ("name",) if key in more}
    if arguments is not None:
        function["arguments"] = arguments
    return chunk(tool_calls=[{**more, "function": function}])


def ask(*events: Any, end: str | None = "[DONE]", model: Model = MODEL, **more: Any) -> Reply:
    context = Context(messages=[UserMessage("hi")], tools=TOOLS)
    return reply_to(model, sse(*events, *([end] if end else [])), context=context, **more)


def calls(reply: Reply) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in reply.message.tool_calls]


# -- text and reasoning ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_reasoning_is_shown_and_remembers_its_field(field: str) -> None:
    reply = ask(chunk(**{field: "hm"}), chunk(**{field: "m"}), chunk(content="yes"), chunk("stop"))
    assert reply.message.content == (ThinkingContent("hmm", field), TextContent("yes"))
    assert reply.kinds == [
        "start", "thinking_start", "thinking_delta", "thinking_delta", "text_start", "text_delta",
        "thinking_end", "text_end", "done",
    ]  # fmt: skip


def test_reasoning_sent_twice_is_shown_once() -> None:
    reply = ask(chunk(reasoning="hm", reasoning_content="hm"), chunk("stop", content="x"))
    assert reply.message.content[0] == ThinkingContent("hm", "reasoning_content")


def test_a_refusal_is_shown() -> None:
    reply = ask(chunk(role="assistant", refusal=None), chunk(refusal="I will "), chunk(refusal="not."), chunk("stop"))
    assert reply.message.text == "I will not."


def test_content_may_be_a_list_of_parts() -> None:
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]
    reply = ask(chunk(content=thinking), chunk(content=[{"type": "text", "text": "yes"}]), chunk("stop"))
    assert reply.message.content == (ThinkingContent("hm"), TextContent("yes"))


def test_text_behind_a_call_stays_behind_it() -> None:
    reply = ask(
        chunk(content="before"), piece("{}", id="c1", name="add", index=0), chunk("tool_calls", content="after")
    )
    assert reply.message.content == (TextContent("before"), ToolCall("c1", "add", {}), TextContent("after"))


def test_lone_surrogates_are_removed() -> None:
    body = sse(
        chunk(content="a\ud83db"), piece('{"x": "\\ud83d!"}', id="c1", name="add"), chunk("tool_calls"), "[DONE]"
    )
    assert b"\\ud83d" in body
    reply = reply_to(MODEL, body)
    assert reply.message.text == "ab"
    assert calls(reply) == [("add", {"x": "!"})]


# -- calls in every bent form ----------------------------------------------------------------------------------------

ONE = ("add", {"a": 1, "b": 2})
TEXT = '{"a": 1, "b": 2}'


def whole(**more: Any) -> dict[str, Any]:
    return piece(TEXT, name="add", **more)


@pytest.mark.parametrize(
    "events",
    [
        [whole(index=0, id="c1")],
        [whole()],  # neither index nor id
        [whole(id="c1")],
        [whole(index=0)],
        [piece({"a": 1, "b": 2}, index=0, id="c1", name="add")],  # an object where text belongs
        [piece("", index=0, id="c1", name="add"), piece('{"a": 1, ', index=0), piece('"b": 2}', index=0)],
        [piece("", id="c1", name="add"), piece('{"a": 1, '), piece('"b": 2}')],
        [piece('{"a": 1, ', index=0), piece('"b": 2}', index=0, id="c1", name="add")],  # a late id and name
        [piece('{"a": 1, ', name="add", index=0), piece('"b": 2}', name="add", index=0)],  # the name in each
        [piece('{"a": 1, ', name="add", id="r1", index=0), piece('"b": 2}', id="r2", index=0)],  # an id per piece
        [piece('{"a": 1, ', name="add", id="c1"), piece('"b": 2}', name="add", id="c1")],
        [piece(TEXT, name="ad", index=0, id="c1"), piece("", name="d", index=0)],  # the name in two pieces
        [piece("", name="ad", index=0, id="c1"), piece(TEXT, name="d", index=0)],
        [chunk(function_call={"name": "add", "arguments": ""}), chunk(function_call={"arguments": TEXT})],
        [chunk(tool_calls={"function": {"name": "add", "arguments": TEXT}})],
        [whole(index=0, id="c1"), piece("", index=0, id="c1", name="")],
    ],
)  # fmt: skip
@pytest.mark.parametrize("finish", ["tool_calls", "stop", "function_call"])
def test_one_call_however_it_is_sent(events: list[Any], finish: str) -> None:
    reply = ask(*events, chunk(finish))
    assert calls(reply) == [ONE]
    assert reply.message.tool_calls[0].id
    assert reply.kinds.count("toolcall_start") == reply.kinds.count("toolcall_end") == 1
    assert reply.kinds[-1] == "done"


@pytest.mark.parametrize(
    "events",
    [
        [whole(index=i, id=f"c{i}") for i in range(3)],
        [whole(index=0, id=f"c{i}") for i in range(3)],  # the same index for all
        [whole(index=0) for _ in range(3)],  # and no id
        [whole() for _ in range(3)],
        [piece(TEXT, index=0, id="c0", name="add"), *(piece(TEXT, index=0, id=f"c{i}") for i in (1, 2))],
        [piece(TEXT * 3, index=0, id="c0", name="add")],  # three objects in a row
        [piece(TEXT + "\n" + TEXT, index=0, name="add"), whole(index=1)],
        [whole(index=0), piece(TEXT, index=0), piece(TEXT, index=0)],
        [chunk(tool_calls=[whole(index=0, id=f"c{i}")["choices"][0]["delta"]["tool_calls"][0] for i in range(3)])],
    ],
)
def test_three_calls_however_they_are_sent(events: list[Any]) -> None:
    reply = ask(*events, chunk("tool_calls"))
    assert calls(reply) == [ONE] * 3
    assert len({call.id for call in reply.message.tool_calls}) == 3
    assert sorted(event.content_index for event in reply.events if event.type == "toolcall_end") == [0, 1, 2]


def test_another_name_on_the_same_index_is_another_call() -> None:
    reply = ask(piece("", index=0, name="list_tables"), piece(TEXT, index=0, name="add"), chunk("tool_calls"))
    assert calls(reply) == [("list_tables", {}), ONE]


def test_interleaved_calls_stay_apart() -> None:
    reply = ask(
        piece("", index=0, id="c1", name="read"), piece("", index=1, id="c2", name="add"),
        piece('{"q"', index=1), piece('{"p"', index=0), piece(":1}", index=1), piece(":2}", index=0),
        chunk("tool_calls"),
    )  # fmt: skip
    assert calls(reply) == [("read", {"p": 2}), ("add", {"q": 1})]


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_blank_arguments_are_an_empty_object(text: str) -> None:
    assert calls(ask(piece(text, index=0, id="c1", name="add"), chunk("tool_calls"))) == [("add", {})]
    assert calls(ask(piece(None, index=0, id="c1", name="add"), chunk("tool_calls"))) == [("add", {})]


@pytest.mark.parametrize("text", ['{"a": 1', "path: a", '{"a": 1} and then', "{'a': 1}", '{"a": NaN}', '{"a":1}[2]'])
def test_a_text_that_is_no_object_stays_a_text(text: str) -> None:
    assert calls(ask(piece(text, index=0, id="c1", name="add"), chunk("tool_calls"))) == [("add", text)]


def test_a_cut_reply_has_the_reason_length() -> None:
    reply = ask(piece('{"a": ', index=0, id="c1", name="add"), chunk("length"))
    assert reply.message.stop_reason == "length"
    assert calls(reply) == [("add", '{"a": ')]


def test_made_up_ids_suit_every_server_and_never_repeat() -> None:
    ids = [ask(whole(), chunk("stop")).message.tool_calls[0].id for _ in range(20)]
    assert len(set(ids)) == 20
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids)


def test_encrypted_reasoning_stays_with_its_call_whichever_came_first() -> None:
    detail = {"type": "reasoning.encrypted", "id": "c1", "data": "ENC", "index": 0}
    other = {"type": "reasoning.text", "text": "hm"}
    for events in (
        [chunk(reasoning_details=[other, detail]), whole(index=0, id="c1")],
        [whole(index=0, id="c1"), chunk(reasoning_details=[detail])],
    ):
        (call,) = ask(*events, chunk("tool_calls")).message.tool_calls
        assert json.loads(call.thought_signature or "") == detail


# -- usage and ends --------------------------------------------------------------------------------------------------

COUNTS = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
    "completion_tokens_details": {"reasoning_tokens": 5},
}


@pytest.mark.parametrize(
    "events",
    [
        [chunk("stop", content="x"), {"choices": [], "usage": COUNTS}],
        [chunk("stop", usage=COUNTS, content="x")],
        [{"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop", "usage": COUNTS}]}],
        [{**chunk("stop", content="x"), "x_groq": {"id": "req", "usage": COUNTS}}],
        [{"choices": [], "prompt_filter_results": []}, chunk("stop", content="x"), {"usage": COUNTS, "choices": []}],
    ],
)
def test_usage_wherever_it_stands(events: list[Any]) -> None:
    usage = ask(*events).message.usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (30, 20, 60, 10)
    assert (usage.reasoning, usage.total_tokens) == (5, 120)
    assert usage.cost is not None
    assert usage.cost.total == pytest.approx(30e-6 + 40e-6 + 6e-6 + 12.5e-6)


def test_an_unknown_price_is_no_price() -> None:
    model = Model("m1", "openai-completions", "local", "http://server.test/v1")
    usage = ask(chunk("stop", usage={"prompt_tokens": 10, "completion_tokens": None}), model=model).message.usage
    assert (usage.input, usage.output, usage.cost) == (10, 0, None)


def test_a_whole_document_instead_of_a_stream() -> None:
    call = {"type": "function", "id": "c1", "function": {"name": "add", "arguments": TEXT}}
    message = {"role": "assistant", "content": "so", "reasoning_content": "hm", "tool_calls": [call]}
    body = {"id": "x", "choices": [{"finish_reason": "tool_calls", "message": message}], "usage": COUNTS}
    reply = reply_to(MODEL, json.dumps(body, indent=1).encode(), content_type="application/json")
    assert reply.message.content == (
        TextContent("so"),
        ThinkingContent("hm", "reasoning_content"),
        ToolCall("c1", *ONE),
    )
    assert reply.message.usage.output == 20


@pytest.mark.parametrize("end", ["[DONE]", None])
def test_the_end_marker_may_be_missing(end: str | None) -> None:
    assert ask(chunk(content="x"), chunk("stop"), end=end).message.text == "x"


def test_the_last_event_without_its_blank_line_is_read() -> None:
    assert reply_to(MODEL, sse(chunk(content="x"), chunk("stop"))[:-2]).message.stop_reason == "stop"


def test_what_follows_the_end_marker_is_not_read() -> None:
    assert ask(chunk("stop", content="x"), "[DONE]", chunk(content="y")).message.text == "x"


def test_a_reply_that_breaks_off_is_an_error_that_keeps_what_came() -> None:
    reply = ask(chunk(content="par"), end=None)
    assert reply.message.stop_reason == "error"
    assert reply.message.text == "par"
    assert reply.error == "local:m1: the reply broke off before its end. Ask again."


def test_servers_that_never_say_why_they_end() -> None:
    model = Model("m1", "openai-completions", "local", "http://x.test", compat={"supports_finish_reason": False})
    assert ask(chunk(content="x"), model=model).message.stop_reason == "stop"
    assert ask(whole(), model=model).message.stop_reason == "tool_use"
    assert ask(model=model).message.stop_reason == "error"


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([{"error": {"message": "boom", "code": 500}}], "local:m1: boom."),
        ([{"error": "boom"}], "local:m1: boom."),
        ([{"object": "error", "message": "boom", "code": 400}], "local:m1: boom."),
        ([{"choices": [{"index": 0, "delta": {}, "error": {"message": "boom"}}]}], "local:m1: boom."),
        ([chunk("content_filter")], "local:m1: the provider's content filter stopped the reply."),
        ([chunk("strange")], "local:m1: the server ended the reply with 'strange'."),
        (["{oops"], "local:m1: the stream holds something that is not JSON: {oops."),
        ([], "local:m1: the server sent no reply. Check the base URL."),
        (
            [{"message": "Not Found"}],
            "local:m1: the server sent no reply: Not Found. Check the base URL.",
        ),
    ],
)
def test_errors_in_mid_stream_keep_what_came(events: list[Any], text: str) -> None:
    said = [chunk(content="par")] if "no reply" not in text else []
    reply = ask(*said, *events)
    assert reply.error == text
    assert reply.message.stop_reason == "error"
    assert reply.message.text == ("par" if said else "")
    assert reply.kinds[-1] == "error"


def test_an_error_with_status_200() -> None:
    body = json.dumps({"error": {"message": "model is loading", "type": "unavailable_error"}}, indent=2).encode()
    for content_type in ("application/json", "text/event-stream"):
        reply = reply_to(MODEL, body, content_type=content_type)
        assert reply.error == "local:m1: model is loading [unavailable_error]."


def test_a_key_in_an_error_of_the_server_is_not_shown() -> None:
    reply = ask({"error": {"message": f"key {KEY} is over its limit"}})
    assert reply.error == "local:m1: key *** is over its limit."


ODD = [
    [], "text", 7, None, {}, {"choices": None}, {"choices": "x"}, {"choices": [None]}, {"choices": [[]]},
    {"choices": [{"delta": None}]}, {"choices": [{"delta": []}]}, {"choices": [{}]},
    chunk(content=7), chunk(content={"x": 1}), chunk(tool_calls=7), chunk(tool_calls=[None, 7, {}]),
    chunk(tool_calls=[{"function": None}]), chunk(tool_calls=[{"function": "add"}]), chunk(function_call=[]),
    chunk(tool_calls=[{"index": "0", "id": 5, "function": {"name": None, "arguments": []}}]),
    chunk(reasoning_details=[None, {}]), chunk(reasoning=7), {"usage": 7, "choices": []},
    {"usage": {"prompt_tokens": "many", "prompt_tokens_details": 3}, "choices": []},
    {"id": 5, "model": 3, "choices": []},
]  # fmt: skip


@given(st.lists(st.sampled_from(ODD), max_size=4))
def test_whatever_a_server_sends_the_reply_ends_with_one_event(odd: list[Any]) -> None:
    reply = ask(chunk(content="x"), *odd, chunk("stop"))
    assert reply.kinds[-1] in ("done", "error")
    assert sum(kind in ("done", "error") for kind in reply.kinds) == 1


# -- many deltas -----------------------------------------------------------------------------------------------------


def feed(events: list[Any], *, at_once: bool, ascii_only: bool, spaced: bool) -> list[StreamEvent]:
    separators = (", ", ": ") if spaced else (",", ":")
    data = [json.dumps(event, ensure_ascii=ascii_only, separators=separators) for event in events]
    batch = [("", text.encode("utf-8", "replace")) for text in data]
    decoder = CompletionsDecoder(MODEL, [])
    batches = [batch] if at_once else [[event] for event in batch]
    return [event for batch in batches for event in decoder.feed(batch)] + list(decoder.finish())


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8) | st.sampled_from(
    ['"', "\\", '"content":', '\\"arguments":"', "\n", "\u2028", "}", '"}}]}', "[DONE]", "é", "😀"]
)


PIECES = st.lists(st.tuples(st.sampled_from(["text", "call", "other"]), TEXTS), max_size=20)


@given(PIECES, st.booleans(), st.booleans(), st.booleans())
def test_deltas_of_one_form_are_read_as_any_others(
    pieces: list[tuple[str, str]], at_once: bool, ascii_only: bool, spaced: bool
) -> None:
    events: list[Any] = [piece("", index=0, id="c0", name="put"), piece("", index=1, id="c1", name="put")]
    said, arguments = [], {0: "", 1: ""}
    for kind, text in pieces:
        if kind == "text":
            said.append(text)
            events.append(chunk(content=text))
        elif kind == "call":
            arguments[0] += text
            events.append(piece(text, index=0))
        else:
            arguments[1] += text
            events.append(piece(text, index=1))
    got = feed([*events, chunk("stop")], at_once=at_once, ascii_only=ascii_only, spaced=spaced)
    assert [event.delta for event in got if event.type == "text_delta"] == said
    for index in (0, 1):
        deltas = [e.delta for e in got if e.type == "toolcall_delta" and e.content_index == index]
        assert "".join(deltas) == arguments[index]
    assert got[-1].type == "done"


def test_a_template_does_not_hide_what_else_a_chunk_brings() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    reply = ask(*[chunk(content="x")] * 3, chunk(None, usage=usage, content="x"), chunk("length", content="x"))
    assert reply.message.text == "xxxxx"
    assert (reply.message.stop_reason, reply.message.usage.output) == ("length", 2)


def test_a_million_characters_of_arguments_in_small_pieces() -> None:
    text = json.dumps({"text": 'a "quoted" \n line é ' * 50_000}, ensure_ascii=False)
    events = [piece("", index=0, id="c1", name="put")]
    events += [piece(text[i : i + 16], index=0) for i in range(0, len(text), 16)]
    got = feed([*events, chunk("tool_calls")], at_once=True, ascii_only=True, spaced=False)
    assert got[-1].message.tool_calls[0].arguments == json.loads(text)  # type: ignore[union-attr]


def test_options_are_left_as_they_are() -> None:
    options = StreamOptions(temperature=0.5)
    ask(chunk("stop", content="x"), options=options)
    assert options.temperature == 0.5 and options.headers is None
