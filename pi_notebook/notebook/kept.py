"""Conversations read back from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..ai.message_json import message_from_json
from .conversation import CellTurn, History, mended
from .records import Record
from .store import read_records

Lines = list[tuple["KeptConversation", Record]]


@dataclass(eq=False)
class KeptConversation:
    """One conversation of a file: `records` are its own lines, which go on from where `source` stands."""

    id: str
    session: str
    source: tuple[KeptConversation, int] | None = None
    records: list[Record] = field(default_factory=list)

    @property
    def time(self) -> int:
        """When its last cell began; milliseconds since 1970."""
        return max((turn.time for turn in self.history(with_messages=False).path), default=0)

    def history(self, *, with_messages: bool = True) -> History:
        """The conversation as it stood after its last line, every call with one result."""
        own = [self.records]
        source = self.source
        while source is not None:
            kept, lines = source
            own.append(kept.records[:lines])
            source = kept.source
        history = History()
        turns: dict[Any, CellTurn] = {}
        for records in reversed(own):
            for record in records:
                if with_messages or record["type"] != "message":
                    _apply(record, history, turns)
            for turn in history.turns:  # what had come to an end there
                turn.messages[:] = mended(turn.messages)
        return history


def _apply(record: Record, history: History, turns: dict[Any, CellTurn]) -> None:
    """Do again what a line tells; one that makes no sense is left out."""
    try:
        _APPLY[record["type"]](record, history, turns)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return


def _apply_turn(record: Record, history: History, turns: dict[Any, CellTurn]) -> None:
    key = record.get("key")
    turn = CellTurn(
        (str(key[0]), int(key[1])) if key else None,
        str(record["prompt"]),
        execution_count=record.get("executionCount"),
        line=str(record.get("line") or ""),
        is_earlier=True,
        time=int(record.get("time") or 0),
    )
    parent = record.get("parent")
    # where the parent's line was lost, the rest of the conversation is not
    before = None if parent is None else turns.get(parent, history.head)
    number = int(record["turn"])
    history.add(turn, before, turns.get(record.get("instead")), number)
    turns[number] = turn


def _apply_message(record: Record, history: History, turns: dict[Any, CellTurn]) -> None:
    turns[record["turn"]].messages.append(message_from_json(record["message"]))


def _apply_end(record: Record, history: History, turns: dict[Any, CellTurn]) -> None:
    turns[record["turn"]].outcome = str(record["outcome"])


def _apply_head(record: Record, history: History, turns: dict[Any, CellTurn]) -> None:
    number = record["turn"]
    history.head = None if number is None else turns[number]


_APPLY: dict[str, Callable[[Record, History, dict[Any, CellTurn]], None]] = {
    "turn": _apply_turn,
    "message": _apply_message,
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
            kept = KeptConversation(name, str(record.get("session") or ""), _source(record.get("from"), found))
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
