from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.errors import ToolError
from pi_notebook.tools._replace import Edit, apply_edits


def changed(text: str, *edits: tuple[str, str]) -> str:
    return apply_edits(text, [Edit(*edit) for edit in edits], "f")[0]


def refusal(text: str, *edits: tuple[str, str]) -> str:
    with pytest.raises(ToolError) as caught:
        changed(text, *edits)
    return str(caught.value)


def test_several_edits_are_made_at_once() -> None:
    assert changed("one two three", ("three", "3"), ("one", "1")) == "1 two 3"


def test_an_edit_does_not_see_what_another_made() -> None:
    assert "was not found" in refusal("a", ("a", "b"), ("b", "c"))


def test_all_that_is_wrong_is_named_and_nothing_made() -> None:
    assert refusal("x x y", ("x", "1"), ("z", "2"), ("", "3"), ("y", "4")) == (
        "edits[0] is in f 2 times (lines 1, 1); add text around it until it is there only once.\n"
        "edits[1] was not found in f. Read the file again; it may have changed.\n"
        "edits[2] is empty: give the text to replace (write makes or replaces whole files).\n"
        "Nothing was changed in f."
    )


def test_overlapping_occurrences_count() -> None:
    assert "2 times" in refusal("aaa", ("aa", "b"))


def test_overlapping_edits_are_refused() -> None:
    assert "edits[0] and edits[1] overlap; make them one edit." in refusal("abcd", ("bc", "x"), ("ab", "y"))


def test_the_same_edit_twice_is_refused() -> None:
    assert "overlap" in refusal("abcd", ("bc", "x"), ("bc", "x"))


def test_touching_edits_are_fine() -> None:
    assert changed("abcd", ("ab", "1"), ("cd", "2")) == "12"


def test_an_edit_that_changes_nothing_is_refused() -> None:
    assert refusal("abc", ("b", "b")) == "Nothing to do in f: every newText is what is there already."


def test_a_near_miss_names_the_line() -> None:
    text = "def f():\n    return 1\n\ndef g():\n    return 2\n"
    assert refusal(text, ("def g():\n    return 3", "x")).startswith(
        "oldText was not found in f. Its first line is on line 4, but what follows differs there."
    )
    assert "Something like it is on line 2." in refusal("a\nfoo(b) # c\n", ("foo(b)\n", "x"))


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("x = 1   \ny = 2\n", "x = 1\ny = 2", "z = 3", "z = 3\n"),
        ("x\t=  1\n", "x = 1", "x = 2", "x = 2\n"),
        ("say(\u201chi\u201d)\n", 'say("hi")', "say()", "say()\n"),
        ("a \u2013 b\n", "a - b", "c", "c\n"),
        ("a\u00a0b\n", "a b", "c", "c\n"),
        ("a\n   \nb\n", "a\n\nb", "c", "c\n"),
        ("a  \nb\n", "a\n", "c\n", "c\nb\n"),
        ("keep  \na  b\nkeep  \n", "a b", "c", "keep  \nc\nkeep  \n"),
    ],
)
def test_white_space_may_differ_in_the_second_try(text: str, old: str, new: str, expected: str) -> None:
    result, found = apply_edits(text, [Edit(old, new)], "f")
    assert result == expected
    assert [spot.exact for spot in found] == [False]


def test_the_exact_place_wins_over_tolerant_ones() -> None:
    assert changed("a  b\na b\n", ("a b", "c")) == "a  b\nc\n"


def test_a_tolerant_place_must_be_the_only_one_too() -> None:
    assert "2 times (lines 1, 2)" in refusal("a  b\na\tb\n", ("a b", "c"))


def test_words_are_never_joined_or_split() -> None:
    assert "was not found" in refusal("ab\n", ("a b", "c"))
    assert "was not found" in refusal("a b\n", ("ab", "c"))


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        # tabs in the file, spaces in the edit
        (
            "class A:\n\tdef f(self):\n\t\treturn 1\n",
            "    def f(self):\n        return 1",
            "    def f(self):\n        if x:\n            return 2",
            "class A:\n\tdef f(self):\n\t\tif x:\n\t\t\treturn 2\n",
        ),
        (
            "if a:\n    b()\n",
            "\tb()",
            "\tif c:\n\t\td()",
            "if a:\n    if c:\n        d()\n",
        ),
        # the edit forgot the outer indentation
        (
            "if a:\n    if b:\n        c()\n        d()\n",
            "if b:\n    c()\n    d()",
            "if e:\n    c()\nf()",
            "if a:\n    if e:\n        c()\n    f()\n",
        ),
        # the edit begins within a line
        ("x = f(\n        a,\n    )\n", "f(\n    a,\n)", "g(\n    b,\n)", "x = g(\n        b,\n    )\n"),
    ],
)
def test_new_text_takes_the_indentation_of_the_file(text: str, old: str, new: str, expected: str) -> None:
    assert changed(text, (old, new)) == expected


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_endings_of_the_file_are_used(ending: str) -> None:
    text = ending.join(["a", "b", "c", ""])
    assert changed(text, ("b\nc", "x\r\ny")) == ending.join(["a", "x", "y", ""])


def test_mixed_endings_stay_where_nothing_was_replaced() -> None:
    assert changed("a\r\nb\nc\r\nd\r\n", ("b", "x\ny")) == "a\r\nx\r\ny\nc\r\nd\r\n"


def test_a_replaced_end_of_line_goes_whole() -> None:
    assert changed("a\r\nb\r\nc", ("a\nb", "ab")) == "ab\r\nc"
    assert changed("a\r\nb\r\n", ("\nb", "b")) == "ab\r\n"


LINES = st.lists(st.text(st.sampled_from("xyz \t"), max_size=5), min_size=1, max_size=8)
ENDINGS = st.sampled_from(["\n", "\r\n"])


@given(LINES, st.lists(ENDINGS, min_size=8, max_size=8), st.text(st.sampled_from("ab\n"), max_size=6))
def test_everything_else_stays_as_it_was(lines: list[str], ends: list[str], new: str) -> None:
    before = "".join(line + end for line, end in zip(lines, ends, strict=False))
    after = "".join(line + end for line, end in zip(reversed(lines), ends, strict=False))
    result = changed(f"{before}@old@{after}", ("@old@", new + "!"))
    assert result.startswith(before)
    assert result.endswith(after)
    assert result[len(before) : len(result) - len(after)].replace("\r\n", "\n") == new + "!"


@pytest.mark.parametrize(
    ("text", "old"),
    [
        (" " * 200_000, "a b c"),
        ("a " + " " * 200_000, "a b"),
        ("a\n" * 50_000, "a\n" * 200 + "b"),
        ("\n" * 200_000, "\n\n\n\n\nx"),
        ("x \n" * 50_000, "x  \n\n\ny"),
        ("a" * 200_000, "a" * 5_000 + " b"),
    ],
)
def test_no_text_makes_the_search_slow(text: str, old: str) -> None:
    started = time.monotonic()
    assert "was not found" in refusal(text, (old, "y"))
    assert time.monotonic() - started < 10
