"""What the adapters of all wire protocols have in common: the run of a request, JSON, levels, limits and prices."""

from __future__ import annotations

import json
import logging
import random
import string
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from ...errors import PiNotebookError, ProviderError
from .._failures import describe_error, failure, redact, secrets_of
from .._sse import SseEvent
from ..abort import Aborted
from ..json_arguments import is_deeper_than, without_lone_surrogates
from ..messages import AssistantMessage, Cost, Message, TextContent, ThinkingContent, ToolResultMessage, Usage
from ..model import THINKING_LEVELS, Context, Model, StreamOptions, ThinkingLevel, ToolSpec
from ..stream import Reply, StreamEvent
from ..transport import WireRequest, post_events

logger = logging.getLogger(__name__)

USER_AGENT = "pi-notebook"
to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
text_to_json: Callable[[str], str] = json.encoder.encode_basestring
"""`to_json` for texts alone, in half the time."""
"""Compact JSON as text; lone surrogates stay."""


def find_key(model: Model, options: StreamOptions) -> tuple[str | None, str]:
    """The key for a request and the name of where it came from.

    Raises:
        ModelError: The provider needs a key and none is set; names the variable to set.
    """
    if options.api_key:  # the table of providers is not needed then
        return options.api_key, "the api_key given"
    from ..providers import find_key as of_provider

    return of_provider(model, options)


class ReplyDecoder(Protocol):
    """Turns the server's events of one reply into ours, by way of a `Reply`."""

    reply: Reply

    @property
    def is_whole(self) -> bool:
        """Whether it is known how the reply ended, so that a connection which fails from here on fails nothing."""

    @property
    def is_over(self) -> bool:
        """Whether the server has nothing more to say: the protocol's own mark of the end has come."""

    def feed(self, batch: list[SseEvent]) -> Iterator[StreamEvent]:
        """Events of ours as `batch` is read; a `ProviderError` for an error that the server reports."""

    def finish(self) -> Iterator[StreamEvent]:
        """The stream has ended: close what is open, then `Done`; a `ProviderError` if the reply is not whole."""

    def stopped(self) -> Iterator[StreamEvent]:
        """A person stopped the reply: what comes before the `Error`. Pi closes the blocks in one protocol only."""


async def stream_reply(
    model: Model,
    options: StreamOptions,
    decoder: ReplyDecoder,
    make_request: Callable[[], WireRequest],
) -> AsyncIterator[StreamEvent]:
    """Run one request. Ends with `Done`, or with `Error` for all that goes wrong, an unusable request included."""
    reply = decoder.reply
    signal = options.signal
    secrets = secrets_of(options.api_key, model.headers, options.headers)
    try:
        request = make_request()
        secrets += secrets_of(request.api_key, request.headers)
        accepted = False
        async with aclosing(post_events(model, options, request, lambda: decoder.is_whole)) as batches:
            async for batch in batches:
                if not accepted:
                    accepted = True
                    yield reply.start()
                for event in decoder.feed(batch):
                    yield event
                    if signal is not None and signal.aborted:
                        raise Aborted(signal.reason)
                if decoder.is_over:
                    break
        for event in decoder.finish():
            yield event
    except Aborted:
        for event in decoder.stopped():
            yield event
        yield reply.error("Stopped before the reply was complete.", aborted=True)
    except PiNotebookError as error:
        yield reply.error(redact(str(error), secrets))
    except Exception as error:
        logger.debug("reply of %s: %s", model.label, redact(traceback.format_exc(), secrets))
        text = f"the reply could not be understood ({type(error).__name__}: {error})"
        yield reply.error(str(failure(model, text, secrets)))


def encode(value: Any) -> bytes:
    """Compact JSON in UTF-8."""
    try:
        return to_json(value).encode()
    except UnicodeEncodeError:
        return to_json(without_surrogates(value)).encode()


def encode_items(items: Sequence[Any]) -> bytes:
    """The items of a JSON list with commas between, no brackets around."""
    return encode(items)[1:-1]


def compact_json(value: Any) -> str:
    """Compact JSON as text, without lone surrogates."""
    return without_lone_surrogates(_flat_json(value) or to_json(value))


def _flat_json(value: Any) -> str | None:
    """The JSON of an object of texts and whole numbers, which most arguments are; None for any other value.

    The json module sets up an encoder for each call, which takes three times as long as such an object itself.
    """
    if type(value) is not dict:
        return None
    items = []
    for key, item in value.items():
        kind = type(item)
        if type(key) is not str or (kind is not str and kind is not int):
            return None
        items.append(f"{text_to_json(key)}:{text_to_json(item) if kind is str else item}")
    return f"{{{','.join(items)}}}"


def without_surrogates(value: Any) -> Any:
    """`value` with all its texts, keys included, free of lone surrogates."""
    if isinstance(value, str):
        return without_lone_surrogates(value)
    if isinstance(value, dict):
        return {without_lone_surrogates(key): without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(item) for item in value]
    return value


_DECODER = json.JSONDecoder(strict=False)  # raw control characters in a text are plain to read
_MAX_DEPTH = 500  # of what is read; half of what can be encoded again


def parse_json(text: str) -> Any:
    """The value that a server wrote as JSON.

    Raises:
        ValueError: It is none, or nested too deep to be handed on.
    """
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if (
        len(text) > _MAX_DEPTH
        and text.count("[") + text.count("{") > _MAX_DEPTH
        and is_deeper_than(_MAX_DEPTH, [value])
    ):
        raise ValueError("nested too deep")
    return value


def decode_json(data: bytes, model: Model, name: str = "") -> Any:
    """The JSON of one event.

    Raises:
        ProviderError: It is none, or the event's `name` is "error" and it is no object; shows it.
    """
    text = data.decode("utf-8", "replace")
    try:
        value = parse_json(text)
    except ValueError:
        if name != "error":
            shown = text if len(text) <= 200 else f"{text[:200]}..."
            raise failure(model, f"the stream holds something that is not JSON: {shown}") from None
        value = text.strip()
    if name == "error" and not isinstance(value, dict):
        raise server_error(model, value)
    return value


def server_error(model: Model, said: Any) -> ProviderError:
    """The error for a decoded error object in a reply."""
    return failure(model, describe_error(said))


def no_end(model: Model, problem: str, odd: Any, *, advice: str = "Ask again.") -> ProviderError:
    """The error for a reply without its end; `odd` is what came that belongs to no reply, None if nothing did."""
    said = describe_error(odd)[:300]
    return failure(model, f"{problem}: {said}" if said else problem, advice=advice)


def no_reply(model: Model, odd: Any) -> ProviderError:
    """The error for a server that sent nothing of a reply, only `odd`."""
    return no_end(model, "the server sent no reply", odd, advice="Check the base URL.")


def as_text(value: Any) -> str:
    """A piece of text that a server sent, also where it sent something else."""
    return value if isinstance(value, str) else "" if value is None else compact_json(value)


def new_call_id() -> str:
    """An id for a call that came without: nine letters and digits, which every API accepts."""
    return "".join(random.choices(string.ascii_letters + string.digits, k=9))


def clamp_thinking(model: Model, level: ThinkingLevel) -> ThinkingLevel:
    """The level that `model` has nearest to `level`: the next one up, else the next one down."""
    if not model.reasoning or level == "off":
        return "off"
    mapped = model.thinking_levels

    def has(name: ThinkingLevel) -> bool:
        if name in mapped:
            return mapped[name] is not None
        return name not in ("xhigh", "max")

    at = THINKING_LEVELS.index(level)
    candidates = (*THINKING_LEVELS[at:], *reversed(THINKING_LEVELS[:at]))
    return next((name for name in candidates if has(name)), "off")


_SAFETY_TOKENS = 4096  # left free, because counts of tokens are estimates
_IMAGE_CHARACTERS = 4800


def max_output_tokens(model: Model, context: Context, options: StreamOptions) -> int | None:
    """Tokens to ask for: the caller's number or the model's own, as far as the context window has room for them."""
    wanted = options.max_tokens or model.max_tokens
    if not wanted or not model.context_window:
        return wanted or None
    room = model.context_window - _context_tokens(context) - _SAFETY_TOKENS
    return min(wanted, max(1, room))


def _context_tokens(context: Context) -> int:
    """An estimate, the same as pi's: what the last reply counted, plus a token for each four characters since."""
    tokens = 0
    added: set[str] = set()
    for message in reversed(context.messages):
        if isinstance(message, AssistantMessage) and message.stop_reason not in ("error", "aborted"):
            usage = message.usage
            counted = usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write
            if counted:
                return tokens + counted + _tools_tokens([tool for tool in context.tools if tool.name in added])
        elif isinstance(message, ToolResultMessage):
            added.update(message.added_tool_names)
        tokens += _message_tokens(message)
    return tokens + _tokens(_length(context.system_prompt)) + _tools_tokens(context.tools)


def _tools_tokens(tools: Sequence[ToolSpec]) -> int:
    told = []
    for tool in tools:
        told.append({"name": tool.name, "description": tool.description, "parameters": tool.schema})
        if tool.constrained_sampling is not None:
            strict = {"type": "json_schema", "strict": tool.constrained_sampling}
            told[-1]["constrainedSampling"] = strict
    return _tokens(_length(to_json(told))) if told else 0


def _length(text: str) -> int:
    """In UTF-16 units, as JavaScript counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _tokens(characters: int) -> int:
    return -(-characters // 4)


def _message_tokens(message: Message) -> int:
    content = message.content
    if isinstance(content, str):
        return _tokens(_length(content))
    characters = 0
    for block in content:
        if isinstance(block, TextContent):
            characters += _length(block.text)
        elif isinstance(block, ThinkingContent):
            characters += _length(block.thinking)
        elif block.type == "tool_call":
            characters += _length(block.name) + _length(to_json(block.arguments))
        else:
            characters += _IMAGE_CHARACTERS
    return _tokens(characters)


def priced(
    model: Model,
    *,
    input: int = 0,
    output: int = 0,
    cache_read: int = 0,
    cache_write: int = 0,
    cache_write_1h: int | None = None,
    reasoning: int | None = None,
    total_tokens: int | None = None,
) -> Usage:
    """Usage with its cost, where the model's price is known. `total_tokens`: the sum, if not given."""
    cost = None
    if model.cost is not None:
        rates = model.cost.for_input(input + cache_read + cache_write)
        long = cache_write_1h or 0  # written for an hour: twice the price of input
        parts = (
            (rates.input / 1_000_000) * input,
            (rates.output / 1_000_000) * output,
            (rates.cache_read / 1_000_000) * cache_read,
            (rates.cache_write * (cache_write - long) + rates.input * 2 * long) / 1_000_000,
        )
        cost = Cost(*parts, total=parts[0] + parts[1] + parts[2] + parts[3])
    if total_tokens is None:
        total_tokens = input + output + cache_read + cache_write
    return Usage(
        input=input,
        output=output,
        cache_read=cache_read,
        cache_write=cache_write,
        cache_write_1h=cache_write_1h,
        reasoning=reasoning,
        total_tokens=total_tokens,
        cost=cost,
    )
