"""The parts of the live card's body: a widget per text, row and note, each redrawn only when its item changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import ipywidgets
from ipywidgets.widgets.widget_string import HTMLStyle

from ._items import Item, Row, Text
from ._pace import MESSAGE, NEW_WIDGET, Pace
from ._rows import folded_arguments_html, line_html, output_html
from ._streaming import StreamingMarkdown
from ._style import part
from .markup import escape, visible
from .transcript import item_html, safely


class Sheet:
    """Makes widgets, sets their values, and keeps count of what that sends. `running`: how many calls run now."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.made: dict[Any, None] = {}
        # Shared, so that a new piece of HTML costs one message instead of three
        self._layout = self.keep(ipywidgets.Layout())
        self._style = self.keep(HTMLStyle())
        self.running = 0

    def keep(self, widget: Any) -> Any:
        self.made[widget] = None
        return widget

    def html(self, value: str = "") -> Any:
        self.pace.spent(NEW_WIDGET + len(value))
        return self.keep(ipywidgets.HTML(value, layout=self._layout, style=self._style))

    def box(self, children: Any = (), *names: str) -> Any:
        self.pace.spent(NEW_WIDGET)
        looks = tuple(f"pi-{name}" for name in names)
        return self.keep(ipywidgets.VBox(children, layout=self._layout, _dom_classes=looks))

    def fill(self, box: Any, children: Sequence[Any]) -> None:
        """Set what is in a box."""
        self.pace.spent(MESSAGE + 60 * len(children))
        box.children = children

    def set(self, widget: Any, value: str) -> int:
        """Set a piece of HTML; returns the bytes sent."""
        if widget.value == value:
            return 0
        widget.value = value
        size = MESSAGE + len(value)
        self.pace.spent(size)
        return size

    def discard(self, widget: Any) -> None:
        """Close a widget and what is in it, which nothing shows any more."""
        for child in getattr(widget, "children", ()):
            self.discard(child)
        self.made.pop(widget, None)
        close_whole(widget, (self._layout, self._style))

    def close(self, *, but: Any = None) -> None:
        """Close every widget, apart from one."""
        kept = () if but is None else (but, but.layout)
        for widget in self.made:
            if widget not in kept:
                close_whole(widget, kept)
        self.made.clear()


def close_whole(widget: Any, kept: Sequence[Any] = ()) -> None:
    """Close a widget with its layout and style, which are widgets of their own and would stay open, unless `kept`."""
    for own in (getattr(widget, "layout", None), getattr(widget, "style", None)):
        if own is not None and own not in kept:
            own.close()
    widget.close()


class Part(Protocol):
    """What draws one item."""

    @property
    def widget(self) -> Any: ...
    @property
    def item(self) -> Item: ...

    def draw(self, now: float) -> bool:
        """Bring the widget up to date; False if something has to wait for its turn."""


def make_part(sheet: Sheet, item: Item, now: float) -> Part:
    if item.kind == "text":
        return TextPart(sheet, item)
    if item.kind == "row":
        return RowPart(sheet, item, now)
    return NotePart(sheet, item, now)


class TextPart:
    """Streamed Markdown: a piece of HTML per chunk, of which only the last changes."""

    def __init__(self, sheet: Sheet, item: Text) -> None:
        self.item: Text = item
        self._sheet = sheet
        self._markdown = StreamingMarkdown()
        self._taken = 0
        self._version = -1
        self._final = False
        self._chunks = [sheet.html()]
        self.widget = sheet.box(self._chunks, "text")

    def draw(self, now: float) -> bool:
        item, sheet = self.item, self._sheet
        if item.version == self._version:
            return True
        if item.open and not sheet.pace.text_due():
            return False
        self._version = item.version
        text = "".join(item.pieces[self._taken :])
        self._taken = len(item.pieces)
        if not text and (item.open or self._final):
            return True
        self._final = not item.open
        self._markdown.update(text, final=self._final)
        chunks = self._markdown.chunks
        sheet.set(self._chunks[-1], chunks[len(self._chunks) - 1])
        if len(chunks) > len(self._chunks):
            added = [sheet.html(value) for value in chunks[len(self._chunks) :]]
            self._chunks += added
            sheet.fill(self.widget, self._chunks)
        sheet.pace.text_sent(len(text), MESSAGE + len(chunks[-1]))
        return True


class RowPart:
    """A tool call. Its line, its arguments and its output change apart, so that what a person has unfolded stays."""

    def __init__(self, sheet: Sheet, item: Row, now: float) -> None:
        self.item: Row = item
        self._sheet = sheet
        self._version = item.version
        self._state = item.state
        self._drawn_at = now
        self._line = sheet.html(safely(lambda: line_html(item, now)))
        self._arguments: Any = None
        self._output: Any = None
        self.widget = sheet.box([self._line], "row", "rowbox")
        self._draw_rest()

    def draw(self, now: float) -> bool:
        item = self.item
        if item.version == self._version and (item.final or item.started is None):
            return True
        pace = self._sheet.pace
        if item.state == self._state and not pace.row_due(self._drawn_at, self._sheet.running):
            return item.version == self._version
        self._state, self._drawn_at = item.state, now
        self._sheet.set(self._line, safely(lambda: line_html(item, now)))
        if item.version != self._version:
            self._version = item.version
            self._draw_rest()
        return True

    def _draw_rest(self) -> None:
        item = self.item
        arguments = "" if item.writing else safely(lambda: folded_arguments_html(item))
        output = safely(lambda: output_html(item))
        fresh = False
        for name, value in (("_arguments", arguments), ("_output", output)):
            widget = getattr(self, name)
            if widget is not None:
                self._sheet.set(widget, value)
            elif value:
                setattr(self, name, self._sheet.html(value))
                fresh = True
        if fresh:
            pieces = (self._line, self._arguments, self._output)
            self._sheet.fill(self.widget, [piece for piece in pieces if piece is not None])


class NotePart:
    """Anything else: thinking, a word of the person's, a notice."""

    def __init__(self, sheet: Sheet, item: Item, now: float) -> None:
        self.item = item
        self._sheet = sheet
        self._version = item.version
        self.widget = sheet.html(note_part_html(item, now))

    def draw(self, now: float) -> bool:
        if self.item.version == self._version:
            return True
        thinking = self.item.kind == "thinking" and self.item.open
        if thinking and not self._sheet.pace.text_due():
            return False
        self._version = self.item.version
        sent = self._sheet.set(self.widget, note_part_html(self.item, now))
        if thinking:
            self._sheet.pace.text_sent(0, sent)
        return True


def note_part_html(item: Item, now: float) -> str:
    """Thinking that still grows is one line with its end; the whole comes folded when it has ended."""
    if item.kind == "thinking" and item.open:
        end = " ".join("".join(item.pieces[-80:])[-160:].split())
        return f"<div{part('small', 'muted', 'thought')}>Thinking … <bdi>{escape(visible(end))}</bdi></div>"
    return item_html(item, now)
