"""The main job in real pages: a click on Approve while the cell runs, queued cells, interrupts, reloads, exports."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.environments import KERNEL_VERSIONS, kernel_name

from .jupyter import FRONT_ENDS, Notebook, Server, open_notebook

SETUP = """%load_ext pi_notebook
import time
from pi_notebook import tool, scripted, call, ToolContext
ran = []

@tool(approval=True)
def wipe(path: str) -> str:
    "Delete everything under a path."
    ran.append(path)
    return f"wiped {path}"

@tool
def main_sleep() -> str:
    "Sleep on the main thread."
    time.sleep(20)

@tool(thread="worker")
def worker_sleep() -> str:
    "Sleep on a worker thread."
    time.sleep(20)

def model():
    return scripted(["Let me see. ", call("wipe", path="scratch/x")], lambda c: "I was told: " + c.messages[-1].text)
"""
ASK = "m = model()"
AGENT = "%%agent -m m -o out\nwipe scratch/x"


@pytest.fixture(params=[(front, version) for front in FRONT_ENDS for version in KERNEL_VERSIONS], ids="-".join)
def any_page(request: pytest.FixtureRequest, server: Server, browser: Browser) -> Iterator[tuple[Notebook, str]]:
    """A page of each front end for each ipykernel."""
    front, version = request.param
    with open_notebook(server, browser, front) as opened:
        yield opened, version


def opened(page: Notebook, server: Server, name: str, *cells: str, kernel: str = KERNEL_VERSIONS[-1]) -> Notebook:
    """A notebook with the tools defined; cell 2 is the first of `cells`."""
    server.write_notebook(name, [SETUP, ASK, *cells], kernel_name(kernel))
    page.open(name)
    page.run(0, 1, wait=True)
    return page


def test_approve_runs_the_tool_and_queued_cells_follow_in_order(any_page: tuple[Notebook, str], server: Server) -> None:
    page, version = any_page
    opened(
        page, server, f"smoke-{page.front_end}-{version}.ipynb", AGENT, "ran.append(1)", "print(ran)", kernel=version
    )
    page.run(2, 3, 4)
    button = page.button("Approve", 2)
    button.wait_for()
    at = time.monotonic()
    button.click()
    page.wait_text(2, "I was told: wiped scratch/x")
    print(f"{page.front_end} {version}: Approve to the answer: {time.monotonic() - at:.2f} s")
    page.wait_text(4, "['scratch/x', 1]")
    page.wait_idle()  # the number of a cell comes after its output
    assert page.execution_count(3) == page.execution_count(2) + 1
    assert page.execution_count(4) == page.execution_count(2) + 2
    assert page.button("Approve").count() == 0


@pytest.mark.parametrize("subshells", ["disabled", "perCommTarget", "perComm"])
def test_a_click_arrives_whatever_shell_the_page_sends_widget_messages_to(
    lab: Notebook, server: Server, subshells: str
) -> None:
    server.write_notebook(f"subshell-{subshells}.ipynb", [SETUP, ASK, AGENT], kernel_name(KERNEL_VERSIONS[-1]))
    lab.open(f"subshell-{subshells}.ipynb")
    lab.page.evaluate(
        "how => { window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.commsOverSubshells = how }",
        subshells,
    )
    lab.run(0, 1, wait=True)
    lab.run(2)
    lab.click("Approve", 2)
    lab.wait_text(2, "I was told: wiped scratch/x")


def test_block_with_a_reason_tells_the_model_and_a_second_click_does_nothing(
    notebook: Notebook, server: Server
) -> None:
    page = opened(notebook, server, f"block-{notebook.front_end}.ipynb", AGENT, "print(ran)")
    page.run(2, 3)
    page.button("Block", 2).wait_for()
    page.output(2).get_by_placeholder("reason to block").fill("that is my thesis")
    page.button("Block", 2).dblclick()
    page.wait_text(2, "Reason: that is my thesis")
    page.wait_text(3, "[]")


WAITS = {
    "streaming": ("m = scripted(' '.join(['word'] * 5000), delay=0.02)", "word word"),
    "a question": (ASK, "Approve"),
    "main-thread sleep": ("m = scripted([call('main_sleep')], 'x')", "running"),
    "worker sleep": ("m = scripted([call('worker_sleep')], 'x')", "running"),
}


@pytest.mark.parametrize("what", WAITS)
def test_an_interrupt_ends_the_cell_and_the_next_agent_works(lab: Notebook, server: Server, what: str) -> None:
    model, sign = WAITS[what]
    again = "m = scripted('alive'); r = get_ipython().run_cell_magic('agent', '-m m', 'still there?')"
    page = opened(lab, server, f"interrupt-{what.replace(' ', '-')}.ipynb", model, AGENT, "print('queued')", again)
    page.run(2, wait=True)
    page.run(3, 4)
    page.output(3).get_by_text(sign).first.wait_for()
    at = time.monotonic()
    page.interrupt()
    page.output(3).get_by_text("KeyboardInterrupt").last.wait_for()
    print(f"interrupt while {what}: {time.monotonic() - at:.2f} s")
    page.wait_idle()
    assert "queued" not in page.text(4)
    assert "interrupted" in page.text(3)
    page.run(5)
    page.wait_text(5, "alive")


def finished(page: Notebook, server: Server, name: str) -> None:
    """A saved notebook with one approved run, its kernel shut down."""
    opened(page, server, name, AGENT)
    page.run(2)
    page.click("Approve", 2)
    page.wait_text(2, "I was told: wiped scratch/x")
    page.wait_idle()
    page.save()
    page.shut_kernel_down()


def test_the_transcript_survives_save_shutdown_and_reload_trusted_or_not(notebook: Notebook, server: Server) -> None:
    front = notebook.front_end
    name, copy = f"saved-{front}.ipynb", f"saved-{front}-untrusted.ipynb"
    finished(notebook, server, name)
    (output,) = server.read_notebook(name).cells[2].outputs
    assert set(output.data) == {"text/html", "text/markdown", "text/plain"}
    server.copy_untrusted(name, copy)
    for which, file in (("trusted", name), ("untrusted", copy)):
        notebook.open(file)
        for dark in (False, True):
            notebook.theme(dark)
            text = notebook.text(2)
            assert "I was told: wiped scratch/x" in text
            assert "wipe" in text and "scratch/x" in text and "approved by you" in text
            assert "Error displaying widget" not in text
            assert_readable(notebook, 2)
            notebook.screenshot(f"transcript-{front}-{which}-{'dark' if dark else 'light'}", 2)


def assert_readable(page: Notebook, index: int) -> None:
    """Every piece of text stands out from what is behind it (WCAG's contrast of 3 for what we colour)."""
    low = page.output(index).evaluate(CONTRAST)
    assert low == [], low


CONTRAST = """root => {
  const parse = c => (c.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const over = (top, under) => [0, 1, 2].map(i => top[i] * (top[3] ?? 1) + under[i] * (1 - (top[3] ?? 1)));
  const linear = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => [0.2126, 0.7152, 0.0722].reduce((sum, part, i) => sum + part * linear(c[i] / 255), 0);
  const parents = el => { const all = []; for (let e = el; e; e = e.parentElement) all.unshift(e); return all; };
  const behind = el => parents(el).map(e => parse(getComputedStyle(e).backgroundColor))
                                  .reduce((under, top) => over(top, under), [255, 255, 255]);
  const low = [];
  for (const el of root.querySelectorAll('*')) {
    if (![...el.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const opacity = parents(el).reduce((all, e) => all * Number(getComputedStyle(e).opacity), 1);
    const [r, g, b, a] = parse(getComputedStyle(el).color), back = behind(el);
    const [high, deep] = [light(over([r, g, b, (a ?? 1) * opacity], back)), light(back)].sort((x, y) => y - x);
    const ratio = (high + 0.05) / (deep + 0.05);
    if (ratio < 3) low.push([el.textContent.slice(0, 40), String(back), ratio.toFixed(2)]);
  }
  return low;
}"""


def test_the_transcript_stands_in_an_exported_page(lab: Notebook, server: Server, browser: Browser) -> None:
    finished(lab, server, "exported.ipynb")
    path = server.root / "exported.ipynb"
    command = [sys.executable, "-m", "nbconvert", "--to", "html", str(path)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    page = browser.new_page()
    page.goto(path.with_suffix(".html").as_uri(), wait_until="domcontentloaded")
    text = page.locator("body").inner_text()
    page.close()
    assert "I was told: wiped scratch/x" in text
    assert "Error displaying widget" not in text


def test_a_page_reloaded_in_the_middle_gets_its_buttons_back_and_then_the_transcript(
    notebook: Notebook, server: Server
) -> None:
    name = f"reload-{notebook.front_end}.ipynb"
    page = opened(notebook, server, name, AGENT, "print(ran, out.text)", "%agent show")
    page.run(2)
    page.button("Approve", 2).wait_for()
    page.save()
    page.reload(wait=False)
    page.click("Approve", 2)
    page.wait_idle()
    page.output(2).get_by_text("I was told: wiped scratch/x").first.wait_for()
    assert page.button("Approve", 2).count() == 0
    assert "Error displaying widget" not in page.text(2)
    page.run(3, 4)
    page.wait_text(3, "['scratch/x'] I was told: wiped scratch/x")
    page.wait_text(4, "I was told: wiped scratch/x")


def test_run_all_stops_at_an_error_of_the_run_after_its_card(notebook: Notebook, server: Server) -> None:
    model = "m = scripted(RuntimeError('the server burned down'))"
    name = f"error-{notebook.front_end}.ipynb"
    page = opened(notebook, server, name, model, AGENT, "print('after')")
    page.run(2, wait=True)
    page.run(3, 4)
    page.wait_text(3, "the server burned down")
    page.wait_idle()
    assert "after" not in page.text(4)
    assert "Traceback" not in page.text(3)


def test_a_burst_ends_on_the_last_state(lab: Notebook, server: Server) -> None:
    tool = """@tool
def burst(ctx: ToolContext) -> str:
    "Report very often."
    for n in range(10_000):
        ctx.progress(n + 1, 10_000, "step")
    return "burst over"
"""
    model = "m = scripted([call('burst')], ' '.join(f'w{n}' for n in range(20_000)))"
    page = opened(lab, server, "burst.ipynb", tool + model, AGENT, "print('after')")
    page.run(2, wait=True)
    page.run(3, 4)
    page.wait_text(4, "after")
    page.wait_text(3, "burst over")
    assert page.text(3).rstrip().endswith("w19999")
    assert page.button("Stop", 3).count() == 0


def test_a_cell_run_again_in_the_middle_replaces_its_turn_and_names_the_stale_cells(
    notebook: Notebook, server: Server
) -> None:
    model = "m = scripted(*[lambda c: ' / '.join(x.content[0].text for x in c.messages if x.role == 'user')] * 4)"
    cells = [model, "%%agent -m m\none", "%%agent -m m\ntwo", "%%agent -m m\nthree", "%agent undo", "%agent history"]
    page = opened(notebook, server, f"again-{notebook.front_end}.ipynb", *cells)
    page.run(2, wait=True)
    page.run(3, 4, 5)
    page.wait_text(5, "one / two / three")
    page.run(4)
    page.wait_text(4, "Stale now")
    assert "one / two" in page.text(4) and "three" not in page.text(4)
    page.run(6, 7)
    page.wait_text(7, "three")


def test_right_to_left_and_emoji_prompts_come_through(notebook: Notebook, server: Server) -> None:
    prompt = "ما هو متوسط السعر؟ 👩🏽‍🔬🧪"
    model = "m = scripted(lambda c: 'You said: ' + c.messages[-1].content[0].text)"
    page = opened(notebook, server, f"emoji-{notebook.front_end}.ipynb", model, f"%%agent -m m -o out\n{prompt}")
    page.run(2, wait=True)
    page.run(3)
    page.wait_text(3, prompt)
    page.wait_idle()
    page.screenshot(f"right-to-left-{notebook.front_end}", 3)
