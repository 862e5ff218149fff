"""The JSON text of a tool call's arguments: a strict reading of what runs, a forgiving one of what is shown.

`call_arguments` and `parse_arguments` read the complete text; nothing they return was guessed. `partial_arguments`
reads a text that is still arriving and is for show only. Both remove lone surrogates, which no later encoding to
UTF-8 would survive.

Two harmless slips of models are read as what they plainly mean, as in pi: a raw control character inside a string,
and a backslash before a character that JSON does not escape (`"\\d"` written as `"\\d"`).
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from ..errors import PiNotebookError

MAX_DEPTH = 100  # far below where Python's own recursion ends, so that whatever is read can also be sent back
_TOO_DEEP = f"it is nested more than {MAX_DEPTH} levels deep"
_BLANK = " \t\r\n"
_BLANKS = re.compile(r"[ \t\r\n]*")
_BYTE_ORDER_MARK = "\ufeff"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r'\\(["\\/bfnrtu])|\\')
_CONTROL_CHARACTER = re.compile("[\x00-\x1f]")
# The end of a string that was cut inside an escape, or between the two halves of a surrogate pair.
_CUT_ESCAPE = re.compile(r"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z")
_TRAILING_COMMA = re.compile(r",\s*(?=[]}\s]*\Z)")


class InvalidArgumentsError(PiNotebookError):
    """A text of arguments is not a JSON object. The message says what was wrong, where, and whether it was cut off."""


def call_arguments(text: Any) -> list[Any]:
    """What `ToolCall.arguments` becomes, one item per call, for the complete text of one call. Never raises.

    Empty or blank text is one call with `{}`; several whole objects in a row are several calls. Any other JSON
    value is returned as it is and anything else as the text itself: such a call does not run. What is no text (some
    servers send an object) is taken as the JSON value that it is.
    """
    if not isinstance(text, str):
        return [text if is_deeper_than(MAX_DEPTH, [text]) else _clean(text)]
    try:
        values = _read_values(text)
    except InvalidArgumentsError:
        return [without_lone_surrogates(text)]
    if len(values) == 1 or all(isinstance(value, dict) for value in values):
        return values
    return [without_lone_surrogates(text)]


def parse_arguments(text: str) -> list[dict[str, Any]]:
    """The objects in a complete text, at least one: blank text is `{}`.

    Raises:
        InvalidArgumentsError: The text is anything but JSON objects.
    """
    values = _read_values(text)
    for value in values:
        if not isinstance(value, dict):
            raise InvalidArgumentsError(f"it holds {_kind(value)} where a JSON object is expected")
    return values


def partial_arguments(text: str) -> Any:
    """What has arrived of a value, for show only: a string or an object still open is given as far as it goes.

    A complete text gives its value; of a text that cannot be read, or of which nothing has come, `{}`.
    The cost grows with the text, so a caller that streams must not call this for every piece.
    """
    from pydantic_core import from_json

    text = without_lone_surrogates(text).lstrip(_BLANK + _BYTE_ORDER_MARK)
    if not text:
        return {}
    try:
        return from_json(text, allow_inf_nan=False, allow_partial="trailing-strings")
    except ValueError:
        pass
    try:
        return _read_values(text)[0]
    except InvalidArgumentsError:
        pass
    try:
        return _clean(from_json(_mend_cut_text(text), allow_inf_nan=False, allow_partial="trailing-strings"))
    except ValueError:
        return {}


def without_lone_surrogates(text: str) -> str:
    """`text` without halves of surrogate pairs; two halves that belong together become their character."""
    if text.isascii() or not _LONE_SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")


def _read_values(text: str) -> list[Any]:
    """All JSON values in `text`, one after another; blank text is `[{}]`."""
    try:
        return _cleaned(text, _decode_all(text))
    except InvalidArgumentsError as error:
        problem = error
    mended = _mend_escapes(text)
    try:
        return _cleaned(mended, _decode_all(mended))
    except InvalidArgumentsError:
        raise problem from None  # which names the place in the text as it was sent


def _decode_all(text: str) -> list[Any]:
    values = []
    position = _skip_blank(text, 1 if text.startswith(_BYTE_ORDER_MARK) else 0)
    while position < len(text):
        try:
            value, end = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise InvalidArgumentsError(_explain(text, error)) from None
        except RecursionError:
            raise InvalidArgumentsError(_TOO_DEEP) from None
        except ValueError as error:
            raise InvalidArgumentsError(str(error)) from None
        values.append(value)
        position = _skip_blank(text, end)
    # Every level needs a bracket, so the walk is for suspicious texts only.
    if text.count("[") + text.count("{") > MAX_DEPTH and is_deeper_than(MAX_DEPTH, values):
        raise InvalidArgumentsError(_TOO_DEEP)
    return values or [{}]


def is_deeper_than(levels: int, values: list[Any]) -> bool:
    """Whether some list or object in `values` is nested more than `levels` deep. Does not recurse."""
    level = [value for value in values if isinstance(value, dict | list)]
    for _ in range(levels):
        level = [
            item
            for value in level
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


def _explain(text: str, error: json.JSONDecodeError) -> str:
    """What a model needs to mend the text: the place, what surrounds it, and whether the text just ended."""
    opened_string = error.msg.startswith("Unterminated string")
    if opened_string or error.pos >= len(text.rstrip(_BLANK)):
        inside = "inside a string" if opened_string else "before the value was complete"
        return f"it was cut off {inside}, after {len(text)} characters (it ends with {_quote(text[-30:])})"
    near = _quote(text[max(0, error.pos - 15) : error.pos + 15])
    reason = error.msg[0].lower() + error.msg[1:]
    return f"{reason} at line {error.lineno} column {error.colno} (near {near})"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:30]} is too large")
    return number


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # Python's own limit on digits
        raise ValueError(f"a number of {len(digits)} digits is too large") from None


# `strict=False` is what accepts control characters inside strings.
_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_integer)


def _skip_blank(text: str, position: int) -> int:
    found = _BLANKS.match(text, position)
    return found.end() if found else position


def _mend_escapes(text: str) -> str:
    return _ESCAPE.sub(lambda found: found[0] if found[1] else r"\\", text)


def _mend_cut_text(text: str) -> str:
    """`text` as pydantic's partial parser accepts it: no raw control characters, cut escapes or dangling comma."""
    text = _CONTROL_CHARACTER.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    cut = _CUT_ESCAPE.search(text)
    if cut and cut[0]:
        backslashes = len(text[: cut.start()]) - len(text[: cut.start()].rstrip("\\"))
        if backslashes % 2 == 0:  # else the cut escape is itself escaped
            text = text[: cut.start()]
    return _TRAILING_COMMA.sub("", _mend_escapes(text))


def _cleaned(text: str, values: list[Any]) -> list[Any]:
    """Remove lone surrogates, which come raw or as escapes; the search keeps the usual case cheap."""
    if "\\u" not in text and (text.isascii() or not _LONE_SURROGATE.search(text)):
        return values
    return [_clean(value) for value in values]


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return without_lone_surrogates(value)
    if isinstance(value, dict):
        return {without_lone_surrogates(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return "text" if isinstance(value, str) else "a list"


def _quote(text: str) -> str:
    return json.dumps(without_lone_surrogates(text), ensure_ascii=False)
