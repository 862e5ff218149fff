"""A megabyte of arguments in pieces of sixteen bytes: read whole, at a cost in proportion to its size."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from pi_notebook.ai.model import Model

from .servers import reply_to, sse

PIECE = 16


def pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def chat(text: str) -> bytes:
    def chunk(call: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": finish}]}

    calls = [{"index": 0, "id": "c1", "function": {"name": "put", "arguments": ""}}]
    calls += [{"index": 0, "function": {"arguments": piece}} for piece in pieces(text)]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    return sse(*map(chunk, calls), end)


def responses(text: str) -> bytes:
    item = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "put"}
    start = {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}}
    kind = "response.function_call_arguments.delta"
    deltas = [{"type": kind, "output_index": 0, "delta": piece} for piece in pieces(text)]
    done = {"type": "response.output_item.done", "output_index": 0, "item": {**item, "arguments": text}}
    end = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}
    return sse(start, *deltas, done, end, named=True)


def anthropic(text: str) -> bytes:
    block = {"type": "tool_use", "id": "c1", "name": "put", "input": {}}
    kind = "content_block_delta"
    return sse(
        {"type": "message_start", "message": {"id": "m", "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {"type": kind, "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
            for piece in pieces(text)
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
        named=True,
    )


BODIES = {"openai-completions": chat, "openai-responses": responses, "anthropic-messages": anthropic}


def seconds_to_read(api: str, size: int) -> float:
    arguments = {"text": 'a "quoted" \n line ' * (size // 18)}
    body = BODIES[api](json.dumps(arguments))
    started = time.perf_counter()
    reply = reply_to(Model("m", api, "p", "http://server.test"), body)
    took = time.perf_counter() - started
    assert reply.message.tool_calls[0].arguments == arguments
    assert reply.kinds.count("toolcall_delta") >= size // PIECE
    return took


@pytest.mark.parametrize("api", BODIES)
def test_time_grows_with_the_size(api: str) -> None:
    seconds_to_read(api, 10_000)  # imports
    small = min(seconds_to_read(api, 50_000) for _ in range(3))
    large = seconds_to_read(api, 1_000_000)
    # 20 times the size; if each piece looked at all before it, 400 times the time
    assert large < 120 * small, f"twenty times as much took {large / small:.0f} times as long"
