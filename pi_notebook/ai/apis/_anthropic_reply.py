"""The reply of the Anthropic Messages API: its server-sent events become ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._failures import failure
from .._sse import SseEvent
from ..json_arguments import call_arguments
from ..messages import StopReason
from ..model import Model
from ..stream import BlockEvent, Reply, StreamEvent
from ._adapter import (
    as_text,
    compact_json,
    decode_json,
    new_call_id,
    no_end,
    no_reply,
    parse_json,
    priced,
    server_error,
)
from ._shapes import count_in, object_in, objects_in, text_in

# Words that stand for hidden reasoning, also in saved transcripts; the API itself gets the opaque data back.
REDACTED = "[Reasoning redacted]"

_STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "tool_use": "tool_use",
    "pause_turn": "stop",
    "stop_sequence": "stop",
    "refusal": "error",
    "sensitive": "error",
}
_COUNTS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}


class AnthropicReply:
    """Decodes one reply (a `ReplyDecoder`)."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.reply = Reply(model.api, model.provider, model.id)
        self._open: dict[Any, int] = {}  # the server's index of a block -> ours, while it is open
        self._inputs: dict[int, Any] = {}  # arguments that came with the start of a call
        self._counts = dict.fromkeys(_COUNTS, 0)
        self._cache_write_1h: int | None = None
        self._reasoning: int | None = None
        self._started = False
        self.is_over = False
        self._stop_reason: StopReason | None = None
        self._refusal = ""
        self._odd: Any = None  # something that belongs to no reply, for the text of a failure
        self._handlers = {
            "content_block_delta": self._delta,
            "content_block_start": self._block_start,
            "content_block_stop": self._block_stop,
            "message_start": self._message_start,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
        }

    @property
    def is_whole(self) -> bool:
        """See `ReplyDecoder.is_whole`."""
        return self.is_over

    def feed(self, batch: list[SseEvent]) -> Iterator[StreamEvent]:
        for name, data in batch:
            if self.is_over:
                return
            if name in self._handlers:
                event = self._decode(data)
                # The type inside is what counts, as in the official clients.
                handler = self._handlers.get(text_in(event, "type") or name)
                if handler is not None:
                    yield from handler(event)
            elif name == "error":
                raise server_error(self.model, _json_or_text(data))
            elif not name:
                yield from self._nameless(data)

    def finish(self) -> Iterator[StreamEvent]:
        if self._started and not self.is_over:
            raise no_end(self.model, "the reply ended before it was complete", self._odd)
        if not self._started and self._stop_reason is None:
            raise no_reply(self.model, self._odd)
        if self._stop_reason is None:
            raise no_end(self.model, "the reply ended without a stop reason", self._odd)
        if self._stop_reason == "error":
            raise failure(self.model, self._refusal)
        for index in list(self._open.values()):  # a block whose end was not sent counts as it is, without one
            yield from (event for event in self._close(index) if event.content_index != index)
        yield self.reply.done(self._stop_reason)

    def stopped(self) -> Iterator[StreamEvent]:
        yield from ()

    def _decode(self, data: bytes) -> dict[str, Any]:
        try:
            event = parse_json(data.decode("utf-8", "replace"))
        except ValueError:
            mended = call_arguments(data.decode("utf-8", "replace"))  # bad escapes
            event = mended[0] if len(mended) == 1 else None
            if not isinstance(event, dict):
                decode_json(data, self.model)
        if not isinstance(event, dict):
            raise failure(self.model, f"the stream holds {compact_json(event)[:200]} where an event is expected")
        return event

    def _nameless(self, data: bytes) -> Iterator[StreamEvent]:
        """A reply that is one JSON document: an error, or the whole message. Other nameless events are none of ours."""
        said = _json_or_text(data)
        if isinstance(said, dict) and (said.get("type") == "error" or "error" in said):
            raise server_error(self.model, said)
        if not isinstance(said, dict) or said.get("type") != "message":
            self._odd = None if said == "[DONE]" else said  # the end of other protocols, which some servers add
        else:
            yield from self._message_start({"message": said})
            for index, block in enumerate(objects_in(said, "content")):
                yield from self._block_start({"index": index, "content_block": block})
                yield from self._block_stop({"index": index})
            yield from self._message_delta({"delta": said, "usage": said.get("usage")})
            self.is_over = True

    def _message_start(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        self._started = True
        message = object_in(event, "message")
        usage = object_in(message, "usage")
        self.reply.response_id = text_in(message, "id") or None
        self._counts = {ours: count_in(usage, theirs) or 0 for ours, theirs in _COUNTS.items()}
        self._cache_write_1h = count_in(object_in(usage, "cache_creation"), "ephemeral_1h_input_tokens") or 0
        self._count()
        yield from ()

    def _count(self) -> None:
        self.reply.usage = priced(
            self.model, **self._counts, cache_write_1h=self._cache_write_1h, reasoning=self._reasoning
        )

    def _block_start(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        reply = self.reply
        block = object_in(event, "content_block")
        kind = block.get("type")
        if kind not in ("text", "thinking", "redacted_thinking", "tool_use"):
            return
        index = _index_of(event)
        if index in self._open:  # the server forgot to end the block before
            yield from self._close(self._open.pop(index))
        self._open[index] = place = len(reply.blocks)
        if kind == "tool_use":
            call_id = as_text(block.get("id")) or f"toolu_{new_call_id()}"
            yield reply.toolcall_start(call_id, as_text(block.get("name")))
            self._inputs[place] = block.get("input")
            return
        yield reply.text_start() if kind == "text" else reply.thinking_start()
        opened = reply.blocks[place]
        if kind == "redacted_thinking":
            opened.redacted = True
            opened.signature = as_text(block.get("data"))
            opened.add(REDACTED)
        elif kind == "thinking":
            opened.signature = as_text(block.get("signature"))
            opened.add(as_text(block.get("thinking")))
        else:
            opened.add(as_text(block.get("text")))

    def _delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        place = self._open.get(_index_of(event))
        if place is None:
            return
        delta = object_in(event, "delta")
        kind = delta.get("type")
        block = self.reply.blocks[place]
        if kind == "text_delta" and block.kind == "text":
            yield self.reply.text_delta(place, as_text(delta.get("text")))
        elif kind == "input_json_delta" and block.kind == "tool_call":
            yield self.reply.toolcall_delta(place, as_text(delta.get("partial_json")))
        elif kind == "thinking_delta" and block.kind == "thinking":
            yield self.reply.thinking_delta(place, as_text(delta.get("thinking")))
        elif kind == "signature_delta" and block.kind == "thinking":
            block.signature = (block.signature or "") + as_text(delta.get("signature"))

    def _block_stop(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        place = self._open.pop(_index_of(event), None)
        if place is not None:
            yield from self._close(place)

    def _close(self, place: int) -> Iterator[BlockEvent]:
        reply = self.reply
        block = reply.blocks[place]
        if block.kind == "text":
            yield reply.text_end(place)
        elif block.kind == "thinking":
            yield reply.thinking_end(place)
        else:
            yield from self._close_call(place)

    def _close_call(self, place: int) -> Iterator[BlockEvent]:
        reply = self.reply
        block = reply.blocks[place]
        given = self._inputs.pop(place, None)
        if given and not block.text.strip():
            yield reply.toolcall_delta(place, as_text(given))
        name = block.name
        first, *more = call_arguments(block.text)
        yield reply.toolcall_end(place, first)
        for arguments in more:
            yield reply.toolcall_start(f"toolu_{new_call_id()}", name)
            place = len(reply.blocks) - 1
            yield reply.toolcall_delta(place, compact_json(arguments))
            yield reply.toolcall_end(place, arguments)

    def _message_delta(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        delta = object_in(event, "delta")
        if reason := as_text(delta.get("stop_reason")):
            self.reply.raw_stop_reason = reason
            self._stop_reason = _STOP_REASONS.get(reason)
            if self._stop_reason is None:
                raise failure(self.model, f"the reply stopped for a reason that is not known here: {reason}")
            self._refusal = _refusal(reason, object_in(delta, "stop_details"))
        usage = object_in(event, "usage")
        for ours, theirs in _COUNTS.items():
            if (count := count_in(usage, theirs)) is not None:
                self._counts[ours] = count
        reasoning = count_in(object_in(usage, "output_tokens_details"), "thinking_tokens")
        self._reasoning = self._reasoning if reasoning is None else reasoning
        self._count()
        yield from ()

    def _message_stop(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        self.is_over = True
        yield from ()


def _index_of(event: dict[str, Any]) -> int | str | None:
    """The server's name of a block, as far as it can be one."""
    index = event.get("index")
    return index if isinstance(index, int | str) else None


def _refusal(reason: str, said: dict[str, Any]) -> str:
    """Why the model or the provider refused, in the provider's words where there are any."""
    text = "the model refused to answer" if reason == "refusal" else f"the provider stopped the reply ({reason})"
    if said.get("category"):
        text = f"{text} ({said['category']})"
    return f"{text}: {said['explanation']}" if said.get("explanation") else text


def _json_or_text(data: bytes) -> Any:
    text = data.decode("utf-8", "replace")
    try:
        return parse_json(text)
    except ValueError:
        return text
