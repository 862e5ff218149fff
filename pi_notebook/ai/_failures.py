"""What went wrong with a request, in words: status, the provider's own text, request id, and what to do next.

Every text leaves through `redact`, so no key is ever in one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import ContextOverflowError, ProviderError
from .json_arguments import partial_arguments

if TYPE_CHECKING:
    from .model import Model

_RUN = 6  # characters of a secret in a row that are already too many
_MAX_TEXT = 2000
_BYTES_PER_TOKEN = 4
"""Of a request in English; others have fewer."""
_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-goog-request-id", "apim-request-id", "cf-ray")
_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.1
_HEADER_VALUE = re.compile(r"[\t -~]*")  # RFC 9110, 5.5, in ASCII
_OVERFLOW = r"""context[ _]?(?:length|window|size)[ _](?:was[ _])?exceed
    | exceeds?[ _](?:the[ ])?(?:available[ ])?context
    | exceeds?\ (?:the\ )?(?:model'?s?\ )?maximum\ (?:context|allowed\ input)\ length | maximum\ context\ length
    | maximum\ prompt\ length | prompt\ is\ too\ long | prompt\ too\ long | input\ is\ too\ long
    | too\ many\ (?:input\ )?tokens | request_too_large | input\ token\ count.*exceeds | exceeded\ model\ token\ limit
    | token\ limit\ exceeded | token\ count\ of\ \d+\ exceeds | longer\ than\ the\ model'?s?\ context
    | reduce\ the\ length\ of\ the\ (?:messages|prompt) | range\ of\ input\ length | greater\ than\ the\ context\ length
    | configured\ context\ size | context\ window\ exceeds | exceed_context_size"""
_RATE = r"rate.?limit|too many requests|throttl"


def secrets_of(api_key: str | None, *headers: Mapping[str, str] | None) -> list[str]:
    """What must not appear in a text: the key, and the values of headers that carry one."""
    found = [api_key or ""]
    for mapping in headers:
        found += [value for name, value in (mapping or {}).items() if _SECRET_HEADER.search(name)]
    return [word for value in found for word in value.split() if word not in ("Bearer", "Basic")]


def unsendable_header(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """The name of the first header that HTTP cannot carry and what is wrong with it, in words without its value."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            return ascii(name), "has a name that HTTP does not allow"
        if not isinstance(value, str):
            return name, f"is no text but {type(value).__name__}"
        if "\n" in value or "\r" in value:
            return name, "holds a line break"
        if value != value.strip():
            return name, "begins or ends with a blank"
        if not _HEADER_VALUE.fullmatch(value):
            return name, "holds a character that HTTP does not allow"
    return None


def redact(text: str, secrets: Iterable[str]) -> str:
    """`text` with `***` for every run of characters that it shares with a secret."""
    for secret in secrets:
        runs = {secret[i : i + _RUN] for i in range(len(secret) - _RUN + 1)}
        if not any(run in text for run in runs):
            continue
        hidden = [False] * len(text)
        for i in range(len(text) - _RUN + 1):
            if text[i : i + _RUN] in runs:
                hidden[i : i + _RUN] = [True] * _RUN
        marked = "".join("\0" if hide else char for char, hide in zip(text, hidden, strict=True))
        text = re.sub("\0+", "***", marked)
    return text


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The provider's own name of a request, which its support asks for."""
    return next((headers[name] for name in _REQUEST_ID_HEADERS if headers.get(name)), None)


def provider_text(body: str) -> str:
    """What an error body says: the message of its JSON in any of the usual places, else its text without markup."""
    try:
        return _clip(describe_error(json.loads(body)))
    except (ValueError, RecursionError):
        pass
    if body.startswith("{") and not (said := describe_error(partial_arguments(body))).startswith("{"):
        return _clip(said)  # of a body that was cut
    text = re.sub(r"<(script|style)\b.*?</\1>|<[^>]+>", " ", body, flags=re.DOTALL | re.IGNORECASE)
    return _clip(" ".join(text.split()))


def describe_error(said: Any) -> str:
    """The message in a decoded error, with its type or code where the message does not name it."""
    if isinstance(said, list):
        return "; ".join(filter(None, (describe_error(item) for item in said)))
    if not isinstance(said, dict):
        return "" if said is None else str(said)
    inner = said.get("error", said.get("errors", said.get("detail")))
    if isinstance(inner, dict | list) and inner:
        return describe_error(inner)
    text = next((str(said[key]) for key in ("message", "msg", "error_description") if said.get(key)), "")
    if isinstance(inner, str) and inner:
        text = f"{inner}: {text}" if text and text != inner else inner
    for key in ("type", "code", "status"):
        name = said.get(key)
        if isinstance(name, str) and name and name not in text and name != "error":
            text = f"{text} [{name}]" if text else name
            break
    metadata = said.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if raw and str(raw) not in text:  # a router hands on what the provider behind it said
        text = f"{text}: {raw}" if text else str(raw)
    return text or json.dumps(said, ensure_ascii=False)


def _clip(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}... ({len(text)} characters)"


def is_overflow(text: str) -> bool:
    """Whether a provider's text says that the transcript does not fit into the model's context window."""
    said = re.search(_OVERFLOW, text, re.IGNORECASE | re.VERBOSE)
    return bool(said) and not re.search(_RATE, text, re.IGNORECASE)


def failure(
    model: Model,
    said: str,
    secrets: Iterable[str] = (),
    *,
    status: int | None = None,
    request_id: str | None = None,
    advice: str = "",
    sent_bytes: int = 0,
) -> ProviderError:
    """The error for what a provider said, in the reply or instead of one.

    Args:
        said: The provider's own text; may be empty.
        advice: What to do, one sentence; empty: what the text itself suggests.
        sent_bytes: Of the request's body; 0 where that is not known.
    """
    parts = [model.label, *([f"answered with HTTP {status}"] if status else [])]
    text = f"{' '.join(parts)}: {said or 'no reason was given'}"
    text = text if text.endswith((".", "!", "?")) else f"{text}."
    kind: type[ProviderError] = ProviderError
    if is_overflow(said):
        kind = ContextOverflowError
        window = f" of {model.context_window:,} tokens" if model.context_window else ""
        size = ""
        if sent_bytes and not re.search(r"\d{3}", said):  # the provider's own count is better than this guess
            size = f" ({sent_bytes:,} bytes, roughly {sent_bytes // _BYTES_PER_TOKEN:,} tokens)"
        advice = (
            f"The conversation{size} does not fit into the model's context window{window}: start a new one, shorten "
            "what tools return, or use a model with a larger window."
        )
    text = f"{text} {advice}".rstrip()
    if request_id:
        text = f"{text} (request id {request_id})"
    return kind(redact(text, secrets), status=status, request_id=request_id)


def http_advice(model: Model, status: int, key_name: str) -> str:
    """What a person can do about an HTTP status."""
    key = f"the API key ({key_name})" if key_name else "the API key"
    if status == 401 and not key_name:
        return f"The server wants an API key and none was sent: {_how_to_give_a_key(model)}."
    if status == 401:
        return f"Check {key}: the server did not accept it."
    if status == 402:
        return "Check the account's credit."
    if status == 403:
        return f"Check that {key} may use {model.id}."
    if status == 404:
        return f"Check the model's name ({model.id}) and the base URL ({model.base_url})."
    if status == 429:
        return "Wait a little, or check the account's limits and credit."
    if status in (408, 409) or status >= 500:
        return "That is the server's trouble: try again later."
    return ""


def _how_to_give_a_key(model: Model) -> str:
    from .providers import provider_of

    provider = provider_of(model)
    name = model.api_key_env or next(iter(provider.key_names if provider else ()), "")
    return f"set {name}" if name else "name the variable that holds it with --api-key-env"
