"""What a run of the conversation looked like, also where another kernel ran it."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

from ..agent.hooks import Decision, Question
from ..ai.messages import ToolCall
from ._items import Row
from ._rows import SYMBOLS
from .conversation import NEVER_BEGAN, CellTurn
from .records import Record
from .view import Outcome, RunView

_LAST_SECOND = 2**37


def view_of(turn: CellTurn) -> RunView:
    """The view that the run had, if it is still there; else one made from its messages."""
    view = turn.view() if turn.view is not None else None
    if view is not None and view.outcome:
        return view
    now = turn.time / 1000
    reply = next((message for message in turn.messages if message.role == "assistant"), None)
    model = "agent"
    if reply is not None:
        model = f"{reply.provider}:{reply.model}" if reply.provider else reply.model or model
    view = RunView(model, turn.prompt, clock=lambda: now)
    for message in turn.messages:
        now = max(now, message.timestamp / 1000)
        view.replay([message])
    rows = list(view.rows)
    for call in reversed(
        turn.calls
    ):  # ids may come again in each reply: of a run that was cut off, the last one counts
        at = next((n for n in reversed(range(len(rows))) if rows[n].tool_call_id == call.get("id")), None)
        if at is not None:
            _recall(rows.pop(at), call)
    for row in rows:
        if row.result is not None and row.result.text == NEVER_BEGAN:
            row.state = "stopped"
    if turn.outcome is None:
        view.notice("The kernel ended during this run.", "warning")
    view.finish(_outcome(turn))
    return view


def calls_of(view: RunView) -> list[Record]:
    """What a transcript shows of each call that is not in its messages: state, label, who decided what and when."""
    return [call_of(row) for row in view.rows]


def call_of(row: Row) -> Record:
    """The same of one call."""
    call: Record = {"id": row.tool_call_id, "state": row.state, "label": row.label}
    if row.decision is not None:
        call["decision"] = dataclasses.asdict(row.decision)
        if row.decision.kind == "edit" and row.question is not None:
            call["asked"] = row.question.arguments
    return call


def _recall(row: Row, call: Record) -> None:
    """Bring back what `calls_of` has noted; what makes no sense is left out."""
    state, label = call.get("state"), call.get("label")
    row.state = next((known for known in SYMBOLS if known == state), row.state)
    row.label = label if isinstance(label, str) else row.label
    match call.get("decision"):
        case {"kind": "edit", "arguments": dict(arguments), "by": str(by), "at": int(at) | float(at)} if _is_time(at):
            asked = call.get("asked")
            if isinstance(asked, dict):
                row.arguments = arguments
                row.question = Question(ToolCall(row.tool_call_id, row.name, asked), cast(Any, None), asked)
                row.decision = Decision("edit", "", arguments, by, at)
        case {
            "kind": "approve" | "block" | "always" as kind,
            "reason": str(reason),
            "by": str(by),
            "at": int(at) | float(at),
        } if _is_time(at):
            row.decision = Decision(kind, reason, None, by, at)


def _is_time(seconds: float) -> bool:
    return 0 <= seconds < _LAST_SECOND


def _outcome(turn: CellTurn) -> Outcome:
    for outcome in ("done", "stopped", "failed"):
        if turn.outcome == outcome:
            return outcome
    return "interrupted"
