"""RunResult: what one run came to, as a value for code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ai.messages import Cost, Message, StopReason, Usage
from .tool import ToolResult


@dataclass(slots=True)
class ToolCallRecord:
    """One call of a run: `arguments` are those that ran (or would have), `value` is what the tool returned, whole."""

    id: str
    name: str
    arguments: Any
    result: ToolResult

    @property
    def value(self) -> Any:
        return self.result.value

    @property
    def is_error(self) -> bool:
        return self.result.is_error

    @property
    def duration_ms(self) -> int | None:
        return self.result.duration_ms


@dataclass(slots=True, repr=False)
class RunResult:
    """What a run came to.

    Args:
        messages: All that the run added to the transcript, the prompt included.
        tool_calls: The calls that have ended, in the order in which the model made them.
        stopped_by: Why a guard ended the run (`max_turns`, `max_cost`, a repeated call); empty otherwise.
    """

    messages: Sequence[Message] = ()
    tool_calls: Sequence[ToolCallRecord] = field(default_factory=list)
    stopped_by: str = ""

    def __repr__(self) -> str:
        """In short: asyncio shows the result of every task it ends, and a transcript may be large."""
        text = self.text if len(self.text) <= 80 else f"{self.text[:79]}…"
        return f"<RunResult {text!r}: {self.turns} turns, {len(self.tool_calls)} tool calls>"

    @property
    def text(self) -> str:
        """The last answer's text."""
        for message in reversed(self.messages):
            if message.role == "assistant":
                return message.text
        return ""

    @property
    def stop_reason(self) -> StopReason | None:
        """Of the last reply; None if there was none."""
        return next((m.stop_reason for m in reversed(self.messages) if m.role == "assistant"), None)

    @property
    def error_message(self) -> str | None:
        return next((m.error_message for m in reversed(self.messages) if m.role == "assistant"), None)

    @property
    def turns(self) -> int:
        return sum(message.role == "assistant" for message in self.messages)

    @property
    def usage(self) -> Usage:
        """Tokens of all replies; its `cost` is None if the price of any is unknown."""
        return total_usage(m.usage for m in self.messages if m.role == "assistant")

    @property
    def cost(self) -> float | None:
        """US dollars; None if unknown."""
        cost = self.usage.cost
        return None if cost is None else cost.total


def total_usage(usages: Iterable[Usage]) -> Usage:
    """Sum of `usages`; the cost is None as soon as one that used tokens has none."""
    total = Usage(cost=Cost())
    for usage in usages:
        spent = usage.total_tokens or usage.input or usage.output
        known = total.cost is not None and (usage.cost is not None or not spent)
        total = Usage(
            total.input + usage.input,
            total.output + usage.output,
            total.cache_read + usage.cache_read,
            total.cache_write + usage.cache_write,
            _add(total.cache_write_1h, usage.cache_write_1h),
            _add(total.reasoning, usage.reasoning),
            total.total_tokens + usage.total_tokens,
            _add_cost(total.cost or Cost(), usage.cost or Cost()) if known else None,
        )
    return total


def _add(a: int | None, b: int | None) -> int | None:
    return None if a is None and b is None else (a or 0) + (b or 0)


def _add_cost(a: Cost, b: Cost) -> Cost:
    return Cost(
        a.input + b.input,
        a.output + b.output,
        a.cache_read + b.cache_read,
        a.cache_write + b.cache_write,
        a.total + b.total,
    )
