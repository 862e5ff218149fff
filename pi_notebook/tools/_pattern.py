"""Patterns of our own search, read as ripgrep reads them, by the package `regex`.

Where the two differ in common patterns the pattern is changed: case is folded letter by letter (`SS` is no `ß`), names
like `[[:alpha:]]` mean ASCII, and no class and no dot matches a carriage return or a byte that is no UTF-8.
docs/builtin-tools.md names what is left.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from ..errors import ToolError

_SEES_NEIGHBOURS = re.compile(r"\\[^wWdDsSbB.\[\](){}^$|?*+/\\\-]|\(\?(?!:)|[+*?}]\+")
"""In patterns that may match a line alone and yet not find it among others: anchors of the whole text, looking around,
parts that do not give back. Anything that is not known to be harmless counts."""
_FIRST_REPEATED = re.compile(r"(\\[wWdDsS]|\[\^?[^][\\^][^][\\]*\]|[^][\\(){}^$|?*+#\s])([+*])\??(?![+*?{])")
_TURKISH = "\u0130\u0131"
"""The two kinds of i that the package takes for the same as I and i."""
_IS_TURKISH = f"(?-i:[{_TURKISH}])"
_ODD = re.compile(f"[\r\udc80-\udcff{_TURKISH}]")
_TOKEN = r"""(?V1x)
      (?<group>  \( \? (?: P?<\w+> | P[=>]\w+ | &\w+ | [\w-]+ )? )
    | (?<class>  \[ \^? \]? (?: \[:\^?\w+:\] | (?&class) | \\. | [^\]\\] )* \] )
    | (?<any>    \. | \\[dDhHNsSvVwW] | \\[pP] (?: \{[^}]*\} | . ) )
    | (?<escape> \\. )
    | (?<letter> [iI] )
    | (?<turkish> [\u0130\u0131] )
"""
_ASCII = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


class Pattern:
    """A regular expression, or a plain text.

    Raises:
        ToolError: It is no regular expression.
    """

    def __init__(self, text: str, *, ignore_case: bool, literal: bool) -> None:
        import regex

        self._ignore_case = ignore_case
        self._flags: Any = regex.VERSION1 | regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0)
        self._source = text = regex.escape(text) if literal else text
        self._is_odd = _is_odd(text)
        self._sees_more = not literal and _SEES_NEIGHBOURS.search(text) is not None
        try:
            self._pattern = regex.compile(text, self._flags)
        except regex.error as error:
            raise ToolError(
                f"The pattern is no regular expression: {error}. Set literal to true to search for it as plain text."
            ) from error
        if not literal:
            self._source = _in_ascii(_without_first_repetition(text))
        self._pattern = self._changed(self._source)

    def is_in_line(self, line: str, seconds: float) -> bool:
        """Whether it is in a line, given as `decoded` and without its end; `TimeoutError` if it takes too long."""
        pattern = self._careful if self._is_odd or _is_odd(line) else self._pattern
        return pattern.search(line, timeout=seconds, concurrent=True) is not None

    def may_be_in(self, lines: bytes, seconds: float) -> bool:
        """Whether it may be in any of several lines; quick, and never wrongly false."""
        if self._sees_more or self._is_odd:
            return True
        text = decoded(lines.replace(b"\r\n", b"\n"))
        try:
            return _is_odd(text) or self._pattern.search(text, timeout=seconds, concurrent=True) is not None
        except TimeoutError:
            return True

    @functools.cached_property
    def _careful(self) -> Any:
        """For lines with characters of which the two engines think differently; slower."""
        import regex

        return self._changed(regex.sub(_TOKEN, self._guarded, self._source))

    def _changed(self, source: str) -> Any:
        """`source` as a pattern, or the pattern so far, where it has syntax that no change here knows."""
        import regex

        try:
            return regex.compile(f"(?-f){source}", self._flags)  # -f: without it `SS` is `ß`
        except regex.error:
            return self._pattern

    def _guarded(self, token: Any) -> str:
        """A token that matches nothing which ripgrep would not match with it."""
        text = str(token[0])
        if token["class"] and self._ignore_case:
            text = f"(?:(?!{_IS_TURKISH}){text}|(?={_IS_TURKISH})(?-i:{text}))"
        if token["class"] or token["any"]:
            return f"(?:(?![\r\udc80-\udcff]){text})"
        if self._ignore_case and token["letter"]:
            return f"(?:(?!{_IS_TURKISH}){text})"
        return f"(?-i:{text})" if token["turkish"] else text


def _is_odd(text: str) -> bool:
    is_plain = text.isascii() and "\r" not in text  # in a fraction of the time
    return not is_plain and _ODD.search(text) is not None


def _without_first_repetition(pattern: str) -> str:
    """`x+y` is in a line if `xy` is, and `x*y` if `y` is: what takes the square of a line's length takes its length."""
    first = _FIRST_REPEATED.match(pattern)
    if first is None:
        return pattern
    return (first[1] if first[2] == "+" else "") + pattern[first.end() :]


def _in_ascii(pattern: str) -> str:
    """`[[:alpha:]]` as `[[A-Za-z]]`: to ripgrep these names mean ASCII alone."""
    import regex

    def named(name: re.Match[str]) -> str:
        return f"[{name[1]}{_ASCII[name[2]]}]" if name[2] in _ASCII else name[0]

    def rewritten(token: Any) -> str:
        return re.sub(r"(?<!^)\[:(\^?)(\w+):\]", named, token[0]) if token["class"] else str(token[0])

    return str(regex.sub(_TOKEN, rewritten, pattern)) if "[:" in pattern else pattern


def decoded(data: bytes) -> str:
    """As UTF-8, with each byte that is none as a character of its own, which nothing else is."""
    return data.decode("utf-8", "surrogateescape")
