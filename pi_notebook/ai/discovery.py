"""Which models can be used here and now: by the keys that are set, and by asking local servers what they serve."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from ..errors import ModelError
from . import keys
from .connection import tls_context
from .model import Model
from .prices import known_models
from .providers import PRACTICE, PROVIDERS, Provider, has_key, resolve_model

if TYPE_CHECKING:
    import httpx

NO_LOCAL = "PI_NOTEBOOK_NO_LOCAL"
"""Environment variable; if it is set (and not 0), no server on this machine is asked anything."""

CONNECT_TIMEOUT = 0.3  # seconds; a local server answers at once or not at all
READ_TIMEOUT = 1.0
ASK_SECONDS = 2.0
"""Time for all that one server is asked."""
MAX_ANSWER = 8_000_000  # bytes

T = TypeVar("T")
logger = logging.getLogger(__name__)


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
    answers as Ollama and serves a model that can call tools, else `practice`. Never raises."""
    for provider in PROVIDERS.values():
        if provider.model and has_key(provider):
            return resolve_model(provider.name)
    name = _ask(PROVIDERS["ollama"], _ollama_with_tools, "")
    return resolve_model(f"ollama:{name}") if name else PRACTICE


def usable_models() -> list[UsableModel]:
    """All that can be used now: models of providers whose key is set, what local servers serve, and `practice`.

    Local servers are asked one after the other, `ASK_SECONDS` each at most. Never raises.
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
    """Ids of the models that a local server serves; empty if nothing at its address answers as one. Never raises."""

    def ask(client: httpx.Client, address: str) -> list[str]:
        if provider.name == "ollama":
            return _ollama_models(client, address)
        return _names(_get(client, f"{address}/models"), "data", "id")

    return _ask(provider, ask, [])


def _ollama_models(client: httpx.Client, address: str) -> list[str]:
    if not _is_ollama(client, address):
        return []
    return _names(_get(client, f"{_root(address)}/api/tags"), "models", "name")


def _ollama_with_tools(client: httpx.Client, address: str) -> str:
    """The first model that can call tools, or empty."""
    for name in _ollama_models(client, address):
        shown = _get(client, f"{_root(address)}/api/show", {"model": name})
        able = shown.get("capabilities") if isinstance(shown, dict) else None
        if isinstance(able, list) and "tools" in able:
            return name
    return ""


def _ask(provider: Provider, questions: Callable[[httpx.Client, str], T], otherwise: T) -> T:
    """What `questions(client, address)` finds out; `otherwise` if there is nobody to ask, it fails or takes too long.

    On a thread of its own: a server that sends a byte now and then would hold up a read without end.
    """
    address = _address(provider)
    if not address:
        return otherwise
    answers: list[T] = []
    try:
        client = _client(provider, address)
    except Exception as error:  # a proxy or a certificate in the environment that cannot be used
        logger.debug("%s cannot be asked: %s", provider.name, type(error).__name__)
        return otherwise

    def ask() -> None:
        try:
            answers.append(questions(client, address))
        except Exception as error:  # the client was closed meanwhile
            logger.debug("%s did not answer: %s", provider.name, type(error).__name__)

    thread = threading.Thread(target=ask, name=f"asking {provider.name}", daemon=True)
    with client:
        thread.start()
        thread.join(ASK_SECONDS)
    return answers[0] if answers else otherwise


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
        headers={b"authorization": f"Bearer {key}".encode()} if key else None,
        # Loading the CA store takes longer than asking, and no proxy stands between this machine and itself.
        verify=tls_context() if address.startswith("https:") or not is_here else False,
        trust_env=not is_here,
    )


def _get(client: httpx.Client, url: str, body: dict[str, Any] | None = None) -> Any:
    """The JSON at `url` (POSTed `body` to), or None for all that goes wrong."""
    import httpx

    data = bytearray()
    end = time.monotonic() + ASK_SECONDS
    try:
        with client.stream("GET" if body is None else "POST", url, json=body) as answer:
            for piece in answer.iter_bytes():
                data += piece
                if len(data) > MAX_ANSWER or time.monotonic() > end:
                    return None
        return json.loads(data) if answer.is_success else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return None


def _names(answer: Any, key: str, name: str) -> list[str]:
    items = answer.get(key) if isinstance(answer, dict) else None
    names = [item.get(name) for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [name for name in names if isinstance(name, str) and name.isprintable() and name.strip()]
