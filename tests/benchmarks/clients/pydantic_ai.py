"""A peer: pydantic-ai's `Agent.run_stream_events`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from ..workloads import PROMPT, SYSTEM, Run


def _history(run: Run) -> list[ModelMessage]:
    messages: list[ModelMessage] = []
    for said in run.history():
        if said["role"] == "user":
            messages.append(ModelRequest(parts=[UserPromptPart(said["content"])]))
        elif said["role"] == "tool":
            messages.append(ModelRequest(parts=[ToolReturnPart("add", said["content"], said["tool_call_id"])]))
        elif "tool_calls" in said:
            function = said["tool_calls"][0]["function"]
            part = ToolCallPart(function["name"], function["arguments"], said["tool_calls"][0]["id"])
            messages.append(ModelResponse(parts=[part]))
        else:
            messages.append(ModelResponse(parts=[TextPart(said["content"])]))
    return messages


def make(base_url: str) -> Callable[[Run], Callable[[], Awaitable[None]]]:
    client = AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=600)
    provider = OpenAIProvider(openai_client=client)

    def prepare(run: Run) -> Callable[[], Awaitable[None]]:
        history = _history(run)
        agent = Agent(OpenAIChatModel(run.model, provider=provider), system_prompt=SYSTEM)

        @agent.tool_plain
        async def add(a: int, b: int) -> int:
            """Add two integers."""
            return run.add(a, b)

        @agent.tool_plain
        async def sleep_ms(ms: int) -> str:
            """Sleep."""
            return await run.sleep_ms(ms)

        @agent.tool_plain
        async def put(text: str) -> str:
            """Store a text."""
            return run.put(text)

        async def go() -> None:
            limits = UsageLimits(request_limit=None)
            async with agent.run_stream_events(PROMPT, message_history=history or None, usage_limits=limits) as events:
                async for event in events:
                    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                        run.delta(event.delta.content_delta)
                    elif isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) and event.part.content:
                        run.delta(event.part.content)

        return go

    return prepare
