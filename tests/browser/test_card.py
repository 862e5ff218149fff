"""The card in a real page: its states, its questions, a run that goes on."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator

from ..benchmarks.click import measure
from .jupyter import REPOSITORY, Notebook, Server
from .states import STATES

PRELUDE = f"import sys\nsys.path.insert(0, {str(REPOSITORY)!r})\nfrom tests.browser.states import *"
SETUP = """
%load_ext pi_notebook
import asyncio, time
from pi_notebook import tool, scripted, call, ToolContext

ran = []

@tool(approval=True)
async def drop(table: str, limit: int = 10) -> str:
    "Drop rows of a table."
    ran.append((table, limit))
    return f"dropped {limit} of {table}"

@tool
async def wait(seconds: float, ctx: ToolContext) -> str:
    "Wait."
    for step in range(int(seconds * 20)):
        ctx.progress(step, seconds * 20, "waiting")
        await asyncio.sleep(0.05)
    return "waited"
"""
AGENT = "%%agent -m m -o out\n{}"


def write_agent_notebook(server: Server, name: str, model: str, prompt: str = "go", *more: str) -> None:
    """A notebook whose second cell makes the model `m`, and whose third is the agent's."""
    server.write_notebook(name, [SETUP, f"m = {model}", AGENT.format(prompt), *more], "pi-7.4.0")


# States


@pytest.mark.parametrize("width", [1100, 460], ids=["wide", "narrow"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_state_fits_its_place_in_both_themes(lab: Notebook, server: Server, width: int, dark: bool) -> None:
    server.write_notebook("states.ipynb", [PRELUDE, *(f"shown = show({name!r})" for name in STATES)])
    lab.width(width, 1600)
    lab.open("states.ipynb")
    lab.theme(dark)
    lab.run_all()
    for index, name in enumerate(STATES, 1):
        lab.wait_text(index, "anthropic:claude-sonnet-4-5")
        lab.output(index).scroll_into_view_if_needed()
        look = f"{name}-{'dark' if dark else 'light'}-{'wide' if width > 600 else 'narrow'}"
        lab.screenshot(look, index)
        assert sticking_out(lab, index) == [], look


def sticking_out(notebook: Notebook, index: int) -> list[str]:
    """Elements of a card that reach over its right edge, apart from what scrolls."""
    found: list[str] = notebook.output(index).evaluate(
        """output => {
          const card = output.querySelector('.pi-card') ?? output.querySelector('.jp-RenderedHTMLCommon > div');
          const edge = card.getBoundingClientRect().right + 1;
          const clips = e => /auto|scroll|hidden/.test(getComputedStyle(e).overflowX);
          const clipped = e => e && e !== card && (clips(e) || clipped(e.parentElement));
          return [...card.querySelectorAll('*')]
            .filter(e => e.getBoundingClientRect().right > edge && !clipped(e.parentElement))
            .filter(e => !e.closest('.pi-spoken'))
            .map(e => e.outerHTML.slice(0, 200));
        }"""
    )
    return found


# Questions


def test_a_question_is_answered_by_keyboard_and_takes_no_focus(notebook: Notebook, server: Server) -> None:
    write_agent_notebook(server, "keys.ipynb", "scripted([call('drop', table='sales')], 'Done.')")
    notebook.open("keys.ipynb")
    notebook.run(0, 1, wait=True)
    notebook.cell(1).locator(".cm-content").click()
    notebook.page.keyboard.press("End")
    notebook.run(2)
    notebook.cell(1).locator(".cm-content").click()
    notebook.button("Approve").wait_for()
    assert notebook.page.evaluate("() => document.activeElement.closest('.cm-content') !== null")
    notebook.button("Approve").focus()
    order = []
    for _ in range(4):
        notebook.page.keyboard.press("Tab")
        order.append(
            notebook.page.evaluate("() => document.activeElement.textContent || document.activeElement.placeholder")
        )
    assert order == ["Block", "reason to block, for the model (Enter blocks)", "Edit", "Always allow"]
    notebook.page.keyboard.press("Shift+Tab")
    notebook.page.keyboard.press("Shift+Tab")
    notebook.page.keyboard.type("the table is in use")
    notebook.page.keyboard.press("Enter")
    notebook.wait_text(2, "blocked by you at")
    notebook.wait_text(2, "Reason: the table is in use")


def test_questions_are_answered_one_after_another_by_keyboard(notebook: Notebook, server: Server) -> None:
    batch = ", ".join(f"call('drop', table='t{n}')" for n in range(3))
    write_agent_notebook(server, "chain.ipynb", f"scripted([{batch}, call('wait', seconds=4)], 'Done.')")
    notebook.open("chain.ipynb")
    notebook.run_all()
    notebook.page.wait_for_function("() => document.querySelectorAll('.pi-ask').length === 3")
    notebook.button("Approve").first.focus()
    for n in range(3):
        notebook.page.keyboard.press("Enter")
        if n < 2:
            reason = notebook.output(2).get_by_label("Reason to block").nth(n + 1)
            wait_for_focus(reason)
            notebook.page.keyboard.press("Enter")  # a stray one decides nothing
            notebook.page.keyboard.press("Shift+Tab")
            notebook.page.keyboard.press("Shift+Tab")
            wait_for_focus(notebook.output(2).get_by_role("button", name="Approve").first)
    wait_for_focus(notebook.output(2).get_by_label("Say something to the agent"))
    notebook.wait_text(2, "✓ done")
    assert notebook.text(2).count("approved by you") == 3


def wait_for_focus(element: Locator) -> None:
    deadline = time.monotonic() + 20
    while not element.evaluate("e => e === document.activeElement"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_second_click_does_nothing(notebook: Notebook, server: Server) -> None:
    write_agent_notebook(server, "twice.ipynb", "scripted([call('drop', table='sales')], 'Done.')", "go", "print(ran)")
    notebook.open("twice.ipynb")
    notebook.run_all()
    notebook.button("Approve").wait_for()
    notebook.button("Approve").dblclick()
    notebook.wait_text(3, "[('sales', 10)]")


def test_three_questions_are_answered_out_of_order(lab: Notebook, server: Server) -> None:
    calls = ", ".join(f"call('drop', table='t{n}')" for n in range(3))
    write_agent_notebook(server, "three.ipynb", f"scripted([{calls}], 'Done.')", "go", "print(ran)")
    lab.open("three.ipynb")
    lab.run_all()
    lab.wait_for(lambda: lab.button("Approve").count() == 3, "three questions stand open")
    lab.screenshot("three-questions", 2)
    lab.click("Approve", nth=2)
    lab.wait_text(2, "dropped 10 of t2")
    lab.wait_for(lambda: lab.button("Approve").count() == 2, "two questions are left")
    lab.output(2).get_by_placeholder("reason to block").nth(1).fill("keep t1")
    lab.click("Block", nth=1)
    lab.wait_text(2, "Reason: keep t1")
    lab.click("Approve", nth=0)
    lab.wait_text(3, "[('t2', 10), ('t0', 10)]")


def test_edited_arguments_are_what_runs(notebook: Notebook, server: Server) -> None:
    write_agent_notebook(server, "edit.ipynb", "scripted([call('drop', table='sales')], 'Done.')", "go", "print(ran)")
    notebook.open("edit.ipynb")
    notebook.run_all()
    notebook.click("Edit")
    notebook.output(2).get_by_label("limit").fill("3")
    notebook.click("Run edited")
    notebook.wait_text(3, "[('sales', 3)]")
    notebook.wait_text(2, "edited and approved by you")
    assert "+ limit: 3" in notebook.text(2)


def test_always_allow_asks_no_more_until_the_tool_is_made_anew(lab: Notebook, server: Server) -> None:
    model = (
        "scripted([call('drop', table='a')], [call('drop', table='b')], 'Done.', [call('drop', table='c')], 'Done.')"
    )
    cells = [SETUP, f"m = {model}", AGENT.format("go"), SETUP.partition("ran = []")[2], AGENT.format("again")]
    server.write_notebook("always.ipynb", cells, "pi-7.4.0")
    lab.open("always.ipynb")
    lab.run(0, 1, 2)
    lab.click("Always allow")
    lab.wait_text(2, "dropped 10 of b")
    lab.run(3, 4)
    lab.button("Approve", 4).wait_for()
    lab.click("Approve", 4)
    lab.wait_text(4, "dropped 10 of c")


def test_steering_is_shown_as_queued_and_then_reaches_the_model(lab: Notebook, server: Server) -> None:
    model = "scripted([call('wait', seconds=3)], lambda context: str(context.messages[-1].content))"
    write_agent_notebook(server, "steer.ipynb", model)
    lab.open("steer.ipynb")
    lab.run_all()
    field = lab.output(2).get_by_placeholder("Say something to the agent")
    field.fill("use the other table")
    field.press("Enter")
    lab.wait_text(2, "queued until this turn ends")
    assert field.input_value() == ""
    lab.wait_text(2, "waited")
    lab.wait_for(lambda: lab.text(2).count("use the other table") == 2, "the model answers with what it was told")


def test_stop_ends_the_run_and_the_next_cell_goes_on(notebook: Notebook, server: Server) -> None:
    write_agent_notebook(server, "stop.ipynb", "scripted([call('wait', seconds=60)], 'Done.')", "go", "print('next')")
    notebook.open("stop.ipynb")
    notebook.run_all()
    notebook.wait_text(2, "waiting")
    notebook.click("Stop")
    notebook.wait_text(3, "next")
    notebook.wait_text(2, "■ stopped")


# While it goes on

WATCH = """index => {
  const cell = document.querySelectorAll('.jp-Notebook .jp-Cell')[index];
  window.watched = {heights: [], tops: [], gap: 0, at: performance.now()};
  const look = () => {
    const card = cell.querySelector('.pi-card');
    const now = performance.now();
    window.watched.gap = Math.max(window.watched.gap, now - window.watched.at);
    window.watched.at = now;
    if (card) {
      const place = card.getBoundingClientRect();
      window.watched.heights.push(place.height);
      window.watched.tops.push(place.top);
    }
    requestAnimationFrame(look);
  };
  look();
}"""
ANSWER = "".join(
    f"Paragraph {n} has **some** words in it, and `code`.\\n\\n- an item\\n- and another\\n\\n" for n in range(12)
)


def test_nothing_jumps_or_shrinks_while_text_streams(lab: Notebook, server: Server) -> None:
    write_agent_notebook(server, "jump.ipynb", f"scripted('{ANSWER}', delay=0.01)")
    lab.width(1000, 2400)
    lab.open("jump.ipynb")
    lab.run(0, 1, wait=True)
    lab.page.evaluate(WATCH, 2)
    lab.run(2)
    lab.wait_text(2, "✓ done")
    watched = lab.page.evaluate("() => window.watched")
    heights = watched["heights"][3:]
    assert len(heights) > 20
    shrunk = [(a, b) for a, b in pairwise(heights) if b < a - 4]
    assert shrunk == []
    assert max(watched["tops"][3:]) - min(watched["tops"][3:]) < 2


def test_what_a_person_has_unfolded_stays_unfolded_while_other_rows_move(lab: Notebook, server: Server) -> None:
    long = "{'table': 'x' * 200}"
    model = f"scripted([call('drop', **{long}), call('wait', seconds=4)], 'Done.')"
    write_agent_notebook(server, "unfold.ipynb", model)
    lab.open("unfold.ipynb")
    lab.run_all()
    lab.click("Approve")
    lab.output(2).get_by_text("arguments", exact=True).click()
    for _ in range(5):
        lab.page.wait_for_timeout(200)
        assert lab.output(2).locator("details[open]").count() == 1


def test_two_hundred_calls_leave_the_page_responsive(lab: Notebook, server: Server) -> None:
    model = "scripted(*[[f'Step {n}.', call('look', n=n)] for n in range(200)], [call('wait', seconds=60)])"
    look = '@tool\nasync def look(n: int) -> str:\n    "Look."\n    return f"seen {n}\\n" * 4'
    server.write_notebook("many.ipynb", [SETUP, look, f"m = {model}", "%%agent -m m --max-turns 300\ngo"], "pi-7.4.0")
    lab.open("many.ipynb")
    lab.run(0, 1, 2, wait=True)
    lab.page.evaluate(WATCH, 3)
    began = time.monotonic()
    lab.run(3)
    lab.wait_text(3, "waiting")
    longest = lab.page.evaluate("() => window.watched.gap")
    print(f"200 calls: {time.monotonic() - began:.1f} s, longest frame {longest:.0f} ms")
    clicked = time.monotonic()
    lab.click("Stop")
    lab.wait_text(3, "■ stopped")
    print(f"click to transcript: {time.monotonic() - clicked:.2f} s")
    assert lab.text(3).count("look") == 200
    lab.save()
    lab.shut_kernel_down()
    lab.reload()
    lab.wait_text(3, "■ stopped")


def test_clicks_are_handled_while_ten_tools_report_progress(server: Server, browser: Browser) -> None:
    found = measure(server, browser, tools=10, clicks=3)
    print("click while ten tools report:", found)
    assert found["click_ran_ms"] < found["click_shown_ms"]


def test_a_large_result_and_foreign_scripts_survive_a_reload(lab: Notebook, server: Server) -> None:
    text = "שלום 👨‍👩‍👧 مرحبا"
    big = '@tool\nasync def big() -> str:\n    "Big."\n    return "0123456789\\n" * 200_000'
    model = f"scripted([call('big')], 'You said: {text}')"
    server.write_notebook("big.ipynb", [SETUP, big, f"m = {model}", AGENT.format(text)], "pi-7.4.0")
    lab.open("big.ipynb")
    lab.run_all()
    lab.wait_text(3, f"You said: {text}")
    lab.wait_text(3, "✓ done")
    lab.save()
    lab.shut_kernel_down()
    lab.reload()
    lab.wait_text(3, f"You said: {text}")
    lab.output(3).get_by_text("KB of 2.2 MB").click()
    lab.wait_text(3, "more are not shown here")
    outputs: Any = server.read_notebook("big.ipynb").cells[3].outputs
    assert [sorted(output.data) for output in outputs] == [["text/html", "text/markdown", "text/plain"]]
    lab.screenshot("foreign-scripts", 3)


@pytest.mark.parametrize("calls", [1, 2])
def test_a_word_typed_while_a_plain_tool_holds_the_kernel_is_told_after_its_turn(
    lab: Notebook, server: Server, calls: int
) -> None:
    hold = '@tool\ndef hold(n: int) -> str:\n    "Hold the thread."\n    time.sleep(3)\n    return f"held {n}"'
    said = "lambda c: f'Told last: {c.messages[-1].content}'"
    batch = ", ".join(f"call('hold', n={n})" for n in range(calls))
    cells = [SETUP, hold, f"m = scripted([{batch}], {said})", AGENT.format("go")]
    server.write_notebook(f"hold-{calls}.ipynb", cells, "pi-7.4.0")
    lab.open(f"hold-{calls}.ipynb")
    lab.run(0, 1, 2, wait=True)
    lab.run(3)
    lab.wait_text(3, "running")
    field = lab.output(3).get_by_placeholder("Say something to the agent")
    field.click()
    lab.page.keyboard.type("use the other one", delay=20)
    lab.page.keyboard.press("Enter")
    lab.wait_text(3, "✓ done")
    lab.wait_text(3, "Told last: use the other one")
    assert "You: use the other one" in lab.text(3)
