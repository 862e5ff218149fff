"""Hostile text in a real page: live, and as transcript after a reload, trusted and not."""

from __future__ import annotations

from tests.notebook.hostile import HOSTILE

from .jupyter import REPOSITORY, Notebook, Server

PRELUDE = f"""
import sys
sys.path.insert(0, {str(REPOSITORY)!r})
from IPython.display import display
from tests.browser.states import show_play
from tests.notebook.hostile import HOSTILE
from tests.notebook.test_hostile_text import whole_run
from pi_notebook.notebook.transcript import static_bundle
"""
# Slowly: a server lets a thousand messages a second through, and each card opens some forty widgets
LIVE = """
import time
shown = []
for text in HOSTILE[{0}::4]:
    shown.append(show_play(whole_run(text)))
    time.sleep(0.1)
print('all drawn')"""
STATIC = """
for text in HOSTILE[{0}::4]:
    view = whole_run(text).view
    view.finish('done')
    bundle = static_bundle(view)
    for kind in ('text/html', 'text/markdown', 'text/plain'):
        display({{kind: bundle[kind]}}, raw=True)
print('all drawn')"""
# In four cells, because a page shows no more than 50 outputs of one
LIVE_CELLS = [PRELUDE, *(LIVE.format(part) for part in range(4))]
STATIC_CELLS = [PRELUDE, *(STATIC.format(part) for part in range(4))]

# What must not exist in an output. MathJax makes elements of its own, none of these.
LOOK = """() => {
  const found = [];
  for (const output of document.querySelectorAll('.jp-OutputArea-output')) {
    const never = 'script,iframe,object,embed,video,form,base,meta,link';
    for (const e of output.querySelectorAll(never)) found.push(e.outerHTML);
    for (const e of output.querySelectorAll('*')) {
      for (const a of e.attributes) {
        if (a.name.startsWith('on') || a.name.startsWith('data-commandlinker')) found.push(e.outerHTML);
        // JupyterLab links addresses in plain text by itself, and browsers open no page from a data: link
        const own = a.value === e.textContent && a.value.startsWith('data:');
        if (a.name === 'href' && /^\\s*(javascript|data|vbscript):/i.test(a.value) && !own) found.push(e.outerHTML);
        if (a.name === 'src' && !a.value.startsWith('data:image/')) found.push(e.outerHTML);
      }
      if (['fixed', 'sticky'].includes(getComputedStyle(e).position)) found.push(e.outerHTML);
    }
  }
  return found;
}"""


def check_nothing_acted(notebook: Notebook) -> None:
    notebook.page.wait_for_timeout(700)  # for what would load or fire late
    assert not notebook.pwned
    assert notebook.dialogs == []
    assert notebook.requests == []
    assert notebook.page.evaluate(LOOK) == []


def wait_until_drawn(notebook: Notebook) -> None:
    for cell in range(1, 5):
        notebook.wait_text(cell, "all drawn")


def test_hostile_text_does_nothing_in_the_live_card(notebook: Notebook, server: Server) -> None:
    server.write_notebook("hostile.ipynb", LIVE_CELLS)
    notebook.open("hostile.ipynb")
    notebook.run_all()
    wait_until_drawn(notebook)
    notebook.wait_for(lambda: notebook.button("Approve").count() == len(HOSTILE), "every card is drawn")
    check_nothing_acted(notebook)


def test_hostile_text_does_nothing_in_the_transcript_trusted_or_not(notebook: Notebook, server: Server) -> None:
    server.write_notebook("hostile.ipynb", STATIC_CELLS)
    notebook.open("hostile.ipynb")
    notebook.run_all()
    wait_until_drawn(notebook)
    notebook.wait_idle()
    check_nothing_acted(notebook)
    notebook.save()
    notebook.shut_kernel_down()
    notebook.reload()
    wait_until_drawn(notebook)
    check_nothing_acted(notebook)
    server.copy_untrusted("hostile.ipynb", "copy.ipynb")
    notebook.open("copy.ipynb")
    wait_until_drawn(notebook)
    check_nothing_acted(notebook)


def test_the_checks_see_what_does_act(lab: Notebook, server: Server) -> None:
    bad = "<img src=x onerror='window.pwned=1'><img src='http://127.0.0.1:9/pwned.png'><a href='javascript:x'>x</a>"
    server.write_notebook("bad.ipynb", [f"display({{'text/html': {bad!r}}}, raw=True)"])
    lab.open("bad.ipynb")
    lab.run(0, wait=True)
    lab.wait_for(lambda: lab.pwned, "the script runs")
    lab.wait_for(lambda: "http://127.0.0.1:9/pwned.png" in lab.requests, "the picture is asked for")
    assert len(lab.page.evaluate(LOOK)) >= 3
