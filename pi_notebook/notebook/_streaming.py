"""Growing Markdown in chunks: what is finished is rendered once, only the open block again and again."""

from __future__ import annotations

import re
from typing import Any

from ._style import lean
from .markup import parse_markdown, render_markdown

CHUNK = 2_500
"""Characters of source after which a chunk is full; the block that follows begins the next."""
_LONG = 2_500
"""Characters of an open block after which it is cut, if it is of a kind that can be."""


class StreamingMarkdown:
    """Markdown that arrives in pieces, as a list of `chunks` of sanitised HTML.

    All chunks but the last are final. A block is never moved from the chunk in which it was first seen, so nothing on
    the page jumps. The cost of an update depends on the open block alone.
    """

    def __init__(self) -> None:
        self.chunks: list[str] = [""]
        self._env: dict[str, Any] = {"references": {}}  # link definitions of finished blocks
        self._now: dict[str, Any] = {}  # and of the open end, as far as they have come
        self._held = ""
        self._tail = ""  # source from the open block on
        self._closed = ""  # HTML of the last chunk's finished blocks
        self._closed_size = 0
        self._continued = False  # the open block is the rest of a code block

    def update(self, text: str, *, final: bool = False) -> None:
        """Add `text`; with `final` nothing follows."""
        text = self._held + text
        # A carriage return may be half of a line end
        self._held = "\r" if text.endswith("\r") and not final else ""
        text = text.removesuffix("\r") if self._held else text
        self._tail += text.replace("\r\n", "\n").replace("\r", "\n")
        groups = self._parse()
        lines = self._tail.split("\n") if len(groups) > 1 else []
        start = 0
        while len(groups) > 1 and (final or _is_closed(groups[0], groups[1], lines)):
            end = groups[1][0].map[0]
            self._close(groups.pop(0), sum(len(line) + 1 for line in lines[start:end]))
            start = end
        if start:
            parse_markdown("\n".join(lines[:start]), self._env)
            self._tail = "\n".join(lines[start:])
        if not final and len(groups) == 1 and len(self._tail) > _LONG:
            if groups[0][0].type == "fence":
                groups = [self._cut_fence(groups[0][0])]
            elif groups[0][0].type in ("bullet_list_open", "ordered_list_open"):
                groups = [self._cut_list(groups[0])]
        self.chunks[-1] = self._closed + "".join(
            self._render(group, number == 0) for number, group in enumerate(groups)
        )

    def _parse(self) -> list[list[Any]]:
        self._now = {"references": dict(self._env["references"])}
        return _top_level(parse_markdown(self._tail, self._now))

    def _close(self, group: list[Any], size: int) -> None:
        self._closed += self._render(group)
        self._continued = False
        self._closed_size += size
        if self._closed_size >= CHUNK:
            self._next_chunk()

    def _next_chunk(self) -> None:
        self.chunks[-1] = self._closed
        self.chunks.append("")
        self._closed, self._closed_size = "", 0

    def _render(self, tokens: list[Any], first: bool = True) -> str:
        return lean(render_markdown(tokens, self._now, continued=first and self._continued))

    def _cut_fence(self, token: Any) -> list[Any]:
        """Finish the lines of a long open code block; what follows goes on as a block of the same language."""
        if re.search(rf"^ {{0,3}}{re.escape(token.markup)}+\s*\Z", self._tail.rstrip("\n"), re.MULTILINE):
            return [token]  # its closing line has come
        end = token.content.rfind("\n", 0, len(token.content) - 1) + 1
        if end == 0:
            return [token]
        rest = token.content[end:]
        token.content = token.content[:end]
        self._closed += self._render([token])
        self._closed_size += end
        if self._closed_size >= CHUNK:
            self._next_chunk()
        self._continued = True
        self._tail = (
            f"{token.markup}{token.info}\n{rest.removesuffix(chr(10)) if not self._tail.endswith(chr(10)) else rest}"
        )
        return self._parse()[-1]

    def _cut_list(self, tokens: list[Any]) -> list[Any]:
        """Finish all items of a long open list but the last, which begins a list that counts on."""
        whole = self._tail.count("\n")  # lines that have come to their end
        starts = [
            place
            for place, token in enumerate(tokens)
            if token.type == "list_item_open" and token.level == 1 and (place == 1 or token.map[0] < whole)
        ]
        if len(starts) < 2:
            return tokens
        last = starts[-1]
        line = tokens[last].map[0]
        self._closed += self._render([*tokens[:last], tokens[-1]])
        self._closed_size += len(self._tail)
        if self._closed_size >= CHUNK:
            self._next_chunk()
        lines = self._tail.split("\n")[line:]
        if tokens[0].type == "ordered_list_open":
            number = int(tokens[0].attrs.get("start", 1)) + len(starts) - 1
            lines[0] = re.sub(r"^( {0,3})\d{1,9}", lambda found: f"{found[1]}{number}", lines[0])
        self._tail = "\n".join(lines)
        return self._parse()[-1]


_ENDED_BY_A_BLANK_LINE = frozenset({"paragraph_open", "heading_open", "table_open", "hr", "fence"})


def _is_closed(group: list[Any], following: list[Any], lines: list[str]) -> bool:
    """Whether nothing that may still come belongs to `group`. Half a line can look like the start of another block."""
    line = following[0].map[0]
    ended = group[0].type in _ENDED_BY_A_BLANK_LINE and not lines[line - 1].strip()
    return ended or line < len(lines) - 1


def _top_level(tokens: list[Any]) -> list[list[Any]]:
    """The tokens of each top-level block."""
    groups: list[list[Any]] = []
    depth = 0
    for token in tokens:
        if depth == 0:
            groups.append([])
        groups[-1].append(token)
        depth += token.nesting
    return groups
