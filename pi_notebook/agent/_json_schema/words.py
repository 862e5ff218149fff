"""Paths and values in the words of an error text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .plain import TYPES
from .values import has_type

SHOWN = 160  # characters of a value inside one line


def path_of(parts: Iterable[str | int], missing: bool = False) -> str:
    """Keys and indices as the reference writes them: dotted, `/` inside a key dotted too, `root` for the top."""
    keys = [str(part) for part in parts]
    last = keys.pop() if missing else ""
    path = "/".join(keys).replace("/", ".")
    if last:
        path = f"{path}.{last}" if path else last
    return "".join(_escape(char) for char in path) or "root"


def _escape(char: str) -> str:
    return char if char.isprintable() else json.dumps(char)[1:-1]


def shown(value: Any, limit: int = SHOWN) -> str:
    """A value as short JSON."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except Exception:  # no JSON, or an object of Python whose repr fails
        text = f"{type(value).__name__} that is no JSON"
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def received(value: Any) -> str:
    """`got` a value, with its JSON type."""
    if value is None:
        return "got null"
    kind = next((name for name in TYPES if has_type(value, name)), type(value).__name__)
    return f"got {kind} {shown(value)}"


def wanted(schema: Any) -> str:
    """What a schema asks for, in a few words."""
    if not isinstance(schema, dict):
        return "a value"
    if schema.get("enum") == []:
        return "nothing here"
    if "enum" in schema:
        return f"one of {', '.join(shown(choice, 60) for choice in schema['enum'])[: 6 * SHOWN]}"
    if "const" in schema:
        return shown(schema["const"])
    types = schema.get("type")
    if types:
        return types if isinstance(types, str) else " or ".join(types)
    return "a value"
