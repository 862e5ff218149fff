"""One token of a prompt as a value that a JSON Schema takes, and conditions said in words: for `practice`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from ._practice_words import Token, stem, tokens

NOTHING: Any = object()

_WORDS = "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"
NUMBER_WORDS = {
    word: number
    for number, word in enumerate(_WORDS)
    if word != "one"  # "one column" counts nothing
}
_COMPARISONS = {
    r"(?:less|smaller|lower|fewer)\s+than|below|under": "<",
    r"(?:greater|more|larger|bigger|higher)\s+than|above|over|exceeds?": ">",
    r"at\s+least": ">=",
    r"at\s+most|up\s+to": "<=",
    r"not\s+equal\s+to|is\s+not|not|isn't|differs\s+from": "!=",
    r"equal\s+to|equals|is|are": "==",
}
_COMPARED = re.compile(
    rf"""(?:\b(?P<joint>and|or)\s+)?\b(?!(?:is|are|and|or)\b)(?P<name>\w+)
    (?:\s+(?:(?:is|are)\s+)?(?P<words>{"|".join(_COMPARISONS)})\s+ | \s*(?P<sign><=|>=|==|!=|<|>|=)\s*)
    (?P<value>-?\d+(?:\.\d+)?|"[^"]*"|'[^']*')""",
    re.IGNORECASE | re.VERBOSE,
)


def resolved(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """A property's schema without `$ref` and without the null of an optional one."""
    for _ in range(8):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        choices = schema.get("anyOf") or schema.get("oneOf") or ()
        real = [choice for choice in choices if not (isinstance(choice, Mapping) and choice.get("type") == "null")]
        if isinstance(reference, str) and reference.startswith("#/"):
            target: Any = root
            for part in reference[2:].split("/"):
                target = target.get(part, {}) if isinstance(target, Mapping) else {}
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        elif real:
            rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
            schema = {**rest, **(real[0] if isinstance(real[0], Mapping) else {})}
        else:
            break
    found: dict[str, Any] = dict(schema)
    if isinstance(found.get("type"), list):
        found["type"] = next((kind for kind in found["type"] if kind != "null"), "string")
    if "const" in found:
        found["enum"] = [found["const"]]
    return found


def condition(text: str) -> tuple[str, int, int] | None:
    """A condition said in words or operators as an expression, with the place where it stood."""
    if word := re.search(r"\b(negative|positive|missing|empty)\s+(\w+)", text, re.IGNORECASE):
        sign = {"negative": " < 0", "positive": " > 0"}.get(word[1].lower(), ".isna()")
        return f"{word[2]}{sign}", *word.span()
    if word := re.search(r"\b(\w+)\s+(?:is|are)\s+(negative|positive|missing|empty)\b", text, re.IGNORECASE):
        sign = {"negative": " < 0", "positive": " > 0"}.get(word[2].lower(), ".isna()")
        return f"{word[1]}{sign}", *word.span()
    parts: list[str] = []
    start = end = -1
    for match in _COMPARED.finditer(text):
        said = (match["words"] or "").lower()
        sign = next((sign for words, sign in _COMPARISONS.items() if re.fullmatch(words, said)), match["sign"])
        joined = f" {(match['joint'] or 'and').lower()} " if parts else ""
        parts.append(f"{joined}{match['name']} {'==' if sign == '=' else sign} {match['value']}")
        start, end = (match.start("name") if start < 0 else start), match.end()
    return ("".join(parts), start, end) if parts else None


def convert(token: Token, schema: Mapping[str, Any]) -> Any:
    """The token as a value that `schema` takes, or NOTHING."""
    if token.kind in ("mark", "operator"):
        return NOTHING
    if schema.get("enum"):
        same = [value for value in schema["enum"] if _says(token, value)]
        return same[0] if same else NOTHING
    kind = schema.get("type", "string")
    value = _BY_TYPE.get(str(kind), _as_text)(token, schema)
    return value if value is not NOTHING and fits(value, schema) else NOTHING


def _says(token: Token, value: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return bool(_as_number(token, {}) == value)
    text = token.text.lower()
    return text == str(value).lower() or (
        token.kind == "word" and " " not in str(value) and token.key == stem(str(value))
    )


def _as_number(token: Token, schema: Mapping[str, Any]) -> Any:
    text = token.text.replace(",", "").lower()
    if token.kind == "word" and text in NUMBER_WORDS:
        return NUMBER_WORDS[text]
    if token.kind not in ("number", "quoted"):
        return NOTHING
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return NOTHING
    if schema.get("type") == "integer":
        return int(number) if number.is_integer() else NOTHING
    return number


def _as_bool(token: Token, schema: Mapping[str, Any]) -> Any:
    return {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}.get(
        token.text.lower(), NOTHING
    )


def _as_json(token: Token, schema: Mapping[str, Any]) -> Any:
    wanted = list if schema.get("type") == "array" else dict
    if token.kind not in ("json", "quoted"):
        return NOTHING
    try:
        value = json.loads(token.text)
    except ValueError:
        inner = tokens(token.text[1:-1])
        item = resolved(schema.get("items", {}), {})
        if wanted is not list or not token.text.startswith("["):
            return NOTHING
        value = [convert(piece, item) for piece in inner if piece.kind != "mark"]
    return value if isinstance(value, wanted) and NOTHING not in value else NOTHING


def _as_text(token: Token, schema: Mapping[str, Any]) -> Any:
    if token.kind == "json":
        return NOTHING
    if str(schema.get("format", "")).startswith("date") and token.kind not in ("date", "quoted"):
        return NOTHING
    return re.sub(r"['’]s$", "", token.text) if token.kind == "word" else token.text


_BY_TYPE: Mapping[str, Callable[[Token, Mapping[str, Any]], Any]] = {
    "number": _as_number,
    "integer": _as_number,
    "boolean": _as_bool,
    "array": _as_json,
    "object": _as_json,
    "string": _as_text,
}


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Bounds, pattern and enum of a schema; what else it says is for the validation of the call."""
    if isinstance(value, str):
        pattern = schema.get("pattern")
        try:
            if isinstance(pattern, str) and not re.search(pattern, value):
                return False
        except re.error:  # a dialect of regular expressions that Python does not read
            pass
        return not schema.get("enum") or value in schema["enum"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum"), schema.get("maximum")
        above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        return not (
            (_number(low) and value < low)
            or (_number(high) and value > high)
            or (_number(above) and value <= above)
            or (_number(below) and value >= below)
        )
    return True


def _number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
