"""Globs over relative paths with forward slashes, the same on every system."""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Callable
from functools import lru_cache

from ..errors import ToolError

MAX_ALTERNATIVES = 100


def compile_glob(pattern: str) -> Callable[[str, bool], bool]:
    """A test `(path, is_folder) -> bool` for `pattern`.

    `*`, `?`, `[a-z]`, `[!a]` stay within a name, `**` spans folders, `{a,b}` are alternatives. Without a slash the
    pattern is for the name at any depth; with one it is for the whole path. A slash at the end asks for folders.
    Case matters.

    Raises:
        ToolError: It has more than 100 alternatives, or is empty.
    """
    tests = [_one(alternative) for alternative in braces(pattern)]
    if not pattern.strip("/"):
        raise ToolError("The glob is empty; '*' stands for every name.")

    def matches(path: str, is_folder: bool) -> bool:
        return any(test(path, is_folder) for test in tests)

    return matches


def braces(pattern: str) -> list[str]:
    """`a{b,c{d,e}}` -> `ab`, `acd`, `ace`. Braces without a comma, or without their partner, stay as they are."""
    done: list[str] = []
    waiting = [(pattern, 0)]
    while waiting:
        text, start = waiting.pop()
        span = _first_braces(text, start)
        if span is None:
            done.append(text)
            continue
        opening, closing, commas = span
        if not commas:
            waiting.append((text, opening + 1))
            continue
        cuts = [opening, *commas, closing]
        parts = [text[a + 1 : b] for a, b in itertools.pairwise(cuts)]
        waiting += [(text[:opening] + part + text[closing + 1 :], opening) for part in reversed(parts)]
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise ToolError(f"The glob stands for more than {MAX_ALTERNATIVES} alternatives; use a simpler one.")
    return done


def _first_braces(text: str, start: int) -> tuple[int, int, list[int]] | None:
    """Positions of the first pair from `start` on, and of the commas right inside it."""
    while (opening := text.find("{", start)) >= 0:
        depth = 0
        commas: list[int] = []
        for position in range(opening, len(text)):
            character = text[position]
            if character == "{":
                depth += 1
            elif character == "}":
                depth -= 1
                if depth == 0:
                    return opening, position, commas
            elif character == "," and depth == 1:
                commas.append(position)
        start = opening + 1
    return None


def _one(pattern: str) -> Callable[[str, bool], bool]:
    folders_only = pattern.endswith("/")
    pattern = pattern.rstrip("/").removeprefix("./")
    if "/" not in pattern and pattern != "**":
        name_matches = segment(pattern)
        return lambda path, is_folder: (
            (is_folder or not folders_only) and name_matches(path.rpartition("/")[2]) is not None
        )
    segments = [None if part == "**" else segment(part) for part in pattern.strip("/").split("/")]

    def matches(path: str, is_folder: bool) -> bool:
        return (is_folder or not folders_only) and match_segments(segments, path.split("/"))

    return matches


Segment = Callable[[str], "re.Match[str] | None"]
"""Matches one name of a path."""


@lru_cache(maxsize=1_000)
def segment(glob: str) -> Segment:
    """The test for one name. fnmatch's translation does not backtrack over stars, so no name can make it slow."""
    return re.compile(fnmatch.translate(glob.replace("[^", "[!"))).match


def match_segments(segments: list[Segment | None], names: list[str]) -> bool:
    """Whether `segments` match all of `names`. None stands for `**`: any number of names, at the end at least one."""
    reached = {0}
    for position, segment in enumerate(segments):
        if segment is None:
            start = min(reached) + (1 if position == len(segments) - 1 else 0)
            reached = set(range(start, len(names) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(names) and segment(names[at])}
        if not reached:
            return False
    return len(names) in reached
