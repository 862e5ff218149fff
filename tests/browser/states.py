"""States of the card, made by hand from the agent's events: run inside a kernel, in a plain cell."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable
from typing import Any

from pi_notebook.agent.events import (
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnStart,
)
from pi_notebook.agent.hooks import Decision, Question
from pi_notebook.agent.tool import ConsoleText, Progress, Tool, ToolResult
from pi_notebook.ai.messages import ImageContent, TextContent, ToolCall, Usage
from pi_notebook.ai.stream import Reply
from pi_notebook.notebook.card import Card
from pi_notebook.notebook.display import CardDisplay
from pi_notebook.notebook.view import RunView

ANSWER = """Two prices are **negative**, so the mean is too low. Without them:

| item | price | share |
|:-----|------:|------:|
| tea  |  3.20 |  0.12 |
| cake |  4.75 |  0.31 |

```python
def mean(prices: list[float]) -> float:
    return sum(prices) / len(prices)  # no empty list here
```

1. Drop the rows with `price < 0`.
2. Take the mean, $\\bar{x} = \\frac{1}{n} \\sum_i x_i$, of the rest: about $4 instead of $3.
"""
THOUGHT = "The user wants the mean price. First look at the table, then drop what is negative. " * 4


class Play:
    """A run whose events are fed by hand."""

    def __init__(self, **options: Any) -> None:
        self.view = RunView("anthropic:claude-sonnet-4-5", "What is the mean price?", **options)
        self.reply = Reply("anthropic-messages", "anthropic", "claude-sonnet-4-5")
        self.begin()

    def begin(self) -> None:
        self.reply = Reply("anthropic-messages", "anthropic", "claude-sonnet-4-5")
        self.view.apply(TurnStart())
        self.view.apply(MessageStart(self.reply.snapshot()))

    def think(self, text: str = THOUGHT, *, end: bool = True) -> None:
        index = self._tell(self.reply.thinking_start())
        self._tell(self.reply.thinking_delta(index, text))
        if end:
            self._tell(self.reply.thinking_end(index))

    def say(self, text: str = ANSWER, *, end: bool = True) -> None:
        index = self._tell(self.reply.text_start())
        for start in range(0, len(text), 5):
            self._tell(self.reply.text_delta(index, text[start : start + 5]))
        if end:
            self._tell(self.reply.text_end(index))

    def call(self, call_id: str, name: str, arguments: Any) -> ToolCall:
        index = self._tell(self.reply.toolcall_start(call_id, name))
        event = self.reply.toolcall_end(index, arguments)
        self.view.apply(MessageUpdate(event))
        return event.tool_call

    def _tell(self, event: Any) -> int:
        self.view.apply(MessageUpdate(event))
        return int(event.content_index)

    def end_reply(self, stop_reason: Any = "stop") -> None:
        self.reply.usage = Usage(1200, 340, total_tokens=1540)
        self.view.apply(MessageEnd(self.reply.done(stop_reason).message))

    def start(self, call: ToolCall, *, run: bool = True) -> None:
        self.view.apply(ToolExecutionStart(call.id, call.name, call.arguments))
        if run:
            self.view.running(call.id)

    def update(self, call: ToolCall, details: Any) -> None:
        self.view.apply(ToolExecutionUpdate(call.id, call.name, call.arguments, ToolResult((), details)))

    def finish(self, call: ToolCall, result: ToolResult, milliseconds: int | None = 130) -> None:
        self.view.apply(ToolExecutionEnd(call.id, call.name, result, result.is_error, milliseconds))

    def ask(self, call: ToolCall, reason: str = "", schema: Any = None) -> Question:
        question = Question(call, make_tool(call.name, schema), call.arguments, reason)
        self.view.ask(question)
        return question


def make_tool(name: str, schema: Any = None) -> Tool:
    async def execute(*args: Any) -> ToolResult:
        return ToolResult("")

    return Tool(name, "a tool", schema or {"type": "object", "properties": {}}, execute, approval=True)


def picture() -> ImageContent:
    """A small gradient as PNG."""
    rows = b"".join(b"\0" + b"".join(bytes((40 + x, 120, 220 - y)) for x in range(160)) for y in range(60))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 160, 60, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return ImageContent(base64.b64encode(png).decode(), "image/png")


class Table:
    """Shows itself as a data frame does."""

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{i}</th><td>item {i}</td><td>{i * 1.5}</td></tr>" for i in range(4))
        head = "<thead><tr><th></th><th>item</th><th>price</th></tr></thead>"
        return f'<style>x</style><table border="1">{head}<tbody>{rows}</tbody></table>'


LONG_ARGUMENTS = {
    "table": "sales",
    "where": "price < 0 and region in ('north', 'south') and not (item == 'gift card' or item == 'refund')",
    "code": "for row in table:\n    if row.price < 0:\n        table.drop(row)  # all of them\n" * 8,
    "limit": 100,
    "odd": "safe\u202etxt.exe",
}


def streaming() -> Play:
    play = Play(
        inserted=["{sales}: DataFrame, 120 rows × 4 columns"],
        warnings=["{slaes} was sent as it is. Did you mean {sales}?"],
    )
    play.think()
    play.say(ANSWER[:430], end=False)
    return play


def thinking() -> Play:
    play = Play()
    play.think(end=False)
    return play


def running() -> Play:
    play = Play(max_turns=25)
    play.say("I look at both tables.\n")
    calls = [
        play.call("c1", "column_mean", {"table": "sales", "column": "price"}),
        play.call("c2", "drop_rows", {"table": "sales", "where": "price < 0"}),
        play.call("c3", "fetch", {"url": "https://example.org/prices.csv", "retries": 3}),
        play.call("c4", "count", {}),
    ]
    play.end_reply("tool_use")
    for call in calls:
        play.start(call, run=call.id != "c4")
    play.update(calls[1], Progress(37, 100, "dropping"))
    play.update(calls[2], ConsoleText("connected\nreading prices.csv\n40 % of 2.1 MB\n"))
    play.finish(calls[0], ToolResult("3.04"))
    play.view.steer("use the other table")
    return play


def waiting() -> Play:
    play = Play()
    play.say("The negative prices have to go first.\n")
    first = play.call("c1", "drop_rows", LONG_ARGUMENTS)
    second = play.call("c2", "save", {"path": "out/sales.csv"})
    play.end_reply("tool_use")
    play.start(first, run=False)
    play.start(second, run=False)
    schema = {
        "type": "object",
        "properties": {
            "table": {"type": "string", "enum": ["sales", "stock"]},
            "where": {"type": "string"},
            "code": {"type": "string"},
            "limit": {"type": "integer"},
            "odd": {"type": "string"},
            "dry": {"type": "boolean"},
        },
    }
    play.ask(first, "deletes rows for good", schema)
    play.ask(second)
    return play


def blocked() -> Play:
    play = Play()
    call = play.call("c1", "drop_rows", {"table": "sales", "where": "price < 0"})
    play.end_reply("tool_use")
    play.start(call, run=False)
    question = play.ask(call)
    play.view.answered(
        question, Decision("block", "The user blocked this call. Reason: keep them, they are refunds", at=0)
    )
    play.finish(call, ToolResult.failure("The user blocked this call. Reason: keep them, they are refunds"), None)
    play.begin()
    play.say("Then I leave the table as it is.\n")
    play.end_reply()
    return play


def failed() -> Play:
    play = Play()
    call = play.call("c1", "column_mean", {"table": "sales", "column": "prise"})
    play.end_reply("tool_use")
    play.start(call)
    try:
        {"price": 1}["prise"]
    except KeyError as error:
        play.finish(call, ToolResult.failure(f"KeyError: {error}\nat In [3], line 2: tables[table][column]", error))
    play.begin()
    play.say("There is no column `prise`; I take `price`.\n")
    play.end_reply()
    return play


def done() -> Play:
    play = Play(
        notice="practice is no language model: it matches words to tools. %agent models tells how to connect one."
    )
    play.think()
    play.say("Here is the table, and a picture of it.\n")
    one = play.call("c1", "head", {"table": "sales", "rows": 4})
    two = play.call("c2", "plot", {"table": "sales"})
    three = play.call("c3", "describe", LONG_ARGUMENTS)
    edited = play.call("c4", "drop_rows", {"table": "sales", "limit": 10})
    play.end_reply("tool_use")
    for call in (one, two, three, edited):
        play.start(call, run=call is not edited)
    play.finish(one, ToolResult("   item price\n0 item 0 0.0", value=Table()))
    play.finish(two, ToolResult([TextContent("a figure"), picture()]), 1840)
    play.finish(three, ToolResult("\n".join(f"line {i} of a long description" for i in range(40))))
    question = play.ask(edited)
    play.view.answered(question, Decision("edit", arguments={"table": "sales", "limit": 5}, at=0))
    play.view.running("c4")
    play.finish(edited, ToolResult("5 rows dropped"))
    play.begin()
    play.say()
    play.end_reply()
    return play


def finished() -> Play:
    play = done()
    play.view.finish("done")
    return play


STATES: dict[str, Callable[[], Play]] = {
    f.__name__: f for f in (streaming, thinking, running, waiting, blocked, failed, done, finished)
}


def show(name: str) -> tuple[Card, CardDisplay, list[Any]]:
    """Display the state `name` in the cell that runs; a finished one as transcript. Returns what was clicked, too."""
    return show_play(STATES[name]())


def show_play(play: Play) -> tuple[Card, CardDisplay, list[Any]]:
    """Display a run as far as it has been played."""
    clicks: list[Any] = []

    def answer(question: Question, decision: Decision) -> bool:
        clicks.append((question.tool_call.id, decision.kind, decision.reason, decision.arguments))
        play.view.answered(question, decision)
        return True

    view = play.view
    card = Card(view, stop=lambda: clicks.append("stop"), answer=answer, steer=lambda text: view.steer(text))
    display = CardDisplay(card, view, publish)
    display.show()
    while card.refresh():
        pass
    if view.outcome:
        display.finish()
    return card, display, clicks


def publish(data: Any, *, display_id: str, update: bool) -> None:
    """As the bridge publishes."""
    from IPython import get_ipython

    get_ipython().display_pub.publish(data=data, metadata={}, transient={"display_id": display_id}, update=update)
