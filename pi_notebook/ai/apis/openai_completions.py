"""openai-completions: the protocol of `/chat/completions`, which most servers speak, each in its own way.

Source: OpenAI API reference, "Chat completions" and "Streaming"; the ways of servers that bend it are in
`_openai_completions_stream.py` (replies) and `_openai_completions_compat.py` (requests).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ..handover import EncodedHistory
from ..model import Context, Model, StreamOptions, ToolSpec
from ..stream import StreamEvent
from ..transport import WireRequest
from ._adapter import USER_AGENT, encode, find_key, stream_reply
from ._openai_completions_compat import compat_of
from ._openai_completions_messages import convert, describe, encode_messages, system_message
from ._openai_completions_request import parameters, request_body, uses_markers
from ._openai_completions_stream import CompletionsDecoder

__all__ = ["describe_tool", "request_body", "stream"]


def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
    """See `model.stream`."""
    decoder = CompletionsDecoder(model, [tool.name for tool in context.tools])
    return stream_reply(model, options, decoder, lambda: _request(model, context, options))


def describe_tool(model: Model | None, tool: ToolSpec) -> dict[str, Any]:
    """The element of `tools` that a request holds for `tool`; without a model, as OpenAI itself gets it."""
    return describe(tool, compat_of(model or Model("", "openai-completions", "openai")))


def _request(model: Model, context: Context, options: StreamOptions) -> WireRequest:
    key, key_name = find_key(model, options)
    headers = {"accept": "application/json", "content-type": "application/json", "user-agent": USER_AGENT}
    if key:
        headers["authorization"] = f"Bearer {key}"
    headers.update(_session_headers(model, options))
    for more in (model.headers, options.headers or {}):
        headers.update({name.lower(): value for name, value in more.items()})
    url = f"{model.base_url.rstrip('/')}/chat/completions"
    return WireRequest(url, headers, _body(model, context, options), key, key_name)


def _session_headers(model: Model, options: StreamOptions) -> dict[str, str]:
    """Headers that let a provider send a conversation to the machine that has it cached."""
    compat = compat_of(model)
    session = options.session_id
    if not session or options.cache_retention == "none" or not compat["send_session_affinity_headers"]:
        return {}
    if compat["session_affinity_format"] == "openrouter":
        return {"x-session-id": session}
    headers = {"x-client-request-id": session, "x-session-affinity": session}
    if compat["session_affinity_format"] == "openai":
        headers["session_id"] = session
    return headers


def _body(model: Model, context: Context, options: StreamOptions) -> bytes:
    """`request_body` as JSON; where nothing looks back at old messages, their JSON is kept from turn to turn."""
    connection = options.connection
    compat = compat_of(model)
    looks_back = (
        uses_markers(model, options)
        or compat["requires_assistant_after_tool_result"]
        or compat["deferred_tools_mode"] == "kimi"
    )
    if connection is None or options.on_payload is not None or looks_back:
        body = request_body(model, context, options)
        if options.on_payload is not None:
            body = options.on_payload(body) or body
        return encode(body)
    history = connection.encoded.get("openai-completions")
    if history is None:
        history = connection.encoded["openai-completions"] = EncodedHistory()
    settled, last = history.encode(
        context.messages,
        model,
        lambda messages, _: convert(messages, model, context, as_json=True),
        encode_messages,
    )
    messages = [*map(encode, system_message(model, context)), *settled]
    if last:
        messages.append(encode_messages(last))
    return b"".join((encode(parameters(model, context, options))[:-1], b',"messages":[', b",".join(messages), b"]}"))
