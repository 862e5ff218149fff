"""Finding and replacing pieces of a text: the pure part of `edit`."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import ToolError

_SPACES = "[ \\t\\f\\v\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_BLANK = re.compile(_SPACES + "+")
_ALIKE = {
    character: f"[{re.escape(group)}]"
    for group in (
        "'\u2018\u2019\u201a\u201b",
        '"\u201c\u201d\u201e\u201f',
        "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    )
    for character in group
}
_MAX_TOLERANT = 20_000
"""Characters of an old text that are still looked for tolerantly."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `old`, which must be in the text exactly once, by `new`."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Found:
    """Where an edit goes, in the text with `\\n` endings; `exact`: not only by tolerant search."""

    index: int
    start: int
    end: int
    new: str
    exact: bool


def apply_edits(text: str, edits: Sequence[Edit], name: str) -> tuple[str, list[Found]]:
    """`text` with all `edits` made, and where they went, in the order of the text.

    Every old text is looked for in `text` as given, not in the result of other edits: exactly first; if it is not
    there, with any run of spaces and tabs like any other, blanks at line ends ignored and typographic quotes and dashes
    like plain ones. Line endings do not matter for the search; what is not replaced keeps its own, character by
    character, and new text gets the ending that the text uses most.

    Raises:
        ToolError: An old text is empty, missing, there more than once, or overlaps another; or nothing would change.
            All that is wrong is named, and nothing is made.
    """
    plain, removed = _with_newlines(text)
    problems: list[str] = []
    found: list[Found] = []
    for index, edit in enumerate(edits):
        label = f"edits[{index}]" if len(edits) > 1 else "oldText"
        match = _find(plain, edit, index, label, name)
        if isinstance(match, str):
            problems.append(match)
        else:
            found.append(match)
    found.sort(key=lambda f: (f.start, f.end))
    for one, other in itertools.pairwise(found):
        if other.start < one.end:
            first, second = sorted((one.index, other.index))
            problems.append(f"edits[{first}] and edits[{second}] overlap; make them one edit.")
    if problems:
        raise ToolError("\n".join([*problems, f"Nothing was changed in {name}."]))
    ending = _main_ending(text)
    result, at = [], 0
    for spot in found:
        start, end = (position + bisect.bisect_left(removed, position) for position in (spot.start, spot.end))
        result += [text[at:start], spot.new.replace("\n", ending)]
        at = end
    changed = "".join([*result, text[at:]])
    if changed == text:
        raise ToolError(f"Nothing to do in {name}: every newText is what is there already.")
    return changed, found


def _with_newlines(text: str) -> tuple[str, list[int]]:
    """`text` with every line ending as `\\n`, and the positions in it of the `\\n` that lost a `\\r` before them."""
    if "\r" not in text:
        return text, []
    removed = []
    for number, match in enumerate(re.finditer("\r\n", text)):
        removed.append(match.start() - number)
    return text.replace("\r\n", "\n").replace("\r", "\n"), removed


def _main_ending(text: str) -> str:
    crlf = text.count("\r\n")
    counts = {"\n": text.count("\n") - crlf, "\r\n": crlf, "\r": text.count("\r") - crlf}
    return max(counts, key=lambda ending: counts[ending])


def _find(plain: str, edit: Edit, index: int, label: str, name: str) -> Found | str:
    old, new = (_with_newlines(side)[0] for side in (edit.old, edit.new))
    if not old:
        return f"{label} is empty: give the text to replace (write makes or replaces whole files)."
    places = _occurrences(plain, old)
    if len(places) == 1:
        return Found(index, places[0], places[0] + len(old), new, True)
    if not places and (pattern := _tolerant(old)) is not None:
        spans = _spans(plain, pattern, old)
        if len(spans) == 1:
            start, end = spans[0]
            return Found(index, start, end, _reindented(new, old, plain, start, end), False)
        places = [start for start, _ in spans]
    if places:
        lines = ", ".join(str(plain.count("\n", 0, place) + 1) for place in places[:10])
        return (
            f"{label} is in {name} {len(places)} times (lines {lines}{', …' if len(places) > 10 else ''}); "
            f"add text around it until it is there only once."
        )
    return f"{label} was not found in {name}.{_hint(plain, old)}"


def _occurrences(text: str, part: str) -> list[int]:
    """Starts of `part`, overlapping ones too; no more than 1,000."""
    places: list[int] = []
    at = text.find(part)
    while at >= 0 and len(places) < 1_000:
        places.append(at)
        at = text.find(part, at + 1)
    return places


def _tolerant(old: str) -> re.Pattern[str] | None:
    """What `old` looks like with other blanks. Quantifiers are possessive, so that no text can make it slow."""
    if len(old) > _MAX_TOLERANT or not old.strip():
        return None
    lines = []
    for line in old.split("\n"):
        tokens = [token for token in _BLANK.split(line) if token]
        lines.append(f"{_SPACES}++".join("".join(map(_character, token)) for token in tokens))
    body = f"{_SPACES}*+\\n{_SPACES}*+".join(lines)
    body = body.removeprefix(f"{_SPACES}*+")  # else each blank of a long run would begin a search of the rest
    if old.endswith("\n"):
        body = body.removesuffix(f"{_SPACES}*+")  # the indentation of the line below is not ours
    return re.compile(body)


def _character(character: str) -> str:
    return _ALIKE.get(character) or re.escape(character)


def _spans(plain: str, pattern: re.Pattern[str], old: str) -> list[tuple[int, int]]:
    """Where `pattern` matches; the indentation before it belongs to the match if `old` starts with one."""
    indented = bool(_BLANK.match(old))
    spans: list[tuple[int, int]] = []
    at = 0
    while (match := pattern.search(plain, at)) is not None and len(spans) < 1_000:
        start = match.start()
        if indented:
            line = plain.rfind("\n", 0, start) + 1
            if not plain[line:start].strip():
                start = line
        spans.append((start, match.end()))
        at = match.start() + 1
    return spans


def _indent(line: str) -> str:
    match = _BLANK.match(line)
    return match.group() if match else ""


def _reindented(new: str, old: str, plain: str, start: int, end: int) -> str:
    """`new` with the indentation of what is there, wherever `old` shows how the two differ."""
    before = plain[plain.rfind("\n", 0, start) + 1 : start]
    within_line = bool(before.strip())
    asked_lines = old.split("\n")
    actual_lines = (before + plain[start:end]).split("\n")
    swaps: dict[str, str] = {}
    for asked, actual in list(zip(asked_lines, actual_lines, strict=False))[within_line:]:
        if asked.strip() and actual.strip():
            swaps.setdefault(_indent(asked), _indent(actual))
    if all(asked == actual for asked, actual in swaps.items()):
        return new
    lines = new.split("\n")
    for number, line in enumerate(lines):
        indent = _indent(line)
        known = max((asked for asked in swaps if indent.startswith(asked)), key=len, default=None)
        begins_in_place = number == 0 and not _indent(old)
        if known is not None and line.strip() and not begins_in_place:
            deeper = _in_units_of(swaps, indent[len(known) :])
            lines[number] = swaps[known] + deeper + line[len(indent) :]
    return "\n".join(lines)


def _in_units_of(swaps: dict[str, str], indent: str) -> str:
    """Deeper indentation than what was replaced had, in tabs where the file has tabs for spaces, or the reverse."""
    for asked, actual in swaps.items():
        if asked and actual and not asked.strip(" ") and not actual.strip("\t") and len(asked) % len(actual) == 0:
            return indent.replace(" " * (len(asked) // len(actual)), "\t")
        if asked and actual and not asked.strip("\t") and not actual.strip(" ") and len(actual) % len(asked) == 0:
            return indent.replace("\t", " " * (len(actual) // len(asked)))
    return indent


def _hint(plain: str, old: str) -> str:
    first = next((line.strip() for line in old.split("\n") if line.strip()), "")
    lines = [number for number, line in enumerate(plain.split("\n"), 1) if first and first in line]
    if not lines:
        return " Read the file again; it may have changed."
    places = ", ".join(map(str, lines[:5]))
    word = "line" if len(lines) == 1 else "lines"
    if "\n" not in old.strip("\n"):
        return f" Something like it is on {word} {places}."
    return f" Its first line is on {word} {places}, but what follows differs there."
