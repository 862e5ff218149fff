"""The static transcript of a run: HTML, Markdown and plain text of a `RunView`.

The HTML stands in saved notebooks, trusted or not, on light and dark pages, and in exports: it holds no script, no
stylesheet, no reference to anything outside itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ..ai.keys import known_keys
from ..ai.messages import UserContent
from ._arguments import arguments_line, as_json, change_text, size_of
from ._header import finished_head_html, head_line, notes_html
from ._items import Item, Row, Text
from ._markdown import code_block, code_span, escape_markdown, safe_markdown
from ._rows import SYMBOLS, decision_text, fold, row_html, seconds_text, short_result
from ._style import inlined, part
from .markup import markdown_html, plain, visible, visible_html
from .records import without_keys
from .view import RunView

__all__ = ["TextPrinter", "render_html", "render_markdown", "render_text", "static_bundle", "visible"]

logger = logging.getLogger(__name__)

NOT_SENT = "not sent: the run ended first"
_BUNDLED_TEXT = 20_000
_SHOWN_TEXT = 500_000
_SHOWN_RESULT = 4_000


def render_html(view: RunView) -> str:
    """The run as one HTML fragment."""
    with view.lock:
        now = view.ended or view.clock()
        items = "".join(item_html(item, now) for item in view.items)
        queued = "".join(said_html(text, NOT_SENT) for text in view.queued)
        body = f"{notes_html(view)}{items}{queued}"
        return inlined(
            f"<div{part('card')}>{finished_head_html(view)}<div{part('body')}>"
            f'<div class="tex2jax_ignore mathjax_ignore">{body}</div></div></div>'
        )


def static_bundle(view: RunView) -> dict[str, str]:
    """The finished run in every form that a saved notebook holds; of a long one the plain text is the beginning.

    Keys in it become `***`.
    """
    text = render_text(view)
    if len(text) > _BUNDLED_TEXT:
        text = (
            f"{text[:_BUNDLED_TEXT]}\n… {size_of(len(text) - _BUNDLED_TEXT)} more, see the other forms of this output"
        )
    bundle = {"text/html": render_html(view), "text/markdown": render_markdown(view), "text/plain": text}
    keys = known_keys()
    return {form: without_keys(shown, keys) for form, shown in bundle.items()}


def item_html(item: Item, now: float) -> str:
    """One item in its final form. Never raises."""
    return safely(lambda: _item_html(item, now))


def safely(draw: Callable[[], str]) -> str:
    """What `draw` returns, or a word about what it raised: a run is worth more than one of its parts."""
    try:
        return draw()
    except Exception as error:
        logger.exception("a part of a run cannot be shown")
        return note_html(f"This part cannot be shown: {type(error).__name__}.", "error")


def _item_html(item: Item, now: float) -> str:
    match item.kind:
        case "text":
            return f"<div{part('text')}>{markdown_html(_cut(item.source))}</div>"
        case "thinking":
            return thinking_html(item, now)
        case "row":
            return row_html(item, now)
        case "steering":
            return said_html(item.text, "")
        case _:
            return note_html(item.text, item.level)


def thinking_html(item: Text, now: float) -> str:
    source = item.source.strip()
    if not source:
        return f"<div{part('small', 'muted')}>Thought (hidden by the provider)</div>"
    seconds = (item.ended or now) - item.started
    title = f"Thought for {seconds_text(seconds)}" if seconds >= 0.05 else "Thought"
    return fold(title, f"<div{part('small', 'muted', 'scroll')}>{markdown_html(_cut(source))}</div>")


def said_html(text: str, state: str) -> str:
    words = f" <span{part('small', 'muted')}>{state}</span>" if state else ""
    return f'<div{part("said")} dir="auto"><span{part("muted")}>You:</span> {visible_html(text[:5_000])}{words}</div>'


def note_html(text: str, level: str) -> str:
    colour = {"warning": "amber", "error": "red"}.get(level, "grey")
    shown = visible_html(plain(text)[:5_000]).replace("\n", "<br>")
    return f'<div{part("note", colour)} dir="auto">{shown}</div>'


def _cut(source: str) -> str:
    if len(source) <= _SHOWN_TEXT:
        return source
    return f"{source[:_SHOWN_TEXT]}\n\n({size_of(len(source) - _SHOWN_TEXT)} more, not shown)"


# Markdown


def render_markdown(view: RunView) -> str:
    """The run as Markdown; see `_markdown` for what makes it safe."""
    with view.lock:
        blocks = ["**" + escape_markdown(view.model) + "** · " + escape_markdown(head_line(view, model=False))]
        if view.model_notice:
            blocks.append(f"*{escape_markdown(view.model_notice)}*")
        blocks += [f"- in the prompt: {escape_markdown(text)}" for text in view.inserted]
        blocks += [f"- warning: {escape_markdown(text)}" for text in view.warnings]
        blocks += [_item_markdown(item) for item in view.items]
        blocks += [_said_markdown(f"{text} ({NOT_SENT})") for text in view.queued]
        return "\n\n".join(block for block in blocks if block) + "\n"


def _item_markdown(item: Item) -> str:
    match item.kind:
        case "text":
            return safe_markdown(_cut(item.source))
        case "thinking":
            return ""
        case "row":
            return _row_markdown(item)
        case "steering":
            return _said_markdown(item.text)
        case _:
            return f"*{item.level}:* {escape_markdown(plain(item.text))}"


def _said_markdown(text: str) -> str:
    return f"> You: {escape_markdown(text)}".replace("\n", "\n> ")


def _row_markdown(row: Row) -> str:
    line, whole = arguments_line(row.arguments)
    words = [f"{SYMBOLS[row.state]} **{escape_markdown(visible(row.label))}**"]
    if line:
        words.append(code_span(line))
    result = short_result(row)
    if result:
        words.append(f"→ {code_span(visible(result))}")
    words.append(_state_words(row))
    blocks = ["- " + " ".join(words)]
    if row.decision is not None:
        blocks.append("  " + escape_markdown(decision_text(row)))
        if row.decision.kind == "edit" and row.question is not None:
            blocks.append(code_block(change_text(row.question.arguments, row.decision.arguments), "diff"))
    if not whole:
        blocks.append(code_block(visible(as_json(row.arguments, indent=1)[:_SHOWN_RESULT], keep_newlines=True), "json"))
    text = _result_text(row)
    if text:
        blocks.append(code_block(text))
    return "\n\n".join(blocks)


def _state_words(row: Row) -> str:
    seconds = row.seconds(row.ended or 0.0)
    return f"({row.state}, {seconds_text(seconds)})" if seconds is not None else f"({row.state})"


def _result_text(row: Row) -> str:
    """What the line does not hold of the result and of what was displayed besides; "" if it holds all."""
    if row.result is None:
        return ""
    content = () if short_result(row) else row.result.content
    pieces = [_blocks_text(content), _blocks_text(row.result.displayed)]
    return "\n".join(piece for piece in pieces if piece)


def _blocks_text(content: Sequence[UserContent]) -> str:
    text = "".join(block.text for block in content if block.type == "text")
    text = visible(plain(text).strip("\n"), keep_newlines=True)
    if len(text) > _SHOWN_RESULT:
        text = f"{text[:_SHOWN_RESULT]}\n… {size_of(len(text) - _SHOWN_RESULT)} more, not shown"
    images = [f"[image: {block.mime_type}]" for block in content if block.type == "image"]
    return "\n".join(piece for piece in [text, *map(visible, images)] if piece)


# Plain text


def render_text(view: RunView, *, width: int | None = None, color: bool = False) -> str:
    """The run as text for a terminal. `width`: longest line of a row; `color`: with ANSI colours."""
    pieces: list[str] = []
    TextPrinter(view, pieces.append, width=width, color=color).refresh()
    return "".join(pieces).rstrip("\n")


_ANSI_COLOURS = {"done": "32", "failed": "31", "blocked": "33", "waiting for you": "33", "running": "34"}


class TextPrinter:
    """Writes a run to a terminal as it goes: call `refresh` after changes; what is written is never taken back.

    Nothing that a model or a tool says can move the cursor or change colours.
    """

    def __init__(
        self, view: RunView, write: Callable[[str], object], *, width: int | None = None, color: bool = False
    ) -> None:
        self._view = view
        self._write = write
        self._width = width
        self._color = color
        self._begun = False
        self._ended = False
        self._first = 0  # item before which all is written
        self._pieces: dict[int, int] = {}  # pieces of a text that are written
        self._announced: set[int] = set()
        self._mid_line = False

    def refresh(self) -> None:
        """Write what has been added since the last call."""
        view = self._view
        with view.lock:
            if not self._begun:
                self._begun = True
                self._head()
            for index in range(self._first, len(view.items)):
                if self._item(index, view.items[index]) and index == self._first:
                    self._first += 1
            if view.outcome and not self._ended:
                self._ended = True
                for text in view.queued:
                    self._line(f"> {visible(text)} ({NOT_SENT})")
                self._line(self._paint(f"— {head_line(view, model=False)}", "2"))

    def _head(self) -> None:
        view = self._view
        self._line(self._paint(visible(view.model), "1"))
        for text in (view.model_notice, *view.inserted, *(f"Warning: {text}" for text in view.warnings)):
            if text:
                self._line(self._paint(f"  {visible(text)}", "2"))

    def _item(self, index: int, item: Item) -> bool:
        """Write what is new of one item; True if that is all of it."""
        match item.kind:
            case "text":
                return self._text(index, item)
            case "thinking":
                return not item.open
            case "row":
                return self._row(index, item)
            case "steering":
                self._line(f"> {visible(item.text)}")
            case _:
                self._line(self._paint(f"{item.level}: {visible(plain(item.text), keep_newlines=True)}", "33"))
        return True

    def _text(self, index: int, item: Text) -> bool:
        start = self._pieces.get(index, 0)
        if start == 0 and item.pieces and self._mid_line:
            self._line("")
        end = len(item.pieces)
        text = "".join(item.pieces[start:end])
        self._pieces[index] = end
        if text:
            self._write(visible(text.replace("\r\n", "\n"), keep_newlines=True))
            self._mid_line = not text.endswith("\n")
        if not item.open and self._mid_line:
            self._line("")
        return not item.open

    def _row(self, index: int, row: Row) -> bool:
        if row.writing or (row.state == "queued" and not row.final):
            return False
        if not row.final:
            if index not in self._announced:
                self._announced.add(index)
                self._line(self._clip(f"{SYMBOLS['running']} {self._call(row)} …"))
            return False
        if index in self._pieces:
            return True
        self._pieces[index] = 1
        result = short_result(row)
        tail = f" → {visible(result)}" if result else ""
        words = self._clip(f"{SYMBOLS[row.state]} {self._call(row)}{tail}") + f" {_state_words(row)}"
        self._line(self._paint(words, _ANSI_COLOURS.get(row.state, "0")))
        if row.decision is not None:
            self._line(f"    {decision_text(row)}")
        for line in _result_text(row).split("\n")[:20]:
            if line:
                self._line(f"    {line}")
        return True

    def _call(self, row: Row) -> str:
        return f"{visible(row.label)}({arguments_line(row.arguments)[0]})"

    def _clip(self, text: str) -> str:
        return text if self._width is None or len(text) <= self._width else text[: self._width - 1] + "…"

    def _line(self, text: str) -> None:
        if self._mid_line:
            self._mid_line = False
            self._write("\n" + (text + "\n" if text else ""))
        else:
            self._write(text + "\n")

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._color else text
