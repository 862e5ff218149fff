"""Any Python value as Python writes it: for a variable in a prompt, whose author thinks of `None`, not of null."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from ._json_form import MAX_DEPTH, fields_of, is_listed, json_form, safe_text

_WRITTEN_AS_THEY_ARE = (type(None), bool, int, float, complex, str, range)


def python_text(value: Any, _above: tuple[int, ...] = ()) -> str:
    """One line. Tuples, sets and `None` stay what they are; sets are sorted, objects with fields are dicts of those
    that their `repr` shows, and what Python could only write as a call (a date, a path) is its text, in quotes only
    inside of something. Circles and what lies deeper than `MAX_DEPTH` become "..."."""
    if type(value) in _WRITTEN_AS_THEY_ARE:
        return repr(value)
    if id(value) in _above or len(_above) >= MAX_DEPTH:
        return "..."
    above = (*_above, id(value))
    fields = value if isinstance(value, Mapping) else fields_of(value)
    if fields is not None:
        return "{" + ", ".join(f"{python_text(k, above)}: {python_text(v, above)}" for k, v in fields.items()) + "}"
    if isinstance(value, Set) or is_listed(value):
        return _of_items(value, [python_text(item, above) for item in value])
    form = json_form(value)
    if form is None:  # NaN, pandas' NA and NaT: their own text tells more
        return safe_text(value)
    return form if isinstance(form, str) and not _above else python_text(form, above)


def _of_items(value: Any, items: list[str]) -> str:
    if isinstance(value, tuple):
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if not isinstance(value, Set):
        return f"[{', '.join(items)}]"
    text = "{" + ", ".join(sorted(items)) + "}" if items else ""
    return f"frozenset({text})" if isinstance(value, frozenset) else text or "set()"
