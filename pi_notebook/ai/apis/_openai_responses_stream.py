"""The reply half of openai-responses: events of `/responses` as ours.

A reply is a row of output items, each with a place (`output_index`), which begin, grow and end; items may overlap.
The last event holds usage, status and the items once more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from .._failures import failure
from .._sse import SseEvent
from ..json_arguments import call_arguments
from ..json_arguments import without_lone_surrogates as clean
from ..messages import Cost, StopReason, ThinkingContent, Usage
from ..model import Model
from ..stream import Reply, StreamEvent
from ._adapter import as_text, compact_json, decode_json, new_call_id, no_end, no_reply, priced, server_error
from ._shapes import count_in, object_in, objects_in, text_in

Json = dict[str, Any]

_KINDS = {"message": "text", "reasoning": "thinking", "function_call": "tool_call"}
_ENDINGS = ("response.completed", "response.incomplete", "response.done")


class ResponsesDecoder:
    """See `ReplyDecoder`."""

    def __init__(self, model: Model) -> None:
        self.reply = Reply(model.api, model.provider, model.id)
        self._model = model
        self._open: dict[Any, int] = {}  # output_index -> block, while the item is not done
        self._reasoning: dict[Any, int] = {}  # item id -> block
        self._response: Json | None = None  # as the last event had it
        self._saw_event = False
        self._odd: Any = None  # something that is no event, for the text of a failure
        self.is_over = False
        self._handlers: Mapping[str, Callable[[Json], Iterator[StreamEvent]]] = {
            "response.output_item.added": self._added,
            "response.output_text.delta": self._text,
            "response.refusal.delta": self._text,
            "response.reasoning_summary_text.delta": self._thinking,
            "response.reasoning_text.delta": self._thinking,
            "response.reasoning_summary_part.done": self._thinking_part,
            "response.function_call_arguments.delta": self._arguments,
            "response.function_call_arguments.done": self._all_arguments,
            "response.output_item.done": self._done,
        }

    @property
    def is_whole(self) -> bool:
        """See `ReplyDecoder.is_whole`."""
        return self.is_over

    def feed(self, batch: list[SseEvent]) -> Iterator[StreamEvent]:
        """See `ReplyDecoder.feed`."""
        for name, data in batch:
            data = data.strip()
            if data == b"[DONE]":
                self.is_over = True
            if self.is_over:
                return
            if not data:
                continue
            event = decode_json(data, self._model, name)
            if isinstance(event, dict):
                yield from self._event(event, name)
            else:
                self._odd = event

    def _event(self, event: Json, name: str) -> Iterator[StreamEvent]:
        kind = text_in(event, "type")
        self._saw_event = self._saw_event or bool(kind)
        handler = self._handlers.get(kind)
        if handler is not None:
            yield from handler(event)
        elif kind == "response.created":
            self.reply.response_id = text_in(object_in(event, "response"), "id") or None
        elif kind in _ENDINGS:
            self._end(object_in(event, "response"))
        elif kind == "response.failed":
            self._fail(object_in(event, "response"))
        elif kind == "error" or name == "error" or (not kind and event.get("error")):
            raise server_error(self._model, event)
        elif event.get("object") == "response":  # a server that does not stream
            for index, item in enumerate(objects_in(event, "output")):
                yield from self._done({"output_index": index, "item": item})
            self._end(event)
        elif not kind:
            self._odd = event

    # -- items

    def _begin(self, place: Any, item: Json) -> Iterator[StreamEvent]:
        kind = _KINDS.get(text_in(item, "type"))
        if kind is None:
            return
        if kind == "tool_call":
            call_id, item_id = text_in(item, "call_id") or new_call_id(), text_in(item, "id")
            start: Any = self.reply.toolcall_start(
                f"{call_id}|{item_id}" if item_id else call_id, text_in(item, "name")
            )
            if text := _arguments_of(item):
                self.reply.blocks[start.content_index].add(text)
        else:
            start = self.reply.text_start() if kind == "text" else self.reply.thinking_start()
        self._open[place] = start.content_index
        yield start

    def _at(self, event: Json, kind: str) -> int | None:
        index = self._open.get(_place_of(event))
        return index if index is not None and self.reply.blocks[index].kind == kind else None

    def _added(self, event: Json) -> Iterator[StreamEvent]:
        yield from self._begin(_place_of(event), object_in(event, "item"))

    def _text(self, event: Json) -> Iterator[StreamEvent]:
        if (index := self._at(event, "text")) is not None:
            yield self.reply.text_delta(index, text_in(event, "delta"))

    def _thinking(self, event: Json) -> Iterator[StreamEvent]:
        if (index := self._at(event, "thinking")) is not None:
            yield self.reply.thinking_delta(index, text_in(event, "delta"))

    def _thinking_part(self, event: Json) -> Iterator[StreamEvent]:
        if (index := self._at(event, "thinking")) is not None:
            yield self.reply.thinking_delta(index, "\n\n")

    def _arguments(self, event: Json) -> Iterator[StreamEvent]:
        if (index := self._at(event, "tool_call")) is not None:
            yield self.reply.toolcall_delta(index, text_in(event, "delta"))

    def _all_arguments(self, event: Json) -> Iterator[StreamEvent]:
        """The whole text once more: what deltas did not bring is a last delta."""
        if (index := self._at(event, "tool_call")) is not None:
            block = self.reply.blocks[index]
            before, whole = block.text, clean(_arguments_of(event))
            if not whole.startswith(before):
                block.pieces = [whole]
            elif len(whole) > len(before):
                yield self.reply.toolcall_delta(index, whole[len(before) :])

    def _done(self, event: Json) -> Iterator[StreamEvent]:
        item, place = object_in(event, "item"), _place_of(event)
        if place not in self._open:
            yield from self._begin(place, item)
        index = self._at(event, _KINDS.get(text_in(item, "type"), ""))
        if index is None:
            return
        del self._open[place]
        block, reply = self.reply.blocks[index], self.reply
        if block.kind == "text":
            if isinstance(item.get("content"), list):
                block.pieces = [clean("".join(text_in(part, "text", "refusal") for part in item["content"]))]
            signature = {"v": 1, "id": item.get("id"), "phase": item.get("phase")}
            block.signature = compact_json({key: value for key, value in signature.items() if value is not None})
            yield reply.text_end(index)
        elif block.kind == "thinking":
            said = _joined(item.get("summary")) or _joined(item.get("content"))
            block.pieces = [clean(said)] if said else block.pieces
            block.signature = compact_json(item)
            self._reasoning[text_in(item, "id")] = index
            yield reply.thinking_end(index)
        else:
            yield from self._end_call(index, item)

    def _end_call(self, index: int, item: Json) -> Iterator[StreamEvent]:
        """Close a call; several objects in its arguments are several calls."""
        reply = self.reply
        block = reply.blocks[index]
        block.name = block.name or text_in(item, "name")
        first, *others = call_arguments(_arguments_of(item) or block.text)
        yield reply.toolcall_end(index, first)
        for arguments in others:
            start = reply.toolcall_start(new_call_id(), block.name)
            yield start
            yield reply.toolcall_delta(start.content_index, compact_json(arguments))
            yield reply.toolcall_end(start.content_index, arguments)

    # -- the end

    def _end(self, response: Json) -> None:
        self._response = response
        self.is_over = True
        reply = self.reply
        reply.response_id = text_in(response, "id") or reply.response_id
        for item in objects_in(response, "output"):
            if item.get("type") == "reasoning" and item.get("encrypted_content"):
                self._complete_reasoning(item)
        if usage := object_in(response, "usage"):
            tier = text_in(response, "service_tier") or self._model.sampling_params.get("service_tier")
            reply.usage = _at_tier(_usage(usage, self._model), tier, self._model)
        status, reason = as_text(response.get("status")) or None, _why_incomplete(response)
        reply.raw_stop_reason = f"{status}.{reason}" if reason else status

    def _complete_reasoning(self, item: Json) -> None:
        """Azure may send the encrypted reasoning only now; without it the reply cannot be sent back."""
        index = self._reasoning.get(text_in(item, "id"))
        closed = self.reply.blocks[index].closed if index is not None else None
        if index is None or not isinstance(closed, ThinkingContent) or not closed.thinking_signature:
            return
        stored = json.loads(closed.thinking_signature)
        if not stored.get("encrypted_content"):
            signature = compact_json({**stored, "encrypted_content": item["encrypted_content"]})
            self.reply.blocks[index].closed = replace(closed, thinking_signature=signature)

    def _fail(self, response: Json) -> None:
        self.reply.raw_stop_reason = as_text(response.get("status")) or None
        if error := response.get("error"):
            raise server_error(self._model, error)
        raise failure(self._model, _why_incomplete(response) or "the reply failed, without a reason")

    def finish(self) -> Iterator[StreamEvent]:
        """See `ReplyDecoder.finish`."""
        if self._response is None:
            if not self._saw_event:
                raise no_reply(self._model, self._odd)
            raise no_end(self._model, "the reply broke off before its end", self._odd)
        for index in self._open.values():  # never said to be done; what runs is read strictly all the same
            block = self.reply.blocks[index]
            if block.kind == "tool_call":
                self.reply.toolcall_end(index, call_arguments(block.text)[0])
        status = as_text(self._response.get("status")) or None
        reason = _why_incomplete(self._response)
        if status == "incomplete" and reason != "max_output_tokens":
            raise failure(
                self._model, _INCOMPLETE.get(reason, f"the reply is incomplete: {reason or 'no reason given'}")
            )
        if status not in (None, "completed", "incomplete", "in_progress", "queued"):
            raise failure(self._model, f"the reply ended with the status {status!r}")
        stop: StopReason = "length" if status == "incomplete" else "stop"
        if stop == "stop" and any(block.kind == "tool_call" for block in self.reply.blocks):
            stop = "tool_use"
        yield self.reply.done(stop)

    def stopped(self) -> Iterator[StreamEvent]:
        yield from ()


_INCOMPLETE = {"content_filter": "the provider's content filter stopped the reply"}


def _place_of(event: Json) -> int | None:
    place = event.get("output_index")
    return place if isinstance(place, int) else None


def _arguments_of(source: Json) -> str:
    """Arguments as text; some servers send the object itself."""
    arguments = source.get("arguments")
    return "" if arguments is None else arguments if isinstance(arguments, str) else compact_json(arguments)


def _joined(parts: Any) -> str:
    return "\n\n".join(text_in(part, "text") for part in parts) if isinstance(parts, list) else ""


def _why_incomplete(response: Json) -> str:
    return text_in(response.get("incomplete_details"), "reason")


def _usage(said: Json, model: Model) -> Usage:
    """Counts as the server gives them; cached tokens are a part of its input tokens, not of ours."""

    def count(source: Any, key: str) -> int:
        return count_in(source, key) or 0

    details = said.get("input_tokens_details")
    read, written = count(details, "cached_tokens"), count(details, "cache_write_tokens")
    return priced(
        model,
        input=max(0, count(said, "input_tokens") - read - written),
        output=count(said, "output_tokens"),
        cache_read=read,
        cache_write=written,
        reasoning=count(said.get("output_tokens_details"), "reasoning_tokens"),
        total_tokens=count(said, "total_tokens"),
    )


def _at_tier(usage: Usage, tier: Any, model: Model) -> Usage:
    """OpenAI's price depends on how fast an answer was wanted (https://openai.com/api/pricing)."""
    factor = {"flex": 0.5, "priority": 2.5 if model.id == "gpt-5.5" else 2.0}.get(tier)
    if factor is None or usage.cost is None:
        return usage
    cost = usage.cost
    parts = (cost.input * factor, cost.output * factor, cost.cache_read * factor, cost.cache_write * factor)
    return replace(usage, cost=Cost(*parts, parts[0] + parts[1] + parts[2] + parts[3]))
