"""Which parts of a prompt are taken literally: code, `{{...}}`, `${...}`, `\\cmd{...}`, and `x_{...}` in `$...$`.

All of it takes time in proportion to the text's length.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator

Span = tuple[int, int]

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r"[ \t]*(?:(?:>|[-*+]|\d{1,9}[.)])[ \t]*)*(`{3,}(?=[^`]*$)|~{3,})")
_CLOSING = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*$")
_BACKTICKS = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n(?=[ \t]*\r?\n)")
# A price is no formula: as Pandoc has it, no space stands inside the dollars, and no digit behind
_FORMULA = re.compile(r"\$\$[^$]+\$\$|\$(?=\S)[^$\n]+(?<=\S)\$(?!\d)")
_SCRIPT = re.compile(r"[_^](?=\{)")
_LATEX_COMMAND = re.compile(r"\\[A-Za-z]+\*?")
_LATEX_OPTION = re.compile(r"\[[^\[\]\n]*\]")
_LATEX_SCRIPT = re.compile(r"[_^](?:[^\s\\{}]|(?=\{))")


def literal_spans(text: str) -> list[Span]:
    """Spans of `text` in which no field is looked for, in order, none inside another."""
    code = code_spans(text)
    partner = _partners(text, code)
    kinds = (_double_braces, _dollar_braces, _latex, _formula_scripts)
    spans = sorted([*code, *(span for kind in kinds for span in kind(text, partner))])
    outer: list[Span] = []
    for start, end in spans:
        if outer and start < outer[-1][1]:
            outer[-1] = (outer[-1][0], max(end, outer[-1][1]))
        else:
            outer.append((start, end))
    return outer


def code_spans(text: str) -> list[Span]:
    """Fenced blocks (one that is not closed goes to the end; also in lists and quotes) and inline code of Markdown."""
    fences = list(_fences(text))
    return sorted([*fences, *_inline_code(text, fences)])


def is_inside(position: int, spans: list[Span]) -> bool:
    """Whether one of the ordered, disjoint `spans` holds `position`."""
    at = bisect_right(spans, (position, sys.maxsize)) - 1
    return at >= 0 and spans[at][0] <= position < spans[at][1]


def _fences(text: str) -> Iterator[Span]:
    opened: tuple[int, str] | None = None
    at = 0
    for line in _LINE.findall(text):
        content = line.rstrip("\r\n")
        if opened is None:
            if match := _FENCE.match(content):
                opened = (at, match[1])
        elif (match := _CLOSING.match(content)) and match[1].startswith(opened[1]):
            yield opened[0], at + len(line)
            opened = None
        at += len(line)
    if opened is not None:
        yield opened[0], len(text)


def _inline_code(text: str, fences: list[Span]) -> Iterator[Span]:
    """A run of backticks, to the next run of the same length in its paragraph."""
    borders = sorted([match.start() for match in _BLANK_LINE.finditer(text)] + [start for start, _ in fences])
    runs = [run.span() for run in _BACKTICKS.finditer(text) if not is_inside(run.start(), fences)]
    following: list[int | None] = [None] * len(runs)
    last: dict[tuple[int, int], int] = {}
    for number in reversed(range(len(runs))):
        start, end = runs[number]
        kind = (end - start, bisect_right(borders, start))
        following[number] = last.get(kind)
        last[kind] = number
    number = 0
    while number < len(runs):
        closing = following[number]
        if closing is not None:
            yield runs[number][0], runs[closing][1]
            number = closing
        number += 1


def _partners(text: str, code: list[Span]) -> dict[int, int]:
    """Where the closing brace of each opening one is, outside of code; those without a partner are left out."""
    partner: dict[int, int] = {}
    opened: list[int] = []
    for match in re.finditer(r"[{}]", text):
        if is_inside(match.start(), code):
            continue
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            partner[opened.pop()] = match.start()
    return partner


def _double_braces(text: str, partner: dict[int, int]) -> Iterator[Span]:
    at = text.find("{{")
    while at >= 0:
        end = partner[at] + 1 if at in partner else at + 2
        yield at, end
        at = text.find("{{", end)


def _dollar_braces(text: str, partner: dict[int, int]) -> Iterator[Span]:
    for match in re.finditer(r"\$(?=\{)", text):
        brace = match.end()
        yield brace, partner.get(brace, brace) + 1


def _latex(text: str, partner: dict[int, int]) -> Iterator[Span]:
    """All arguments of a command: `\\frac{a}{b}`, `\\sqrt[3]{x}`, `\\sum_{i}^{n}`."""
    for match in _LATEX_COMMAND.finditer(text):
        at = match.end()
        while at < len(text):
            if text[at] == "{":
                end = partner.get(at, at) + 1
            elif part := (_LATEX_OPTION.match(text, at) or _LATEX_SCRIPT.match(text, at)):
                end = part.end()
            else:
                break
            if text[at] == "{" and at not in partner:
                yield at, end
                break
            at = end
        if at > match.end():
            yield match.end(), at


def _formula_scripts(text: str, partner: dict[int, int]) -> Iterator[Span]:
    """Sub- and superscripts of a formula: `$x_{i}^{2}$`."""
    for formula in _FORMULA.finditer(text):
        for script in _SCRIPT.finditer(text, *formula.span()):
            brace = script.end()
            yield brace, partner.get(brace, brace) + 1
