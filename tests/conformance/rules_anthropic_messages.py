"""Which of our rules can touch an input of anthropic-messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from .rules_openai_completions import is_row_of_objects
from .rules_wire import LONE_SURROGATE, is_object_text, reply_bytes, sse_json

CUT_DOWN_TO = {"type", "properties", "required"}


def sends_more_of_a_schema(data: dict[str, Any]) -> bool:
    """W9: a schema, not sent as a strict one, has more at its top than the reference leaves of it."""
    strict = (data["model"].get("compat") or {}).get("supportsStrictTools")
    return any(
        not tool["parameters"].keys() <= CUT_DOWN_TO and not (strict and tool.get("constrainedSampling"))
        for tool in data["context"].get("tools") or ()
    )


def asks_a_plain_model_to_think(data: dict[str, Any]) -> bool:
    """S2: the limit of tokens and the temperature of such a request stay; the reference changes them all the same."""
    options = data["options"]
    wants = data["call"] == "streamSimple" and options.get("reasoning") and not data["model"]["reasoning"]
    return bool(wants and ("maxTokens" in options or "temperature" in options))


def events(data: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    return (event for event in sse_json(data) if isinstance(event, dict) and event.get("type") == kind)


def calls(data: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """The block that starts each call, and the text of its arguments."""
    found: list[tuple[dict[str, Any], list[str]]] = []
    on_index: dict[Any, list[str]] = {}
    for event in sse_json(data):
        if not isinstance(event, dict):
            continue
        block, delta = event.get("content_block") or {}, event.get("delta") or {}
        if event.get("type") == "content_block_start":
            pieces: list[str] = []
            on_index[event.get("index")] = pieces
            if block.get("type") == "tool_use":
                found.append((block, pieces))
        elif event.get("type") == "content_block_delta" and delta.get("type") == "input_json_delta":
            on_index.get(event.get("index"), []).append(delta.get("partial_json") or "")
    return [(block, "".join(pieces)) for block, pieces in found]


def hides_an_error(data: dict[str, Any]) -> bool:
    """W2: an error or a whole message that is not in an event of that name."""
    body = reply_bytes(data)
    named = body.count(b"event: error") + body.count(b"event:error")
    said = sum(isinstance(event, dict) and "error" in event for event in sse_json(data))
    return said > named or any(events(data, "message"))


def bends_calls(data: dict[str, Any]) -> bool:
    """W3: a call without an id, a block that begins where another is still open, or several objects in a row."""
    open_indices = set()
    for event in sse_json(data):
        kind = event.get("type") if isinstance(event, dict) else None
        if kind == "content_block_start":
            if event.get("index") in open_indices:
                return True
            open_indices.add(event.get("index"))
        elif kind == "content_block_stop":
            open_indices.discard(event.get("index"))
    return any(not block.get("id") or is_row_of_objects(text) for block, text in calls(data))


def starts_with_input(data: dict[str, Any]) -> bool:
    """W6."""
    return any(block.get("input") and not text.strip() for block, text in calls(data))


def sends_no_object(data: dict[str, Any]) -> bool:
    """A2."""
    return any(not is_object_text(text) for _, text in calls(data))


def sends_surrogates(data: dict[str, Any]) -> bool:
    """W8: in arguments, as text or as an escape."""
    for _, text in calls(data):
        try:
            decoded = json.loads(text, strict=False)
        except ValueError:
            decoded = text
        if LONE_SURROGATE.search(json.dumps(decoded, ensure_ascii=False)):
            return True
    return False


Predicate = Callable[[dict[str, Any]], bool]
REQUEST_RULES: list[tuple[str, Predicate]] = [
    ("W9", sends_more_of_a_schema),
    ("S2", asks_a_plain_model_to_think),
]
STREAM_RULES: list[tuple[str, Predicate]] = [
    ("W2", hides_an_error),
    ("W3", bends_calls),
    ("W6", starts_with_input),
    ("A2", sends_no_object),
    ("W8", sends_surrogates),
]
