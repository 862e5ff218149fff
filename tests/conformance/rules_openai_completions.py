"""Which of our rules can touch an input of openai-completions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .rules_wire import LONE_SURROGATE, is_object_text, reply_bytes, sse_json


def deltas(data: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for chunk in sse_json(data):
        choices = chunk.get("choices") if isinstance(chunk, dict) else None
        if isinstance(choices, list) and choices and isinstance(choices[0].get("delta"), dict):
            found.append(choices[0]["delta"])
    return found


def call_pieces(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [piece for delta in deltas(data) for piece in delta.get("tool_calls") or ()]


def argument_texts(data: dict[str, Any]) -> list[Any]:
    """The arguments of each call as the reference groups them: by index, else by id."""
    texts: dict[Any, Any] = {}
    for piece in call_pieces(data):
        place = piece["index"] if isinstance(piece.get("index"), int) else piece.get("id")
        arguments = (piece.get("function") or {}).get("arguments")
        arguments = "" if arguments is None else arguments
        before = texts.get(place, "")
        both_texts = isinstance(arguments, str) and isinstance(before, str)
        texts[place] = before + arguments if both_texts else [before, arguments]
    return list(texts.values())


def shows_refusal(data: dict[str, Any]) -> bool:
    """W2."""
    return any(delta.get("refusal") for delta in deltas(data))


def bends_calls(data: dict[str, Any]) -> bool:
    """W3: a call without id, two ids or names on one index, arguments as an object, or several objects in a row."""
    names: dict[Any, list[str]] = {}
    ids: dict[Any, set[str]] = {}
    for piece in call_pieces(data):
        function = piece.get("function") or {}
        place = piece["index"] if isinstance(piece.get("index"), int) else piece.get("id")
        ids.setdefault(place, set()).update([piece["id"]] if piece.get("id") else [])
        names.setdefault(place, []).extend([function["name"]] if function.get("name") else [])
    several = any(len(found) > 1 for found in (*ids.values(), *names.values()))
    without_id = any(not found for found in ids.values())
    legacy = any(delta.get("function_call") for delta in deltas(data))
    odd = any(not isinstance(text, str) or is_row_of_objects(text) for text in argument_texts(data))
    return several or without_id or legacy or odd


def is_row_of_objects(text: str) -> bool:
    decoder = json.JSONDecoder(strict=False)
    count, position = 0, 0
    while position < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except ValueError:
            return False
        if not isinstance(value, dict):
            return False
        count += 1
        position += len(text[position:]) - len(text[position:].lstrip())
    return count > 1


def talks_after_call(data: dict[str, Any]) -> bool:
    """W4: text before a call and behind it."""
    said, called = False, False
    for delta in deltas(data):
        if delta.get("content") and called and said:
            return True
        said = said or bool(delta.get("content"))
        called = called or bool(delta.get("tool_calls"))
    return False


def sends_no_object(data: dict[str, Any]) -> bool:
    """A2: some call's arguments are not the text of one JSON object."""
    return any(isinstance(text, str) and not is_object_text(text) for text in argument_texts(data))


def sends_surrogates(data: dict[str, Any]) -> bool:
    """W8: half a surrogate pair in a text, or as an escape inside arguments."""
    said: list[Any] = deltas(data)
    for text in argument_texts(data):
        try:
            said.append(json.loads(text))
        except (TypeError, ValueError):
            pass
    return bool(LONE_SURROGATE.search(json.dumps(said, ensure_ascii=False)))


def pings(data: dict[str, Any]) -> bool:
    """W5, framing: an event that has a name and no data, which the reference's SDK takes for broken JSON."""
    body = reply_bytes(data).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return any(
        b"event:" in event and not any(line.startswith(b"data") for line in event.split(b"\n"))
        for event in body.split(b"\n\n")
    )


def asks_for_strictness_of_an_open_schema(data: dict[str, Any]) -> bool:
    """S1: a tool asks for strict arguments, and its schema is not in the form that OpenAI takes as strict."""
    return any(
        (tool.get("constrainedSampling") or {}).get("type") == "json_schema" and not is_closed(tool["parameters"])
        for tool in data["context"].get("tools") or ()
    )


UNKNOWN_TO_STRICT_MODE = {"$schema", "default", "minLength", "maxLength", "oneOf", "uniqueItems", "patternProperties"}


def is_closed(schema: Any) -> bool:
    """Whether all objects in a schema are closed and require all they name, and no keyword is unknown."""
    if isinstance(schema, list):
        return all(map(is_closed, schema))
    if not isinstance(schema, dict):
        return True
    if UNKNOWN_TO_STRICT_MODE & schema.keys():
        return False
    names = schema.get("properties") or {}
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        return False
    if set(schema.get("required") or ()) != set(names):
        return False
    parts = [names, schema.get("$defs") or {}]
    inside = [
        schema.get("items"),
        schema.get("anyOf"),
        schema.get("allOf"),
        *(v for part in parts for v in part.values()),
    ]
    return all(map(is_closed, inside))


def sends_nothing_and_never_says_why_it_ends(data: dict[str, Any]) -> bool:
    """S4: no chunk at all from a server that is known to give no finish reason."""
    gives_none = (data["model"].get("compat") or {}).get("supportsFinishReason") is False
    return gives_none and not any(isinstance(chunk, dict) and "choices" in chunk for chunk in sse_json(data))


Predicate = Callable[[dict[str, Any]], bool]
REQUEST_RULES: list[tuple[str, Predicate]] = [("S1", asks_for_strictness_of_an_open_schema)]
STREAM_RULES: list[tuple[str, Predicate]] = [
    ("W2", shows_refusal),
    ("W3", bends_calls),
    ("W4", talks_after_call),
    ("A2", sends_no_object),
    ("W8", sends_surrogates),
    ("W5", pings),
    ("S4", sends_nothing_and_never_says_why_it_ends),
]
