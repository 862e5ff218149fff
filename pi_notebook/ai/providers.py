"""Providers: where each lives, how it is spoken to, whose key it gets; and `provider:model` names.

Proxies (`HTTPS_PROXY`, `NO_PROXY`) and a CA of one's own (`SSL_CERT_FILE`, `SSL_CERT_DIR`) come from httpx's usual
environment variables; more headers with `resolve_model(..., headers=)` or `Model(headers=)`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ..errors import ModelError
from . import keys
from .keys import Key
from .model import Model, StreamOptions

__all__ = [
    "PRACTICE",
    "PROVIDERS",
    "Provider",
    "find_key",
    "has_key",
    "provider_of",
    "require_key",
    "resolve_model",
]

PRACTICE = Model(id="practice", api="practice", input=("text",))
"""The built-in model that is no language model; see `apis.practice`."""

_LOCAL: Mapping[str, Any] = {
    "supports_store": False,
    "supports_developer_role": False,
    "supports_strict_mode": False,
    "supports_long_cache_retention": False,
    "max_tokens_field": "max_tokens",
}


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider.

    Args:
        name: As in `provider:model`.
        api: Its wire protocol.
        base_url: Where it lives; empty: must be given.
        key_names: Environment variables of its key, first one first; empty: it needs none.
        model: Used when only the provider is named; empty: must be named.
        base_url_names: Environment variables that say where it lives instead.
        local: A server of the person's own: a key is optional, and it is asked what it serves.
        compat: Its quirks, see `Model.compat`.
    """

    name: str
    api: str
    base_url: str
    key_names: tuple[str, ...] = ()
    model: str = ""
    base_url_names: tuple[str, ...] = ()
    local: bool = False
    compat: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs_key(self) -> bool:
        return bool(self.key_names) and not self.local

    def address(self) -> str:
        """Its base URL, the environment's word first."""
        for name in self.base_url_names:
            if value := os.environ.get(name, "").strip():
                return _address_from_environment(self, name, value)
        return self.base_url


_OPENAI, _RESPONSES = "openai-completions", "openai-responses"
_AZURE_NAMES = ("AZURE_OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_RESOURCE_NAME")
_AZURE = {"key_header": "api-key", "supports_strict_mode": True}

# The order decides which is used when no model is named and several keys are set.
PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider("anthropic", "anthropic-messages", "https://api.anthropic.com", ("ANTHROPIC_API_KEY",),
                 "claude-sonnet-4-5", compat={"supports_strict_tools": True, "strict_tools_are_closed": True}),
        Provider("openai", _RESPONSES, "https://api.openai.com/v1", ("OPENAI_API_KEY",), "gpt-5-mini",
                 compat={"supports_strict_mode": True}),
        Provider("google", "google-generative-ai", "https://generativelanguage.googleapis.com/v1beta",
                 ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "gemini-2.5-flash"),
        Provider("openrouter", _OPENAI, "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",),
                 "anthropic/claude-sonnet-4.5"),
        Provider("groq", _OPENAI, "https://api.groq.com/openai/v1", ("GROQ_API_KEY",), "openai/gpt-oss-120b"),
        Provider("mistral", _OPENAI, "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), "mistral-medium-latest"),
        Provider("deepseek", _OPENAI, "https://api.deepseek.com", ("DEEPSEEK_API_KEY",), "deepseek-v4-flash"),
        Provider("xai", _OPENAI, "https://api.x.ai/v1", ("XAI_API_KEY",), "grok-4.3"),
        Provider("together", _OPENAI, "https://api.together.ai/v1", ("TOGETHER_API_KEY",), "MiniMaxAI/MiniMax-M3"),
        Provider("azure", _RESPONSES, "", ("AZURE_OPENAI_API_KEY",), "", _AZURE_NAMES, compat=_AZURE),
        Provider("ollama", _OPENAI, "http://127.0.0.1:11434/v1", ("OLLAMA_API_KEY",), "", ("OLLAMA_HOST",), True,
                 _LOCAL),
        Provider("lmstudio", _OPENAI, "http://127.0.0.1:1234/v1", ("LMSTUDIO_API_KEY",), local=True, compat=_LOCAL),
        Provider("llamacpp", _OPENAI, "http://127.0.0.1:8080/v1", ("LLAMA_API_KEY",), local=True, compat=_LOCAL),
        Provider("vllm", _OPENAI, "http://127.0.0.1:8000/v1", ("VLLM_API_KEY",), local=True, compat=_LOCAL),
        Provider("openai-compatible", _OPENAI, "", ("OPENAI_COMPATIBLE_API_KEY",), "",
                 ("OPENAI_COMPATIBLE_BASE_URL",), True, _LOCAL),
    )
}  # fmt: skip


def provider_of(model: Model) -> Provider | None:
    return PROVIDERS.get(model.provider)


# -- names -------------------------------------------------------------------------------------------------------


def resolve_model(
    name: str,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Model:
    """The model that `name` (`provider:model`, a provider, a well-known model, or `practice`) stands for.

    Nothing is sent and no key is looked up. A model that is not in the table of `ai.prices` is taken as it is.

    Args:
        base_url: Another address for the provider. Its own key is not sent there; name one with `api_key_env`.
        api_key_env: The environment variable that holds the key.
        headers: Sent with every request.

    Raises:
        ModelError: In one line: an unknown provider, no model named, an unusable or missing address.
    """
    name = name.strip()
    if name == PRACTICE.id:
        return PRACTICE
    provider, model_id = _split(name)
    address = _whole_address(provider, base_url) if base_url is not None else provider.address()
    if not address:
        raise ModelError(_no_address(provider))
    if not model_id:
        raise ModelError(_no_model(provider))
    from .prices import facts_of  # a table that a request to a model made by hand does not need

    facts = facts_of(provider.name, model_id, local=provider.local)
    return Model(
        id=model_id,
        api=_RESPONSES if facts.responses else provider.api,
        provider=provider.name,
        base_url=address,
        reasoning=facts.reasoning,
        thinking_levels=facts.thinking_levels,
        input=facts.input,
        cost=facts.cost,
        context_window=facts.context_window,
        max_tokens=facts.max_tokens,
        headers=dict(headers or {}),
        compat={**provider.compat, **facts.compat},
        api_key_env=api_key_env,
    )


def _split(name: str) -> tuple[Provider, str]:
    head, colon, rest = name.partition(":")
    provider = PROVIDERS.get(head.strip().lower())
    if provider is not None:
        return provider, rest.strip() if colon else provider.model
    from .prices import known_models

    owners = [owner for owner, models in known_models().items() if name in models]
    if len(owners) == 1:
        return PROVIDERS[owners[0]], name
    raise ModelError(_unknown(name, owners))


def _unknown(name: str, owners: list[str]) -> str:
    if not name:
        return f"No model is named. Write provider:model, for example {_EXAMPLE}."
    if owners:
        return f"Model {name!r} needs its provider: {' or '.join(f'{owner}:{name}' for owner in owners)}."
    from .prices import known_models

    head, colon, rest = name.partition(":")
    near = _nearest(head.lower(), [*PROVIDERS, PRACTICE.id])
    if near:
        hint = f" Did you mean {near}{colon}{rest}?"
    elif near := _nearest(name, [f"{owner}:{m}" for owner, models in known_models().items() for m in models]):
        hint = f" Did you mean {near}?"
    elif near := _nearest(name, [m for models in known_models().values() for m in models]):
        owner = next(owner for owner, models in known_models().items() if near in models)
        hint = f" Did you mean {owner}:{near}?"
    else:
        hint = f" Write provider:model, for example {_EXAMPLE}, or ollama:{name} for an Ollama model."
    return f"Unknown model {name!r}.{hint} Providers: {', '.join([*PROVIDERS, PRACTICE.id])}."


_EXAMPLE = "anthropic:claude-sonnet-4-5"


def _nearest(word: str, known: list[str]) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=0.75)), None)


def _no_model(provider: Provider) -> str:
    if provider.local:
        return f"{provider.name} needs the name of a model it serves: {provider.name}:MODEL (%agent models lists them)."
    if provider.model:
        return f"{provider.name} needs the name of a model: {provider.name}:MODEL, as {provider.name}:{provider.model}."
    return f"{provider.name} needs the name of a deployment: {provider.name}:NAME."


def _no_address(provider: Provider) -> str:
    names = " or ".join(provider.base_url_names)
    return f"{provider.name} needs an address: give --base-url http://HOST:PORT/v1 (base_url=), or set {names}."


# -- addresses ---------------------------------------------------------------------------------------------------

_ENDPOINTS = re.compile(r"/+(?:(?:chat/)?completions|responses|v1/messages)?/*$")


def checked_address(address: str) -> str:
    """A base URL without a slash or an endpoint at its end.

    Raises:
        ModelError: No http(s) URL, or one with a password in it.
    """
    address = address.strip()
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or re.search(r"\s", address):
        raise ModelError(_no_server(address))
    if "@" in parts.netloc:
        raise ModelError("A base URL must not hold a password: put it into a header, or name a key with --api-key-env.")
    return _ENDPOINTS.sub("", address)


def _no_server(address: str) -> str:
    shown = re.sub(r"(^|//)[^/]*@", r"\1***@", address)
    return f"{shown!r} is no address of a server: it has to be like http://127.0.0.1:8080/v1."


def _address_from_environment(provider: Provider, name: str, value: str) -> str:
    try:
        if name == "OLLAMA_HOST":
            value = _ollama_address(value)
        elif name == "AZURE_OPENAI_RESOURCE_NAME":
            value = f"https://{value}.openai.azure.com"
        return _whole_address(provider, value)
    except ModelError as error:
        raise ModelError(f"The environment variable {name}: {error}") from None


def _ollama_address(value: str) -> str:
    """As Ollama reads it: host, host:port or a URL, IPv6 also without brackets; 0.0.0.0 is where it listens."""
    address = value if "://" in value else f"http://[{value}]" if _is_ipv6(value) else f"http://{value}"
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 11434)
    except ValueError:
        raise ModelError(_no_server(value)) from None
    host = "127.0.0.1" if parts.hostname in (None, "0.0.0.0", "::") else parts.hostname
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/').removesuffix('/v1')}/v1"


def _is_ipv6(text: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


def _whole_address(provider: Provider, address: str) -> str:
    address = checked_address(address)
    if provider.name == "azure" and urlsplit(address).path in ("", "/openai"):
        return f"{address.removesuffix('/openai')}/openai/v1"
    return address


def _origin(address: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(address)
        return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        raise ModelError(_no_server(address)) from None


# -- keys --------------------------------------------------------------------------------------------------------


def find_key(model: Model, options: StreamOptions | None = None) -> tuple[str | None, str]:
    """The key for a request to `model`, and where it came from, for texts; `(None, "")` where none is to be sent.

    A provider's key goes to the provider's own address only (scheme, host and port); `openai-compatible` has one
    for whatever address the person gave. A key that was named for this model (`api_key_env`, `options.api_key`)
    goes where the model is.

    Raises:
        ModelError: The provider needs a key and none is set, the variable that was named is empty, or an address is
            none.
    """
    if options is not None and options.api_key:
        return options.api_key, "the api_key given"
    if model.api_key_env:
        key = keys.from_environment(model.api_key_env)
        if key is None:
            raise ModelError(f"No key for {model.label}: the environment variable {model.api_key_env} is not set.")
        return key, model.api_key_env
    provider = provider_of(model)
    if provider is None or not provider.key_names or not _is_at_home(model, provider):
        return None, ""
    found = keys.find_key(provider.name, provider.key_names)
    if found is not None:
        return found, found.source
    if provider.needs_key and not _brings_own_authorization(model, options):
        raise ModelError(
            f"No key for {provider.name}: set the environment variable {provider.key_names[0]}, "
            f"or run %agent key {provider.name}."
        )
    return None, ""


def _is_at_home(model: Model, provider: Provider) -> bool:
    if provider.name == "openai-compatible":
        return True
    scheme, host, _ = _origin(model.base_url)
    if provider.name == "azure" and not provider.address():
        return scheme == "https" and host.endswith(_AZURE_HOSTS)
    return _origin(model.base_url) == _origin(provider.address())


_AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".ai.azure.com")
_AUTHORIZATION = {"authorization", "x-api-key", "api-key", "x-goog-api-key"}


def _brings_own_authorization(model: Model, options: StreamOptions | None) -> bool:
    names = [*model.headers, *((options.headers if options else None) or {})]
    return any(name.lower() in _AUTHORIZATION for name in names)


def require_key(model: Model) -> None:
    """Raise the `ModelError` that a request to `model` would end with for want of a key."""
    find_key(model)


def has_key(provider: Provider) -> Key | None:
    """The key of a provider, if one is set."""
    return keys.find_key(provider.name, provider.key_names) if provider.key_names else None
