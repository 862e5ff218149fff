"""Markdown that arrives in pieces."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_notebook.notebook._streaming import CHUNK, StreamingMarkdown
from pi_notebook.notebook._style import lean
from pi_notebook.notebook.markup import markdown_html
from tests.browser.states import ANSWER


class TextOf(HTMLParser):
    def __init__(self, markup: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.feed(markup)
        self.close()

    def handle_data(self, data: str) -> None:
        self.words += data.split()


def words(markup: str) -> str:
    return "".join(TextOf(markup).words)


def stream(source: str, size: int, *, every: int = 1) -> tuple[StreamingMarkdown, list[list[str]]]:
    """Stream `source` in pieces of `size`; returns the chunks after each update, too."""
    markdown, seen, waiting = StreamingMarkdown(), [], ""
    for number, start in enumerate(range(0, len(source), size)):
        waiting += source[start : start + size]
        if number % every == 0:
            markdown.update(waiting)
            seen.append(list(markdown.chunks))
            waiting = ""
    markdown.update(waiting, final=True)
    seen.append(list(markdown.chunks))
    return markdown, seen


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_the_end_is_what_the_whole_text_renders_to(size: int) -> None:
    markdown, _ = stream(ANSWER, size)
    flat = re.sub(r"\s*\n\s*", "", "".join(markdown.chunks))
    assert flat == re.sub(r"\s*\n\s*", "", lean(markdown_html(ANSWER)))


def test_a_finished_chunk_never_changes() -> None:
    _, seen = stream(ANSWER * 30, 11, every=3)
    assert len(seen[-1]) > 3
    for before, after in pairwise(seen):
        assert after[: len(before) - 1] == before[:-1]


def test_a_block_stays_in_the_chunk_in_which_it_was_first_seen() -> None:
    _, seen = stream("".join(f"paragraph {n} has some words in it\n\n" for n in range(400)), 9)
    first: dict[str, int] = {}
    for chunks in seen:
        for number, chunk in enumerate(chunks):
            for name in re.findall(r"paragraph (\d+) has", chunk):
                assert first.setdefault(name, number) == number


def test_the_open_end_stays_small_in_a_long_code_block() -> None:
    source = "```python\n" + "".join(f"value_{n} = f({n})\n" for n in range(3000)) + "```\nAfter.\n"
    markdown, seen = stream(source, 200)
    assert max(len(chunks[-1]) for chunks in seen) < 8 * CHUNK
    text = words("".join(markdown.chunks))
    assert text == "".join(f"value_{n}=f({n})" for n in range(3000)) + "After."


def test_a_long_ordered_list_counts_on_across_its_cuts() -> None:
    source = "".join("1. an item of the list with some words\n" for _ in range(300))
    markdown, _ = stream(source, 50)
    whole = "".join(markdown.chunks)
    starts = [int(number) for number in re.findall(r'<ol[^>]*start="(\d+)"', whole)]
    counts = [block.count("<li") for block in re.split(r"<ol", whole)[1:]]
    assert sum(counts) == 300
    assert starts == [1 + sum(counts[:n]) for n in range(1, len(counts))]


def test_a_link_defined_before_is_known_in_a_later_block() -> None:
    markdown, _ = stream("[docs]: https://example.org/\n\nfirst\n\nsee [docs]\n", 4)
    assert 'href="https://example.org/"' in "".join(markdown.chunks)


def test_line_ends_of_windows_may_be_torn_apart() -> None:
    source = "one\r\n\r\n- a\r\n- b\r\n\r\ntwo\r\n"
    for size in range(1, 6):
        assert words("".join(stream(source, size)[0].chunks)) == "oneabtwo"


@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                ["```\n", "\n\n", "- a\n", "1. b\n", "> q\n", "| a | b |\n|---|---|\n", "# h\n", "    code\n", "\r\n"]
            ),
            st.text("ab \n`*_|>#-", max_size=10),
        ),
        max_size=20,
    ).map("".join),
    st.integers(1, 9),
)
def test_no_words_are_lost_or_doubled_however_the_text_is_torn(source: str, size: int) -> None:
    letters = re.compile("[abhq]")
    markdown, _ = stream(source, size)
    streamed = "".join(letters.findall("".join(TextOf("".join(markdown.chunks)).words)))
    assert streamed == "".join(letters.findall("".join(TextOf(markdown_html(source)).words)))
