"""Short names for long ids."""

from __future__ import annotations


def short_hash(text: str) -> str:
    """A short name for a long id, always the same one: pi's, so that a transcript keeps its ids between the two."""
    first, second = 0xDEADBEEF, 0x41C6CE57
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    for unit in units:
        first = (first ^ unit) * 2654435761 & _MASK
        second = (second ^ unit) * 1597334677 & _MASK
    first = (first ^ first >> 16) * 2246822507 & _MASK ^ (second ^ second >> 13) * 3266489909 & _MASK
    second = (second ^ second >> 16) * 2246822507 & _MASK ^ (first ^ first >> 13) * 3266489909 & _MASK
    return _base36(second) + _base36(first)


_MASK = 0xFFFFFFFF
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
