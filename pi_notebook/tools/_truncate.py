"""Cutting long text for a model: on character and line bounds, with what was left out counted."""

from __future__ import annotations

from dataclasses import dataclass

from ..agent._cut import MAX_BYTES, MAX_LINES, readable_size

MAX_LINE_CHARACTERS = 500
"""Of a line that a search shows."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A part of a text.

    Args:
        text: What was kept: whole lines, except where a single line alone is over the limit.
        lines: Lines in `text`.
        total_lines, total_bytes: Of the whole text; bytes as UTF-8.
        kept_bytes: Of `text`.
        by: The limit that was hit: `lines`, `bytes`, or empty if nothing was cut.
        inside_line: A line had to be cut within.
    """

    text: str
    lines: int
    total_lines: int
    total_bytes: int
    kept_bytes: int
    by: str = ""
    inside_line: bool = False

    @property
    def left_out(self) -> str:
        """What is missing, for example `120 lines (4.1 KB)`; empty if nothing is."""
        if not self.by:
            return ""
        lines, missing = self.total_lines - self.lines, readable_size(self.total_bytes - self.kept_bytes)
        return f"{count(lines, 'line')} ({missing})" if lines else missing


def count(number: int, noun: str) -> str:
    """`1 line`, `1,200 lines`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}" + ("es" if noun.endswith(("ch", "s")) else "s")


def well_formed(text: str) -> str:
    """`text` with lone surrogates, which UTF-8 cannot hold, replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def cut_head(text: str, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Cut:
    """The beginning of `text`; lines end at `\\n`."""
    return _cut(text, max_lines, max_bytes, tail=False)


def cut_tail(text: str, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Cut:
    """The end of `text`; lines end at `\\n`."""
    return _cut(text, max_lines, max_bytes, tail=True)


def _cut(text: str, max_lines: int, max_bytes: int, *, tail: bool) -> Cut:
    text = well_formed(text)
    total_bytes = len(text.encode())
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if len(lines) <= max_lines and total_bytes - text.endswith("\n") <= max_bytes:
        return Cut(text, len(lines), len(lines), total_bytes, total_bytes)
    kept: list[str] = []
    used = 0
    by = "lines"
    for line in reversed(lines) if tail else lines:
        if len(kept) == max_lines:
            break
        needed = len(line.encode()) + (1 if kept else 0)
        if used + needed > max_bytes:
            by = "bytes"
            break
        kept.append(line)
        used += needed
    if not kept and max_lines > 0:
        part = cut_bytes(lines[-1] if tail else lines[0], max_bytes, tail=tail)
        return Cut(part, 1, len(lines), total_bytes, len(part.encode()), "bytes", inside_line=True)
    if tail:
        kept.reverse()
    return Cut("\n".join(kept), len(kept), len(lines), total_bytes, used, by)


def cut_bytes(text: str, max_bytes: int, *, tail: bool = False) -> str:
    """At most `max_bytes` of UTF-8 from one end of `text`, whole characters only."""
    data = text.encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return data.decode()
    part = data[len(data) - max_bytes :] if tail else data[:max_bytes]
    return part.decode("utf-8", "ignore")


def cut_line(line: str, full_length: int | None = None, limit: int = MAX_LINE_CHARACTERS) -> str:
    """One line for a list of matches: over `limit` characters it ends with the number left out.

    `full_length` is the line's length where `line` is only its beginning.
    """
    length = max(len(line), full_length or 0)
    if length <= limit:
        return line
    return f"{line[:limit]}… [+{length - limit:,} characters]"
