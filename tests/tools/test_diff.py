from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pi_notebook.tools._diff import MAX_COMPARED, unified_diff

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "d\x0ce", "f\rg"]), max_size=14)


def test_a_change_has_three_lines_around_it() -> None:
    old = "".join(f"{n}\n" for n in range(1, 11))
    assert unified_diff(old, old.replace("5\n", "five\n"), "n.txt") == (
        "--- a/n.txt\n+++ b/n.txt\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
    )


def test_changes_far_apart_are_separate_hunks() -> None:
    old = "".join(f"{n}\n" for n in range(1, 31))
    new = old.replace("\n3\n", "\nx\n").replace("\n25\n", "\ny\n")
    assert [line for line in unified_diff(old, new, "n").splitlines() if line.startswith("@@")] == [
        "@@ -1,6 +1,6 @@",
        "@@ -22,7 +22,7 @@",
    ]


def test_equal_texts_have_no_diff() -> None:
    assert unified_diff("a\n", "a\n", "x") == ""


def test_a_new_file_comes_from_nothing() -> None:
    assert unified_diff("", "a\nb\n", "x", created=True) == "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n"


def test_a_last_line_without_end_is_marked() -> None:
    assert unified_diff("a", "a\n", "x") == ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n")


def test_a_long_rewrite_is_one_hunk_and_quick() -> None:
    old = "".join(f"old {n % 7} {n}\n" for n in range(MAX_COMPARED))
    new = "".join(f"new {n % 5} {n}\n" for n in range(MAX_COMPARED))
    started = time.monotonic()
    diff = unified_diff("same\n" + old, "same\n" + new, "x")
    assert time.monotonic() - started < 5
    assert diff.count("@@ -") == 1
    assert diff.startswith(f"--- a/x\n+++ b/x\n@@ -1,{MAX_COMPARED + 1} +1,{MAX_COMPARED + 1} @@\n same\n-old 0 0\n")


@settings(max_examples=150, deadline=None)
@given(LINES, LINES, st.booleans(), st.booleans())
def test_patch_makes_the_new_text_from_the_old(old: list[str], new: list[str], old_end: bool, new_end: bool) -> None:
    before = "\n".join(old) + ("\n" if old and old_end else "")
    after = "\n".join(new) + ("\n" if new and new_end else "")
    assert _patched(before, unified_diff(before, after, "x")) == after


def _patched(text: str, diff: str) -> str:
    """A small `patch`: applies hunks at their line numbers, and fails where they do not fit."""
    lines = text.split("\n")
    lines = [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    out: list[str] = []
    at = 0
    pieces = diff.split("\n")[2:-1] if diff else []
    body: list[str] = []
    for piece in pieces:
        if piece.startswith("\\"):
            body[-1] = body[-1][:-1]
        else:
            body.append(piece + "\n")
    for line in body:
        if line.startswith("@@"):
            start, _, length = line.split()[1][1:].partition(",")
            first = int(start) - (1 if length != "0" else 0)
            out += lines[at:first]
            at = first
        elif line[0] in " -":
            assert lines[at] == line[1:]
            out += [line[1:]] if line[0] == " " else []
            at += 1
        else:
            out.append(line[1:])
    return "".join(out + lines[at:])


def test_the_system_patch_takes_it(tmp_path: Path) -> None:
    program = shutil.which("git")
    assert program, "git is part of every development machine"
    old, new = "a\nb\nc\n" * 20, ("a\nb\nc\n" * 20).replace("a", "x", 1) + "tail"
    (tmp_path / "f").write_text(old)
    (tmp_path / "p").write_text(unified_diff(old, new, "f"))
    subprocess.run([program, "apply", "p"], cwd=tmp_path, check=True)
    assert (tmp_path / "f").read_text() == new


def test_repeated_lines_are_no_trouble() -> None:
    half = MAX_COMPARED // 2 - 2
    started = time.monotonic()
    for old, new in (
        (["x"] * half, ["x", "z"] * (half // 2)),
        ([str(n % 100) for n in range(half)], [str(n % 101) for n in range(half)]),
    ):
        before, after = "s\n" + "\n".join(old), "t\n" + "\n".join(new)
        assert _patched(before, unified_diff(before, after, "x")) == after
    assert time.monotonic() - started < 30
