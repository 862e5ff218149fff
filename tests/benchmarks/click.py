"""How soon a click is handled while tools report progress: a real browser, a real kernel."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.jupyter import CHROMIUM, Server, open_notebook, running_chromium, running_server

SETUP = """
%load_ext pi_notebook
import asyncio, time
from pi_notebook import tool, scripted, call, ToolContext

@tool
async def wait(ctx: ToolContext) -> str:
    "Report progress until stopped."
    step = 0
    while True:
        ctx.progress(step % 200, 200, "waiting")
        step += 1
        await asyncio.sleep(0.05)

@tool(approval=True)
async def stamp(number: int) -> str:
    "Say when this ran."
    return f"stamp {number} at {time.time() * 1000:.1f}."

calls = [call("wait") for _ in range(TOOLS)] + [call("stamp", number=n) for n in range(CLICKS)]
m = scripted([*calls], "Done.")
"""
# The page's own clock and the kernel's are the same machine's.
WATCH = """
() => {
  window.clicks = []
  window.shown = {}
  const now = () => performance.timeOrigin + performance.now()
  const look = () => {
    for (const [, number, at] of document.body.innerText.matchAll(/stamp (\\d+) at ([\\d.]+)\\./g))
      window.shown[number] ??= [Number(at), now()]
  }
  document.addEventListener('click', event => {
    if (event.target.closest('button')?.innerText.includes('Approve')) window.clicks.push(now())
  }, true)
  new MutationObserver(look).observe(document.body, {childList: true, subtree: true, characterData: true})
}
"""


def is_possible() -> bool:
    """Whether there is a browser."""
    return Path(CHROMIUM).exists()


def figures(tools: int = 10, clicks: int = 20) -> dict[str, float]:
    """`measure` with a server and a browser of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(Path(folder)) as server,
        running_chromium() as browser,
    ):
        return measure(server, browser, tools, clicks)


def measure(server: Server, browser: Browser, tools: int, clicks: int) -> dict[str, float]:
    """Medians in ms from the click on Approve: `click_ran_ms` to the approved tool's code, `click_shown_ms` to its
    result in the page. The `tools` report until all `clicks` are done."""
    setup = SETUP.replace("TOOLS", str(tools)).replace("CLICKS", str(clicks))
    server.write_notebook("clicks.ipynb", [setup, "%%agent -m m\ngo"])
    with open_notebook(server, browser, "lab") as lab:
        lab.open("clicks.ipynb")
        lab.run_all()
        lab.wait_text(1, "waiting")
        lab.page.evaluate(WATCH)
        for number in range(clicks):
            lab.page.locator("button.pi-yes:enabled").first.click()
            lab.page.wait_for_function(f"() => window.shown[{number}]")
        pressed = lab.page.evaluate("() => window.clicks")
        shown = lab.page.evaluate("() => window.shown")
        lab.interrupt()
        lab.wait_text(1, "stopped")
    ran = [shown[str(number)][0] - pressed[number] for number in range(clicks)]
    seen = [shown[str(number)][1] - pressed[number] for number in range(clicks)]
    return {"click_ran_ms": statistics.median(ran), "click_shown_ms": statistics.median(seen)}


def lines(found: dict[str, float]) -> Iterator[str]:
    yield "| in the browser, while 10 tools report progress (median of 20) | measured | limit |"
    yield "|---|--:|--:|"
    yield f"| from a click on Approve to the tool's own code | {found['click_ran_ms']:.0f} ms | 100 ms |"
    yield f"| from the click to the result in the page | {found['click_shown_ms']:.0f} ms | |"
