"""The live card, without a page: what its widgets hold and send, and what clicks do."""

from __future__ import annotations

import html
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import comm
import pytest
from comm.base_comm import BaseComm

from pi_notebook.agent.hooks import Decision, Question
from pi_notebook.agent.tool import ConsoleText, Progress, ToolResult
from pi_notebook.notebook.bridge import Bridge
from pi_notebook.notebook.card import Card
from pi_notebook.notebook.display import CardDisplay
from pi_notebook.notebook.transcript import render_html
from tests.browser.states import LONG_ARGUMENTS, STATES, Play, picture

Answers = list[tuple[Question, Decision]]


def widgets(widget: Any) -> Iterator[Any]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from widgets(child)


def named(card: Card, name: str, kind: str = "Button") -> Any:
    """The first widget in sight with this name."""
    for widget in widgets(card.widget):
        if type(widget).__name__ == kind and name in (
            getattr(widget, "description", ""),
            getattr(widget, "placeholder", ""),
        ):
            return widget
    raise LookupError(name)


def shown(card: Card) -> str:
    return "".join(widget.value for widget in widgets(card.widget) if type(widget).__name__ == "HTML")


def press_enter(field: Any) -> None:
    field._handle_custom_msg({"event": "submit"}, [])


def wait_for(condition: Callable[[], bool]) -> None:
    """What was typed is read a moment after a click."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def make_card(play: Play, *, accept: bool = True) -> tuple[Card, Answers, list[str]]:
    answers: Answers = []
    said: list[str] = []

    def answer(question: Question, decision: Decision) -> bool:
        answers.append((question, decision))
        return accept

    return Card(play.view, stop=lambda: said.append("stop"), answer=answer, steer=said.append), answers, said


def asking(schema: Any = None, arguments: Any = None) -> tuple[Play, Question]:
    play = Play()
    call = play.call("c1", "drop_rows", arguments or {"table": "sales", "limit": 3})
    play.end_reply("tool_use")
    play.start(call, run=False)
    return play, play.ask(call, "deletes rows", schema)


class Terminal:
    """An IPython shell without a kernel."""

    display_pub: Any = None


class Recorder(BaseComm):
    """A comm whose messages are counted instead of sent."""

    sizes: list[int]
    values: list[tuple[str, Any]]

    def publish_msg(
        self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **keys: Any
    ) -> None:
        # The rest of a message (header, parent header, signature) is about 750 bytes
        self.sizes.append(750 + len(json.dumps(data or {})))
        for key, value in (data or {}).get("state", {}).items():
            self.values.append((key, value))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> type[Recorder]:
    monkeypatch.setattr(comm, "create_comm", lambda *args, **keys: Recorder(*args, **keys))
    Recorder.sizes, Recorder.values = [], []
    return Recorder


# Questions


def test_a_question_shows_every_argument_and_the_reason() -> None:
    play, _ = asking(arguments=LONG_ARGUMENTS)
    card, _, _ = make_card(play)
    text = shown(card)
    assert text.count("# all of them") == 8
    assert "deletes rows" in text
    assert "U+202E" in text and "\u202e" not in text


@pytest.mark.parametrize(("name", "kind"), [("Approve", "approve"), ("Block", "block"), ("Always allow", "always")])
def test_a_click_decides_and_a_second_click_is_ignored(name: str, kind: str) -> None:
    play, question = asking()
    card, answers, _ = make_card(play)
    named(card, name).click()
    named(card, name).click()
    named(card, "Approve").click()
    wait_for(lambda: bool(answers))
    assert [(asked, decision.kind, decision.by) for asked, decision in answers] == [(question, kind, "you")]
    assert all(named(card, other).disabled for other in ("Approve", "Block", "Edit", "Always allow"))


def test_what_cannot_be_shown_whole_cannot_be_approved() -> None:
    play, _ = asking(arguments={"table": "sales", "text": "x" * 400_001})
    card, answers, _ = make_card(play)
    assert "too long to be shown whole, so they cannot be approved here" in shown(card)
    named(card, "Approve").click()
    named(card, "Always allow").click()
    assert answers == []
    named(card, "Block").click()
    wait_for(lambda: bool(answers))
    assert [decision.kind for _, decision in answers] == ["block"]


def test_a_question_that_was_settled_elsewhere_says_so() -> None:
    play, _ = asking()
    card, _, _ = make_card(play, accept=False)
    named(card, "Approve").click()
    assert "This question was settled before." in shown(card)


def test_block_carries_the_reason() -> None:
    play, _ = asking()
    card, answers, _ = make_card(play)
    named(card, "reason to block, for the model (Enter blocks)", "Text").value = " keep them "
    named(card, "Block").click()
    wait_for(lambda: bool(answers))
    assert (answers[0][1].kind, answers[0][1].reason) == ("block", "keep them")


def test_enter_blocks_with_all_that_was_typed_though_it_arrives_before_the_end() -> None:
    play, _ = asking()
    card, answers, _ = make_card(play)
    field = named(card, "reason to block, for the model (Enter blocks)", "Text")
    press_enter(field)
    field.value = "not"
    field.value = "not now, please"
    wait_for(lambda: bool(answers))
    assert [(d.kind, d.reason) for _, d in answers] == [("block", "not now, please")]


def test_enter_without_a_reason_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    play, _ = asking()
    card, answers, _ = make_card(play)
    waited: list[Callable[[], None]] = []
    monkeypatch.setattr("pi_notebook.notebook._questions.when_typed", lambda fields, act: waited.append(act))
    press_enter(named(card, "reason to block, for the model (Enter blocks)", "Text"))
    for act in waited:
        act()
    assert (len(waited), answers) == (1, [])
    named(card, "Approve").click()
    assert [d.kind for _, d in answers] == ["approve"]


def test_an_edit_is_checked_against_the_schema_before_it_is_sent() -> None:
    schema = {
        "type": "object",
        "properties": {"table": {"type": "string"}, "limit": {"type": "integer", "maximum": 10}},
        "required": ["table"],
    }
    play, _ = asking(schema)
    card, answers, _ = make_card(play)
    named(card, "Edit").click()
    named(card, "limit", "Text").value = "many"
    named(card, "Run edited").click()
    wait_for(lambda: "limit" in card._boxes[0]._said.value)
    assert "limit: &#x27;many&#x27; is no whole number" in shown(card)
    named(card, "limit", "Text").value = "11"
    named(card, "Run edited").click()
    wait_for(lambda: "maximum" in card._boxes[0]._said.value or "10" in card._boxes[0]._said.value)
    assert answers == []
    named(card, "Run edited").click()
    named(card, "limit", "Text").value = "7"
    wait_for(lambda: bool(answers))
    assert [(d.kind, d.arguments) for _, d in answers] == [("edit", {"table": "sales", "limit": 7})]


def test_an_edit_that_changes_nothing_is_an_approval() -> None:
    schema = {"type": "object", "properties": {"x": {}, "y": {"type": "number"}, "z": {"type": "integer"}}}
    play, _ = asking(schema, {"z": 123456789012345678901234567890, "x": None, "y": 1e20})
    card, answers, _ = make_card(play)
    named(card, "Edit").click()
    named(card, "Run edited").click()
    wait_for(lambda: bool(answers))
    assert [(d.kind, d.arguments) for _, d in answers] == [("approve", None)]


def test_going_back_from_an_edit_leaves_the_arguments_as_they_were() -> None:
    play, _ = asking({"type": "object", "properties": {"table": {"type": "string"}}})
    card, answers, _ = make_card(play)
    named(card, "Edit").click()
    named(card, "table", "Text").value = "other"
    named(card, "Back").click()
    named(card, "Approve").click()
    assert [(d.kind, d.arguments) for _, d in answers] == [("approve", None)]


def test_the_focus_goes_on_to_the_next_open_question_and_then_stays_with_the_card(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    focused: list[Any] = []
    monkeypatch.setattr("ipywidgets.DOMWidget.focus", lambda widget: focused.append(widget))
    play = Play()
    calls = [play.call(f"c{n}", "save", {"n": n}) for n in range(3)]
    play.end_reply("tool_use")
    for call in calls:
        play.start(call, run=False)
        play.ask(call)
    card, _, _ = make_card(play)
    boxes = list(card._boxes)
    for box in (boxes[1], boxes[2], boxes[0]):
        box._approve.click()
    foot = named(card, "Say something to the agent", "Text")
    assert focused == [boxes[2]._reason, boxes[0]._reason, foot]


def test_the_focus_goes_into_the_form_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    focused: list[Any] = []
    monkeypatch.setattr("ipywidgets.DOMWidget.focus", lambda widget: focused.append(widget.description))
    play, _ = asking({"type": "object", "properties": {"table": {"type": "string"}}})
    card, _, _ = make_card(play)
    named(card, "Edit").click()
    named(card, "Back").click()
    assert focused == ["table", "Reason to block"]


def test_a_late_answer_takes_no_focus(monkeypatch: pytest.MonkeyPatch) -> None:
    focused: list[Any] = []
    monkeypatch.setattr("ipywidgets.DOMWidget.focus", lambda widget: focused.append(widget))
    play, _ = asking()
    card, answers, _ = make_card(play)
    with Bridge(Terminal()) as bridge:
        bridge.prompt = False
        named(card, "Approve").click()
    assert (len(answers), focused) == (1, [])


def test_fields_have_names_for_screen_readers() -> None:
    play, _ = asking()
    card, _, _ = make_card(play)
    names = [widget.description for widget in widgets(card.widget) if type(widget).__name__ == "Text"]
    assert names == ["Reason to block", "Say something to the agent"]


def test_an_answered_question_leaves_the_others_where_they_are() -> None:
    play = Play()
    calls = [play.call(f"c{n}", "save", {"n": n}) for n in range(3)]
    play.end_reply("tool_use")
    for call in calls:
        play.start(call, run=False)
    questions = [play.ask(call) for call in calls]
    card, _, _ = make_card(play)
    boxes = [box.widget for box in card._boxes]
    play.view.answered(questions[1], Decision("approve"))
    card.refresh()
    assert [box.layout.display for box in boxes] == [None, "none", None]
    assert list(card._questions.children) == boxes
    for question in (questions[0], questions[2]):
        play.view.answered(question, Decision("approve"))
    card.refresh()
    assert list(card._questions.children) == []


def test_a_question_that_is_asked_again_says_why() -> None:
    play, question = asking()
    card, _, _ = make_card(play)
    again = Question(question.tool_call, question.tool, {"table": 3}, error="table: text expected")
    play.view.ask(again)
    card.refresh()
    assert "table: text expected" in shown(card)


# Stop and steering


def test_stop_is_called_once() -> None:
    card, _, said = make_card(STATES["streaming"]())
    button = named(card, "Stop")
    button.click()
    button.click()
    assert (said, button.description, button.disabled) == (["stop"], "Stopping", True)


def test_what_is_typed_into_the_run_is_sent_by_enter_and_by_click() -> None:
    card, _, said = make_card(STATES["streaming"]())
    field = named(card, "Say something to the agent; it is told after this turn", "Text")
    press_enter(field)
    field.value = "use the other table"
    press_enter(field)
    wait_for(lambda: len(said) == 1)
    field.value = "and hurry"
    named(card, "Send").click()
    wait_for(lambda: len(said) == 2)
    assert (said, field.value) == (["use the other table", "and hurry"], "")


# Drawing


@pytest.mark.parametrize("name", STATES)
def test_every_state_is_drawn_and_drawn_again_without_sending_anything(name: str, sent: type[Recorder]) -> None:
    play = STATES[name]()
    play.view.clock = lambda: play.view.started + 5
    card, _, _ = make_card(play)
    while card.refresh():
        pass
    sent.values.clear()
    card.refresh()
    assert sent.values == []


def test_a_change_of_one_row_touches_no_other() -> None:
    play = STATES["running"]()
    now = play.view.started
    play.view.clock = lambda: now
    card, _, _ = make_card(play)
    card.refresh()
    rows = [part for part in card._parts if part.item.kind == "row"]
    before = [[child.value for child in part.widget.children] for part in rows]
    now += 0.5
    play.view.apply(_console(play, "c3", "80 % of 2.1 MB\n"))
    card.refresh()
    after = [[child.value for child in part.widget.children] for part in rows]
    changed = [number for number in range(len(rows)) if before[number] != after[number]]
    assert changed == [2]
    assert len([1 for old, new in zip(before[2], after[2], strict=True) if old != new]) == 1


def _console(play: Play, call_id: str, text: str) -> Any:
    from pi_notebook.agent.events import ToolExecutionUpdate

    return ToolExecutionUpdate(call_id, "fetch", {}, ToolResult((), ConsoleText(text)))


def test_new_parts_leave_the_boxes_before_them_alone(sent: type[Recorder]) -> None:
    play = Play()
    card, _, _ = make_card(play)
    for number in range(40):
        play.view.notice(f"notice {number}")
    card.refresh()
    sent.values.clear()
    play.view.notice("one more")
    card.refresh()
    children = [value for key, value in sent.values if key == "children"]
    assert [len(value) for value in children] == [9]  # of the third box: 40 = 16 + 16 + 8


def test_long_finished_parts_are_folded_under_one_line() -> None:
    play = Play()
    card, _, _ = make_card(play)
    for number in range(200):
        call = play.call(f"c{number}", "fetch", {"n": number})
        play.start(call)
        play.finish(call, ToolResult(f"result {number}"))
        card.refresh()
    while card.refresh():
        pass
    assert (shown(card).count("<details"), shown(card).count("Earlier in this run")) == (1, 1)
    assert f"{16 * (200 // 16 + 1 - 6)} tool calls</div>" in shown(card)
    assert all(f"result {number}" in shown(card) for number in range(200))
    assert sum(1 for _ in widgets(card.widget)) < 400


def test_what_a_person_has_unfolded_is_not_drawn_anew_when_more_is_folded(sent: type[Recorder]) -> None:
    play = Play()
    card, _, _ = make_card(play)
    for number in range(16 * 6 + 1):
        play.view.notice(f"notice {number}")
    while card.refresh():
        pass
    assert "16 steps</div>" in shown(card)
    sent.values.clear()
    for number in range(16):
        play.view.notice(f"more {number}")
    while card.refresh():
        pass
    assert "32 steps</div>" in shown(card)
    drawn = [value for key, value in sent.values if key == "value" and isinstance(value, str)]
    assert not [value for value in drawn if "<details" in value or "notice 0<" in value]


def test_a_large_result_is_cut_and_its_size_is_named() -> None:
    play = Play()
    call = play.call("c1", "fetch", {})
    play.start(call)
    play.finish(call, ToolResult("0123456789\n" * 200_000))
    card, _, _ = make_card(play)
    assert "cut: 2.2 MB more are not shown here" in shown(card)
    assert len(shown(card)) < 100_000


def test_what_does_not_fit_now_is_drawn_later() -> None:
    play = Play()
    now = play.view.started
    play.view.clock = lambda: now
    card, _, _ = make_card(play)
    for number in range(300):
        play.call(f"c{number}", "fetch", {"n": number})
    refreshes = 0
    while card.refresh():
        now += 1 / 15
        refreshes += 1
        assert refreshes < 1000
    assert refreshes > 3
    assert "n=299" in shown(card)


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    def _repr_html_(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "progress", [Progress("x", None), Progress(1, float("nan")), Progress(2, -1), Progress(3, 2), Progress(1, 0, 7)]
)  # type: ignore[arg-type]
def test_odd_progress_is_drawn_all_the_same(progress: Progress) -> None:
    play = Play()
    call = play.call("c1", "fetch", {})
    play.start(call)
    play.update(call, progress)
    card, _, _ = make_card(play)
    assert "running" in shown(card)
    assert "cannot be shown" not in shown(card)


def test_a_part_that_cannot_be_shown_does_not_hide_the_others() -> None:
    play = Play()
    odd = play.call("c1", "fetch", {"odd": Broken()})
    worse = play.call("c2", "fetch", {})
    asked = play.call("c3", "drop_rows", {})
    play.end_reply("tool_use")
    for call in (odd, worse):
        play.start(call)
    play.finish(odd, ToolResult("x", value=Broken()))
    play.finish(worse, ToolResult([object()]))  # type: ignore[list-item]
    play.ask(asked)
    card, _, _ = make_card(play)
    assert "<Broken that cannot be shown>" in html.unescape(shown(card))
    assert "This part cannot be shown: AttributeError." in shown(card)
    assert named(card, "Approve")
    play.view.finish()
    card.refresh()
    assert "This part cannot be shown: AttributeError." in render_html(play.view)


def test_what_a_running_tool_displays_is_shown_in_its_row() -> None:
    now = 0.0
    play = Play(clock=lambda: now)
    call = play.call("c1", "plot", {})
    play.start(call)
    card, _, _ = make_card(play)
    play.update(call, {"display": {"image/png": picture().data, "text/plain": "<Figure>"}})
    now += 1
    card.refresh()
    assert "data:image/png;base64,iVBOR" in shown(card)


# Rates, with envelopes counted, on a clock of our own


def stream_through(text: str, deltas_per_second: int, size: int) -> Card:
    """Stream `text` into a card that is refreshed 15 times a second."""
    now = 0.0
    play = Play(clock=lambda: now)
    card, _, _ = make_card(play)
    Recorder.sizes.clear()
    Recorder.values.clear()
    index = play._tell(play.reply.text_start())
    refreshed = 0.0
    for start in range(0, len(text), size):
        play._tell(play.reply.text_delta(index, text[start : start + size]))
        now += 1 / deltas_per_second
        if now - refreshed >= 1 / 15:
            refreshed = now
            card.refresh()
    play._tell(play.reply.text_end(index))
    card.refresh()
    return card


PROSE = (
    "The mean price is **3.04**, which is lower than it was last month, because two of the rows are negative. " * 6
    + "\n\n- one item that says a thing\n- another item with `code` in it\n\n"
)


CODE = "```python\n" + "def mean(values):  # of a list\n    return sum(values) / len(values)\n" * 1700


def test_a_long_answer_of_code_sends_less_than_five_times_its_size(sent: type[Recorder]) -> None:
    stream_through(CODE[:100_000], 1_000, 5)
    total = sum(sent.sizes)
    print(f"100 KB of coloured code: {total / 100_000:.2f} times")
    assert total < 500_000


@pytest.mark.parametrize("deltas_per_second", [1_000, 20_000])
def test_a_long_answer_sends_less_than_four_times_its_size(deltas_per_second: int, sent: type[Recorder]) -> None:
    text = (PROSE * 200)[:100_000]
    card = stream_through(text, deltas_per_second, 5)
    total = sum(sent.sizes)
    print(f"{len(text)} characters at {deltas_per_second}/s: {total} bytes, {total / len(text):.2f} times")
    assert total < 4 * len(text)
    assert shown(card).count("another item with") == text.count("another item with")


def test_a_short_answer_is_redrawn_ten_times_a_second(sent: type[Recorder]) -> None:
    text = PROSE[:600]
    stream_through(text, 40, 5)  # three seconds
    drawn = [value for key, value in sent.values if key == "value" and "mean price" in str(value)]
    assert 20 <= len(drawn) <= 35


def test_many_progress_reports_stay_under_the_limit_of_bytes(sent: type[Recorder]) -> None:
    now = 0.0
    play = Play(clock=lambda: now)
    card, _, _ = make_card(play)
    calls = [play.call(f"c{n}", "fetch", {"n": n}) for n in range(200)]
    play.end_reply("tool_use")
    per_second: list[int] = []
    for call in calls:
        play.start(call)
    for step in range(150):
        now += 1 / 15
        for call in calls:
            play.update(call, Progress(step, 150, "step"))
        before = sum(sent.sizes)
        card.refresh()
        per_second.append(sum(sent.sizes) - before)
    assert max(sum(per_second[n : n + 15]) for n in range(135)) < 500_000


# Display


class Output:
    def __init__(self) -> None:
        self.published: list[tuple[dict[str, Any], str, bool]] = []

    def __call__(self, data: dict[str, Any], *, display_id: str, update: bool) -> None:
        self.published.append((data, display_id, update))


def test_the_transcript_takes_the_place_of_the_card() -> None:
    play = STATES["done"]()
    card, _, _ = make_card(play)
    output = Output()
    display = CardDisplay(card, play.view, output)
    display.show()
    assert card.view_count == 0
    card.widget._view_count = 1
    assert card.view_count == 1
    play.view.finish()
    display.finish()
    (live, first, update), (static, second, updated) = output.published
    assert set(live) == {"application/vnd.jupyter.widget-view+json", "text/plain"}
    assert (first, update, updated) == (second, False, True)
    assert set(static) == {"text/html", "text/markdown", "text/plain"}
    assert card.widget.comm is None


def test_on_a_page_that_was_reloaded_the_transcript_stands_in_the_box() -> None:
    play = STATES["waiting"]()
    card, _, _ = make_card(play)
    display = CardDisplay(card, play.view, Output())
    display.show()
    play.view.finish("stopped")
    display.finish(page_reloaded=True)
    assert card.widget.comm is not None
    assert "drop_rows" in shown(card)
    assert not [widget for widget in widgets(card.widget) if type(widget).__name__ == "Button"]
    card.widget.close()
