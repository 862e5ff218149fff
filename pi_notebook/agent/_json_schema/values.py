"""JSON values as JSON Schema and the reference (JavaScript) see them."""

from __future__ import annotations

import math
import re
from typing import Any

# What JavaScript's `Number(text)` passes over at both ends.
_JS_BLANK = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
_DECIMAL = r"[+-]?(?:[0-9]+(\.[0-9]*)?|(\.[0-9]+))([eE][+-]?[0-9]+)?"
_RADIX = r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)"
_MODIFIERS = "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\ufe00-\ufe0f\ufe20-\ufe2f]*"
_FLAG = "[\U0001f1e6-\U0001f1ff]"
_JOINED = f"(?:\u200d.{_MODIFIERS})*"
_CHARACTER = f"{_FLAG}{_MODIFIERS}{_JOINED}{_FLAG}?|.{_MODIFIERS}{_JOINED}"


def copy_json(value: Any) -> Any:
    """A copy of a JSON value that shares no list or object with it."""
    if isinstance(value, dict):
        return {key: copy_json(item) if isinstance(item, dict | list) else item for key, item in value.items()}
    if isinstance(value, list):
        return [copy_json(item) if isinstance(item, dict | list) else item for item in value]
    return value


def has_type(value: Any, name: str) -> bool:
    """Whether a JSON value is of a JSON Schema type; `5.0` is an integer, a boolean is no number."""
    if name == "string":
        return isinstance(value, str)
    if name == "object":
        return isinstance(value, dict)
    if name == "array":
        return isinstance(value, list)
    if name == "null":
        return value is None
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return name == "number" and isinstance(value, int | float)


def parse_number(text: str) -> int | float | None:
    """The finite number that JavaScript's `Number(text)` gives, kept exact where it is an integer; else None."""
    text = text.strip(_JS_BLANK)
    if re.fullmatch(_RADIX, text):
        return int(text, 0)
    found = re.fullmatch(_DECIMAL, text)
    if not found:
        return None
    if not any(found.groups()):
        try:
            return int(text)
        except ValueError:  # more digits than Python reads
            return None
    number = float(text)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 1e21 else number


def number_text(number: int | float) -> str:
    """A number as JavaScript prints it: `5.0` is `5`, `1e-07` is `1e-7`."""
    if isinstance(number, int):
        return str(number)
    if not math.isfinite(number):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(number), "NaN")
    if number.is_integer() and abs(number) < 1e21:
        return str(int(number))
    mantissa, exponent_mark, exponent = repr(number).partition("e")
    if not exponent_mark:
        return mantissa
    if -7 < int(exponent) < 0:  # JavaScript turns to exponents later than Python
        return f"{number:.{len(mantissa.replace('.', '').lstrip('-')) - 1 - int(exponent)}f}"
    return f"{mantissa}e{int(exponent):+d}"


def text_length(text: str) -> int:
    """Characters as a reader counts them: accents, joined emoji and flags are one, as in the reference."""
    return len(text) if text.isascii() else sum(1 for _ in re.finditer(_CHARACTER, text, re.DOTALL))


def is_multiple(number: int | float, of: int | float) -> bool:
    """Whether `number` is a multiple of `of`, with the reference's tolerance for binary fractions."""
    if isinstance(number, int) and isinstance(of, int):
        return number % of == 0
    if has_type(number, "integer") and (1 / of).is_integer():
        return True
    try:
        rest = math.fmod(number, of)
    except (OverflowError, ValueError):  # too large for a float; infinite
        return False
    return min(abs(rest), abs(rest - of), abs(rest + of)) < 1e-10


def value_key(value: Any) -> tuple[str, Any] | None:
    """A key that equal JSON scalars share (`1` and `1.0` do, `1` and `true` do not); None for lists and objects."""
    if value is None or isinstance(value, str):
        return "text", value
    if isinstance(value, bool):
        return "boolean", value
    return ("number", value) if isinstance(value, int | float) else None
