"""Halves of surrogate pairs: a pair that is cut between two deltas is whole again, a lone half is left out."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.ai.json_arguments import without_lone_surrogates
from pi_notebook.ai.messages import AssistantMessage, ToolCall
from pi_notebook.ai.model import Model
from pi_notebook.ai.stream import Reply, TextDelta, ThinkingDelta, ToolCallDelta

from .servers import reply_to, sse

HIGH, LOW = "\ud83d", "\ude00"  # of 😀


def anthropic(kind: str, pieces: list[str]) -> list[Any]:
    field = {"text": "text", "thinking": "thinking", "input_json": "partial_json"}[kind]
    block: dict[str, Any] = {"text": {"type": "text"}, "thinking": {"type": "thinking"}}.get(
        kind, {"type": "tool_use", "id": "c", "name": f"a{HIGH}dd"}
    )
    return [
        {"type": "message_start", "message": {"id": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": f"{kind}_delta", field: piece}}
            for piece in pieces
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]


def google(pieces: list[str], **more: Any) -> list[Any]:
    chunks = [{"candidates": [{"content": {"parts": [{"text": piece, **more}]}}]} for piece in pieces]
    return [*chunks, {"candidates": [{"finishReason": "STOP"}]}]


def completions(wrap: Callable[[str], Any], pieces: list[str]) -> list[Any]:
    start = {"index": 0, "id": "c", "function": {"name": f"a{HIGH}dd"}}
    first = [{"choices": [{"delta": {"tool_calls": [start]}}]}] if "tool_calls" in wrap("") else []
    deltas = [{"choices": [{"delta": wrap(piece)}]} for piece in pieces]
    return [*first, *deltas, {"choices": [{"delta": {}, "finish_reason": "stop"}]}, "[DONE]"]


def responses(item: Any, kind: str, pieces: list[str]) -> list[Any]:
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *({"type": f"response.{kind}.delta", "output_index": 0, "delta": piece} for piece in pieces),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"status": "completed"}},
    ]


CALL = {"type": "function_call", "id": "fc", "call_id": "c", "name": f"a{HIGH}dd"}
WIRES: dict[str, dict[str, Callable[[list[str]], list[Any]]]] = {
    "anthropic-messages": {
        "text": lambda pieces: anthropic("text", pieces),
        "thinking": lambda pieces: anthropic("thinking", pieces),
        "arguments": lambda pieces: anthropic("input_json", pieces),
    },
    "google-generative-ai": {
        "text": lambda pieces: google(pieces),
        "thinking": lambda pieces: google(pieces, thought=True),
    },
    "openai-completions": {
        "text": lambda pieces: completions(lambda piece: {"content": piece}, pieces),
        "thinking": lambda pieces: completions(lambda piece: {"reasoning_content": piece}, pieces),
        "arguments": lambda pieces: completions(
            lambda piece: {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}, pieces
        ),
    },
    "openai-responses": {
        "text": lambda pieces: responses({"type": "message", "id": "m"}, "output_text", pieces),
        "thinking": lambda pieces: responses({"type": "reasoning", "id": "r"}, "reasoning_text", pieces),
        "arguments": lambda pieces: responses(CALL, "function_call_arguments", pieces),
    },
}
EVERYWHERE = [(api, what) for api, kinds in WIRES.items() for what in kinds]


def said(message: AssistantMessage) -> Any:
    block = message.content[0]
    if isinstance(block, ToolCall):
        assert block.name == "add"
        return block.arguments["x"]
    return block.text if block.type == "text" else block.thinking


@pytest.mark.parametrize(("api", "what"), EVERYWHERE)
@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (["a", HIGH, LOW, "b"], "a😀b"),
        (["a", f"b{HIGH}", f"{LOW}c", "d"], "ab😀cd"),
        ([HIGH, "", LOW], "😀"),
        (["a", HIGH, "b", LOW, "c"], "abc"),
        ([LOW, HIGH, HIGH, LOW, HIGH], "😀"),
        (["é", "a", "b", "c", HIGH, LOW, "é"], "éabc😀é"),
    ],
)
def test_a_pair_that_is_cut_is_whole_and_a_lone_half_is_left_out(
    api: str, what: str, pieces: list[str], whole: str
) -> None:
    if what == "arguments":
        pieces = ['{"x": "', *pieces, '"}']
    reply = reply_to(Model("m", api, "p", "http://server.test"), sse(*WIRES[api][what](pieces), named=True))
    assert reply.error == ""
    assert said(reply.message) == whole
    shown = [event.delta for event in reply.events if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta)]
    assert "".join(shown) == (json.dumps({"x": whole}, ensure_ascii=False) if what == "arguments" else whole)


UNITS = st.sampled_from([HIGH, LOW, "\udbff", "\udc00", "a", "é", ""])


@given(st.lists(st.lists(UNITS).map("".join), max_size=8))
def test_a_block_is_the_text_of_its_pieces_without_lone_halves(pieces: list[str]) -> None:
    reply = Reply("api", "p", "m")
    place = reply.text_start().content_index
    shown = [reply.text_delta(place, piece).delta for piece in pieces]
    assert reply.text_end(place).content == "".join(shown) == without_lone_surrogates("".join(pieces))


@given(st.lists(st.tuples(st.booleans(), UNITS), max_size=12))
def test_halves_of_different_blocks_are_no_pair(deltas: list[tuple[bool, str]]) -> None:
    reply = Reply("api", "p", "m")
    places = [reply.text_start().content_index, reply.text_start().content_index]
    for which, piece in deltas:
        reply.text_delta(places[which], piece)
    for which, deltas_of_one in itertools.groupby(sorted(deltas, key=lambda delta: delta[0]), lambda delta: delta[0]):
        assert reply.blocks[places[which]].text == without_lone_surrogates("".join(piece for _, piece in deltas_of_one))
