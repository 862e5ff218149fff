"""A question to the person as widgets: everything that would run in sight, and the ways to answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets

from ..agent.hooks import Decision, Question
from ..errors import ToolError
from ._arguments import arguments_html, as_json, fits_question, same_json, size_of
from ._form import Form, FormError
from ._parts import close_whole
from ._style import part
from ._typing import when_typed
from .markup import visible, visible_html

Answer = Callable[[Question, Decision], bool]
TOO_LONG = (
    "These arguments are too long to be shown whole, so they cannot be approved here. Block them, edit them, or let "
    "a rule or --approve all decide."
)


class QuestionBox:
    """One open question. The first answer counts; later clicks do nothing.

    Enter in the reason's box blocks with that reason; an empty box does nothing on Enter, so that a stray key cannot
    decide. Nothing takes the focus by itself.
    """

    def __init__(
        self, question: Question, label: str, answer: Answer, lost_focus: Callable[[QuestionBox], None] = lambda _: None
    ) -> None:
        """`lost_focus` is called with this box when a person has used one of its buttons, which then is gone."""
        self.question = question
        self._answer = answer
        self._lost_focus = lost_focus
        self._settled = False
        self._form: Form | None = None
        self._said = ipywidgets.HTML(_error_html(question.error))
        self._approve = _button("Approve", "yes", "Run it with these arguments", lambda: self._decide("approve"))
        self._block = _button("Block", "no", "Do not run it; the model is told", self._decide_to_block)
        self._edit = _button("Edit", "", "Change the arguments first", self._open_form)
        self._always = _button(
            "Always allow",
            "",
            "Run it, and every later call of this tool in this notebook",
            lambda: self._decide("always"),
        )
        if not fits_question(question.arguments):
            self._approve.disabled = self._always.disabled = True
            self._said.value = _error_html(TOO_LONG)
        self._reason = ipywidgets.Text(
            description="Reason to block", placeholder="reason to block, for the model (Enter blocks)"
        )
        self._reason.add_class("pi-named")
        self._reason.on_msg(self._on_reason_message)
        self._buttons = _row(self._approve, self._block, self._reason, self._edit, self._always)
        self._fields = ipywidgets.VBox()
        self.widget = ipywidgets.VBox(
            [ipywidgets.HTML(_question_html(question, label)), self._buttons, self._fields, self._said]
        )
        self.widget.add_class("pi-ask")

    @property
    def settled(self) -> bool:
        """Whether a person has answered."""
        return self._settled

    @property
    def hidden(self) -> bool:
        return bool(self.widget.layout.display == "none")

    def take_focus(self) -> None:
        """Take it where a stray Enter decides nothing: to the reason, or to the form if that is open."""
        field = self._form.widgets[0] if self._form is not None and self._form.widgets else self._reason
        field.focus()

    def hide(self) -> None:
        """Take it out of sight without moving the questions around it."""
        self.widget.layout.display = "none"

    def close(self) -> None:
        for widget in _all_widgets(self.widget):
            close_whole(widget)

    def _decide(self, kind: Any) -> None:
        if not self._settled and not self._approve.disabled:
            self._settle()
            self._tell(Decision(kind))

    def _decide_to_block(self) -> None:
        """The first click counts; the reason is read when its last keys have come."""
        if not self._settled:
            self._settle()
            when_typed([self._reason], lambda: self._tell(Decision("block", self._reason.value.strip())))

    def _settle(self) -> None:
        self._settled = True
        for widget in _all_widgets(self.widget):
            if hasattr(widget, "disabled"):
                widget.disabled = True
        self._lost_focus(self)

    def _tell(self, decision: Decision) -> None:
        if not self._answer(self.question, decision):
            self._said.value = f"<div{part('small', 'muted')}>This question was settled before.</div>"

    def _on_reason_message(self, widget: Any, content: dict[str, Any], buffers: Any) -> None:
        if content.get("event") == "submit":
            when_typed([self._reason], self._on_reason)

    def _on_reason(self) -> None:
        if not self._settled and self._reason.value.strip():
            self._settle()
            self._tell(Decision("block", self._reason.value.strip()))

    def _open_form(self) -> None:
        if self._settled or self._form is not None:
            return
        self._form = Form(self.question.tool.schema, self.question.arguments)
        run = _button("Run edited", "yes", "Run it with the arguments as changed here", self._run_edited)
        back = _button("Back", "", "Leave the arguments as they are", self._close_form)
        self._fields.children = [*self._form.lines, _row(run, back)]
        self._buttons.layout.display = "none"
        self._lost_focus(self)

    def _close_form(self) -> None:
        if self._settled:
            return
        self._form = None
        for child in self._fields.children:
            for widget in _all_widgets(child):
                close_whole(widget)
        self._fields.children = []
        self._said.value = ""
        self._buttons.layout.display = ""
        self._lost_focus(self)

    def _run_edited(self) -> None:
        if not self._settled and self._form is not None:
            self._settled = True
            when_typed(self._form.widgets, self._read_form)

    def _read_form(self) -> None:
        assert self._form is not None
        try:
            arguments = self._form.read()
            self.question.tool.check(arguments)
        except (FormError, ToolError) as error:
            self._settled = False
            self._said.value = _error_html(str(error))
            return
        self._said.value = ""
        self._settle()
        changed = not same_json(arguments, self.question.arguments)
        self._tell(Decision("edit", arguments=arguments) if changed else Decision("approve"))


def _question_html(question: Question, label: str) -> str:
    why = f" <span{part('muted')}>{visible_html(question.reason[:1_000])}</span>" if question.reason else ""
    name = question.tool.name
    named = f" <span{part('inline')}>{visible_html(name)}</span>" if name != label else ""
    head = f"<span{part('amber')}>◆</span> <span{part('label')}>{visible_html(label[:200])}</span>{named} wants to run"
    arguments = arguments_html(question.arguments, whole=True)
    head = f'<div role="alert">{head}{why}{_size_html(question)}</div>'
    return f'{head}<div class="pi-askbox" tabindex="0">{arguments}</div>'


def _size_html(question: Question) -> str:
    """What may lie outside of the scroll box: how much there is, and whether something in it does not show."""
    text = as_json(question.arguments, indent=1)
    count = len(question.arguments)
    size = f" · {count} argument{'s' if count != 1 else ''}, {size_of(len(text))}" if len(text) > 600 else ""
    hidden = " · contains hidden characters" if visible(text, keep_newlines=True) != text else ""
    return f"<span{part('muted')}>{size}</span><span{part('red')}>{hidden}</span>" if size or hidden else ""


def _error_html(text: str) -> str:
    return f"<div{part('small', 'red')}>{visible_html(text[:4_000])}</div>" if text else ""


def _button(name: str, look: str, tooltip: str, act: Callable[[], None]) -> Any:
    button = ipywidgets.Button(description=name, tooltip=tooltip)
    if look:
        button.add_class(f"pi-{look}")
    button.on_click(lambda _: act())
    return button


def _row(*children: Any) -> Any:
    row = ipywidgets.HBox(children)
    row.add_class("pi-askrow")
    return row


def _all_widgets(widget: Any) -> Sequence[Any]:
    found = [widget]
    for child in getattr(widget, "children", ()):
        found.extend(_all_widgets(child))
    return found
