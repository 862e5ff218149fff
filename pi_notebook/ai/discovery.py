"""Which models can be used here and now: by the keys that are set, and by asking local servers what they serve."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import ModelError
from . import keys
from .model import Model
from .prices import known_models
from .providers import PRACTICE, PROVIDERS, Provider, has_key, resolve_model
from .transport import tls_context

if TYPE_CHECKING:
    import httpx

NO_LOCAL = "PI_NOTEBOOK_NO_LOCAL"
"""Environment variable; if it is set (and not 0), no server on this machine is asked anything."""

CONNECT_TIMEOUT = 0.3  # seconds; a local server answers at once or not at all
READ_TIMEOUT = 1.0


@dataclass(frozen=True, slots=True)
class UsableModel:
    """A model that a request could be made to now.

    Args:
        model: What to use; `model.label` is the name for `--model`.
        reason: Why it is usable, for people: a variable's name, or a server's address. Holds no key.
        default: It is the one used when no model is named.
    """

    model: Model
    reason: str
    default: bool = False

    @property
    def name(self) -> str:
        return self.model.label


def default_model() -> Model:
    """The model when none is named: the first provider (in the table's order) whose key is set, else an Ollama that
    answers as Ollama and serves a model that can call tools, else `practice`."""
    for provider in PROVIDERS.values():
        if provider.model and has_key(provider):
            return resolve_model(provider.name)
    return _ollama_model() or PRACTICE


def usable_models() -> list[UsableModel]:
    """All that can be used now: models of providers whose key is set, what local servers serve, and `practice`.

    Local servers are asked one after the other, `CONNECT_TIMEOUT` each at most. Never raises.
    """
    default = default_model().label
    found: list[UsableModel] = []
    for provider in PROVIDERS.values():
        found += _served(provider) if provider.local else _by_key(provider)
    found.append(UsableModel(PRACTICE, "built in; no language model"))
    return [UsableModel(usable.model, usable.reason, default=usable.name == default) for usable in found]


def _by_key(provider: Provider) -> list[UsableModel]:
    key = has_key(provider)
    if key is None:
        return []
    names = list(known_models().get(provider.name, ()))
    names.sort(key=lambda name: name != provider.model)
    return [UsableModel(resolve_model(f"{provider.name}:{name}"), key.source) for name in names]


def _served(provider: Provider) -> list[UsableModel]:
    return [
        UsableModel(resolve_model(f"{provider.name}:{name}"), provider.address()) for name in served_models(provider)
    ]


def served_models(provider: Provider) -> list[str]:
    """Ids of the models that a local server serves; empty if nothing at its address answers as one."""
    address = _address(provider)
    if not address:
        return []
    with _client(provider, address) as client:
        if provider.name == "ollama":
            if not _is_ollama(client, address):
                return []
            return _names(_get(client, f"{_root(address)}/api/tags"), "models", "name")
        return _names(_get(client, f"{address}/models"), "data", "id")


def _ollama_model() -> Model | None:
    provider = PROVIDERS["ollama"]
    address = _address(provider)
    if not address:
        return None
    with _client(provider, address) as client:
        if not _is_ollama(client, address):
            return None
        for name in _names(_get(client, f"{_root(address)}/api/tags"), "models", "name"):
            shown = _get(client, f"{_root(address)}/api/show", {"model": name})
            if isinstance(shown, dict) and "tools" in (shown.get("capabilities") or ()):
                return resolve_model(f"ollama:{name}")
    return None


def _address(provider: Provider) -> str:
    """Where to ask; empty if nowhere: servers on this machine can be left alone, an address that was given cannot."""
    given = any(os.environ.get(name, "").strip() for name in provider.base_url_names)
    if not given and os.environ.get(NO_LOCAL, "").strip() not in ("", "0"):
        return ""
    try:
        return provider.address()
    except ModelError:
        return ""


def _is_ollama(client: httpx.Client, address: str) -> bool:
    answer = _get(client, f"{_root(address)}/api/version")
    return isinstance(answer, dict) and isinstance(answer.get("version"), str)


def _root(address: str) -> str:
    return address.removesuffix("/v1")


def _client(provider: Provider, address: str) -> httpx.Client:
    import httpx

    key = keys.find_key(provider.name, provider.key_names)
    is_here = urlsplit(address).hostname in ("localhost", "127.0.0.1", "::1")
    return httpx.Client(
        timeout=httpx.Timeout(READ_TIMEOUT, connect=CONNECT_TIMEOUT),
        headers={"authorization": f"Bearer {key}"} if key else {},
        # Loading the CA store takes longer than asking, and no proxy stands between this machine and itself.
        verify=tls_context() if address.startswith("https:") or not is_here else False,
        trust_env=not is_here,
    )


def _get(client: httpx.Client, url: str, body: dict[str, Any] | None = None) -> Any:
    """The JSON at `url` (POSTed `body` to), or None for all that goes wrong."""
    import httpx

    try:
        answer = client.get(url) if body is None else client.post(url, json=body)
        return answer.json() if answer.is_success else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return None


def _names(answer: Any, key: str, name: str) -> list[str]:
    items: Sequence[Any] = answer.get(key) or () if isinstance(answer, dict) else ()
    if not isinstance(items, list):
        return []
    return [item[name] for item in items if isinstance(item, dict) and isinstance(item.get(name), str)]
