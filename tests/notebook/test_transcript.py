"""The finished run as HTML, Markdown and text."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt

from pi_notebook.agent.hooks import Decision
from pi_notebook.agent.tool import ToolResult
from pi_notebook.ai.messages import ImageContent, TextContent
from pi_notebook.notebook._arguments import arguments_line, size_of
from pi_notebook.notebook._markdown import code_block, code_span, escape_markdown, safe_markdown
from pi_notebook.notebook._rows import seconds_text
from pi_notebook.notebook.markup import markdown_html, visible
from pi_notebook.notebook.transcript import TextPrinter, render_html, render_markdown, render_text, static_bundle
from tests.browser.states import ANSWER, STATES, Play


def finished(name: str) -> Play:
    play = STATES[name]()
    play.view.finish("done")
    return play


@pytest.mark.parametrize("name", STATES)
def test_html_stands_alone(name: str) -> None:
    html = render_html(finished(name).view)
    assert "pi-" not in html
    assert "var(" not in html and "<style" not in html
    assert html.count("<div") == html.count("</div>")


def test_the_head_counts_turns_tokens_cost_and_time() -> None:
    play = finished("blocked")
    play.view.ended = play.view.started + 83.25
    line = render_text(play.view).splitlines()[-1]
    assert line == "— 2 turns · 2.4k in, 680 out · cost – · 83.2 s · done"
    play.view.cost = 0.01234
    play.view.ended = play.view.started + 125
    assert render_text(play.view).splitlines()[-1] == "— 2 turns · 2.4k in, 680 out · $0.0123 · 2 min 05 s · done"


def test_a_row_says_who_decided_and_what_an_edit_changed() -> None:
    play = finished("done")
    html = render_html(play.view)
    assert "edited and approved by you at" in html
    assert "- limit: 10" in html
    assert "+ limit: 5" in html


def test_a_table_and_a_picture_survive() -> None:
    html = render_html(finished("done").view)
    assert "item 3</td>" in html
    assert 'src="data:image/png;base64,iVBOR' in html


def test_a_picture_of_another_kind_or_with_other_text_is_named_instead() -> None:
    play = Play()
    call = play.call("c1", "plot", {})
    play.start(call)
    images = [ImageContent("PHN2Zy8+", "image/svg+xml"), ImageContent('x" onerror="y', "image/png")]
    play.finish(call, ToolResult(images))
    html = render_html(play.view)
    assert "<img" not in html
    assert html.count("not shown") == 2


def test_what_was_displayed_beside_a_short_result_is_in_the_row() -> None:
    play = Play()
    shown = (TextContent("<b>a table</b>"), ImageContent("iVBORw0KGgo=", "image/png"))
    call = play.call("c1", "plot", {})
    play.start(call)
    play.finish(call, ToolResult("done", displayed=shown))
    html, markdown = render_html(play.view), render_markdown(play.view)
    assert "&lt;b&gt;a table&lt;/b&gt;" in html and 'src="data:image/png;base64,iVBORw0KGgo="' in html
    assert "<b>" not in html
    assert "image/png" in markdown and "→ `done`" in markdown


def test_a_failed_call_shows_its_error_and_folds_the_traceback() -> None:
    html = render_html(finished("failed").view)
    assert "KeyError: &#x27;prise&#x27;" in html
    assert re.search(r"<details[^>]*><summary[^>]*>traceback</summary>.*test_transcript|states.py, line", html)


def test_a_long_result_is_folded_after_a_few_lines() -> None:
    html = render_html(finished("done").view)
    before, _, after = html.partition("40 lines, 1,189 characters in all")
    assert "line 5 of a long description" in before
    assert "line 6 of a long description" not in before
    assert "line 39 of a long description" in after


def test_right_to_left_and_emoji_keep_their_characters() -> None:
    text = "שלום 👨‍👩‍👧 مرحبا 🏳️‍🌈 naïve"
    play = Play()
    play.say(text)
    call = play.call("c1", "echo", {"text": text})
    play.start(call)
    play.finish(call, ToolResult(text))
    play.view.finish()
    for output in static_bundle(play.view).values():
        assert output.count(text) == 3
    assert f'dir="auto">{text}</p>' in markdown_html(text)


def test_markdown_keeps_the_answer_readable() -> None:
    written = safe_markdown(ANSWER)
    plain = MarkdownIt("js-default")
    assert plain.render(written) == plain.render(ANSWER).replace("<code>price &lt; 0</code>", "price &lt; 0")
    assert "| tea | 3.20 | 0.12 |" in written
    assert "$\\bar{x} = \\frac{1}{n} \\sum_i x_i$" in written
    assert "about \\$4" in written


def test_markdown_of_code_is_a_fence_unless_a_fence_could_do_harm() -> None:
    assert code_block("a = 1\n", "python") == "```python\na = 1\n```"
    assert code_block("```\nx\n```") == "````\n```\nx\n```\n````"
    assert code_block("<b>") == "<pre>&#60;b&#62;</pre>"
    assert code_block("x", "js\n<script>") == "```\nx\n```"
    assert code_span("a=1") == "`a=1`"
    assert code_span("a<b") == "a&lt;b"


def test_escaped_markdown_shows_exactly_the_text() -> None:
    for text in (
        "# no *head* _or_ [link](x)",
        "1. one\n- two\n+ three\n> four",
        "a | b ~~c~~ `d` $e$ &amp; <f>",
        "    indented",
    ):
        shown = re.sub(r"<[^>]*>", "", MarkdownIt().render(escape_markdown(text)))
        assert (
            shown.strip().replace("\u200b", "").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
            == text.strip()
        )


def test_formulas_reach_the_front_end_as_they_are_and_money_does_not_become_one() -> None:
    html = markdown_html("$a_1 + b_2$ and \\(c_*d*\\) and $$\\sum_i$$ cost $5 and $6")
    for formula in ("$a_1 + b_2$", "\\(c_*d*\\)", "$$\\sum_i$$"):
        assert f'tex2jax_process mathjax_process">{formula}</span>' in html
    assert html.count('tex2jax_ignore mathjax_ignore">$</span>') == 2


def test_pictures_on_the_web_are_linked_and_not_loaded() -> None:
    assert "[image: a cat]</a>" in markdown_html("![a cat](https://example.org/cat.png)")
    assert safe_markdown("![a cat](https://example.org/cat.png)") == "[image: a cat](https://example.org/cat.png)"


def test_hidden_characters_are_named() -> None:
    assert visible("a\u202eb\x1b\n\t\u200b") == "a[U+202E]b[U+001B]⏎\t[U+200B]"
    assert visible("a\nb", keep_newlines=True) == "a\nb"
    assert visible("👩‍🔬") == "👩‍🔬"


@pytest.mark.parametrize(
    ("arguments", "line", "whole"),
    [
        ({}, "", True),
        ({"a": 1, "b": "x", "c": None, "d": True}, 'a=1, b="x", c=null, d=true', True),
        ({"path": "x" * 50, "n": 1}, 'path="' + "x" * 39 + "…, n=1", False),
        ({"one": "x" * 90}, 'one="' + "x" * 88 + "…", False),
        ({f"key{n}": n for n in range(30)}, ", ".join(f"key{n}={n}" for n in range(11)) + ", …", False),
        ('{"cut": ', '{"cut": ', True),
        (None, "null", True),
        ({"text": "two\nlines"}, 'text="two\\nlines"', True),
    ],
)
def test_arguments_in_one_line(arguments: object, line: str, whole: bool) -> None:
    assert arguments_line(arguments) == (line, whole)


def test_sizes_and_times_are_written_for_people() -> None:
    assert [size_of(n) for n in (7, 1_189, 34_000, 2_000_000)] == [
        "7 characters",
        "1,189 characters",
        "34 KB",
        "2.0 MB",
    ]
    assert [seconds_text(s) for s in (0.04, 59.96, 125.9)] == ["0.0 s", "60.0 s", "2 min 05 s"]
    assert seconds_text(3.9, final=False) == "3 s"


def test_a_huge_answer_is_bundled_once_in_full_as_text_of_a_page() -> None:
    play = Play()
    play.say("word " * 20_000)
    play.view.finish()
    bundle = static_bundle(play.view)
    assert bundle["text/html"].count("word") == bundle["text/markdown"].count("word") == 20_000
    assert len(bundle["text/plain"]) < 21_000
    assert bundle["text/plain"].endswith("more, see the other forms of this output")


# Text


def test_a_terminal_gets_the_run_as_it_goes_and_nothing_twice() -> None:
    written: list[str] = []
    play = Play()
    printer = TextPrinter(play.view, written.append)
    printer.refresh()
    index = play._tell(play.reply.text_start())
    for word in ("one ", "two", " three"):
        play._tell(play.reply.text_delta(index, word))
        printer.refresh()
    play._tell(play.reply.text_end(index))
    first, second = play.call("c1", "look", {"a": 1}), play.call("c2", "save", {})
    play.end_reply("tool_use")
    play.start(first)
    play.start(second, run=False)
    printer.refresh()
    question = play.ask(second)
    printer.refresh()
    play.view.answered(question, Decision("block", "no", at=0))
    play.finish(second, ToolResult.failure("no"), None)
    printer.refresh()
    play.finish(first, ToolResult("a\nb"))
    printer.refresh()
    printer.refresh()
    play.view.finish()
    printer.refresh()
    text = "".join(written)
    assert text.startswith("anthropic:claude-sonnet-4-5\none two three\n◐ look(a=1) …\n")
    assert "⊘ save() → no (blocked)\n    blocked by you at" in text
    assert text.index("⊘ save()") < text.index("✓ look(a=1) (done, 0.1 s)\n    a\n    b\n")
    assert text.count("one two three") == text.count("⊘ save()") == text.count("✓ look(a=1)") == 1
    assert text.count("\n— ") == 1


def test_nothing_that_is_printed_moves_the_cursor() -> None:
    play = Play()
    play.say("\x1b[2J\x1b]0;title\x07bell\x07 \x9b31m\r\nnext")
    play.view.finish()
    text = render_text(play.view)
    assert "\x1b" not in text and "\x07" not in text and "\x9b" not in text
    assert "next" in text


def test_color_and_width_are_the_terminals() -> None:
    view = finished("running").view
    assert "\x1b[32m✓ column_mean" in render_text(view, color=True)
    assert max(len(line) for line in render_text(view, width=30).splitlines() if line.startswith(("✓", "■"))) < 60


def test_the_markdown_of_a_run_holds_its_calls_and_results() -> None:
    written = render_markdown(finished("done").view)
    assert '- ✓ **plot** `table="sales"` (done, 1.8 s)' in written
    assert "[image: image/png]" in written
    assert "```diff\n- limit: 10\n+ limit: 5\n```" in written


def test_a_word_that_came_too_late_is_named_in_every_form() -> None:
    play = Play()
    play.say("Done.")
    play.end_reply()
    play.view.steer("wait, the other one")
    play.view.finish()
    for text in (render_html(play.view), render_markdown(play.view), render_text(play.view)):
        assert "wait, the other one" in text
        assert "not sent: the run ended first" in text
