"""Unified diffs that stay quick on large files."""

from __future__ import annotations

import difflib

CONTEXT = 3
MAX_COMPARED = 2_000
"""Changed lines on both sides together up to which they are aligned; above, the whole stretch counts as replaced."""


def unified_diff(old: str, new: str, path: str, *, created: bool = False) -> str:
    """What `diff -u` prints for two texts, with `a/` and `b/` before the path; empty if they are equal.

    Lines end at `\\n`; a last line without one is marked as diff does. `path` is shown as given, so it must hold no
    newline.
    """
    if old == new:
        return ""
    a, b = _lines(old), _lines(new)
    head = _common(a, b)
    tail = _common(a[head:][::-1], b[head:][::-1])
    first = max(0, head - CONTEXT)
    last = max(0, tail - CONTEXT)
    part_a, part_b = a[first : len(a) - last], b[first : len(b) - last]
    out = [f"--- {'/dev/null' if created else 'a/' + path}\n", f"+++ b/{path}\n"]
    for group in _groups(part_a, part_b, head - first, tail - last):
        out.append(_header(group, first))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                out += [" " + line for line in part_a[i1:i2]]
            else:
                out += ["-" + line for line in part_a[i1:i2]]
                out += ["+" + line for line in part_b[j1:j2]]
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in out)


def _lines(text: str) -> list[str]:
    """Lines with their ends; only `\\n` ends one."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _common(a: list[str], b: list[str]) -> int:
    number = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        number += 1
    return number


_Code = tuple[str, int, int, int, int]


def _groups(a: list[str], b: list[str], before: int, after: int) -> list[list[_Code]]:
    """Opcodes by hunk; `before` and `after` are the common lines around what changed."""
    if len(a) + len(b) > MAX_COMPARED:
        end_a, end_b = len(a) - after, len(b) - after
        codes = [
            ("equal", 0, before, 0, before),
            ("replace", before, end_a, before, end_b),
            ("equal", end_a, len(a), end_b, len(b)),
        ]
        return [[code for code in codes if code[1] < code[2] or code[3] < code[4]]]
    matcher = difflib.SequenceMatcher(None, a, b)  # without its heuristic, repeated lines take minutes
    return [list(group) for group in matcher.get_grouped_opcodes(CONTEXT)]


def _header(group: list[_Code], first: int) -> str:
    def span(start: int, stop: int) -> str:
        length = stop - start
        begin = start + first + (1 if length else 0)
        return str(begin) if length == 1 else f"{begin},{length}"

    return f"@@ -{span(group[0][1], group[-1][2])} +{span(group[0][3], group[-1][4])} @@\n"
