"""The live card: what a `RunView` shows, as plain ipywidgets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets

from ..agent.hooks import Decision, Question
from ._header import head_html, notes_html
from ._items import Row
from ._pace import Pace
from ._parts import Part, Sheet, make_part
from ._questions import QuestionBox
from ._rows import unfolder
from ._style import part, stylesheet
from ._typing import when_typed
from .bridge import bridge_of_thread
from .markup import escape
from .transcript import item_html, render_html, said_html
from .view import RunView

logger = logging.getLogger(__name__)

_GROUP = 16
"""Parts to a box, so that a new one does not resend the list of all."""
_UNFOLDED_GROUPS = 6
_NEW_PER_REFRESH = 40


class Card:
    """The live view of one run.

    `refresh` is to be called by one thread at a time, at most 15 times a second. The callbacks are called on the
    thread that handles widget messages and must be safe there.

    Args:
        view: What is shown.
        stop: A person clicked **Stop**.
        answer: A person decided; False if the question was settled before.
        steer: A person said something into the run; None: there is no line to type into.

    Attributes:
        widget: The box to display.
        pending: The last refresh left something out, to keep within what a page can take: refresh again.
    """

    def __init__(
        self,
        view: RunView,
        *,
        stop: Callable[[], None],
        answer: Callable[[Question, Decision], bool],
        steer: Callable[[str], None] | None = None,
    ) -> None:
        self.view = view
        self.pending = False
        self._answer = answer
        self._steer = steer
        self._sheet = sheet = Sheet(Pace(view.clock))
        self._parts: list[Part] = []
        self._open: list[Part] = []  # that may still change
        self._groups: list[Any] = []
        self._folded = 0
        self._past = sheet.html()  # how much is folded
        self._boxes: list[QuestionBox] = []
        self._said: Any = None
        self._head = sheet.html()
        self._spoken = sheet.html()
        self._notes = sheet.html()
        self._queued = sheet.html()
        self._body = sheet.box((), "body")
        self._questions = sheet.box()
        self._stop = sheet.keep(ipywidgets.Button(description="Stop", tooltip="Stop the run; what has happened stays"))
        self._stop.add_class("pi-stop")
        self._stop.on_click(lambda _: self._on_stop(stop))
        head = sheet.keep(ipywidgets.HBox([self._head, self._stop]))
        for name in ("pi-headbox", "pi-bar"):
            head.add_class(name)
        lines = [sheet.html(stylesheet()), head, self._spoken, self._notes, self._body, self._questions, self._queued]
        if steer is not None:
            lines.append(self._steering_line(steer))
        self.widget = sheet.box(lines, "card")
        self.refresh()

    @property
    def view_count(self) -> int:
        """How many pages show the card; 0 while none does."""
        return self.widget._view_count or 0

    def count_views(self, on: bool) -> None:
        """Start or end counting."""
        self.widget._view_count = 0 if on else None

    def refresh(self) -> bool:
        """Draw what has changed. True if there is more, see `pending`."""
        view, sheet = self.view, self._sheet
        with view.lock:
            now = view.clock()
            sheet.running = sum(row.state == "running" for row in view.open_rows)
            self._draw_frame()
            self.pending = not self._draw_open(now)
            self._draw_new(now)
            self._draw_questions()
            self._fold_old(now)
        return self.pending

    def freeze(self) -> None:
        """End the life of the card: the finished transcript stands in the box, nothing in it can be clicked."""
        html = ipywidgets.HTML(render_html(self.view))
        self.widget.children = [html]
        self.widget.remove_class("pi-card")
        self._close_all(but=self.widget)

    def close(self) -> None:
        """Close every widget."""
        self._close_all(but=None)

    def _close_all(self, but: Any) -> None:
        for box in self._boxes:
            box.close()
        self._boxes.clear()
        self._sheet.close(but=but)

    # The frame

    def _steering_line(self, steer: Callable[[str], None]) -> Any:
        keep = self._sheet.keep
        words = "Say something to the agent; it is told after this turn"
        self._said = field = keep(ipywidgets.Text(description=words.partition(";")[0], placeholder=words))
        field.add_class("pi-named")
        send = keep(ipywidgets.Button(description="Send", tooltip="Tell the agent after this turn"))

        def take() -> None:
            text = field.value.strip()
            if text and self.view.outcome is None:
                field.value = ""
                steer(text)
            self.view.being_said = False

        def submit() -> None:
            if not self.view.being_said:
                self.view.being_said = True
                when_typed([field], take)

        def on_message(widget: Any, content: dict[str, Any], buffers: Any) -> None:
            if content.get("event") == "submit":
                submit()

        send.on_click(lambda _: submit())
        field.on_msg(on_message)
        line = keep(ipywidgets.HBox([field, send]))
        line.add_class("pi-steer")
        return line

    def _on_stop(self, stop: Callable[[], None]) -> None:
        if not self._stop.disabled:
            self._stop.disabled = True
            self._stop.description = "Stopping"
            stop()

    def _draw_frame(self) -> None:
        view, put = self.view, self._sheet.set
        put(self._head, f"<div{part('head')}>{head_html(view)}</div>")
        put(self._spoken, f'<div class="pi-spoken" role="status" aria-live="polite">{escape(view.status)}</div>')
        notes = notes_html(view)
        retry = f"<div{part('note', 'amber')}>{escape(view.retry[:500])}</div>" if view.retry else ""
        put(self._notes, f"<div{part('aside')}>{notes}{retry}</div>" if notes or retry else "")
        queued = "".join(said_html(text, "queued until this turn ends") for text in view.queued)
        put(self._queued, f"<div{part('aside')}>{queued}</div>" if queued else "")

    # The body

    def _draw_open(self, now: float) -> bool:
        """Redraw what may change; False if something has to wait."""
        still, complete = [], True
        for part_ in self._open:
            drawn = self._sheet.pace.room() and _draw(part_, now)
            complete = complete and drawn
            if not drawn or not _is_final(part_.item):
                still.append(part_)
        self._open = still
        return complete

    def _draw_new(self, now: float) -> None:
        items = self.view.items
        fresh: list[Part] = []
        while len(self._parts) + len(fresh) < len(items):
            if len(fresh) >= _NEW_PER_REFRESH or not self._sheet.pace.room():
                self.pending = True
                break
            made = make_part(self._sheet, items[len(self._parts) + len(fresh)], now)
            if not _draw(made, now):
                self.pending = True
            fresh.append(made)
        if fresh:
            self._open += fresh
            self._append(fresh)

    def _append(self, fresh: Sequence[Part]) -> None:
        """Put parts at the end, touching only the last box, so that no part before them is drawn anew."""
        added = False
        for made in fresh:
            if len(self._parts) % _GROUP == 0:
                self._groups.append([])
                added = True
            self._groups[-1].append(made)
            self._parts.append(made)
        boxes = list(self._body.children)
        for number in range(max(0, len(boxes) - 1), len(self._groups)):
            children = [made.widget for made in self._groups[number]]
            if number < len(boxes):
                self._sheet.fill(boxes[number], children)
            else:
                boxes.append(self._sheet.box(children))
        if added:
            self._sheet.fill(self._body, boxes)

    def _fold_old(self, now: float) -> None:
        """Replace groups that are long finished by a piece of HTML each, all under one fold.

        Each stays in its place, and what a person unfolds is never drawn anew: the stylesheet hides the pieces as long
        as the fold, which stands in the first group's box, is closed.
        """
        sheet = self._sheet
        while len(self._groups) - self._folded > _UNFOLDED_GROUPS:
            group = self._groups[self._folded]
            if any(not _is_final(made.item) or made in self._open for made in group):
                return
            piece = sheet.html("".join(item_html(made.item, now) for made in group))
            piece.add_class("pi-earlier")
            box = self._body.children[self._folded]
            if not self._folded:
                box.add_class("pi-past")
                sheet.fill(box, [sheet.html(unfolder("Earlier in this run")), self._past, piece])
            else:
                sheet.fill(box, [piece])
            for made in group:
                sheet.discard(made.widget)
            group.clear()
            self._folded += 1
            items = self.view.items[: self._folded * _GROUP]
            calls = sum(item.kind == "row" for item in items)
            count = f"{calls} tool calls" if calls == len(items) else f"{len(items)} steps"
            sheet.set(self._past, f"<div{part('small', 'muted')}>{count}</div>")

    # Questions

    def _draw_questions(self) -> None:
        waiting = [row for row in self.view.open_rows if row.state == "waiting for you"]
        open_now = {id(row.question) for row in waiting}
        for box in self._boxes:
            if id(box.question) not in open_now and not box.hidden:
                box.hide()
        shown = {id(box.question) for box in self._boxes}
        fresh = [self._question_box(row) for row in waiting if id(row.question) not in shown]
        if not waiting and self._boxes:
            self._questions.children = []
            for box in self._boxes:
                box.close()
            self._boxes = []
        elif fresh:
            self._boxes += fresh
            self._questions.children = [box.widget for box in self._boxes]

    def _question_box(self, row: Row) -> QuestionBox:
        assert row.question is not None
        return QuestionBox(row.question, row.label, self._answer, self._hand_focus_on)

    def _hand_focus_on(self, box: QuestionBox) -> None:
        """A button that had the focus is gone: stay in its box, go on to the next, at last to the line at the foot.

        Not if the click was taken up late: by then the person may be typing elsewhere.
        """
        bridge = bridge_of_thread()
        if bridge is not None and not bridge.prompt:
            return
        at = self._boxes.index(box) if box in self._boxes else 0
        following = [*self._boxes[at:], *self._boxes[:at]]
        open_box = next((each for each in following if not (each.settled or each.hidden)), None)
        if open_box is not None:
            open_box.take_focus()
        elif self._said is not None:
            self._said.focus()


def _draw(part_: Part, now: float) -> bool:
    """Never raises: what cannot be drawn must not hide the questions after it."""
    try:
        return part_.draw(now)
    except Exception:
        logger.exception("a part of the card cannot be drawn")
        return True


def _is_final(item: Any) -> bool:
    match item.kind:
        case "text" | "thinking":
            return not item.open
        case "row":
            return bool(item.final)
        case _:
            return True
