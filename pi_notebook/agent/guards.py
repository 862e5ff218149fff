"""What keeps a run from going on for ever: turns, money, and the same call over and over."""

from __future__ import annotations

from typing import Any

from ..ai.messages import UserMessage
from .hooks import TurnContext
from .result import total_usage

REPEATS_TO_POINT_OUT = 3


class Guards:
    """Watches the turns of one run.

    Args:
        max_turns: Requests to the model; None is no limit.
        max_cost: US dollars for this run, where prices are known; None is no limit.
    """

    def __init__(self, max_turns: int | None, max_cost: float | None) -> None:
        self.max_turns = max_turns
        self.max_cost = max_cost
        self.turns = 0
        self.cost = 0.0
        self.last_calls: list[Any] = []
        self.repeats = 0
        self.pointed_out = False

    def after_turn(self, turn: TurnContext, *, queued: bool = False) -> tuple[str, UserMessage | None]:
        """Returns (reason to stop or "", word to the model or None).

        Args:
            queued: Messages wait to be told to the model; else a turn without calls ends the run anyway.
        """
        self.turns += 1
        usage = total_usage([turn.message.usage])
        self.cost += usage.cost.total if usage.cost else 0.0
        if not turn.tool_results and not queued:
            return "", None
        if self.max_cost is not None and self.cost >= self.max_cost:
            return f"Stopped: this run has cost ${self.cost:.4f}, and max_cost is ${self.max_cost:g}.", None
        if self.max_turns is not None and self.turns >= self.max_turns:
            return f"Stopped after {self.turns} turns (max_turns={self.max_turns}).", None
        return self._repetition(turn)

    def _repetition(self, turn: TurnContext) -> tuple[str, UserMessage | None]:
        calls = [
            (call.name, call.arguments, result.content, result.is_error)
            for call, result in zip(turn.message.tool_calls, turn.tool_results, strict=False)
        ]
        if not calls:
            return "", None
        if all(call == calls[0] for call in calls):  # side by side they count once: no result was known to the model
            calls = calls[:1]
        if calls != self.last_calls:
            self.last_calls, self.repeats, self.pointed_out = calls, 0, False
        self.repeats += 1
        if self.repeats < REPEATS_TO_POINT_OUT:
            return "", None
        names = ", ".join(dict.fromkeys(call[0] for call in calls))
        if self.pointed_out:
            return (
                f"Stopped: {names} was called {self.repeats} times with the same arguments and the same result.",
                None,
            )
        self.pointed_out = True
        text = (
            f"(Automatic note) You have called {names} {self.repeats} times running with the same arguments, and "
            "the result was the same each time. Another such call ends this run. Use the result you have, "
            "change the arguments, or answer."
        )
        return "", UserMessage(text)
