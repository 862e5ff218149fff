"""Hostile text from every source, in every output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pi_notebook.agent.hooks import Decision
from pi_notebook.agent.tool import ConsoleText, Progress, ToolResult
from pi_notebook.ai.messages import ImageContent
from pi_notebook.notebook._markdown import code_block, code_span, escape_markdown, safe_markdown
from pi_notebook.notebook.card import Card
from pi_notebook.notebook.markup import _clean_markdown, markdown_html
from pi_notebook.notebook.transcript import render_html, render_markdown, render_text
from pi_notebook.notebook.view import RunView
from tests.browser.states import Play

from .hostile import HOSTILE

ALLOWED = {
    "a": {"class", "style", "href", "title", "target", "rel"},
    "img": {"class", "style", "alt", "src"},
    "ol": {"class", "style", "start", "dir"},
    "div": {
        "class",
        "style",
        "dir",
        "role",
        "aria-live",
        "aria-valuemin",
        "aria-valuemax",
        "aria-valuenow",
        "tabindex",
    },
}
TAGS = {
    *("p", "div", "span", "pre", "code", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "a", "img", "bdi", "br"),
    *("table", "thead", "tbody", "tr", "th", "td", "blockquote", "em", "strong", "s", "del", "hr", "i"),
    *("details", "summary"),
}


class Checker(HTMLParser):
    """Fails on any element, attribute or address that could do something."""

    def __init__(self, *, static: bool) -> None:
        super().__init__()
        self.static = static
        self.text: list[str] = []
        self.depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), attrs
        for name, value in attrs:
            assert name in ALLOWED.get(tag, {"class", "style", "dir"}), (tag, name, value)
            if name == "href":
                assert re.match(r"(https?|mailto):", value or ""), value
            if name == "src":
                assert re.match(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*$", value or ""), value
            if name == "style":
                assert not re.search(r"position|z-index|url\(|expression|var\(", value or ""), value

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"comment {data!r}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"declaration {decl!r}")

    unknown_decl = handle_pi = handle_decl


def check_html(markup: str, *, static: bool = True) -> str:
    """The text in `markup`, which holds nothing that could act."""
    checker = Checker(static=static)
    checker.feed(markup)
    checker.close()
    return "".join(checker.text)


def check_markdown(source: str) -> None:
    """Whatever a renderer takes for code or for a formula, the rest is harmless."""
    ours = re.sub(r"</?pre>", "", source)
    assert "<" not in ours, source
    assert not re.search(r"!\[", source), source
    # Not even with everything that would hide a link taken away
    bare = source.replace("`", "").replace("$", "")
    for text in (source, bare):
        rendered = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
        checker = Checker(static=True)
        checker.feed(rendered)


def whole_run(text: str) -> Play:
    """A run in which everything that can be somebody's text is `text`."""
    play = Play(notice=text, inserted=[text], warnings=[text], labels=lambda name: text)
    play.view.model = text
    play.view.prompt = text
    play.think(text)
    play.say(text)
    call = play.call(text, text, {text: text, "nested": {text: [text]}, "lines": f"{text}\n{text}"})
    raw = play.call("raw", text, text)
    asked = play.call("asked", "safe_name", {"a": text})
    edited = play.call("edited", "safe_name", {text: text})
    running = play.call("running", text, {"a": text})
    waiting = play.call("waiting", "safe_name", {text: text, "b": text * 40})
    play.end_reply("tool_use")
    for one in (call, raw, asked, edited, running, waiting):
        play.start(one, run=one in (call, raw, running))
    play.update(running, Progress(1, 2, text))
    play.update(running, ConsoleText(text))
    play.view.apply(_update(running, text))
    play.update(call, ConsoleText(text))
    play.finish(call, ToolResult([f"{text}\n" * 30][0], value=_Table(text)))
    error = ValueError(text)
    play.finish(raw, ToolResult.failure(text, error))
    question = play.ask(asked, text)
    play.view.answered(question, Decision("block", text, by=text))
    play.finish(asked, ToolResult.failure(text), None)
    question = play.ask(edited, text)
    play.view.answered(question, Decision("edit", arguments={text: text + "!"}))
    play.finish(
        edited, ToolResult([ImageContent(text, text), ImageContent("AAAA", text), ImageContent(text, "image/png")])
    )
    play.ask(waiting, text, {"type": "object", "properties": {text: {"type": "string", "enum": [text]}}})
    play.view.retrying(1, 2.0, text)
    play.view.notice(text, "error")
    play.view.steer(text)
    return play


def _update(call: Any, text: str) -> Any:
    from pi_notebook.agent.events import ToolExecutionUpdate

    return ToolExecutionUpdate(call.id, call.name, call.arguments, ToolResult(text, details={"diff": text}))


class _Table:
    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_html_(self) -> str:
        return f"<table onclick=x style='position:fixed'><tr><td>{self.text}</td></tr></table>"


def html_values(widget: Any) -> Iterator[str]:
    """All that a card tells the page as HTML."""
    if type(widget).__name__ == "HTML":
        yield widget.value
    for child in getattr(widget, "children", ()):
        yield from html_values(child)


def live_card(view: RunView) -> Card:
    return Card(view, stop=lambda: None, answer=lambda question, decision: True, steer=lambda text: None)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_output_of_a_run_holds_anything_that_acts(text: str) -> None:
    play = whole_run(text)
    card = live_card(play.view)
    for value in html_values(card.widget):
        if not value.startswith("<style>"):
            check_html(value, static=False)
    play.view.finish("done")
    card.refresh()
    for value in html_values(card.widget):
        if not value.startswith("<style>"):
            check_html(value, static=False)
    check_html(render_html(play.view))
    check_markdown(render_markdown(play.view))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", render_text(play.view))
    card.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_sent_to_the_page_can_be_encoded(text: str) -> None:
    play = whole_run(text)
    play.view.finish("done")
    for output in (render_html(play.view), render_markdown(play.view), render_text(play.view)):
        output.encode()


@pytest.mark.parametrize("text", HOSTILE)
def test_the_sanitiser_alone_would_do(text: str) -> None:
    check_html(_clean_markdown(text.encode(errors="ignore").decode()))


def test_hostile_html_is_shown_as_the_text_that_it_is() -> None:
    assert "<script>window.pwned=1</script>" in check_html(markdown_html("<script>window.pwned=1</script>"))


def test_no_widget_renders_a_description_as_html() -> None:
    def widgets(widget: Any) -> Iterator[Any]:
        yield widget
        for child in getattr(widget, "children", ()):
            yield from widgets(child)

    card = live_card(whole_run("<b>x</b>").view)
    card._boxes[0]._edit.click()
    found = list(widgets(card.widget))
    assert any(type(widget).__name__ in ("Text", "Textarea", "Dropdown") for widget in found)
    assert not any(getattr(widget, "description_allow_html", False) for widget in found)
    card.close()


PIECES = st.lists(
    st.one_of(
        st.sampled_from(HOSTILE),
        st.sampled_from(
            ["```", "``", "`", "$$", "$", "\n\n", "\n", "~~~", "- ", "> ", "    ", "\\", "\\(", "\\)", "|", "&lt;"]
        ),
        st.sampled_from(
            ["](javascript:x)", "![", "[", "<", ">", "](", "[x]: ", "<pre>", "</pre>", "# ", "1. ", "@@0@@"]
        ),
        st.text(max_size=12),
    ),
    max_size=8,
).map("".join)


@given(PIECES)
def test_no_mixture_gets_out_of_the_html(text: str) -> None:
    check_html(markdown_html(text))


@given(PIECES)
def test_no_mixture_gets_out_of_the_markdown(text: str) -> None:
    for written in (safe_markdown(text), escape_markdown(text), code_span(text), code_block(text)):
        check_markdown(written)
