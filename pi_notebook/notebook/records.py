"""The lines of a conversation's file: one JSON object each, and the rules that keep them small, whole and harmless.

Every line has a `type` and the id of its `conversation`:

    {"type": "conversation", "version": 1, ..., "from": [id, n]}        begins; with `from`, after n lines of that one
    {"type": "turn", "turn": 1, "key": [cell, ordinal], "prompt": ...}  a cell ran, after `parent`, not after `instead`
    {"type": "message", "turn": 1, "message": {...}}                    what it added, in pi's own shape
    {"type": "call", "turn": 1, "id": ..., "state": "began"}            a call's own code is about to begin
    {"type": "call", "turn": 1, "id": ..., "state": "ended", "message": {...}}    it ended before others of its reply
    {"type": "end", "turn": 1, "outcome": "done"}                       how it ended; absent: the kernel died in it
    {"type": "head", "turn": 1}                                         the conversation was taken back to this turn

Times are milliseconds since 1970. A reader leaves out what it cannot use: keys, lines, whole types.
"""

from __future__ import annotations

import dataclasses
import html
import json
import math
import re
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from ..agent._json_form import fields_of, json_form
from ..ai.message_json import message_to_json
from ..ai.messages import Message

SCHEMA_VERSION = 1
DETAILS_LIMIT = 100_000
"""Characters of one result's `details` that are kept."""
_DEPTH = 12

Record = dict[str, Any]


def message_record(message: Message) -> Record:
    """A message as JSON, with its `details` cut to what is worth keeping."""
    if message.role == "tool_result" and message.details is not None:
        message = dataclasses.replace(message, details=bounded(message.details))
    return message_to_json(message)


def encode(record: Record, keys: Iterable[str] = ()) -> bytes:
    """One line, its end included: valid JSON whatever is in the record, with `***` in the place of each key."""
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(json_form(record), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = without_keys(text, keys)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # lone surrogates
        return json.dumps(json.loads(text), separators=(",", ":")).encode() + b"\n"


def without_keys(text: str, keys: Iterable[str]) -> str:
    """`text` (plain, JSON, Markdown, HTML, or one in another) with `***` in the place of each key."""
    for key in sorted(keys, key=len, reverse=True):  # one may begin with another
        if max(_WORDS.findall(key), key=len, default="") in text:  # nothing escapes these, and this is quick
            text = re.sub("".join(map(_in_any_form, key)), "***", text)
    return text


_WORDS = re.compile("[A-Za-z0-9]+")


def _in_any_form(char: str) -> str:
    """A pattern for a character, escaped or not."""
    if _WORDS.match(char):
        return char
    forms = {char, json.dumps(char)[1:-1], html.escape(char), f"&#{ord(char)};"}
    longest_first = sorted(forms, key=len, reverse=True)
    return rf"\\*(?:{'|'.join(map(re.escape, longest_first))})"


def bounded(details: Any) -> Any:
    """`details` as JSON of about `DETAILS_LIMIT` characters at most; what has no JSON form becomes a short `repr`."""
    try:
        return _Bounds(DETAILS_LIMIT).form(details, _DEPTH)
    except Exception as error:  # their own code runs: properties, iterators
        return f"<{type(details).__name__}: reading it failed with {type(error).__name__}>"


class _Bounds:
    def __init__(self, left: int) -> None:
        self.left = left

    def form(self, value: Any, depth: int) -> Any:
        self.left -= 8
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(str(value))
        if isinstance(value, int) and -(2**63) < value < 2**63:
            return int(value)
        if isinstance(value, float) and math.isfinite(value):
            return float(value)
        if depth > 0:
            if (fields := fields_of(value)) is not None:
                value = fields
            if isinstance(value, Mapping):
                return self._mapping(value, depth - 1)
            if type(value) in (list, tuple):
                return self._items(value, depth - 1)
        return self._text(short_repr(value))

    def _text(self, text: str) -> str:
        room = max(self.left, 0)
        self.left -= len(text)
        return text if len(text) <= room else f"{text[:room]}… ({len(text) - room:,} characters more)"

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, item in value.items():
            if self.left <= 0:
                kept["…"] = f"{len(value) - len(kept):,} more"
                break
            name = key if isinstance(key, str) else short_repr(key)
            kept[self._text(name[:200])] = self.form(item, depth)
        return kept

    def _items(self, value: Iterable[Any], depth: int) -> list[Any]:
        kept: list[Any] = []
        items = list(value)
        for item in items:
            if self.left <= 0:
                kept.append(f"… {len(items) - len(kept):,} more")
                break
            kept.append(self.form(item, depth))
        return kept


_SHORT = reprlib.Repr()
_SHORT.maxother = _SHORT.maxstring = _SHORT.maxlong = 500


def short_repr(value: Any) -> str:
    """A `repr` of at most about 500 characters, also where `repr` fails."""
    try:
        return _SHORT.repr(value)
    except Exception as error:
        return f"<{type(value).__name__}: its repr failed with {type(error).__name__}>"
