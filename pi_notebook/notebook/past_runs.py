"""What a run of the conversation looked like, also where another kernel ran it."""

from __future__ import annotations

from .conversation import CellTurn
from .view import Outcome, RunView


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
    if turn.outcome is None:
        view.notice("The kernel ended during this run.", "warning")
    view.finish(_outcome(turn))
    return view


def _outcome(turn: CellTurn) -> Outcome:
    for outcome in ("done", "stopped", "failed"):
        if turn.outcome == outcome:
            return outcome
    return "interrupted"
