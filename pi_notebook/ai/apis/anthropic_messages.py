"""anthropic-messages: the protocol of Anthropic's `/v1/messages`.

Source: Anthropic API reference, "Messages" and "Streaming"; quirks of servers are listed in `_anthropic_request.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from ..model import Context, Model, StreamOptions
from ..stream import StreamEvent
from ..transport import WireRequest
from ._adapter import encode, find_key, stream_reply
from ._anthropic_reply import AnthropicReply
from ._anthropic_request import (
    BETA_FINE_GRAINED,
    BETA_INTERLEAVED,
    describe_tool,
    encoded_body,
    request_body,
)

__all__ = ["describe_tool", "request_body", "stream"]


def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
    """See `model.stream`."""
    return stream_reply(model, options, AnthropicReply(model), lambda: _request(model, context, options))


def _request(model: Model, context: Context, options: StreamOptions) -> WireRequest:
    key, key_name = find_key(model, options)
    headers = {
        "accept": "application/json",
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
    }
    if key:
        headers["x-api-key"] = key
    if beta := ",".join(_betas(model, context)):
        headers["anthropic-beta"] = beta
    wants_affinity = model.compat.get("send_session_affinity_headers") and options.cache_retention != "none"
    if options.session_id and wants_affinity:
        headers["x-session-affinity"] = options.session_id
    for more in (model.headers, options.headers or {}):
        headers.update({name.lower(): value for name, value in more.items()})
    url = f"{model.base_url.rstrip('/').removesuffix('/v1')}/v1/messages"
    return WireRequest(url, headers, _body(model, context, options), key, key_name)


def _betas(model: Model, context: Context) -> list[str]:
    betas = []
    if context.tools and not model.compat.get("supports_eager_tool_input_streaming", True):
        betas.append(BETA_FINE_GRAINED)
    if not model.compat.get("force_adaptive_thinking"):  # which has it built in
        betas.append(BETA_INTERLEAVED)
    return betas


def _body(model: Model, context: Context, options: StreamOptions) -> bytes:
    if options.connection is not None and options.on_payload is None:
        return encoded_body(model, context, options, options.connection.encoded)
    body = request_body(model, context, options)
    if options.on_payload is not None:
        body = options.on_payload(body) or body
    return encode(body)
