"""We, by the public `Agent`, with tools of `@tool` and a subscriber that reads every delta."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from pi_notebook import Agent, Model, tool
from pi_notebook.ai.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pi_notebook.ai.model import StreamOptions

from ..workloads import PROMPT, SYSTEM, Run


def make(base_url: str) -> Callable[[Run], Callable[[], Awaitable[None]]]:
    def prepare(run: Run) -> Callable[[], Awaitable[None]]:
        @tool
        async def add(a: int, b: int) -> int:
            """Add two integers."""
            return run.add(a, b)

        @tool
        async def sleep_ms(ms: int) -> str:
            """Sleep."""
            return await run.sleep_ms(ms)

        @tool
        async def put(text: str) -> str:
            """Store a text."""
            return run.put(text)

        agent = Agent(
            model=Model(run.model, "openai-completions", "openai-compatible", base_url),
            tools=[add, sleep_ms, put],
            system_prompt=SYSTEM,
            messages=[_message(said, run.model) for said in run.history()],
            max_turns=None,
            options=StreamOptions(api_key="none"),
        )

        def read(event: Any, signal: Any) -> None:
            if event.type == "message_update" and event.assistant_message_event.type == "text_delta":
                run.delta(event.assistant_message_event.delta)

        agent.subscribe(read)

        async def go() -> None:
            result = await agent.prompt(PROMPT)
            if result.error_message:
                raise RuntimeError(result.error_message)

        return go

    return prepare


def _message(said: dict[str, Any], model: str) -> Message:
    if said["role"] == "user":
        return UserMessage(said["content"])
    if said["role"] == "tool":
        return ToolResultMessage(said["tool_call_id"], "add", [TextContent(said["content"])])
    content: list[Any] = [TextContent(said["content"])] if said["content"] else []
    for call in said.get("tool_calls", ()):
        function = call["function"]
        content.append(ToolCall(call["id"], function["name"], json.loads(function["arguments"])))
    return AssistantMessage(content, "openai-completions", "openai-compatible", model)
