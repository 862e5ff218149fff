"""Arguments of a tool call as people read them: one line for a row, everything for a question, a diff for a change."""

from __future__ import annotations

import json
from typing import Any

from ..ai.json_arguments import without_lone_surrogates
from ._style import part
from .markup import code_html, visible, visible_html

_INLINE_TOTAL = 90
_INLINE_VALUE = 40
_FOLDED = 20_000
_WHOLE = 400_000


def size_of(count: int, unit: str = "characters") -> str:
    """`2.0 MB`, `34 KB` or `120 characters`."""
    if count >= 1_000_000:
        return f"{count / 1_000_000:.1f} MB"
    return f"{count / 1_000:.0f} KB" if count >= 10_000 else f"{count:,} {unit}"


def as_json(value: Any, *, indent: int | None = None, sort_keys: bool = False) -> str:
    """`value` as JSON text; what JSON cannot hold as its `repr`."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent, default=repr, sort_keys=sort_keys)
        return without_lone_surrogates(text)
    except Exception:  # the `repr` of somebody's class, too
        return f"<{type(value).__name__} that cannot be shown>"


def arguments_line(arguments: Any) -> tuple[str, bool]:
    """Plain text such as `table="sales", n=3`, and whether it holds everything."""
    if not isinstance(arguments, dict):
        text = arguments if isinstance(arguments, str) else as_json(arguments)
        return _clip(text, _INLINE_TOTAL)
    pieces: list[str] = []
    whole, left = True, _INLINE_TOTAL
    for key, value in arguments.items():
        name, name_whole = _clip(str(key), _INLINE_VALUE)
        text, value_whole = _clip_value(
            value, max(12, min(left, _INLINE_VALUE if len(arguments) > 1 else _INLINE_TOTAL))
        )
        piece = f"{name}={text}"
        whole = whole and name_whole and value_whole
        if pieces and len(piece) > left:
            pieces.append("…")
            return ", ".join(pieces), False
        pieces.append(piece)
        left -= len(piece) + 2
    return ", ".join(pieces), whole


def _clip_value(value: Any, limit: int) -> tuple[str, bool]:
    if isinstance(value, str) and len(value) > limit:
        return as_json(value[: limit - 1])[:-1] + "…", False
    return _clip(as_json(value), limit)


def _clip(text: str, limit: int) -> tuple[str, bool]:
    text = text[: 4 * limit] if len(text) > 4 * limit else text
    flat = " ".join(text.split("\n"))
    clipped = flat if len(flat) <= limit else flat[: limit - 1] + "…"
    shown = visible(clipped)
    return shown, shown == text


def arguments_html(arguments: Any, *, whole: bool = False) -> str:
    """One entry per argument, text as text, with hidden characters made visible_html.

    `whole` (a question stands) shows all of it; for what is too much for a page (`fits_question`) it says what is left
    out.
    """
    left = _WHOLE if whole else _FOLDED
    if not isinstance(arguments, dict):
        return f"<div{part('pre')}>{_cut_html(_value_text(arguments), left)}</div>"
    pieces: list[str] = []
    for key, value in arguments.items():
        text = _value_text(value)
        pieces.append(
            f"<div{part('arg')}><span{part('key')}>{visible_html(str(key)[:500])}</span>"
            f'<div{part("pre", "argument")} dir="auto">{_cut_html(text, left)}</div></div>'
        )
        left = max(0, left - len(text))
    return "".join(pieces) or f"<div{part('muted')}>no arguments</div>"


def fits_question(arguments: Any) -> bool:
    """Whether a question can show these arguments whole, as it must before they may be approved."""
    if not isinstance(arguments, dict):
        return len(_value_text(arguments)) <= _WHOLE
    texts = [text for key, value in arguments.items() for text in (str(key)[500:], _value_text(value))]
    return sum(map(len, texts)) <= _WHOLE


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return value if "\n" in value else as_json(value)
    return as_json(value, indent=2 if isinstance(value, dict | list) and len(as_json(value)) > 60 else None)


def _cut_html(text: str, left: int) -> str:
    if len(text) <= left:
        return visible_html(text)
    rest = size_of(len(text) - left)
    return f"{visible_html(text[:left])}<div{part('amber', 'small')}>{rest} more, not shown</div>"


def change_html(before: Any, after: Any) -> str:
    """What an edit changed, as a coloured diff; "" if nothing."""
    text = change_text(before, after)
    return f"<pre{part('pre')}>{code_html(text, 'diff')}</pre>" if text else ""


def change_text(before: Any, after: Any) -> str:
    """What an edit changed, argument by argument, hidden characters named; "" if nothing."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        before, after = {"arguments": before}, {"arguments": after}
    lines: list[str] = []
    for key in dict.fromkeys([*before, *after]):
        values = [arguments[key] for arguments in (before, after) if key in arguments]
        if len(values) < 2 or not same_json(*values):
            lines += _changed_lines(str(key), values, added=key not in before)
    return "\n".join(lines)


def same_json(one: Any, other: Any) -> bool:
    """Whether both say the same as JSON, where 1, 1.0 and true differ and the order of keys does not count."""
    return as_json(one, sort_keys=True) == as_json(other, sort_keys=True)


def _changed_lines(key: str, values: list[Any], added: bool) -> list[str]:
    """`- limit: 10` and `+ limit: 5`; of longer values the lines that differ, under the name."""
    import difflib

    name = visible(key[:_INLINE_VALUE])
    raw = all(isinstance(value, str) for value in values) and any("\n" in value for value in values)
    texts = [value if raw else _value_text(value) for value in values]
    shown = [visible(text[:_FOLDED], keep_newlines=True).split("\n") for text in texts]
    old, new = shown if len(shown) == 2 else ([], shown[0]) if added else (shown[0], [])
    if len(old) <= 1 and len(new) <= 1:
        return [f"{sign} {name}: {line}" for sign, lines in (("-", old), ("+", new)) for line in lines]
    changed = [line for line in difflib.unified_diff(old, new, n=0, lineterm="") if not line.startswith("@@")]
    body = [f"{line[0]}     {line[1:]}" for line in changed[2:]]
    return [f"  {name}:", *(body or ["      (it changed after what is shown of it)"])]
