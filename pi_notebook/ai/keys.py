"""API keys: from the environment, else from `keyring` if it is installed, else set by hand and kept in memory.

A key is never written anywhere, and its `repr` hides it.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Sequence
from typing import NoReturn

from ..errors import ModelError

TYPED = "%agent key"
"""Source of a key that a person has typed."""
KEYRING_SERVICE = "pi-notebook"
"""Store a key with `keyring set pi-notebook PROVIDER`."""
_SHORTEST = 8  # a shorter one is a placeholder such as "none", and its letters are everywhere


class Key(str):
    """A key: a string that does not show itself and cannot be pickled.

    `source` says where it came from, for people: a variable's name, `keyring`, or `%agent key`.
    """

    __slots__ = ("source",)
    source: str

    def __new__(cls, text: str, source: str) -> Key:
        key = super().__new__(cls, text)
        key.source = source
        _seen.add(key)
        return key

    def __repr__(self) -> str:
        return "Key('***')"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("An API key cannot be pickled or copied into a file.")


_seen: set[Key] = set()
_asked: set[str] = set()
_lock = threading.Lock()
_set_by_hand: dict[str, Key] = {}


def set_key(provider: str, key: str | None) -> None:
    """Keep `key` in memory for `provider` until the process ends; None or blank forgets it.

    Raises:
        ModelError: `key` cannot be one (it holds white space or characters that no header can carry).
    """
    text = (key or "").strip()
    if text and not (text.isascii() and text.isprintable() and " " not in text):
        raise ModelError(
            f"That is no API key for {provider}: it holds spaces, line ends or characters outside ASCII. "
            "Copy it again, without anything around it."
        )
    _from_keyring.cache_clear()
    with _lock:
        if text:
            _set_by_hand[provider] = Key(text, TYPED)
        else:
            _set_by_hand.pop(provider, None)


def find_key(provider: str, variables: Sequence[str]) -> Key | None:
    """The key of `provider`: the first environment variable that is set, else keyring's, else the one set by hand."""
    for name in variables:
        if key := from_environment(name):
            return key
    return _from_keyring(provider) or _set_by_hand.get(provider)


def from_environment(name: str) -> Key | None:
    """The key in one environment variable; blank is none. From now on the variable counts as one that holds a key."""
    _asked.add(name)
    text = os.environ.get(name, "").strip()
    return Key(text, name) if text else None


@functools.cache  # a keychain may take long to answer, and this is asked before every request
def _from_keyring(provider: str) -> Key | None:
    try:
        import keyring
    except ImportError:
        return None
    try:
        text = keyring.get_password(KEYRING_SERVICE, provider)
    except Exception:  # a locked or missing keychain must not stop a key that was set by hand
        return None
    return Key(text.strip(), "keyring") if text and text.strip() else None


def key_variables() -> set[str]:
    """The environment variables that hold keys: those of the providers, and all that were ever named for one."""
    from .providers import PROVIDERS

    return _asked.union(*(provider.key_names for provider in PROVIDERS.values()))


def known_keys() -> set[Key]:
    """Every key that is set for a provider, or that this process has seen: what must not be written anywhere."""
    for name in key_variables():
        from_environment(name)
    return {key for key in _seen.copy() if len(key) >= _SHORTEST}
