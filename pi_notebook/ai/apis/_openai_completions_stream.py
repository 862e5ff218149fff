"""The reply half of openai-completions: chunks of `/chat/completions` as events, from servers that follow the
protocol and from those that bend it.

What is put up with: no `index`, one that is text, or the same one for all calls; no `id`, or a late one; a call
without `function` around it; arguments as an object, or several objects in a row; the legacy `function_call`; content
as parts, or one part, or a number; empty `choices`; usage in
`choices` or `x_groq`; one whole JSON document instead of a stream; errors in mid-stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .._failures import failure
from .._sse import SseEvent
from ..json_arguments import call_arguments, partial_arguments, without_lone_surrogates
from ..messages import StopReason
from ..model import Model
from ..stream import Reply, StreamEvent
from ._adapter import as_text, compact_json, decode_json, new_call_id, no_end, no_reply, priced, server_error
from ._openai_completions_compat import compat_of
from ._shapes import count_in, object_in, objects_in, text_in

Json = dict[str, Any]

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "end": "stop",
    "eos": "stop",
    "length": "length",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}
_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")


class _Template:
    """What two chunks have in common that differ in one text only: the bytes before and behind that text.

    Most servers repeat every other byte of a chunk, so all that is left to read is the text itself.
    """

    __slots__ = ("after", "before", "block", "is_call", "length")

    def __init__(self, before: bytes, after: bytes, block: int, is_call: bool) -> None:
        self.before = before
        self.after = after
        self.length = len(before) + len(after)
        self.block = block
        self.is_call = is_call

    @classmethod
    def of(cls, data: bytes, key: bytes, block: int, is_call: bool) -> _Template | None:
        """From a chunk whose only news was the text under `key`; None if that text is not plain to find."""
        if data.count(key) != 1:
            return None
        start = data.index(key) + len(key)
        start += data[start : start + 1] == b" "
        end = data.find(b'"', start + 1)
        if data[start : start + 1] != b'"' or end < 0 or b"\\" in data[start:end]:
            return None
        return cls(data[: start + 1], data[end:], block, is_call)

    def text(self, data: bytes) -> str | None:
        """The text in a chunk of the same form; None if it has another form."""
        if len(data) <= self.length or not data.startswith(self.before) or not data.endswith(self.after):
            return None
        middle = data[len(self.before) : len(data) - len(self.after)]
        try:
            if b"\\" in middle:
                return str(json.loads(b'"%b"' % middle))
            return None if b'"' in middle else middle.decode()
        except ValueError:
            return None


class CompletionsDecoder:
    """See `ReplyDecoder`. `tool_names` tell a name that comes in pieces from the name of another call."""

    def __init__(self, model: Model, tool_names: Sequence[str]) -> None:
        self.reply = Reply(model.api, model.provider, model.id)
        self._model = model
        self._compat = compat_of(model)
        self._tool_names = set(tool_names)
        self._text: int | None = None
        self._thinking: int | None = None
        self._call_at: dict[int | str, int] = {}  # the server's index -> block
        self._call_of: dict[str, int] = {}  # call id -> block
        self._last_call: int | None = None
        self._details: dict[str, str] = {}  # call id -> encrypted reasoning that came before its call
        self._template: _Template | None = None
        self._finish_reason: str | None = None
        self.is_over = False
        self._saw_chunk = False
        self._odd: Any = None  # something that is no chunk, for the text of a failure

    @property
    def is_whole(self) -> bool:
        """See `ReplyDecoder.is_whole`; usage may follow."""
        return self._finish_reason is not None or self.is_over

    def feed(self, batch: list[SseEvent]) -> Iterator[StreamEvent]:
        """See `ReplyDecoder.feed`."""
        reply = self.reply
        template = self._template
        for name, data in batch:
            if template is not None and (text := template.text(data)) is not None:
                if template.is_call:
                    yield reply.toolcall_delta(template.block, text)
                else:
                    yield reply.text_delta(template.block, text)
                continue
            template = self._template = None
            if self.is_over:
                return
            data = data.strip()
            if data == b"[DONE]":
                self.is_over = True
            elif data:
                chunk = decode_json(data, self._model, name)
                yield from self._chunk(chunk, name)
                template = self._template = self._template_of(chunk, data)

    def _template_of(self, chunk: Any, data: bytes) -> _Template | None:
        """A template if the chunk brought nothing but one piece of text of a block that is open."""
        if type(chunk) is not dict or chunk.get("usage") or chunk.get("x_groq"):
            return None
        choices = chunk.get("choices")
        if type(choices) is not list or len(choices) != 1:
            return None
        choice = _choice_of(chunk)
        if choice.get("finish_reason") or choice.get("usage"):
            return None
        news = {key: value for key, value in object_in(choice, "delta").items() if value}
        news.pop("role", None)
        if len(news) != 1:
            return None
        if type(news.get("content")) is str and self._text is not None:
            return _Template.of(data, b'"content":', self._text, False)
        calls = news.get("tool_calls")
        if type(calls) is list and len(calls) == 1 and self._last_call is not None:
            call = calls[0] if isinstance(calls[0], dict) else {}
            function = object_in(call, "function")
            if not call.get("id") and not function.get("name") and text_in(function, "arguments"):
                return _Template.of(data, b'"arguments":', self._last_call, True)
        return None

    def _chunk(self, chunk: Any, name: str) -> Iterator[StreamEvent]:
        if not isinstance(chunk, dict):
            self._odd = chunk
            return
        if chunk.get("error") or name == "error" or chunk.get("object") == "error":
            raise server_error(self._model, chunk)
        reply = self.reply
        reply.response_id = reply.response_id or text_in(chunk, "id") or None
        served_by = text_in(chunk, "model")
        if served_by and served_by != self._model.id:
            reply.response_model = reply.response_model or served_by
        choice = _choice_of(chunk)
        if chunk.get("choices") is not None:
            self._saw_chunk = True
        elif not chunk.get("usage"):
            self._odd = chunk
        for source in (chunk, choice, chunk.get("x_groq")):
            if source and (usage := object_in(source, "usage")):
                reply.usage = _usage(usage, self._model)
                break
        if choice.get("error"):
            raise server_error(self._model, choice)
        if choice.get("finish_reason"):
            self._finish_reason = reply.raw_stop_reason = str(choice["finish_reason"])
        if delta := object_in(choice, "delta") or object_in(choice, "message"):
            yield from self._delta(delta)

    def _delta(self, delta: Json) -> Iterator[StreamEvent]:
        if (content := delta.get("content")) is not None:
            thought, said = _parts(content)
            if thought:
                yield from self._add_thinking(thought, None)
            if said:
                yield from self._add_text(said)
        if refusal := as_text(delta.get("refusal")):
            yield from self._add_text(refusal)
        for field in _REASONING_FIELDS:
            if field in delta and (reasoning := text_in(delta, field)):
                yield from self._add_thinking(reasoning, field)
                break
        if "tool_calls" in delta:
            alone = object_in(delta, "tool_calls")
            for call in [alone] if alone else objects_in(delta, "tool_calls"):
                yield from self._add_call(call)
        if legacy := object_in(delta, "function_call"):
            yield from self._add_call({"function": legacy})
        for detail in objects_in(delta, "reasoning_details"):
            self._add_detail(detail)

    def _add_text(self, text: str) -> Iterator[StreamEvent]:
        if self._text is None:
            start = self.reply.text_start()
            self._text = start.content_index
            yield start
        yield self.reply.text_delta(self._text, text)

    def _add_thinking(self, text: str, field: str | None) -> Iterator[StreamEvent]:
        if self._thinking is None:
            start = self.reply.thinking_start()
            self._thinking = start.content_index
            if field == "reasoning" and self._model.provider == "opencode-go":
                field = "reasoning_content"
            self.reply.blocks[self._thinking].signature = field
            yield start
        yield self.reply.thinking_delta(self._thinking, text)

    def _add_call(self, call: Json) -> Iterator[StreamEvent]:
        reply = self.reply
        function = call if call.get("function") is None else call["function"]
        if not isinstance(function, dict):
            return
        name, call_id = _text_of(function.get("name")), _text_of(call.get("id"))
        position, text = _position_of(call), as_text(function.get("arguments"))
        index = self._known_call(position, call_id, name, text)
        if index is None:
            if not name and self._last_call is not None and call_id:
                name = reply.blocks[self._last_call].name  # another call of the same tool, its name left out
            start = reply.toolcall_start(call_id, name)
            index = start.content_index
            self._text = None  # what is said after a call stays after it
            yield start
        block = reply.blocks[index]
        if call_id and not block.call_id:
            block.call_id = call_id
        if name and not block.name:
            block.name = name
        elif name and name != block.name and block.name + name in self._tool_names:
            block.name += name  # a name that came in two pieces
        if position is not None:
            self._call_at[position] = index
        if call_id:
            self._call_of[call_id] = index
        self._last_call = index
        if block.call_id in self._details:
            block.signature = self._details.pop(block.call_id)
        yield reply.toolcall_delta(index, text)

    def _known_call(self, position: int | str | None, call_id: str, name: str, text: str) -> int | None:
        """The block that a piece of a call belongs to; None if it begins a call.

        The same index does not make it the same call: some servers send 0 for all of them. A new id begins a call
        unless the piece has no name and the call is still incomplete (servers that make up an id per piece). A
        name begins one when what came before is complete or has another name, unless it continues that name.
        """
        if position is not None:
            index = self._call_at.get(position)
            if index is None and call_id:
                index = self._call_of.get(call_id)
        else:
            index = self._call_of.get(call_id) if call_id else None
            index = self._last_call if index is None else index
        if index is None:
            return None
        block = self.reply.blocks[index]
        if call_id and block.call_id and call_id != block.call_id:
            return None if name or self._is_complete(index) else index
        if not name or not block.name or (call_id and call_id == block.call_id):
            return index
        if name != block.name:
            if block.name + name in self._tool_names:  # its second piece
                return index
            return index if not any(block.pieces) and name not in self._tool_names else None
        return None if text.strip() and self._is_complete(index) else index

    def _is_complete(self, index: int) -> bool:
        block = self.reply.blocks[index]
        if not any(block.pieces) or not block.pieces[-1].rstrip().endswith("}"):
            return False
        return isinstance(call_arguments(block.text)[-1], dict)

    def _add_detail(self, detail: Json) -> None:
        """Encrypted reasoning that has to go back on the call with its id."""
        call_id = text_in(detail, "id")
        if detail.get("type") != "reasoning.encrypted" or not call_id or not text_in(detail, "data"):
            return
        if call_id in self._call_of:
            self.reply.blocks[self._call_of[call_id]].signature = compact_json(detail)
        else:
            self._details[call_id] = compact_json(detail)

    def finish(self) -> Iterator[StreamEvent]:
        """See `ReplyDecoder.finish`."""
        reply = self.reply
        for index, block in enumerate(list(reply.blocks)):
            if block.kind == "text":
                yield reply.text_end(index)
            elif block.kind == "thinking":
                yield reply.thinking_end(index)
            else:
                yield from self._end_call(index)
        reason = self._finish_reason
        if reason is None and not self._compat["supports_finish_reason"] and self._saw_chunk:
            reason = "tool_calls" if any(block.kind == "tool_call" for block in reply.blocks) else "stop"
        if reason is None:
            if not self._saw_chunk:
                raise no_reply(self._model, self._odd)
            raise no_end(self._model, "the reply broke off before its end", self._odd)
        if reason not in _STOP_REASONS:
            raise failure(self._model, _STOPPED.get(reason, f"the server ended the reply with {reason!r}"))
        yield reply.done(_STOP_REASONS[reason])

    def stopped(self) -> Iterator[StreamEvent]:
        """See `ReplyDecoder.stopped`: this protocol has no ends of blocks, so they all come now."""
        reply = self.reply
        for index, block in enumerate(reply.blocks):
            if block.kind == "text":
                yield reply.text_end(index)
            elif block.kind == "thinking":
                yield reply.thinking_end(index)
            else:
                yield reply.toolcall_end(index, partial_arguments(block.text))

    def _end_call(self, index: int) -> Iterator[StreamEvent]:
        """Close a call; several objects in its arguments are several calls."""
        reply = self.reply
        block = reply.blocks[index]
        first, *others = call_arguments(block.text)
        block.call_id = block.call_id or new_call_id()
        yield reply.toolcall_end(index, first)
        for arguments in others:
            start = reply.toolcall_start(new_call_id(), block.name)
            yield start
            yield reply.toolcall_delta(start.content_index, compact_json(arguments))
            yield reply.toolcall_end(start.content_index, arguments)


_STOPPED = {
    "content_filter": "the provider's content filter stopped the reply",
    "network_error": "the provider lost its own connection to the model",
}


def _choice_of(chunk: Json) -> Json:
    """The first choice, which is the only one: requests ask for no more."""
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def _text_of(value: Any) -> str:
    return without_lone_surrogates(value) if isinstance(value, str) else "" if value is None else str(value)


def _position_of(call: Json) -> int | str | None:
    """The server's index of a call; digits are a number, and any other text tells calls apart as well."""
    index = call.get("index")
    if isinstance(index, str):
        return int(index) if index.isascii() and index.isdigit() and len(index) < 10 else index or None
    if isinstance(index, float):
        return int(index) if index.is_integer() else None
    return index if type(index) is int else None


def _parts(content: Any) -> tuple[str, str]:
    """Thinking and text of a content: a text, a number, a part, or a list of these."""
    if isinstance(content, str):
        return "", content
    if isinstance(content, int | float) and not isinstance(content, bool):
        return "", compact_json(content)
    if isinstance(content, list):
        parts = [_parts(part) for part in content]
        return "".join(thought for thought, _ in parts), "".join(said for _, said in parts)
    if isinstance(content, dict) and "text" in content:
        return "", _parts(content["text"])[1]
    return (_parts(content["thinking"])[1], "") if isinstance(content, dict) and "thinking" in content else ("", "")


def _usage(said: Json, model: Model) -> Any:
    """Counts as the server gives them; cached tokens are a part of its prompt tokens, not of our `input`."""
    details = said.get("prompt_tokens_details")
    read = count_in(details, "cached_tokens")
    if read is None:
        read = count_in(said, "prompt_cache_hit_tokens") or 0
    written = count_in(details, "cache_write_tokens") or 0
    return priced(
        model,
        input=max(0, (count_in(said, "prompt_tokens") or 0) - read - written),
        output=count_in(said, "completion_tokens") or 0,
        cache_read=read,
        cache_write=written,
        reasoning=count_in(said.get("completion_tokens_details"), "reasoning_tokens") or 0,
    )
