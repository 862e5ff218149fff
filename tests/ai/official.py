"""Whether a provider takes a request, by the request types of its own package."""

from __future__ import annotations

import collections.abc
import functools
import json
from types import UnionType
from typing import Any, Union

import typing_extensions
from pydantic import BaseModel, ConfigDict, TypeAdapter


def check_request(api: str, body: dict[str, Any]) -> None:
    """Raise a pydantic `ValidationError` for anything that the official package does not know or would not take."""
    if api == "google-generative-ai":
        check_google(body)
    else:
        check(request_type(api), known_part(api, body))


def request_type(api: str) -> Any:
    if api == "anthropic-messages":
        from anthropic.types.message_create_params import MessageCreateParamsStreaming

        return MessageCreateParamsStreaming
    if api == "openai-completions":
        from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

        return CompletionCreateParamsStreaming
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    return ResponseCreateParamsStreaming


def check_google(body: dict[str, Any]) -> None:
    from google.genai import types

    parts = {
        "contents": list[types.Content],
        "systemInstruction": types.Content,
        "tools": list[types.Tool],
        "toolConfig": types.ToolConfig,
        "generationConfig": types.GenerationConfig,
    }
    assert body.keys() <= parts.keys()
    for key, value in body.items():
        TypeAdapter(parts[key]).validate_json(json.dumps(value), strict=False)


# What a package does not know, and who does: the API behind Claude models that still sample; servers that bend the
# chat protocol (reasoning text, Anthropic's caching marks, switches for thinking, names on tool messages).
KNOWN_ELSEWHERE = {
    "anthropic-messages": {"temperature"},
    "openai-completions": {"reasoning_content", "cache_control", "enable_thinking", "reasoning"},
    "openai-responses": set(),
}


def known_part(api: str, value: Any) -> Any:
    """`value` without the keys that are known elsewhere only."""
    if isinstance(value, list):
        return [known_part(api, item) for item in value]
    if not isinstance(value, dict):
        return value
    leave_out = KNOWN_ELSEWHERE[api] | ({"name"} if value.get("role") == "tool" else set())
    return {key: known_part(api, item) for key, item in value.items() if key not in leave_out}


CONFIG = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def check(kind: Any, value: Any) -> None:
    """Validate against a typed dict, with no unknown key anywhere."""
    TypeAdapter(list[exact(kind)], config=CONFIG).validate_python([value])  # type: ignore[misc]


@functools.cache
def exact(kind: Any) -> Any:
    """`kind` with lists for iterables (which are read lazily), and without response types (which take any key)."""
    if typing_extensions.is_typeddict(kind):
        hints = typing_extensions.get_type_hints(kind)
        needed = kind.__required_keys__
        given = {
            name: (typing_extensions.Required if name in needed else typing_extensions.NotRequired)[exact(hint)]
            for name, hint in hints.items()
        }
        return typing_extensions.TypedDict(kind.__name__, given)
    origin, inside = typing_extensions.get_origin(kind), typing_extensions.get_args(kind)
    if origin is collections.abc.Iterable:
        return list[exact(inside[0])]  # type: ignore[misc]
    if origin in (Union, UnionType):
        return Union[tuple(exact(part) for part in inside if not is_response(part))]  # noqa: UP007
    if origin in (list, dict):
        return origin[tuple(exact(part) for part in inside)] if len(inside) > 1 else origin[exact(inside[0])]
    return kind


def is_response(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
