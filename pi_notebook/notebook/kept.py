"""Conversations read back from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ..ai.message_json import message_from_json
from ..ai.messages import Cost, Message, Usage
from .conversation import THIS_KERNEL, CallsSoFar, CellTurn, History, mended
from .records import Record
from .store import read_records

_PASSING_IDS = "vscode-notebook-cell:"
"""VS Code names a cell by its place among those of the open editor: in the next one that may be another cell."""


@dataclass(eq=False)
class KeptConversation:
    """One conversation of a file: `records` are its own lines, which go on from where `source` stands."""

    id: str
    session: str
    is_earlier: bool
    source: tuple[KeptConversation, int] | None = None
    records: list[Record] = field(default_factory=list)

    @property
    def time(self) -> int:
        """When its last cell began; milliseconds since 1970."""
        return max((turn.time for turn in self.history(with_messages=False).path), default=0)

    def history(self, *, with_messages: bool = True) -> History:
        """The conversation as it stood after its last line, every call with one result."""
        pieces = [(self, len(self.records))]
        while (source := pieces[-1][0].source) is not None:
            pieces.append(source)
        history = History()
        turns: dict[Any, CellTurn] = {}
        for kept, lines in reversed(pieces):
            known = len(history.turns)
            for record in kept.records[:lines]:
                if with_messages or record["type"] not in ("message", "call"):
                    _apply(record, history, turns)
            for turn in history.turns:  # what had come to an end there
                turn.messages[:] = mended(turn.messages, turn.so_far)
            for turn in history.turns[known:]:
                turn.is_earlier = kept.is_earlier
                if kept.is_earlier and turn.key is not None and turn.key[0].startswith(_PASSING_IDS):
                    turn.key = None
        return history


def _apply(record: Record, history: History, turns: dict[Any, CellTurn]) -> None:
    """Do again what a line tells; one that makes no sense is left out."""
    try:
        _APPLY[record["type"]](record, history, turns)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, AssertionError):
        return


def _apply_turn(record: Record, history: History, turns: dict[Any, CellTurn]) -> None:
    key = record.get("key")
    turn = CellTurn(
        (str(key[0]), int(key[1])) if key else None,
        str(record["prompt"]),
        execution_count=record.get("executionCount"),
        line=str(record.get("line") or ""),
        time=min(max(int(record.get("time") or 0), 0), _TOO_LARGE),
        so_far=CallsSoFar() if record.get("tellsCalls") is True else None,
    )
    parent = record.get("parent")
    # where the parent's line was lost, the rest of the conversation is not
    before = None if parent is None else turns.get(parent, history.head)
    number = int(record["turn"])
    history.add(turn, before, turns.get(record.get("instead")), number)
    turns[number] = turn


def _apply_message(record: Record, history: History, turns: dict[Any, CellTurn]) -> None:
    message = message_from_json(record["message"])
    if is_sound(message):
        turn = turns[record["turn"]]
        turn.messages.append(message)
        if message.role == "assistant" and turn.so_far is not None:
            turn.so_far, turn.calls = CallsSoFar(), ()


def _apply_call(record: Record, history: History, turns: dict[Any, CellTurn]) -> None:
    turn = turns[record["turn"]]
    assert turn.so_far is not None
    if record["state"] == "began":
        turn.so_far.began.append(str(record["id"]))
        return
    message = message_from_json(record["message"])
    shown = record.get("shown")
    if message.role == "tool_result" and is_sound(message):
        shown = shown if isinstance(shown, dict) else {}
        turn.so_far.ended.append((message, shown))
        turn.calls = [*turn.calls, shown]


def is_sound(message: Message) -> bool:
    """Whether every text is one and every number is one, so that nobody stumbles over a file that was tampered with."""
    blocks = [] if isinstance(message.content, str) else list(message.content)
    texts = [getattr(each, name, "") for each in (message, *blocks) for name in _TEXTS]
    maybe = [getattr(each, name, None) for each in (message, *blocks) for name in _MAYBE_TEXTS]
    usage = None if message.role == "user" else message.usage
    numbers = [message.timestamp] if usage is None else [message.timestamp, *_numbers(usage), *_numbers(usage.cost)]
    if message.role == "tool_result":
        texts += message.added_tool_names
        numbers.append(0 if message.duration_ms is None else message.duration_ms)
    return (
        all(isinstance(text, str) for text in texts)
        and all(text is None or isinstance(text, str) for text in maybe)
        and all(isinstance(number, int | float) and 0 <= number < _TOO_LARGE for number in numbers)
    )


def _numbers(value: Usage | Cost | None) -> list[Any]:
    if value is None:
        return []
    numbers = {field.name: getattr(value, field.name) for field in fields(value) if field.name != "cost"}
    return [number for name, number in numbers.items() if number is not None or name not in _MAYBE_NUMBERS]


def _apply_end(record: Record, history: History, turns: dict[Any, CellTurn]) -> None:
    turn = turns[record["turn"]]
    turn.outcome = str(record["outcome"])
    turn.calls = [call for call in record.get("calls") or () if isinstance(call, dict)]


def _apply_head(record: Record, history: History, turns: dict[Any, CellTurn]) -> None:
    number = record["turn"]
    history.head = None if number is None else turns[number]


_TEXTS = (
    "text",
    "thinking",
    "data",
    "mime_type",
    "id",
    "name",
    "tool_call_id",
    "tool_name",
    "api",
    "provider",
    "model",
)
_MAYBE_TEXTS = ("text_signature", "thinking_signature", "thought_signature", "error_message", "raw_stop_reason")
_MAYBE_NUMBERS = ("cache_write_1h", "reasoning")
_TOO_LARGE = 2**47  # milliseconds: in the year 6429
_APPLY: dict[str, Callable[[Record, History, dict[Any, CellTurn]], None]] = {
    "turn": _apply_turn,
    "message": _apply_message,
    "call": _apply_call,
    "end": _apply_end,
    "head": _apply_head,
}


def read_conversations(path: Path, session: str | None = None) -> tuple[list[KeptConversation], list[str]]:
    """The conversations of a file that hold something, the one written to last first, and notices about the file.

    Args:
        session: Only those of this session; None for all.

    Raises:
        StoreError: The file cannot be read or is of a newer schema.
    """
    records, notices = read_records(path)
    found: dict[str, KeptConversation] = {}
    for record in records:
        name = record["conversation"]
        if record["type"] == "conversation":
            session_name, is_earlier = str(record.get("session") or ""), record.get("kernel") != THIS_KERNEL
            kept = KeptConversation(name, session_name, is_earlier, _source(record.get("from"), found))
            found.setdefault(name, kept)
        elif name in found:
            found[name] = kept = found.pop(name)  # the last one is the one written to last
            kept.records.append(record)
    latest = [kept for kept in reversed(found.values()) if session is None or kept.session == session]
    return _not_contained(latest), notices


def _source(value: Any, found: dict[str, KeptConversation]) -> tuple[KeptConversation, int] | None:
    match value:
        case [str(name), int(lines)] if name in found:
            return found[name], lines
    return None


def _not_contained(conversations: list[KeptConversation]) -> list[KeptConversation]:
    """Without those that are empty, or that another one began with."""
    listed: list[KeptConversation] = []
    paths: dict[KeptConversation, list[int]] = {}
    for kept in conversations:
        path = paths[kept] = [turn.number for turn in kept.history(with_messages=False).path]
        is_contained = any(
            after.source is not None and after.source == (kept, len(kept.records)) and paths[after][: len(path)] == path
            for after in paths
        )
        if path and not is_contained:
            listed.append(kept)
    return listed
