"""Parts of decoded JSON from a server that may have got its own protocol wrong.

One rule for all protocols: what does not have the shape it should have counts as not sent. None of these raises,
whatever `source` is.
"""

from __future__ import annotations

from typing import Any

_MAX_COUNT = 1 << 53  # beyond it is no count of tokens, and float arithmetic with it may overflow


def object_in(source: Any, key: str) -> dict[str, Any]:
    """The object under `key`; else an empty one."""
    value = source.get(key) if isinstance(source, dict) else None
    return value if isinstance(value, dict) else {}


def objects_in(source: Any, key: str) -> list[dict[str, Any]]:
    """The objects of the list under `key`, without what is none."""
    value = source.get(key) if isinstance(source, dict) else None
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_in(source: Any, *keys: str) -> str:
    """The first text under one of `keys`; else an empty one."""
    for key in keys:
        value = source.get(key) if isinstance(source, dict) else None
        if isinstance(value, str):
            return value
    return ""


def count_in(source: Any, key: str) -> int | None:
    """The number of tokens under `key`; None if there is none, and for what cannot be one."""
    value = source.get(key) if isinstance(source, dict) else None
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return int(value) if 0 <= value < _MAX_COUNT else None
