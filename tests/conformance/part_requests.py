"""Part `requests`: the body, address and headers of a request for a recorded context."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx

from pi_notebook.ai import model as ai
from pi_notebook.ai.connection import Connection
from pi_notebook.ai.stream import Error

from . import wire
from .case import PUBLIC_DATA, Case, Outcome

# Set by an HTTP client or an SDK, not by the request.
TRANSPORT_HEADERS = {
    "accept",
    "accept-encoding",
    "anthropic-dangerous-direct-browser-access",
    "connection",
    "content-length",
    "host",
    "user-agent",
}


def cases(data: Path) -> Iterable[Case]:
    return wire.cases(data / "wire" / "requests")


def run(case: Case) -> Outcome:
    data = case.data
    sent, failure = asyncio.run(send(data))
    if "no_request" in data:
        found = None if sent is None and failure else f"sent although the reference refuses: {sent}"
        return wire.outcome(found, "REQUEST_RULES", data)
    if sent is None:
        return wire.outcome(f"no request was sent: {failure}", "REQUEST_RULES", data)
    recorded = data["request"]
    if data["call"] == "stream":
        without_thinking_off(sent["body"], recorded["body"])
    expected = {key: recorded[key] for key in ("method", "path", "body")}
    expected["headers"] = without_transport(recorded["headers"])
    found = wire.wire_difference(expected, sent, wire.reference_texts(PUBLIC_DATA))
    return wire.outcome(found, "REQUEST_RULES", data)


def without_thinking_off(body: dict[str, Any], recorded: dict[str, Any]) -> None:
    """Take out that thinking is off: the raw entry of the reference says so only where it is asked to."""
    if body.get("thinking") == {"type": "disabled"} and "thinking" not in recorded:
        del body["thinking"]
    config = body.get("generationConfig", {})
    is_off = not config.get("thinkingConfig", {}).get("includeThoughts")
    if is_off and "thinkingConfig" not in recorded.get("generationConfig", {}):
        config.pop("thinkingConfig", None)


def without_transport(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in TRANSPORT_HEADERS}


async def send(data: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """What a recorder gets, or None, and the text of the failure if nothing was sent."""
    sent: list[dict[str, Any]] = []

    def record(request: httpx.Request) -> httpx.Response:
        headers = {name.lower(): value.replace(wire.KEY, "<KEY>") for name, value in request.headers.items()}
        sent.append(
            {
                "method": request.method,
                "path": request.url.raw_path.decode(),
                "headers": without_transport(headers),
                "body": json.loads(request.content),
            }
        )
        return httpx.Response(400, json={"error": {"message": "recorded"}})

    options = wire.options_from(data["options"])
    options.connection = Connection(httpx.MockTransport(record))
    model = wire.model_from(data["model"], data["call"], data["options"], "recorder.test")
    failure = ""
    async for event in ai.stream(model, wire.context_from(data["context"]), options):
        if isinstance(event, Error):
            failure = event.message.error_message or ""
    return (sent[0] if sent else None), failure
