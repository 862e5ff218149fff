"""Hostile text as Markdown that is safe wherever it is rendered, raw HTML switched on or not.

Front ends render `text/markdown` of a trusted notebook with HTML, remote images and any link. Which stretch of a text
is code, and so harmless, differs between parsers. So nothing here trusts a parser: what is written out is made anew
from parsed tokens, and holds no `<` of anybody else's, no image, no link but to the web, whatever is read as code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from ..ai.json_arguments import without_lone_surrogates
from .markup import LINK_SCHEMES, parse_markdown

_SPECIAL = re.compile(r"([\\`*_\[\]~|$])")
# Headings, bullets, rules and underlines; and the dot of a list's number
_LINE_START = re.compile(r"^(\s*)(#{1,6}(?=\s|$)|[+-](?=\s|$)|[-=:]+(?=[-=:\s]*$))", re.MULTILINE)
_LIST_NUMBER = re.compile(r"^(\s*\d{1,9})([.)])(?=\s|$)", re.MULTILINE)
# What could do harm if a parser did not take it for code.
_HARMFUL = re.compile(r"[<&$\x00]|\\[(\[]|\]\s*[(\[:]|!\[")
_ENTITY = re.compile(r"[&<>\"'$\\\[\]()!*_`~|{}:]")


def escape_markdown(text: str) -> str:
    """`text` as Markdown that shows exactly it, without any markup."""
    text = without_lone_surrogates(text).replace("\x00", "\ufffd")
    text = _SPECIAL.sub(r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    text = _LINE_START.sub(r"\1\\\2", text)
    return _LIST_NUMBER.sub(r"\1\\\2", text)


def code_span(text: str) -> str:
    """`text` as inline code, or as escaped text where that could do harm."""
    text = " ".join(without_lone_surrogates(text).split("\n"))
    if not text.strip() or "`" in text or _HARMFUL.search(text):
        return escape_markdown(text)
    return f"`{text}`"


def code_block(text: str, language: str = "") -> str:
    """`text` as a block of code: a fence, or `<pre>` with everything encoded where a fence could do harm."""
    text = without_lone_surrogates(text).rstrip("\n")
    if _HARMFUL.search(text):
        encoded = _ENTITY.sub(lambda found: f"&#{ord(found[0])};", text.replace("\x00", "\ufffd"))
        return f"<pre>{encoded}</pre>"
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    language = language if re.fullmatch(r"[A-Za-z0-9_+#.-]{0,30}", language) else ""
    return f"{fence}{language}\n{text}\n{fence}"


def safe_markdown(source: str) -> str:
    """Markdown rewritten so that nothing in it runs or loads."""
    return _blocks(_Reader(parse_markdown(source, {})), None)


class _Reader:
    """Tokens with a place in them."""

    def __init__(self, tokens: Sequence[Any]) -> None:
        self.tokens = tokens
        self.place = 0

    def take(self) -> Any:
        self.place += 1
        return self.tokens[self.place - 1] if self.place <= len(self.tokens) else None


def _blocks(reader: _Reader, until: str | None, *, tight: bool = False) -> str:
    """Blocks up to the token of type `until`."""
    blocks = []
    while (token := reader.take()) is not None and token.type != until:
        match token.type:
            case "paragraph_open" | "heading_open":
                text = _inline(reader.take().children)
                reader.take()
                marks = "#" * min(6, int(token.tag[1]) + 2) + " " if token.tag.startswith("h") else ""
                blocks.append(marks + (text.replace("\n", " ") if marks else text))
            case "fence" | "code_block":
                language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
                blocks.append(code_block(token.content, language))
            case "bullet_list_open" | "ordered_list_open":
                blocks.append(_list(reader, token))
            case "blockquote_open":
                inner = _blocks(reader, "blockquote_close")
                blocks.append("\n".join(f"> {line}".rstrip() for line in inner.split("\n")))
            case "table_open":
                blocks.append(_table(reader))
            case "hr":
                blocks.append("---")
    return ("\n" if tight else "\n\n").join(blocks)


def _list(reader: _Reader, opening: Any) -> str:
    number = int(opening.attrs.get("start", 1)) if opening.type.startswith("ordered") else None
    items = []
    while (token := reader.take()) is not None and token.type == "list_item_open":
        marker = "- " if number is None else f"{number}. "
        body = _blocks(reader, "list_item_close")
        indent = " " * len(marker)
        items.append(marker + "\n".join(f"{indent}{line}" if line else "" for line in body.split("\n"))[len(indent) :])
        number = None if number is None else number + 1
    return "\n".join(items)


def _table(reader: _Reader) -> str:
    rows: list[list[str]] = []
    aligns: list[str] = []
    while (token := reader.take()) is not None and token.type != "table_close":
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            if token.type == "th_open":
                aligns.append(str(token.attrs.get("style", "")))
            rows[-1].append(_inline(reader.take().children).replace("\n", " "))
    rules = {"text-align:right": "--:", "text-align:center": ":-:", "text-align:left": ":--"}
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, f"| {' | '.join(rules.get(align, '---') for align in aligns)} |")
    return "\n".join(lines)


_MARKS = {
    "strong_open": "**",
    "strong_close": "**",
    "em_open": "*",
    "em_close": "*",
    "s_open": "~~",
    "s_close": "~~",
    "hardbreak": "\\\n",
    "softbreak": "\n",
    "dollar": "\\$",
}


def _inline(tokens: Sequence[Any]) -> str:
    pieces: list[str] = []
    targets: list[str] = []
    for token in tokens:
        match token.type:
            case "text" | "text_special":
                pieces.append(escape_markdown(token.content))
            case "code_inline":
                pieces.append(code_span(token.content))
            case "math":
                pieces.append(_math(token.content))
            case "link_open":
                targets.append(_target(str(token.attrs.get("href", ""))))
                pieces.append("[" if targets[-1] else "")
            case "link_close":
                target = targets.pop() if targets else ""
                pieces.append(f"]({target})" if target else "")
            case "image":
                target = _target(str(token.attrs.get("src", "")))
                name = "image: " + escape_markdown(token.content or "without a name")
                pieces.append(f"[{name}]({target})" if target and not targets else f"({name})")
            case _:
                pieces.append(_MARKS.get(token.type, escape_markdown(token.content)))
    return "".join(pieces)


def _target(address: str) -> str:
    """A web address that cannot end the link it stands in; "" for any other."""
    scheme, colon, _ = address.partition(":")
    if not colon or scheme.lower() not in LINK_SCHEMES:
        return ""
    return quote(without_lone_surrogates(address), safe="/:?#@!,;=%+-._~")


def _math(formula: str) -> str:
    """A formula goes to the front end as it is, which sets it from the text and not from HTML."""
    formula = formula.replace("<", r"\lt ")
    if "`" in formula or "&" in formula or re.search(r"\]\s*[(\[:]|!\[|\n\s*\n", formula):
        return escape_markdown(formula)
    return formula
