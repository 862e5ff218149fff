"""Which of our rules can touch an input of openai-responses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .rules_openai_completions import asks_for_strictness_of_an_open_schema, is_row_of_objects
from .rules_wire import LONE_SURROGATE, is_object_text, sse_json


def call_items(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Items of calls as they begin and as they end."""
    items = [event.get("item") for event in sse_json(data) if isinstance(event, dict)]
    return [item for item in items if isinstance(item, dict) and item.get("type") == "function_call"]


def argument_texts(data: dict[str, Any]) -> list[Any]:
    """The whole arguments of each call: those of the item when it is done, else what came before."""
    texts: dict[Any, Any] = {}
    for event in sse_json(data):
        if not isinstance(event, dict):
            continue
        place, kind = event.get("output_index"), event.get("type")
        item = event.get("item") or {}
        if kind == "response.output_item.added" and item.get("type") == "function_call":
            texts[place] = item.get("arguments") or ""
        elif kind == "response.function_call_arguments.delta" and isinstance(texts.get(place), str):
            texts[place] += event.get("delta") or ""
        elif kind == "response.function_call_arguments.done":
            texts[place] = event.get("arguments")
        elif kind == "response.output_item.done" and item.get("type") == "function_call":
            texts[place] = item.get("arguments") or texts.get(place, "")
    return list(texts.values())


def bends_calls(data: dict[str, Any]) -> bool:
    """W3: a call without one of its ids, arguments as an object, or several objects in a row."""
    without_id = any(not item.get("call_id") or not item.get("id") for item in call_items(data))
    odd = any(not isinstance(text, str) or is_row_of_objects(text) for text in argument_texts(data))
    return without_id or odd


def sends_no_object(data: dict[str, Any]) -> bool:
    """A2: some call's arguments are not the text of one JSON object."""
    return any(isinstance(text, str) and not is_object_text(text) for text in argument_texts(data))


def sends_surrogates(data: dict[str, Any]) -> bool:
    """W8: half a surrogate pair in a text, or as an escape inside arguments."""
    said: list[Any] = list(sse_json(data))
    for text in argument_texts(data):
        try:
            said.append(json.loads(text))
        except (TypeError, ValueError):
            pass
    return bool(LONE_SURROGATE.search(json.dumps(said, ensure_ascii=False)))


Predicate = Callable[[dict[str, Any]], bool]
REQUEST_RULES: list[tuple[str, Predicate]] = [("S1", asks_for_strictness_of_an_open_schema)]
STREAM_RULES: list[tuple[str, Predicate]] = [
    ("W3", bends_calls),
    ("A2", sends_no_object),
    ("W8", sends_surrogates),
]
