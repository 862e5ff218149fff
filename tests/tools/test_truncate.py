from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.agent._cut import readable_size
from pi_notebook.tools._truncate import count, cut_bytes, cut_head, cut_line, cut_tail, well_formed

TEXTS = st.text(st.sampled_from("ab\né🙂\ud800"), max_size=60)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KB"),
        (1536, "1.5 KB"),
        (1024**2 - 1, "1.0 MB"),
        (3 * 1024**3, "3.0 GB"),
        (5000 * 1024**4, "5,000.0 TB"),
    ],
)
def test_sizes(number: int, text: str) -> None:
    assert readable_size(number) == text


def test_counts() -> None:
    assert [count(1, "line"), count(1200, "line"), count(2, "match")] == ["1 line", "1,200 lines", "2 matches"]


def test_text_within_the_limits_is_kept_to_the_character() -> None:
    cut = cut_head("a\nb\n", max_lines=2, max_bytes=4)
    assert (cut.text, cut.by, cut.lines, cut.left_out) == ("a\nb\n", "", 2, "")


def test_head_and_tail_by_lines() -> None:
    head, tail = cut_head("1\n2\n3\n4\n", max_lines=3), cut_tail("1\n2\n3\n4\n", max_lines=3)
    assert (head.text, head.by, head.total_lines, head.left_out) == ("1\n2\n3", "lines", 4, "1 line (3 bytes)")
    assert (tail.text, tail.by, tail.lines) == ("2\n3\n4", "lines", 3)


def test_head_and_tail_by_bytes_keep_whole_lines() -> None:
    assert cut_head("aé\nbb\ncc", max_bytes=5).text == "aé"
    assert cut_head("aé\nbb\ncc", max_bytes=6).text == "aé\nbb"
    assert cut_tail("aa\nbb\ncé", max_bytes=5).text == "cé"
    assert cut_tail("aa\nbb\ncé", max_bytes=6).text == "bb\ncé"


def test_a_single_line_over_the_limit_is_cut_within() -> None:
    head = cut_head("éééé", max_bytes=5)
    assert (head.text, head.inside_line, head.by, head.left_out) == ("éé", True, "bytes", "4 bytes")
    assert cut_tail("x\néééé", max_bytes=5).text == "éé"


@given(TEXTS, st.integers(0, 8), st.integers(0, 40))
def test_cuts_are_whole_lines_within_both_limits(text: str, lines: int, limit: int) -> None:
    whole = well_formed(text)
    all_lines = whole.removesuffix("\n").split("\n") if whole else []
    head, tail = cut_head(text, lines, limit), cut_tail(text, lines, limit)
    for cut in (head, tail):
        assert len(cut.text.encode()) == cut.kept_bytes
        assert bool(cut.by) is (cut.text != whole)
        if cut.by:
            assert cut.kept_bytes <= limit
            assert cut.lines <= lines
    if head.by and not head.inside_line and head.lines:
        assert head.text.split("\n") == all_lines[: head.lines]
        assert tail.text.split("\n") == all_lines[len(all_lines) - tail.lines :] or tail.inside_line or not tail.lines


@given(TEXTS, st.integers(0, 20))
def test_bytes_are_cut_at_characters(text: str, limit: int) -> None:
    for tail in (False, True):
        part = cut_bytes(text, limit, tail=tail)
        assert len(part.encode()) <= limit


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert well_formed("a\ud800b\udcff🙂") == "a\ufffdb\ufffd🙂"


def test_long_lines_say_how_much_is_missing() -> None:
    assert cut_line("x" * 500) == "x" * 500
    assert cut_line("x" * 1501) == "x" * 500 + "… [+1,001 characters]"
    assert cut_line("x" * 600, 10_000) == "x" * 500 + "… [+9,500 characters]"
