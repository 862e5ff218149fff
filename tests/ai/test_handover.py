"""A transcript prepared for its next reader: exactly one result per call, and nothing that only another understands."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai.handover import NO_RESULT, EncodedHistory, handover
from pi_notebook.ai.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pi_notebook.ai.model import Model

MODEL = Model("m1", "openai-completions", "local")
TEXT_ONLY = Model("m1", "openai-completions", "local", input=("text",))
IMAGE = ImageContent("AAAA", "image/png")


def reply(*content: Any, own: bool = True, **more: Any) -> AssistantMessage:
    who = (MODEL.api, MODEL.provider, MODEL.id) if own else ("anthropic-messages", "anthropic", "claude")
    return AssistantMessage(content, *who, **more)


def result(call_id: str, text: str = "ok") -> ToolResultMessage:
    return ToolResultMessage(call_id, "t", [TextContent(text)])


def call(call_id: str, **more: Any) -> ToolCall:
    return ToolCall(call_id, "t", {}, **more)


def test_a_transcript_in_order_is_handed_on_as_it_is() -> None:
    messages = [UserMessage("go"), reply(call("a"), call("b")), result("b"), result("a"), reply(TextContent("x"))]
    prepared = handover(messages, MODEL)
    assert all(ours is theirs for ours, theirs in zip(prepared, messages, strict=True))


def test_a_missing_result_says_that_the_call_was_interrupted() -> None:
    messages = [reply(call("a"), call("b")), result("b"), UserMessage("go on")]
    added = ToolResultMessage("a", "t", [TextContent(NO_RESULT)], is_error=True)
    assert handover(messages, MODEL) == [messages[0], messages[1], added, messages[2]]


def test_results_without_a_call_are_left_out() -> None:
    late = [reply(call("a")), result("a"), result("a"), UserMessage("x"), result("a"), result("z")]
    assert handover(late, MODEL) == [late[0], late[1], late[3]]


def test_two_calls_of_one_id_keep_two_results() -> None:
    messages = [reply(call("a"), call("a")), result("a", "1"), result("a", "2")]
    assert handover(messages, MODEL) == messages


def test_failed_replies_go_with_their_results() -> None:
    messages = [
        UserMessage("go"),
        reply(TextContent("half"), call("a"), stop_reason="error"),
        result("a"),
        reply(TextContent("half"), stop_reason="aborted"),
        UserMessage("again"),
    ]
    assert handover(messages, MODEL) == [messages[0], messages[4]]


def test_images_become_one_word_where_none_are_taken() -> None:
    messages = [
        UserMessage([TextContent("see"), IMAGE, IMAGE, TextContent("and"), IMAGE]),
        reply(call("a")),
        ToolResultMessage("a", "t", [IMAGE]),
    ]
    user, _, tool = handover(messages, TEXT_ONLY)
    assert [block.type for block in user.content] == ["text"] * 4  # type: ignore[union-attr]
    assert tool.text == "[Image of a tool result left out: this model takes text only.]"  # type: ignore[union-attr]
    assert handover(messages, MODEL) == messages


def test_own_thoughts_keep_their_signatures() -> None:
    own = reply(
        ThinkingContent("hm", "sig"),
        ThinkingContent("", "opaque"),
        ThinkingContent("", "hidden", redacted=True),
        ThinkingContent(" "),
        TextContent("x", "text sig"),
    )
    (prepared,) = handover([own], MODEL)
    assert list(prepared.content) == [own.content[i] for i in (0, 1, 2, 4)]


def test_anothers_thoughts_become_text_and_its_tokens_are_left_out() -> None:
    foreign = reply(
        ThinkingContent("hm", "sig"),
        ThinkingContent("", "opaque"),
        ThinkingContent("[hidden]", "hidden", redacted=True),
        TextContent("x", "text sig"),
        call("a", thought_signature="token"),
        own=False,
    )
    prepared, _ = handover([foreign, result("a")], MODEL)
    assert list(prepared.content) == [TextContent("hm"), TextContent("x"), call("a")]


def test_ids_are_renamed_in_calls_and_results_alike_and_stay_apart() -> None:
    messages = [reply(call("long-1"), call("long-2"), own=False), result("long-2"), UserMessage("x")]
    prepared = handover(messages, MODEL, lambda call_id: call_id[:4])
    assert [block.id for block in prepared[0].tool_calls] == ["long", "lo_1"]  # type: ignore[union-attr]
    assert [m.tool_call_id for m in prepared if m.role == "tool_result"] == ["lo_1", "long"]
    own = [reply(call("long-1")), result("long-1")]
    assert handover(own, MODEL, lambda call_id: call_id[:4]) == own


IDS = st.sampled_from(["a", "b", "c"])
STOPS = st.sampled_from(["stop", "tool_use", "length", "error", "aborted"])
MESSAGES = st.lists(
    st.one_of(
        st.builds(lambda: UserMessage("hi")),
        st.builds(
            lambda ids, own, stop: reply(TextContent("x"), *map(call, ids), own=own, stop_reason=stop),
            st.lists(IDS, max_size=3),
            st.booleans(),
            STOPS,
        ),
        st.builds(result, IDS),
    ),
    max_size=12,
)


def pairs_up(messages: Sequence[Message]) -> bool:
    """Whether each reply is followed by exactly one result per call, and there is no other result."""
    waiting: Counter[str] = Counter()
    for message in messages:
        if message.role == "tool_result":
            if not waiting[message.tool_call_id]:
                return False
            waiting[message.tool_call_id] -= 1
        elif waiting.total():
            return False
        elif message.role == "assistant":
            waiting.update(block.id for block in message.tool_calls)
    return not waiting.total()


@given(MESSAGES)
def test_every_transcript_ends_up_with_one_result_per_call(messages: list[Message]) -> None:
    assert pairs_up(handover(messages, MODEL))


# -- the encoded history ---------------------------------------------------------------------------------------------


class Counting:
    """Wire messages are (role, text); counts how many messages are converted."""

    def __init__(self) -> None:
        self.converted = 0

    def __call__(self, messages: Sequence[Message], start: int = 0) -> list[Any]:
        self.converted += len(messages)
        return [[m.role, str(m.content)] for m in handover(messages, MODEL)]


def encode(value: Any) -> bytes:
    return json.dumps(value).encode()[1:-1]


def whole(history: EncodedHistory, messages: Sequence[Message], model: Model, convert: Counting) -> Any:
    settled, last = history.encode(messages, model, convert, encode)
    return json.loads(b"[" + b",".join([*settled, encode(last)] if last else settled) + b"]")


@given(MESSAGES, st.lists(st.integers(0, 12), max_size=5))
def test_a_growing_transcript_is_the_same_as_a_whole_one(messages: list[Message], cuts: list[int]) -> None:
    history, convert = EncodedHistory(), Counting()
    for cut in [*cuts, len(messages)]:
        assert whole(history, messages[:cut], MODEL, convert) == Counting()(messages[:cut])


def test_old_messages_are_converted_once() -> None:
    history, convert = EncodedHistory(), Counting()
    messages: list[Message] = [UserMessage("go")]
    for turn in range(50):
        messages += [reply(call(f"c{turn}")), result(f"c{turn}")]
        whole(history, messages, MODEL, convert)
    # Each segment of two is seen twice: as the last one, and when it has been settled.
    assert convert.converted <= 2 * len(messages)


def test_another_transcript_or_model_starts_anew() -> None:
    history, convert = EncodedHistory(), Counting()
    first = [UserMessage("a"), reply(TextContent("x")), UserMessage("b")]
    second = [UserMessage("a"), reply(TextContent("y")), UserMessage("b")]
    other = Model("m2", "openai-completions", "local")
    for messages, model in ((first, MODEL), (second, MODEL), (first[:2], MODEL), (first, other), ([], MODEL)):
        assert whole(history, messages, model, convert) == Counting()(messages)


def test_an_id_of_which_nothing_can_be_sent_gets_another() -> None:
    messages = [reply(call("|"), own=False), result("|")]
    first, answer = handover(messages, MODEL, lambda call_id: call_id.strip("|"))
    assert isinstance(first, AssistantMessage) and isinstance(answer, ToolResultMessage)
    assert first.tool_calls[0].id == answer.tool_call_id
    assert answer.tool_call_id.startswith("call_")
