"""The rules of `.gitignore` files, asked entry by entry during a walk.

The walk never enters an excluded folder, so a rule is only asked about the entry itself, as git does. (pathspec, which
answers for whole paths, lets `!a` bring back `a/b.x` and lets `!**` win over a later `a/`, unlike git.)
Source: gitignore(5).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ._globs import match_segments, segment

_CLASSES = {
    "[:alnum:]": "a-zA-Z0-9",
    "[:alpha:]": "a-zA-Z",
    "[:digit:]": "0-9",
    "[:lower:]": "a-z",
    "[:upper:]": "A-Z",
    "[:space:]": " \t\n\r\f\v",
    "[:xdigit:]": "0-9a-fA-F",
}
_TRAILING_BLANKS = re.compile(r"(?<!\\)[ \t\r]+$")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a `.gitignore`: what it says (`excludes`) about entries that `matches(path)`."""

    excludes: bool
    folders_only: bool
    matches: Callable[[str], bool]


def parse(text: str) -> list[Rule]:
    """The rules in the text of a `.gitignore`, in their order. Lines that mean nothing are passed over, as by git."""
    rules = [_rule(line) for line in text.removeprefix("\ufeff").split("\n")]
    return [rule for rule in rules if rule is not None]


def verdict(rules: list[Rule], path: str, is_folder: bool) -> bool | None:
    """Whether the entry at `path`, relative to the folder of the rules, is excluded; None if no rule is about it."""
    for rule in reversed(rules):
        if (is_folder or not rule.folders_only) and rule.matches(path):
            return rule.excludes
    return None


def _rule(line: str) -> Rule | None:
    if line.startswith("#"):
        return None
    line = _TRAILING_BLANKS.sub("", line)
    excludes = not line.startswith("!")
    line = line.removeprefix("!")
    folders_only = line.endswith("/")
    pattern = line.removesuffix("/")
    if not pattern or len(pattern) - len(pattern.rstrip("\\")) & 1:
        return None
    for name, characters in _CLASSES.items():
        pattern = pattern.replace(name, characters)
    anchored = "/" in pattern
    parts = [part if part == "**" else _unescaped(part) for part in pattern.removeprefix("/").split("/")]
    if not anchored:
        of_name = segment(parts[0])
        return Rule(excludes, folders_only, lambda path: of_name(path.rpartition("/")[2]) is not None)
    segments = [None if part == "**" else segment(part) for part in parts]
    return Rule(excludes, folders_only, lambda path: match_segments(segments, path.split("/")))


def _unescaped(part: str) -> str:
    return _ESCAPE.sub(lambda match: f"[{match[1]}]" if match[1] in "*?[" else match[1], part)
