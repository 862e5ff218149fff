"""A peer: the bare loop on the openai SDK, without an agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import openai

from ..workloads import PROMPT, SYSTEM, TOOLS, Run
from .bare_httpx import assistant


def make(base_url: str) -> Callable[[Run], Callable[[], Awaitable[None]]]:
    client = openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=600)

    def prepare(run: Run) -> Callable[[], Awaitable[None]]:
        messages: list[Any] = [
            {"role": "system", "content": SYSTEM},
            *run.history(),
            {"role": "user", "content": PROMPT},
        ]

        async def one(call: dict[str, Any]) -> dict[str, Any]:
            function = call["function"]
            content = await run.tool(function["name"], json.loads(function["arguments"]))
            return {"role": "tool", "tool_call_id": call["id"], "content": content}

        async def go() -> None:
            tools: Any = TOOLS
            while True:
                texts: list[str] = []
                calls: dict[int, tuple[str, str, list[str]]] = {}
                stream = await client.chat.completions.create(
                    model=run.model, stream=True, messages=messages, tools=tools
                )
                async for chunk in stream:
                    for choice in chunk.choices:
                        if choice.delta.content:
                            texts.append(choice.delta.content)
                            run.delta(choice.delta.content)
                        for call in choice.delta.tool_calls or ():
                            function: Any = call.function
                            if call.index not in calls:
                                calls[call.index] = (call.id or "", function.name, [])
                            calls[call.index][2].append(function.arguments or "")
                messages.append(message := assistant(texts, calls))
                if not calls:
                    return
                messages.extend(await asyncio.gather(*map(one, message["tool_calls"])))

        return go

    return prepare
