"""Which of our rules can touch an input of google-generative-ai."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from .rules_wire import LONE_SURROGATE, sse_json


def candidates(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for chunk in sse_json(data):
        found = chunk.get("candidates") if isinstance(chunk, dict) else None
        if found and isinstance(found[0], dict):
            yield found[0]


def calls(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        part["functionCall"]
        for candidate in candidates(data)
        for part in (candidate.get("content") or {}).get("parts") or ()
        if isinstance(part.get("functionCall"), dict)
    ]


def is_cut_after_a_call(data: dict[str, Any]) -> bool:
    """W1: a call, and a finish reason other than STOP."""
    reasons = [candidate["finishReason"] for candidate in candidates(data) if candidate.get("finishReason")]
    return bool(calls(data)) and bool(reasons) and reasons[-1] != "STOP"


def says_why_it_failed(data: dict[str, Any]) -> bool:
    """W2: an error object in the stream, or a prompt that was blocked."""
    return any(
        isinstance(chunk, dict) and (chunk.get("error") or (chunk.get("promptFeedback") or {}).get("blockReason"))
        for chunk in sse_json(data)
    )


def sends_arguments_as_text(data: dict[str, Any]) -> bool:
    """W3."""
    return any(isinstance(call.get("args"), str) for call in calls(data))


def sends_surrogates(data: dict[str, Any]) -> bool:
    """W8."""
    return bool(LONE_SURROGATE.search(json.dumps([call.get("args") for call in calls(data)], ensure_ascii=False)))


def says_when_to_ask_again(data: dict[str, Any]) -> bool:
    """S3: a refusal with the server's wish about the next attempt, which the reference's SDK hides from it here."""
    wishes = {"retry-after", "retry-after-ms", "x-should-retry"}
    refusals = [response for response in data["responses"] if response.get("status", 200) != 200]
    return any(wishes & {name.lower() for name in response.get("headers") or ()} for response in refusals)


Predicate = Callable[[dict[str, Any]], bool]
REQUEST_RULES: list[tuple[str, Predicate]] = []
STREAM_RULES: list[tuple[str, Predicate]] = [
    ("W1", is_cut_after_a_call),
    ("W2", says_why_it_failed),
    ("W3", sends_arguments_as_text),
    ("W8", sends_surrogates),
]
RETRY_RULES: list[tuple[str, Predicate]] = [("S3", says_when_to_ask_again)]
