"""Model, what a request holds, and `stream`: one request to any model."""

from __future__ import annotations

import importlib
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from ..errors import ModelError
from ._failures import secrets_of
from .abort import AbortSignal
from .keys import Key, from_environment
from .messages import Message
from .stream import StreamEvent

if TYPE_CHECKING:
    from .connection import Connection

ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
THINKING_LEVELS: tuple[ThinkingLevel, ...] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class CostRates:
    """US dollars per million tokens.

    Args:
        above: Tokens of input, cached ones included -> the rates of a whole request that has more of them.
    """

    input: float
    output: float
    cache_read: float = 0.0
    cache_write: float = 0.0
    above: Mapping[int, CostRates] = field(default_factory=dict, hash=False)

    def for_input(self, tokens: int) -> CostRates:
        """The rates of a request with so many tokens of input."""
        passed = [limit for limit in self.above if tokens > limit]
        return self.above[max(passed)] if passed else self


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """One model behind one wire protocol (`api`).

    Args:
        id: The name the server knows it by.
        api: `openai-completions`, `openai-responses`, `anthropic-messages`, `google-generative-ai`, `scripted`
            or `practice`.
        provider: Whose key is used, and whose signatures a transcript holds.
        base_url: Where requests go. `ModelError` if it holds a password, which logs and errors would show.
        name: For people; `id` if empty.
        reasoning: Whether it can be asked to think.
        thinking_levels: Our level -> the provider's word; None marks a level that it does not have.
        input: Kinds of content it takes; without `image`, images become a placeholder text.
        cost: Prices; None where unknown.
        context_window, max_tokens: In tokens; None where unknown.
        headers: Sent with every request. May hold secrets: never shown.
        sampling_params: More fields of the request body, sent as they are; of the two OpenAI protocols only.
        compat: Quirks of the server, by the names that the adapter documents.
        api_key_env: Environment variable of the key, if not the provider's own.
    """

    id: str
    api: str
    provider: str = ""
    base_url: str = ""
    name: str = ""
    reasoning: bool = False
    thinking_levels: Mapping[str, str | None] = field(default_factory=dict)
    input: Sequence[str] = ("text", "image")
    cost: CostRates | None = None
    context_window: int | None = None
    max_tokens: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    sampling_params: Mapping[str, Any] = field(default_factory=dict)
    compat: Mapping[str, Any] = field(default_factory=dict)
    api_key_env: str | None = None

    def __post_init__(self) -> None:
        host = re.split("[/?#]", self.base_url.partition("//")[2], maxsplit=1)[0]
        if "@" in host:
            raise ModelError("A base URL must not hold a password: put it into a header.")
        if self.api_key_env:
            from_environment(self.api_key_env)
        _know_secrets(None, self.headers)

    @property
    def label(self) -> str:
        """`provider:id`, as people write it."""
        return f"{self.provider}:{self.id}" if self.provider else self.id


class ToolSpec(Protocol):
    """What an adapter needs to know of a tool."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the parameters; the same object every time, never changed."""

    @property
    def constrained_sampling(self) -> Literal["prefer", "require"] | None: ...


@dataclass(slots=True)
class Context:
    """What one request is about. Adapters change none of it."""

    system_prompt: str = ""
    messages: Sequence[Message] = ()
    tools: Sequence[ToolSpec] = ()


@dataclass(slots=True)
class StreamOptions:
    """How one request is made.

    Args:
        api_key: Used instead of looking the provider's key up. Never shown.
        signal: Ends the request at once, whatever it waits for.
        connection: Keep-alive and encoded history, shared by the requests of a run; None: made for this one.
        thinking: Level asked for; `off` asks for none.
        thinking_budgets: Level -> tokens, for providers that count them.
        tool_choice: `auto`, `none`, `required`, or the name of a tool; None leaves it to the provider.
        cache_retention: Prompt caching markers: `none`, `short` (minutes) or `long` (an hour).
        session_id: Lets providers route a conversation to a warm cache.
        timeout: Seconds without a byte before the request fails.
        max_retries: Repeats after 408, 429, 5xx or a failed connection, only before the first event.
        max_retry_delay: Seconds; a server that asks for a longer wait ends the request.
        on_retry: `(attempt, delay in seconds, reason)` before each wait.
        on_payload: Sees the request body; returns another one or None.
    """

    api_key: str | None = field(default=None, repr=False)
    signal: AbortSignal | None = None
    connection: Connection | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    thinking: ThinkingLevel = "off"
    thinking_budgets: Mapping[str, int] | None = None
    tool_choice: str | None = None
    cache_retention: Literal["none", "short", "long"] = "short"
    session_id: str | None = None
    metadata: Mapping[str, Any] | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    timeout: float = 300.0
    max_retries: int = 2
    max_retry_delay: float = 60.0
    on_retry: Callable[[int, float, str], object] | None = None
    on_payload: Callable[[dict[str, Any]], dict[str, Any] | None] | None = None

    def __post_init__(self) -> None:
        _know_secrets(self.api_key, self.headers)


def _know_secrets(api_key: str | None, headers: Mapping[str, str] | None) -> None:
    """Have them among `keys.known_keys` before anything can be said in which they might stand."""
    for secret in secrets_of(api_key, headers):
        Key(secret, "given in code")


StreamFunction: TypeAlias = Callable[[Model, Context, StreamOptions], AsyncIterator[StreamEvent]]

_ADAPTERS = {
    "openai-completions": "openai_completions",
    "openai-responses": "openai_responses",
    "anthropic-messages": "anthropic_messages",
    "google-generative-ai": "google_generative_ai",
    "scripted": "scripted",
    "practice": "practice",
}


def adapter(api: str) -> Any:
    """The module in `ai/apis/` that speaks `api`: it has `stream` (a `StreamFunction`) and `describe_tool`."""
    if api not in _ADAPTERS:
        raise ModelError(f"Unknown api {api!r}; known: {', '.join(_ADAPTERS)}.")
    return importlib.import_module(f".apis.{_ADAPTERS[api]}", __package__)


def stream(model: Model, context: Context, options: StreamOptions | None = None) -> AsyncIterator[StreamEvent]:
    """Ask `model` once and stream its reply.

    Returns an async iterator of events that ends with `Done` or `Error`. It does not raise for anything a server or
    a network does; `ModelError` comes only for a request that cannot be made (unknown api).
    """
    events: AsyncIterator[StreamEvent] = adapter(model.api).stream(model, context, options or StreamOptions())
    return events
