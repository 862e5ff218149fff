"""Texts that are too long for a model: their head and tail, with the true size named."""

from __future__ import annotations

MAX_LINES = 2_000
MAX_BYTES = 50 * 1024


def cut_middle(text: str, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> str:
    """`text` if it is within both limits (bytes as UTF-8), else its head and tail around a line that says how much
    there is and how much is left out. Cut at line ends where lines are short enough, never inside a character.
    """
    size = utf8_size(text)
    lines = text.count("\n") + (not text.endswith("\n"))
    if lines <= max_lines and size <= max_bytes:
        return text
    head = _take(text, (max_lines + 1) // 2, max_bytes // 2)
    tail = _take_tail(text[len(head) :], max_lines // 2, max_bytes // 2)
    left_out = text[len(head) : len(text) - len(tail)]
    note = (
        f"[... {_lines(left_out.count(chr(10)))}{readable_size(utf8_size(left_out))} left out of "
        f"{_lines(lines)}{readable_size(size)} ...]"
    )
    return f"{_with_newline(head)}{note}\n{tail}"


def _take(text: str, lines: int, size: int) -> str:
    end = 0
    for _ in range(lines):
        newline = text.find("\n", end)
        if newline < 0:
            end = len(text)
            break
        end = newline + 1
    piece = text[:end]
    if utf8_size(piece) <= size:
        return piece
    piece = piece.encode("utf-8", "surrogatepass")[:size].decode("utf-8", "ignore")
    newline = piece.rfind("\n")
    return piece[: newline + 1] if newline >= len(piece) // 2 else piece


def _take_tail(text: str, lines: int, size: int) -> str:
    start = len(text)
    for _ in range(lines):
        newline = text.rfind("\n", 0, max(start - 1, 0))
        start = newline + 1
        if newline < 0:
            break
    piece = text[start:]
    if utf8_size(piece) <= size:
        return piece
    piece = piece.encode("utf-8", "surrogatepass")[-size:].decode("utf-8", "ignore")
    newline = piece.find("\n")
    return piece[newline + 1 :] if 0 <= newline < len(piece) // 2 else piece


def _lines(count: int) -> str:
    return f"{count:,} lines, " if count > 1 else ""


def _with_newline(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def readable_size(size: int) -> str:
    """Bytes for people: `1 byte`, `812 bytes`, `50.0 KB`, `2.3 MB`."""
    if size < 1024:
        return "1 byte" if size == 1 else f"{size:,} bytes"
    value = float(size)
    for unit in ("KB", "MB", "GB", "TB"):
        value /= 1024
        if value < 1023.95 or unit == "TB":
            break
    return f"{value:,.1f} {unit}"
