"""google-generative-ai: the protocol of the Gemini API, `:streamGenerateContent`.

Source: Gemini API reference, "Generating content", "Function calling" and "Thought signatures".
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote

from ..model import Context, Model, StreamOptions
from ..stream import StreamEvent
from ..transport import WireRequest
from ._adapter import encode, find_key, stream_reply
from ._google_reply import GoogleReply
from ._google_request import describe_tool, encoded_body, request_body

__all__ = ["describe_tool", "request_body", "stream"]


def stream(model: Model, context: Context, options: StreamOptions) -> AsyncIterator[StreamEvent]:
    """See `model.stream`."""
    return stream_reply(model, options, GoogleReply(model), lambda: _request(model, context, options))


def _request(model: Model, context: Context, options: StreamOptions) -> WireRequest:
    key, key_name = find_key(model, options)
    headers = {"accept": "*/*", "content-type": "application/json"}
    if key:
        headers["x-goog-api-key"] = key  # never in the URL, which ends up in logs
    for more in (model.headers, options.headers or {}):
        headers.update({name.lower(): value for name, value in more.items()})
    name = model.id if model.id.startswith(("models/", "tunedModels/")) else f"models/{model.id}"
    url = f"{model.base_url.rstrip('/')}/{quote(name)}:streamGenerateContent?alt=sse"
    return WireRequest(url, headers, _body(model, context, options), key, key_name)


def _body(model: Model, context: Context, options: StreamOptions) -> bytes:
    if options.connection is not None and options.on_payload is None:
        return encoded_body(model, context, options, options.connection.encoded)
    body = request_body(model, context, options)
    if options.on_payload is not None:
        body = options.on_payload(body) or body
    return encode(body)
