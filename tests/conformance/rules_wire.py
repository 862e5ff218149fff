"""Predicates that hold for every wire protocol: which of our rules can touch an input (see the design, section 4)."""

from __future__ import annotations

import json
import re
from typing import Any

from .part_streams import body_chunks

LONE_SURROGATE = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")


def blocks(data: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """All content blocks of a kind in the replies of a transcript."""
    return [
        block
        for message in data["context"]["messages"]
        if message["role"] == "assistant"
        for block in message.get("content") or ()
        if block.get("type") == kind
    ]


def holds_unpaired_calls(data: dict[str, Any]) -> bool:
    """W7: a call without a result right behind its message, or a result without such a call."""
    open_calls: list[str] = []
    for message in data["context"]["messages"]:
        if message["role"] == "toolResult":
            if message["toolCallId"] not in open_calls:
                return True
            open_calls.remove(message["toolCallId"])
            continue
        if open_calls:
            return True
        if message["role"] == "assistant" and message.get("stopReason") not in ("error", "aborted"):
            open_calls = [b["id"] for b in message.get("content") or () if b["type"] == "toolCall"]
    return bool(open_calls)


def holds_surrogates_in_calls(data: dict[str, Any]) -> bool:
    """W8, requests."""
    return bool(LONE_SURROGATE.search(json.dumps(blocks(data, "toolCall"), ensure_ascii=False)))


def holds_arguments_that_are_no_object(data: dict[str, Any]) -> bool:
    """A3, requests."""
    return any(not isinstance(block["arguments"], dict) for block in blocks(data, "toolCall"))


def holds_a_result_without_content(data: dict[str, Any]) -> bool:
    """L3, requests: a tool returned null, of which the reference makes a result that breaks its own request."""
    messages = data["context"]["messages"]
    return any(message["role"] == "toolResult" and message.get("content") is None for message in messages)


ID_LENGTH = {"openai-completions": 40}  # what the API takes; else 64


def holds_ids_that_become_one_or_none(data: dict[str, Any]) -> bool:
    """W3, requests: ids of one reply that the API takes for the same one, or of which it takes nothing."""
    length = ID_LENGTH.get(data["api"], 64)
    for message in data["context"]["messages"]:
        content = message.get("content") if message["role"] == "assistant" else None
        ids = {block["id"] for block in content or () if block["type"] == "toolCall"}
        # openai-responses pairs calls and results by what stands before the bar
        named = [call_id.partition("|")[0] if data["api"] == "openai-responses" else call_id for call_id in ids]
        if len({re.sub("[^a-zA-Z0-9_-]", "_", name)[:length] for name in named}) < len(ids):
            return True
        if any(not re.sub("[^a-zA-Z0-9-]", "", call_id.partition("|")[0]) for call_id in ids):
            return True
    return False


def reply_bytes(data: dict[str, Any]) -> bytes:
    """The body of the last response."""
    return b"".join(body_chunks(data["responses"][-1]))


def sse_json(data: dict[str, Any]) -> list[Any]:
    """The JSON of each event of the last response up to `[DONE]`, line by line; what is no JSON is left out."""
    found = []
    for line in re.split(r"\r\n|\n|\r", reply_bytes(data).decode("utf-8", "replace")):
        if line.startswith("data:"):
            if line[5:].strip() == "[DONE]":
                break
            try:
                found.append(json.loads(line[5:]))
            except ValueError:
                pass
    return found


def ends_without_blank_line(data: dict[str, Any]) -> bool:
    """W5: the last event of the body has data but no blank line behind it."""
    body = reply_bytes(data).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    last = body.rpartition(b"\n\n")[2]
    return "cut" not in data["responses"][-1] and any(line.startswith(b"data:") for line in last.split(b"\n"))


def is_object_text(text: str) -> bool:
    """Whether a text of arguments is one whole JSON object, or blank (which stands for `{}`)."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        return not text.strip() or isinstance(json.loads(text, parse_constant=refuse), dict)
    except ValueError:
        return False


REQUEST_RULES = [
    ("W7", holds_unpaired_calls),
    ("W8", holds_surrogates_in_calls),
    ("A3", holds_arguments_that_are_no_object),
    ("L3", holds_a_result_without_content),
    ("W3", holds_ids_that_become_one_or_none),
]
STREAM_RULES = [("W5", ends_without_blank_line)]
