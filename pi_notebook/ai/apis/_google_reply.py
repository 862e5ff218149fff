"""The reply of the Gemini API: chunks of `GenerateContentResponse` become events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .._failures import failure
from .._sse import SseEvent
from ..json_arguments import call_arguments
from ..messages import StopReason
from ..model import Model
from ..stream import Reply, StreamEvent
from ._adapter import as_text, compact_json, decode_json, new_call_id, no_end, no_reply, priced, server_error
from ._shapes import count_in, object_in, objects_in, text_in

_STOP_REASONS: dict[str, StopReason] = {"STOP": "stop", "MAX_TOKENS": "length"}
_REFUSALS = {
    "SAFETY": "the reply was stopped by a safety filter",
    "RECITATION": "the reply was stopped because it quoted protected text",
    "LANGUAGE": "the reply was stopped because its language is not supported",
    "OTHER": "the provider stopped the reply without saying why",
    "FINISH_REASON_UNSPECIFIED": "the provider stopped the reply without saying why",
    "BLOCKLIST": "the reply was stopped because it held a forbidden term",
    "PROHIBITED_CONTENT": "the reply was stopped because it might hold prohibited content",
    "SPII": "the reply was stopped because it might hold personal data",
    "MALFORMED_FUNCTION_CALL": "the model wrote a tool call that cannot be read; ask again",
    "UNEXPECTED_TOOL_CALL": "the model called a tool though none was offered",
    "IMAGE_SAFETY": "an image was stopped by a safety filter",
    "IMAGE_PROHIBITED_CONTENT": "an image was stopped because it might hold prohibited content",
    "IMAGE_RECITATION": "an image was stopped because it was too close to a protected one",
    "IMAGE_OTHER": "an image was stopped without a reason",
    "NO_IMAGE": "no image was made",
}

_PARTS_OF_CHUNKS = {"candidates", "promptFeedback", "usageMetadata", "responseId", "modelVersion"}


class GoogleReply:
    """Decodes one reply (a `ReplyDecoder`)."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.reply = Reply(model.api, model.provider, model.id)
        self._open: int | None = None  # the block of text or thinking that is being written
        self._call_ids: set[str] = set()
        self._finish_reason = ""
        self._finish_message = ""
        self._block_reason = ""
        self._saw_chunk = False
        self._odd: Any = None  # something that is no chunk, for the text of a failure

    @property
    def is_whole(self) -> bool:
        """See `ReplyDecoder.is_whole`."""
        return bool(self._finish_reason or self._block_reason)

    @property
    def is_over(self) -> bool:
        """Never: this protocol has no mark of the end, and a chunk may follow the one with the finish reason."""
        return False

    def feed(self, batch: list[SseEvent]) -> Iterator[StreamEvent]:
        for name, data in batch:
            said = decode_json(data, self.model, name)
            if name == "error":
                raise server_error(self.model, said)
            for chunk in said if isinstance(said, list) else [said]:  # without `alt=sse` it is a list
                yield from self._chunk(chunk if isinstance(chunk, dict) else {"error": chunk})

    def finish(self) -> Iterator[StreamEvent]:
        yield from self._end_block()
        reason = self._finish_reason
        if not reason:
            if self._block_reason:
                raise failure(self.model, self._block_reason)
            if not self._saw_chunk:
                raise no_reply(self.model, self._odd)
            raise no_end(self.model, "the reply ended without a finish reason", self._odd)
        stop_reason = _STOP_REASONS.get(reason)
        if stop_reason is None:
            said = f"{_REFUSALS[reason]} ({reason})"
            raise failure(self.model, f"{said}: {self._finish_message}" if self._finish_message else said)
        # Only a reply that ended by itself may run its calls: one that was cut might have gone on to correct them.
        yield self.reply.done("tool_use" if stop_reason == "stop" and self._call_ids else stop_reason)

    def stopped(self) -> Iterator[StreamEvent]:
        yield from ()

    def _chunk(self, chunk: dict[str, Any]) -> Iterator[StreamEvent]:
        if chunk.get("error"):
            yield from self._end_block()
            raise server_error(self.model, chunk)
        if _PARTS_OF_CHUNKS.isdisjoint(chunk):
            self._odd = chunk
            return
        self._saw_chunk = True
        reply = self.reply
        reply.response_id = reply.response_id or text_in(chunk, "responseId") or None
        candidate = next(iter(objects_in(chunk, "candidates")), {})
        for part in objects_in(object_in(candidate, "content"), "parts"):
            if part.get("text") is not None:
                yield from self._text(part)
            if isinstance(part.get("functionCall"), dict):
                yield from self._end_block()
                yield from self._call(part)
        if reason := as_text(candidate.get("finishReason")):
            reply.raw_stop_reason = self._finish_reason = reason
            self._finish_message = text_in(candidate, "finishMessage")
            if reason not in _STOP_REASONS and reason not in _REFUSALS:
                raise failure(self.model, f"the reply stopped for a reason that is not known here: {reason}")
        if feedback := object_in(chunk, "promptFeedback"):
            self._block_reason = _why_blocked(feedback) or self._block_reason
        if isinstance(usage := chunk.get("usageMetadata"), dict):
            self._count(usage)

    def _text(self, part: dict[str, Any]) -> Iterator[StreamEvent]:
        reply = self.reply
        text, kind = as_text(part["text"]), "thinking" if part.get("thought") is True else "text"
        if self._open is None or reply.blocks[self._open].kind != kind:
            yield from self._end_block()
            self._open = len(reply.blocks)
            yield reply.thinking_start() if kind == "thinking" else reply.text_start()
        # A signature may come with any piece of a block, and later pieces then lack it.
        if signature := as_text(part.get("thoughtSignature")):
            reply.blocks[self._open].signature = signature
        yield (reply.thinking_delta if kind == "thinking" else reply.text_delta)(self._open, text)

    def _end_block(self) -> Iterator[StreamEvent]:
        if self._open is not None:
            place, self._open = self._open, None
            is_text = self.reply.blocks[place].kind == "text"
            yield (self.reply.text_end if is_text else self.reply.thinking_end)(place)

    def _call(self, part: dict[str, Any]) -> Iterator[StreamEvent]:
        reply = self.reply
        call = part["functionCall"]
        name = as_text(call.get("name"))
        given = call.get("args")
        for number, arguments in enumerate(call_arguments({} if given is None else given)):
            call_id = as_text(call.get("id"))
            if number or not call_id or call_id in self._call_ids:
                call_id = f"{re.sub(r'[^a-zA-Z0-9_-]', '_', name)[:48] or 'call'}_{new_call_id()}"
            self._call_ids.add(call_id)
            place = len(reply.blocks)
            yield reply.toolcall_start(call_id, name)
            reply.blocks[place].signature = as_text(part.get("thoughtSignature")) or None
            yield reply.toolcall_delta(place, compact_json(arguments))
            yield reply.toolcall_end(place, arguments)

    def _count(self, usage: dict[str, Any]) -> None:
        cached = count_in(usage, "cachedContentTokenCount") or 0
        thoughts = count_in(usage, "thoughtsTokenCount") or 0
        self.reply.usage = priced(
            self.model,
            input=max(0, (count_in(usage, "promptTokenCount") or 0) - cached),
            output=(count_in(usage, "candidatesTokenCount") or 0) + thoughts,
            cache_read=cached,
            reasoning=thoughts,
            total_tokens=count_in(usage, "totalTokenCount") or 0,
        )


def _why_blocked(feedback: dict[str, Any]) -> str:
    """Why the provider did not even ask the model, with what it found in the prompt."""
    reason = feedback.get("blockReason")
    if not reason:
        return ""
    found = [
        f"{rating.get('category')} {rating.get('probability')}".removeprefix("HARM_CATEGORY_")
        for rating in objects_in(feedback, "safetyRatings")
        if rating.get("blocked") or rating.get("probability") in ("MEDIUM", "HIGH")
    ]
    said = f"the prompt was blocked ({', '.join([str(reason), *found])})"
    message = feedback.get("blockReasonMessage")
    return f"{said}: {message}" if message else said
