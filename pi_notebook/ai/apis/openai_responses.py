"""openai-responses: the protocol of `/responses`, for OpenAI, Azure OpenAI and xAI.

Source: OpenAI API reference, "Responses" and "Streaming events"; the halves are `_openai_responses_request.py` and
`_openai_responses_stream.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from ..handover import EncodedHistory
from ..messages import Message
from ..model import Context, Model, StreamOptions, ToolSpec
from ..stream import StreamEvent
from ..transport import WireRequest
from ._adapter import USER_AGENT, encode, encode_items, find_key, stream_reply
from ._openai_responses_request import convert, deferred_tools, describe, parameters, request_body, system_items
from ._openai_responses_stream import ResponsesDecoder

__all__ = ["describe_tool", "request_body", "stream"]

_AS_OPENAI = Model("", "openai-responses", "openai", compat={"supports_strict_mode": True})


def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
    """See `model.stream`."""
    return stream_reply(model, options, ResponsesDecoder(model), lambda: _request(model, context, options))


def describe_tool(model: Model | None, tool: ToolSpec) -> dict[str, Any]:
    """The element of `tools` that a request holds for `tool`; without a model, as OpenAI itself gets it."""
    return describe(tool, model or _AS_OPENAI)


def _request(model: Model, context: Context, options: StreamOptions) -> WireRequest:
    key, key_name = find_key(model, options)
    headers = {"accept": "application/json", "content-type": "application/json", "user-agent": USER_AGENT}
    if key:
        key_header = model.compat.get("key_header", "authorization")
        headers[key_header] = f"Bearer {key}" if key_header == "authorization" else str(key)
    for more in (model.headers, _session_headers(model, options), options.headers or {}):
        headers.update({name.lower(): value for name, value in more.items()})
    url = f"{model.base_url.rstrip('/')}/responses"
    return WireRequest(url, headers, _body(model, context, options), key, key_name)


def _session_headers(model: Model, options: StreamOptions) -> dict[str, str]:
    """Headers that let a provider send a conversation to the machine that has it cached."""
    session = options.session_id
    if not session or options.cache_retention == "none":
        return {}
    is_openrouter = model.provider == "openrouter" or "openrouter.ai" in model.base_url
    form = model.compat.get("session_affinity_format") or ("openrouter" if is_openrouter else "openai")
    if form == "openrouter":
        return {"x-session-id": session}
    headers = {"x-client-request-id": session}
    if form == "openai":
        headers["session_id"] = session
    return headers


class _History:
    """The encoded transcript, and how many messages the settled part of it holds."""

    def __init__(self) -> None:
        self._encoded = EncodedHistory()
        self._position = 0

    def input(self, model: Model, context: Context) -> list[bytes]:
        """The input as pieces of JSON, which commas join."""
        messages = context.messages

        def items(segments: Sequence[Message], start: int) -> list[Any]:
            converted, position = convert(segments, model, context, self._position if start else 0)
            if start + len(segments) < len(messages):
                self._position = position
            return converted

        settled, last = self._encoded.encode(messages, model, items, encode_items)
        return [*settled, encode_items(last)] if last else settled


def _body(model: Model, context: Context, options: StreamOptions) -> bytes:
    """`request_body` as JSON; where nothing looks back at old messages, their JSON is kept from turn to turn."""
    connection = options.connection
    if connection is None or options.on_payload is not None or deferred_tools(model, context):
        body = request_body(model, context, options)
        if options.on_payload is not None:
            body = options.on_payload(body) or body
        return encode(body)
    history = connection.encoded.get("openai-responses")
    if history is None:
        history = connection.encoded["openai-responses"] = _History()
    items = b",".join([*map(encode, system_items(model, context)), *history.input(model, context)])
    return b"".join((b'{"input":[', items, b"],", encode(parameters(model, context, options))[1:]))
