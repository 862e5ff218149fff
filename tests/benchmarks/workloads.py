"""The workloads by name, what a client must have done in each, and the texts that all clients send.

turns-N     N turns of one call `add(a, b)`, then a text
stream-N    a text in N deltas
bigargs-N   one call `put(text)` with N bytes of arguments in 16-byte deltas, then a text
fan-N       N calls `sleep_ms(50)` in one reply, then a text
history-N   two turns on top of N earlier messages
paced-N     a text in N deltas, one per millisecond (for the notebook)
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

SYSTEM = "You are a helpful agent. Use the tools."
PROMPT = "Do the work, step by step."
FINAL = ("That is", " all", " done.")
SLEEP_MS = 50
KINDS = ("turns", "stream", "bigargs", "fan", "history", "paced")


def function(name: str, description: str, **types: str) -> dict[str, Any]:
    properties = {key: {"type": kind} for key, kind in types.items()}
    parameters = {"type": "object", "properties": properties, "required": list(types)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    function("add", "Add two integers.", a="integer", b="integer"),
    function("sleep_ms", "Sleep.", ms="integer"),
    function("put", "Store a text.", text="string"),
]


@dataclass
class Run:
    """One run of a workload: what the client is to do, and what it was seen doing."""

    workload: str
    deltas: int = 0
    calls: int = 0
    kind: str = field(init=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.kind, _, size = self.workload.partition("-")
        if self.kind not in KINDS or not size.isdigit():
            raise ValueError(f"Unknown workload {self.workload!r}; known: {', '.join(KINDS)}, each with -NUMBER.")
        self.size = int(size)

    @property
    def model(self) -> str:
        """The name that the server takes its script from."""
        return "turns-2" if self.kind == "history" else self.workload

    @property
    def turns(self) -> int:
        """What the time is divided by."""
        return {"turns": self.size, "history": 2}.get(self.kind, 1)

    def complaint(self) -> str | None:
        """What the client did less (or more) of than it had to."""
        calls = {"stream": 0, "paced": 0, "turns": self.size, "history": 2, "fan": self.size}.get(self.kind, 1)
        deltas = self.size if self.kind in ("stream", "paced") else len(FINAL)
        if (self.calls, self.deltas) == (calls, deltas):
            return None
        return f"{self.calls} calls and {self.deltas} deltas instead of {calls} and {deltas}"

    # ---- the tools, and the reader of every delta

    def delta(self, text: str) -> None:
        self.deltas += 1

    def add(self, a: int, b: int) -> int:
        self.calls += 1
        return a + b

    async def sleep_ms(self, ms: int) -> str:
        self.calls += 1
        await asyncio.sleep(ms / 1000)
        return "slept"

    def put(self, text: str) -> str:
        self.calls += 1
        return "stored"

    async def tool(self, name: str, arguments: dict[str, Any]) -> str:
        """For clients that have no tools of their own."""
        value = getattr(self, name)(**arguments)
        return str(await value if asyncio.iscoroutine(value) else value)

    def history(self) -> list[dict[str, Any]]:
        """Earlier messages in the form of `/chat/completions`: question, call, result, answer, and again."""
        messages: list[dict[str, Any]] = []
        for number in range(0 if self.kind != "history" else -(-self.size // 4)):
            call = {
                "id": f"past_{number}",
                "type": "function",
                "function": {"name": "add", "arguments": json.dumps({"a": number, "b": 7})},
            }
            messages += [
                {"role": "user", "content": f"What is {number} plus 7, and which row of the summary is it for?"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call["id"], "content": str(number + 7)},
                {"role": "assistant", "content": f"{number + 7}. " + "It belongs to a row of the summary. " * 4},
            ]
        return messages[: self.size]
