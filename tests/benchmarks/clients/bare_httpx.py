"""The yardstick: a loop on `httpx.AsyncClient` and `json`, with no framework at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx

from ..workloads import PROMPT, SYSTEM, TOOLS, Run


async def _events(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    rest = b""
    async for data in response.aiter_bytes():
        *lines, rest = (rest + data).split(b"\n\n")
        for line in lines:
            if line != b"data: [DONE]":
                yield json.loads(line[6:])


def make(base_url: str) -> Callable[[Run], Callable[[], Awaitable[None]]]:
    client = httpx.AsyncClient(base_url=base_url, timeout=600)

    def prepare(run: Run) -> Callable[[], Awaitable[None]]:
        messages = [{"role": "system", "content": SYSTEM}, *run.history(), {"role": "user", "content": PROMPT}]

        async def one(call: dict[str, Any]) -> dict[str, Any]:
            function = call["function"]
            content = await run.tool(function["name"], json.loads(function["arguments"]))
            return {"role": "tool", "tool_call_id": call["id"], "content": content}

        async def go() -> None:
            while True:
                body = json.dumps({"model": run.model, "stream": True, "messages": messages, "tools": TOOLS}).encode()
                headers = {"content-type": "application/json"}
                texts: list[str] = []
                calls: dict[int, tuple[str, str, list[str]]] = {}
                async with client.stream("POST", "chat/completions", content=body, headers=headers) as response:
                    response.raise_for_status()
                    async for event in _events(response):
                        for choice in event["choices"]:
                            read_delta(run, choice["delta"], texts, calls)
                messages.append(message := assistant(texts, calls))
                if not calls:
                    return
                messages.extend(await asyncio.gather(*map(one, message["tool_calls"])))

        return go

    return prepare


def read_delta(run: Run, delta: dict[str, Any], texts: list[str], calls: dict[int, tuple[str, str, list[str]]]) -> None:
    if text := delta.get("content"):
        texts.append(text)
        run.delta(text)
    for call in delta.get("tool_calls", ()):
        function = call["function"]
        index = call["index"]
        if index not in calls:
            calls[index] = (call["id"], function["name"], [])
        calls[index][2].append(function["arguments"])


def assistant(texts: list[str], calls: dict[int, tuple[str, str, list[str]]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) or None}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": "".join(pieces)}}
            for call_id, name, pieces in calls.values()
        ]
    return message
